"""A chart as HTML: its title, its note, and its figure for the script of the page."""

import json

from metrics.report.figure import Chart
from metrics.report.markup import Raw, element

__all__ = ["chart_block"]


def chart_block(chart: Chart | None, missing: str = "") -> Raw:
    """A chart with title and note; `missing` is said instead of a chart that there isn't."""
    if chart is None:
        return element("p", missing, class_="empty") if missing else Raw("")
    # A "<" in a name would end the script element; in JSON it may be written as an escape.
    document = json.dumps(chart.figure(), separators=(",", ":"), allow_nan=False)
    document = document.replace("<", "\\u003c")
    return element(
        "figure",
        element("figcaption", element("h3", chart.title), element("p", chart.note, class_="note")),
        element("div", class_="chart", style=f"min-height:{chart.layout['height']}px"),
        Raw(f'<script type="application/json">{document}</script>'),
        class_=chart.width,
    )
