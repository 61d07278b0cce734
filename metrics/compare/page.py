"""A comparison as one self-contained HTML page, with both runs' distributions in one chart."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from metrics.compare import rows
from metrics.compare.comparison import Comparison
from metrics.fluid import fluid_label, is_fluid
from metrics.presentation import count_text, duration_unit, kind_text, size_text
from metrics.report.chart_block import chart_block
from metrics.report.charts.distributions import curve
from metrics.report.figure import Chart, axis, layout, packed
from metrics.report.markup import Cell, Column, Raw, element, table
from metrics.report.page import assemble

__all__ = ["write_comparison"]

CHART_LIMIT = 9
"""Most kinds and sizes that get a chart, those with the most time."""
_COLOURS = ("#2f6db5", "#e07b39")


def write_comparison(comparison: Comparison, path: Path) -> Path:
    """Write the page to `path`, and return it."""
    names = comparison.names
    sections = [
        ("Agreement", _agreement(comparison)),
        ("Completion times", _times(comparison)),
        ("Totals and queues", _sides(comparison)),
        ("Settings that differ", _differences(comparison)),
    ]
    title = f"{names[0]} against {names[1]}"
    path.write_text(assemble(title, _header(comparison, title), sections), encoding="utf-8")
    return path


def _header(comparison: Comparison, title: str) -> Raw:
    """Title, directories and the verdict."""
    banners = []
    if not comparison.agrees:
        text = "The two did not do the same: counts, bytes or order differ."
        banners.append(element("div", text, class_="banner error"))
    for side in (comparison.first, comparison.second):
        if is_fluid(side.run):
            text = f"{side.directory.name}: {fluid_label(side.run)}"
            banners.append(element("div", text, class_="banner caution"))
        scale = side.run.get("size_scale", 1)
        if scale != 1:
            text = f"Message sizes of {side.directory.name} are scaled by {scale:g}."
            banners.append(element("div", text, class_="banner caution"))
    places = f"First: {comparison.first.directory}. Second: {comparison.second.directory}."
    return element(
        "header",
        element("div", *banners, class_="banners"),
        element("p", "rankwire comparison", class_="kicker"),
        element("h1", title),
        element("p", f"{places} Relative errors are (second - first) / first.", class_="note"),
        element("ul", *(element("li", text) for text in comparison.explanations)),
    )


def _agreement(comparison: Comparison) -> Raw:
    parts = [_text_table(["Check", "Compared", "Result"], rows.check_rows(comparison))]
    for check in comparison.checks:
        if check.examples:
            items = [element("li", example) for example in check.examples]
            parts += [element("h3", f"{check.name}: first / second"), element("ul", *items)]
    return Raw("".join(parts))


def _times(comparison: Comparison) -> Raw:
    names = comparison.names
    body = _text_table(rows.error_headings(names), rows.error_rows(comparison))
    note = (
        "Quantiles by nearest rank; n/a with fewer than 1 / (1 - quantile) samples. Completion "
        "times of the same collective in both runs are compared with one another."
    )
    charts = [chart_block(chart) for chart in _curves(comparison)]
    scatter = chart_block(_scatter(comparison))
    return Raw(
        body + element("p", note, class_="note") + element("div", *charts, scatter, class_="charts")
    )


def _curves(comparison: Comparison) -> list[Chart]:
    """Both distributions of every kind and size, the most time first."""
    matched = comparison.matched
    groups = matched.group_by("kind", "size_bytes", "ranks").agg(pl.col("first_ns").sum())
    groups = groups.sort("first_ns", "kind", "size_bytes", descending=[True, False, False])
    charts = []
    for kind, size, ranks, _ in groups.head(CHART_LIMIT).iter_rows():
        mine = matched.filter(kind=kind, size_bytes=size, ranks=ranks)
        scale, unit = duration_unit(float(mine["first_ns"].max()))  # type: ignore[arg-type]
        data = [
            curve(name, mine[f"{side}_ns"].to_numpy() / scale, colour, unit)
            for name, side, colour in zip(
                comparison.names, ("first", "second"), _COLOURS, strict=True
            )
        ]
        axes = {
            "xaxis": axis(f"completion time, {unit}, emulated"),
            "yaxis": axis("share of collectives, %", range=[0, 101]),
        }
        title = f"{kind_text(kind)} {size_text(size)}, {ranks} ranks"
        charts.append(Chart(title, "", data, layout(330, axes), width="third"))
    return charts


def _scatter(comparison: Comparison, limit: int = 5000) -> Chart | None:
    """Second against first for every collective; equal times lie on the diagonal."""
    matched = comparison.matched
    if matched.is_empty():
        return None
    largest = max(float(matched[f"{side}_ns"].max()) for side in ("first", "second"))  # type: ignore[arg-type]
    scale, unit = duration_unit(largest)
    shown = matched.gather_every(-(-len(matched) // limit))
    data: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "markers", "name": "collectives",
            "x": packed(shown["first_ns"].to_numpy() / scale),
            "y": packed(shown["second_ns"].to_numpy() / scale),
            "text": shown["label"].to_list(),
            "marker": {"size": 5, "color": _COLOURS[0], "opacity": 0.55},
            "hovertemplate": f"%{{text}}<br>%{{x:.4g}} / %{{y:.4g}} {unit}<extra></extra>",
        },
        {
            "type": "scatter", "mode": "lines", "name": "equal",
            "x": [0, largest / scale], "y": [0, largest / scale], "hoverinfo": "skip",
            "line": {"color": "#7b8896", "width": 1, "dash": "dash"},
        },
    ]  # fmt: skip
    first, second = comparison.names
    axes = {
        "xaxis": axis(f"{first}: completion time, {unit}", rangemode="tozero"),
        "yaxis": axis(f"{second}: completion time, {unit}", rangemode="tozero"),
    }
    note = f"{count_text(len(shown))} of {count_text(len(matched))} collectives."
    return Chart("Collective by collective", note, data, layout(420, axes), width="half")


def _sides(comparison: Comparison) -> Raw:
    parts = [_text_table(["", *comparison.names, "Difference"], rows.total_rows(comparison))]
    queues = rows.queue_rows(comparison)
    if queues:
        headings = rows.queue_headings(comparison)
        parts += [element("h3", "Deepest switch queues"), _text_table(headings, queues)]
    balances = rows.ecmp_rows(comparison)
    if balances:
        headings = rows.ecmp_headings(comparison.names)
        parts += [element("h3", "Equal-cost ports"), _text_table(headings, balances)]
    return Raw("".join(parts))


def _differences(comparison: Comparison) -> Raw:
    body = rows.difference_rows(comparison, 200)
    if not body:
        return element("p", "None: lab, traffic and seed are the same.", class_="quiet")
    return _text_table(["Setting", *comparison.names], body)


def _text_table(headings: Sequence[str], body: Sequence[Sequence[str]]) -> Raw:
    """A table of texts, the first column to the left."""
    columns = [Column(heading, numeric=number > 0) for number, heading in enumerate(headings)]
    return table(columns, [[Cell(text) for text in row] for row in body])
