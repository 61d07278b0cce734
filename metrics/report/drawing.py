"""The network of a run as a picture, every link coloured by its mean utilisation."""

import polars as pl

from metrics.drawing import draw_network
from metrics.records import RunRecords
from metrics.report.markup import Raw, element

__all__ = ["network_drawing"]

_NOTE = (
    "Mean utilisation: time that frames with preambles and gaps occupied a line / emulated time of "
    "the run. Links side by side are one line with their mean. Point at a line for its figures."
)


def network_drawing(records: RunRecords, loads: pl.DataFrame) -> Raw:
    """The drawing; `loads` as `analysis.loads.link_loads` makes them."""
    shares = {
        (row["link"], row["direction"]): row["mean_ratio"] for row in loads.iter_rows(named=True)
    }
    drawn = draw_network(
        records.run["job"],
        title=str(records.run.get("lab", "network")),
        utilisation=shares,
        theme="light",
    )
    return element(
        "div",
        element("h3", "Network"),
        element("p", _NOTE, class_="note"),
        element("div", Raw(drawn), class_="drawing"),
    )
