"""Queue depth over time with the marking thresholds, and what the queues did: marks, pauses."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from metrics.presentation import duration_unit
from metrics.report.charts.grid import TimeGrid, time_grid
from metrics.report.charts.markers import markers
from metrics.report.figure import PALETTE, Chart, axis, layout, packed

__all__ = ["queue_depths", "queue_events"]

QUEUE_LIMIT = 8
"""Most queues of the chart, the deepest."""
BIN_LIMIT = 600


def queue_depths(queues: pl.DataFrame, job: Mapping[str, Any]) -> Chart | None:
    """Watermark per interval of the deepest switch queues, with Kmin and Kmax."""
    switches = queues.filter(pl.col("is_switch") & (pl.col("max_depth_bytes") > 0))
    if switches.is_empty():
        return None
    keys = switches.group_by("node", "port", "priority", "link").agg(
        pl.col("max_depth_bytes").max().alias("peak")
    )
    shown = keys.sort("peak", "node", "port", descending=[True, False, False]).head(QUEUE_LIMIT)
    grid = time_grid(queues, BIN_LIMIT)
    scale, unit = duration_unit(float(grid.width_ns * grid.bins))
    data = [
        _depth_line(switches, key, grid, scale, unit, PALETTE[number % 8])
        for number, key in enumerate(shown.iter_rows(named=True))
    ]
    priorities = {int(priority) for priority in shown["priority"]}
    limits = _thresholds(job, priorities)
    axes = {
        "xaxis": axis(f"emulated time, {unit}"),
        "yaxis": axis("depth, KiB (largest in the interval)", rangemode="tozero"),
    }
    note = (
        f"{len(shown)} of {len(keys)} egress queues of switches that held anything (the deepest; "
        f"cap {QUEUE_LIMIT}); watermark of each {grid.width_ns / scale:.4g} {unit}."
    )
    options = {
        "shapes": [shape for shape, _ in limits],
        "annotations": [text for _, text in limits],
    }
    return Chart("Queue depth", note, data, layout(380, axes, **options))


def _depth_line(
    queues: pl.DataFrame, key: dict[str, Any], grid: TimeGrid, scale: float, unit: str, colour: str
) -> dict[str, Any]:
    """The watermarks of one queue."""
    mine = queues.filter(
        (pl.col("node") == key["node"])
        & (pl.col("port") == key["port"])
        & (pl.col("priority") == key["priority"])
    )
    columns = grid.index(mine["time_ns"].to_numpy(), mine["interval_ns"].to_numpy())
    rows = np.zeros(len(mine), dtype=np.int64)
    depth = grid.maxima(rows, 1, columns, mine["max_depth_bytes"].to_numpy())[0]
    name = f"{key['node']}:{key['port']} priority {key['priority']}"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": packed(grid.middles_ns / scale, "f4"),
        "y": packed(depth / 1024, "f4"),
        "line": {"width": 1.4, "color": colour},
        "hovertemplate": f"%{{x:.4g}} {unit}: %{{y:.1f}} KiB<extra>{name}</extra>",
    }


def _thresholds(
    job: Mapping[str, Any], priorities: set[int]
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """A dashed line and a label for every distinct Kmin and Kmax of the shown priorities."""
    found = set()
    for switch in job.get("switches", ()):
        for number, priority in enumerate(switch.get("priorities", ())):
            ecn = priority.get("ecn")
            if ecn and number in priorities:
                found |= {("Kmin", ecn["kmin_bytes"]), ("Kmax", ecn["kmax_bytes"])}
    lines = []
    for name, value in sorted(found, key=lambda item: int(item[1]))[:6]:
        level = value / 1024
        shape = {
            "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": level, "y1": level,
            "line": {"color": "#7b8896", "width": 1, "dash": "dash"},
        }  # fmt: skip
        text = {
            "xref": "paper", "x": 1, "y": level, "xanchor": "right", "yanchor": "bottom",
            "showarrow": False, "text": f"{name} {level:.4g} KiB",
            "font": {"size": 11, "color": "#5f6f7f"},
        }  # fmt: skip
        lines.append((shape, text))
    return lines


_EVENTS = (
    ("marked_packets", "ECN marks", "#e07b39"),
    ("pause_frames_sent", "pause frames sent", "#8e6bbf"),
    ("dropped_packets", "packets dropped", "#cf4a5c"),
    ("wred_dropped_packets", "of them dropped early", "#d9a441"),
)


def queue_events(queues: pl.DataFrame, events: Sequence[Mapping[str, Any]] = ()) -> Chart | None:
    """Marks, pauses and drops of all queues over time."""
    if queues.is_empty():
        return None
    grid = time_grid(queues, BIN_LIMIT // 2)
    scale, unit = duration_unit(float(grid.width_ns * grid.bins))
    columns = grid.index(queues["time_ns"].to_numpy(), queues["interval_ns"].to_numpy())
    rows = np.zeros(len(queues), dtype=np.int64)
    data = []
    # Records of earlier versions have no early drops.
    for column, name, colour in (event for event in _EVENTS if event[0] in queues.columns):
        sums = grid.sums(rows, 1, columns, queues[column].to_numpy())[0]
        if sums.any():
            data.append(
                {
                    "type": "scatter", "mode": "lines", "name": name,
                    "x": packed(grid.middles_ns / scale, "f4"), "y": packed(sums, "f4"),
                    "line": {"width": 1.4, "color": colour, "shape": "hvh"},
                    "hovertemplate": f"%{{x:.4g}} {unit}: %{{y:.0f}} {name}<extra></extra>",
                }
            )  # fmt: skip
    if not data:
        return None
    width = f"{grid.width_ns / scale:.4g} {unit}"
    axes = {
        "xaxis": axis(f"emulated time, {unit}"),
        "yaxis": axis(f"packets or frames per {width}", rangemode="tozero"),
    }
    note = f"Sum over all queues of switches and NICs in bins of {width}."
    options = {"showlegend": True, **markers(events, scale)}
    return Chart("Marks, pauses and drops", note, data, layout(300, axes, **options))
