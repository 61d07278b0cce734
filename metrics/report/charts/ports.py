"""One egress queue over time, chosen from a list: depth, utilisation, marks, pauses, drops."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from metrics.presentation import count_text, duration_text, duration_unit
from metrics.report.charts.grid import TimeGrid, time_grid
from metrics.report.figure import Chart, axis, layout, packed

__all__ = ["port_series"]

QUEUE_LIMIT = 32
"""Most queues of the list."""
BIN_LIMIT = 500
_KEYS = ["node", "port", "priority"]
_PANELS = (
    ("depth, KiB", (0.70, 1.0)),
    ("% of time", (0.40, 0.62)),
    ("frames", (0.0, 0.32)),
)


def port_series(queues: pl.DataFrame) -> Chart | None:
    """Three panels about one queue at a time; those with drops, pauses and marks come first."""
    if queues.is_empty():
        return None
    keys = _chosen(queues)
    shown = keys.head(QUEUE_LIMIT)
    grid = time_grid(queues, BIN_LIMIT)
    scale, unit = duration_unit(float(grid.width_ns * grid.bins))
    data: list[dict[str, Any]] = []
    names = []
    for number, key in enumerate(shown.iter_rows(named=True)):
        mine = queues.filter(
            (pl.col("node") == key["node"]) & (pl.col("port") == key["port"])
            & (pl.col("priority") == key["priority"])
        )  # fmt: skip
        names.append(f"{key['node']}:{key['port']} priority {key['priority']}")
        data += [{**trace, "visible": number == 0} for trace in _traces(mine, grid, scale, unit)]
    per_queue = len(data) // len(names)
    axes: dict[str, Any] = {"xaxis": axis(f"emulated time, {unit}", anchor="y3")}
    for number, (title, domain) in enumerate(_PANELS, 1):
        name = "yaxis" if number == 1 else f"yaxis{number}"
        axes[name] = axis(title, domain=list(domain), rangemode="tozero")
    interval = duration_text(float(queues["interval_ns"].max() or 0))  # type: ignore[arg-type]
    note = (
        f"{len(shown)} of {count_text(len(keys))} egress queues that held or sent anything (first "
        f"those with most drops, pauses, marks and depth; cap {QUEUE_LIMIT}), of NICs and "
        f"switches, in bins of {duration_text(grid.width_ns)}; sampled every {interval}. All "
        "samples are in queues.parquet. Utilisation is that of the priority's own frames."
    )
    options = {
        "updatemenus": [_menu(names, per_queue)],
        "legend": {"orientation": "h", "x": 0, "y": -0.12, "yanchor": "top"},
        "margin": {"l": 62, "r": 18, "t": 44, "b": 84},
        "hovermode": "x",
    }
    return Chart("One port over time", note, data, layout(520, axes, **options))


def _chosen(queues: pl.DataFrame) -> pl.DataFrame:
    """Queues in the order in which they may interest somebody."""
    column = pl.col
    sums = column("dropped_packets", "pause_frames_sent", "pause_frames_received", "marked_packets")
    totals = queues.group_by(_KEYS).agg(
        sums.sum(), column("max_depth_bytes").max(), column("tx_bytes").sum()
    )
    pauses = column("pause_frames_sent") + column("pause_frames_received")
    order = [column("dropped_packets"), pauses, column("marked_packets"),
             column("max_depth_bytes"), column("tx_bytes")]  # fmt: skip
    return totals.sort(*order, *_KEYS, descending=[True] * len(order) + [False] * len(_KEYS))


def _traces(mine: pl.DataFrame, grid: TimeGrid, scale: float, unit: str) -> list[dict[str, Any]]:
    """The lines of one queue."""
    columns = grid.index(mine["time_ns"].to_numpy(), mine["interval_ns"].to_numpy())
    rows = np.zeros(len(mine), dtype=np.int64)

    def total(values: pl.Series) -> NDArray[np.float64]:
        return np.asarray(grid.sums(rows, 1, columns, values.to_numpy())[0])

    def largest(name: str) -> NDArray[np.float64]:
        return np.asarray(grid.maxima(rows, 1, columns, mine[name].to_numpy())[0])

    times = packed(grid.middles_ns / scale, "f4")
    busy = total(mine["utilisation_ratio"] * mine["interval_ns"]) / grid.width_ns
    lines = [
        ("y", "watermark", largest("max_depth_bytes") / 1024, "#2f6db5", "KiB"),
        ("y", "depth at the sample", largest("depth_bytes") / 1024, "#63a7d8", "KiB"),
        ("y2", "utilisation", 100 * busy, "#1b9e8a", "%"),
        ("y2", "paused", 100 * total(mine["paused_ns"]) / grid.width_ns, "#8e6bbf", "%"),
        ("y3", "ECN marks", total(mine["marked_packets"]), "#e07b39", "packets"),
        ("y3", "pause frames sent", total(mine["pause_frames_sent"]), "#b57aa5", "frames"),
        ("y3", "pause frames received", total(mine["pause_frames_received"]), "#45525f", "frames"),
        ("y3", "dropped", total(mine["dropped_packets"]), "#cf4a5c", "packets"),
    ]
    return [
        {
            "type": "scatter", "mode": "lines", "name": name, "x": times, "xaxis": "x",
            "yaxis": place, "y": packed(values, "f4"), "line": {"width": 1.3, "color": colour},
            "hovertemplate": f"%{{x:.5g}} {unit}: %{{y:.4g}} {what}<extra>{name}</extra>",
        }
        for place, name, values, colour, what in lines
    ]  # fmt: skip


def _menu(names: list[str], per_queue: int) -> dict[str, Any]:
    """The list of queues."""
    buttons = [
        {
            "label": name,
            "method": "restyle",
            "args": [
                {
                    "visible": [
                        place // per_queue == number for place in range(per_queue * len(names))
                    ]
                }
            ],
        }
        for number, name in enumerate(names)
    ]
    return {
        "buttons": buttons, "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom",
        "bgcolor": "#ffffff", "bordercolor": "#c9d2db", "font": {"size": 12},
    }  # fmt: skip
