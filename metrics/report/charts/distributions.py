"""Cumulative distributions of completion times and slowdowns."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from metrics.analysis.quantiles import step_curve
from metrics.classes import SIZE_CLASSES, size_class_indices
from metrics.presentation import colour_of, count_text, duration_unit, kind_text, size_text
from metrics.report.figure import PALETTE, Chart, axis, layout, logarithmic, packed

__all__ = ["collective_curves", "curve", "flow_curves"]

POINT_LIMIT = 800
"""Most points of one curve."""
CURVE_LIMIT = 12
"""Most curves of one chart."""
_NOTE = f"Exact order statistics, at most {POINT_LIMIT} points a curve. "


def curve(
    name: str, samples: NDArray[np.float64], colour: str, unit: str, dash: str = "solid"
) -> dict[str, object]:
    """One cumulative distribution as a trace."""
    values, shares = step_curve(samples, POINT_LIMIT)
    # From nothing up to the first: of a single sample that is all there is.
    values, shares = np.append(values[:1], values), np.append(np.zeros(len(values[:1])), shares)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{name} (n = {count_text(len(samples))})",
        "x": packed(values, "f4"),
        "y": packed(shares * 100, "f4"),
        "line": {"shape": "hv", "width": 2, "color": colour, "dash": dash},
        "hovertemplate": f"%{{y:.2f}} % within %{{x:.4g}} {unit}<extra>{name}</extra>",
    }


def collective_curves(collectives: pl.DataFrame) -> Chart | None:
    """Completion times by kind and size; the groups with the most time in them."""
    done = collectives.filter(pl.col("completion_time_ns").is_not_null())
    if done.is_empty():
        return None
    keys = done.group_by("kind", "size_bytes", "ranks").agg(pl.col("completion_time_ns").sum())
    keys = keys.sort("completion_time_ns", "kind", "size_bytes", descending=[True, False, False])
    scale, unit = duration_unit(float(done["completion_time_ns"].median()))  # type: ignore[arg-type]
    data, seen = [], dict[str, int]()
    for kind, size, ranks, _ in keys.head(CURVE_LIMIT).iter_rows():
        times = done.filter(kind=kind, size_bytes=size, ranks=ranks)["completion_time_ns"]
        name = f"{kind_text(kind)} {size_text(size)}, {ranks} ranks"
        dash = ("solid", "dash", "dot", "dashdot")[seen.setdefault(kind, 0) % 4]
        seen[kind] += 1
        data.append(curve(name, times.to_numpy() / scale, colour_of(kind), unit, dash))
    note = _NOTE + f"{len(data)} of {len(keys)} groups, those with the most time."
    all_times = done["completion_time_ns"].to_numpy() / scale
    axes = {
        "xaxis": logarithmic(f"collective completion time, {unit}, emulated (log)", all_times),
        "yaxis": axis("share of collectives, %", range=[0, 101]),
    }
    return Chart("Collective completion time", note, data, layout(400, axes), width="third")


def flow_curves(flows: pl.DataFrame) -> list[Chart]:
    """Completion times and slowdowns of messages by size class."""
    done = flows.filter(pl.col("completion_time_ns").is_not_null())
    if done.is_empty():
        return []
    classes = size_class_indices(done["size_bytes"].to_numpy())
    times = done["completion_time_ns"].to_numpy()
    slowdown = done["slowdown"].to_numpy()
    scale, unit = duration_unit(float(np.median(times)))
    return [
        _classed("Flow completion time", times / scale, classes, unit,
                 f"flow completion time, {unit}, emulated (log)",
                 _NOTE + "A message from its posting to its acknowledgement, by size."),
        _classed("Flow slowdown", slowdown, classes, "x ideal",
                 "flow completion time / ideal time (log)",
                 _NOTE + "Ideal: alone in the fabric at line rate, see the formula below."),
    ]  # fmt: skip


def _classed(
    title: str,
    samples: NDArray[np.float64],
    classes: NDArray[np.int64],
    unit: str,
    x_title: str,
    note: str,
) -> Chart:
    """One curve for each size class that occurs."""
    data = [
        curve(SIZE_CLASSES[number], samples[classes == number], PALETTE[number % 8], unit)
        for number in np.unique(classes)
    ]
    axes = {
        "xaxis": logarithmic(x_title, samples),
        "yaxis": axis("share of messages, %", range=[0, 101]),
    }
    return Chart(title, note, data, layout(400, axes, showlegend=True), width="third")
