"""Congestion control at the senders: rates and alpha of the queue pairs over time."""

import numpy as np
import polars as pl

from metrics.presentation import duration_unit
from metrics.report.figure import PALETTE, Chart, axis, layout, packed

__all__ = ["sender_rates"]

QP_LIMIT = 6
"""Most queue pairs of the chart: those whose rate fell lowest."""
POINT_LIMIT = 1500
"""Most samples of one queue pair, evenly chosen."""
_KEYS = ("source_rank", "destination_rank", "qp")


def sender_rates(qps: pl.DataFrame, algorithm: str, traffic_class: str = "") -> Chart | None:
    """Rates above, alpha (DCQCN only) below, for the queue pairs that congestion hit most.

    `traffic_class` names the class of the queue pairs where there are several.
    """
    if qps.is_empty():
        return None
    pairs = qps.group_by(*_KEYS).agg(pl.col("current_rate_bps").min().alias("lowest"))
    shown = pairs.sort("lowest", *_KEYS).head(QP_LIMIT)
    scale, unit = duration_unit(float(qps["time_ns"].max() or 1))  # type: ignore[arg-type]
    data = []
    for number, key in enumerate(shown.iter_rows(named=True)):
        mine = qps.filter(*(pl.col(name) == key[name] for name in _KEYS)).sort("time_ns")
        lines = _lines_of(_thinned(mine), key, scale, unit, PALETTE[number % 8])
        data += lines if algorithm == "dcqcn" else lines[:1]
    axes = {
        "xaxis": axis(f"emulated time, {unit}"),
        "yaxis": axis("rate, Gb/s", rangemode="tozero"),
    }
    rates = "Current rate."
    if algorithm == "dcqcn":
        rates = "Solid: current rate R_C; dotted: target rate R_T."
        axes["xaxis"]["anchor"] = "y2"
        axes["yaxis"]["domain"] = [0.38, 1]
        axes["yaxis2"] = axis("alpha", domain=[0, 0.3], range=[0, 1.05], anchor="x")
    note = (
        f"{len(shown)} of {len(pairs)} queue pairs that had work (those whose rate fell lowest; "
        f"cap {QP_LIMIT}). {rates} Gaps: no work. "
        f"At most {POINT_LIMIT} samples each."
    )
    shown_as = algorithm.upper() if algorithm == "dcqcn" else algorithm
    title = f"Sender rates{f' of class {traffic_class}' if traffic_class else ''} ({shown_as})"
    return Chart(title, note, data, layout(480 if "yaxis2" in axes else 360, axes))


def _thinned(series: pl.DataFrame) -> pl.DataFrame:
    """At most `POINT_LIMIT` rows, evenly chosen."""
    if len(series) <= POINT_LIMIT:
        return series
    rows = np.linspace(0, len(series) - 1, POINT_LIMIT).round().astype(np.int64)
    return series.select(pl.all().gather(rows))


def _lines_of(
    series: pl.DataFrame, key: dict[str, int], scale: float, unit: str, colour: str
) -> list[dict[str, object]]:
    """Three traces of one queue pair; they share a legend entry."""
    name = f"{key['source_rank']} → {key['destination_rank']} (qp {key['qp']})"
    times = series["time_ns"].to_numpy() / scale
    steps = np.diff(times, prepend=times[:1])
    usual = float(np.median(steps[1:])) if len(steps) > 1 else 0.0
    gaps = np.flatnonzero(steps > 2.5 * usual) if usual > 0 else np.empty(0, dtype=np.int64)
    traces = []
    for column, label, divisor, dash, y_axis in (
        ("current_rate_bps", "R_C", 1e9, "solid", "y"),
        ("target_rate_bps", "R_T", 1e9, "dot", "y"),
        ("alpha", "alpha", 1.0, "solid", "y2"),
    ):
        values = np.insert(series[column].to_numpy() / divisor, gaps, np.nan)
        traces.append(
            {
                "type": "scatter", "mode": "lines", "name": name, "legendgroup": name,
                "showlegend": label == "R_C", "yaxis": y_axis, "connectgaps": False,
                "x": packed(np.insert(times, gaps, np.nan)), "y": packed(values, "f4"),
                "line": {"width": 1.5 if dash == "solid" else 1.1, "dash": dash, "color": colour},
                "hovertemplate": f"%{{x:.4g}} {unit}: %{{y:.4g}}<extra>{label} {name}</extra>",
            }
        )  # fmt: skip
    return traces
