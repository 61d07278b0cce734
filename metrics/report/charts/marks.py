"""Share of packets marked by the depth of the queue that they found, against the profile."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.report.figure import PALETTE, Chart, axis, layout, packed

__all__ = ["marks_by_depth"]

LEAST_PACKETS = 20
"""A bucket with fewer shows nothing: its share would be chance."""
Floats = NDArray[np.float64]


def marks_by_depth(kernel: Mapping[str, Sequence[Any]], job: Mapping[str, Any]) -> Chart | None:
    """All ports with the buckets of the first; `None` when no packet found a queue to speak of."""
    width = next((width for width in kernel.get("bucket_bytes", ()) if width), None)
    profile = _profile(job)
    if width is None or profile is None:
        return None
    alike = [place for place, other in enumerate(kernel["bucket_bytes"]) if other == width]
    packets = _sum(kernel["histogram"], alike)
    marked = _sum(kernel["marked_histogram"], alike)
    shown = packets >= LEAST_PACKETS
    if not shown[1:].any():
        return None
    middles = (np.arange(len(packets)) + 0.5) * width
    measured = {
        "type": "scatter", "mode": "markers", "name": "measured",
        "x": packed(middles[shown] / 1024, "f4"),
        "y": packed(100 * marked[shown] / packets[shown], "f4"),
        "customdata": packed(packets[shown], "i4"),
        "marker": {"size": 8, "color": PALETTE[0]},
        "hovertemplate": "%{x:.0f} KiB: %{y:.2f} % of %{customdata} packets<extra></extra>",
    }  # fmt: skip
    depth, expected = _curve(profile, float(middles[-1]))
    line = {
        "type": "scatter", "mode": "lines", "name": "profile",
        "x": packed(depth / 1024, "f4"), "y": packed(100 * expected, "f4"),
        "line": {"width": 1.4, "color": PALETTE[1], "dash": "dash"}, "hoverinfo": "skip",
    }  # fmt: skip
    axes = {
        "xaxis": axis("depth that a packet found, KiB"),
        "yaxis": axis("marked, % of those that can be", rangemode="tozero"),
    }
    note = (
        f"{int(packets.sum()):,} packets at {len(alike)} ports of switches, by the virtual queue; "
        f"buckets of {width / 1024:.4g} KiB with {LEAST_PACKETS} packets or more, "
        "the last with everything beyond."
    )
    return Chart("Marks by depth", note, [line, measured], layout(300, axes, showlegend=True))


def _sum(histograms: Sequence[Sequence[int]], places: Sequence[int]) -> NDArray[np.int64]:
    chosen = np.array([histograms[place] for place in places], dtype=np.int64)
    return np.asarray(chosen.sum(axis=0))


def _profile(job: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The first profile of a priority that marks."""
    for switch in job.get("switches", ()):
        for priority in switch.get("priorities", ()):
            if priority.get("ecn"):
                found: Mapping[str, Any] = priority["ecn"]
                return found
    return None


def _curve(profile: Mapping[str, Any], end_bytes: float) -> tuple[Floats, Floats]:
    kmin, kmax = float(profile["kmin_bytes"]), float(profile["kmax_bytes"])
    depth = np.array([0.0, kmin, kmax, kmax, max(end_bytes, kmax)])
    return depth, np.array([0.0, 0.0, float(profile["pmax_ratio"]), 1.0, 1.0])
