"""Busy, exposed and idle time from spans: how much communication computation doesn't hide."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["covered_ns", "merged", "rank_time_shares", "time_shares"]

Spans = NDArray[np.int64]
"""int64[n, 2]: start and end of each span, ns."""


def merged(starts: NDArray[Any], ends: NDArray[Any]) -> Spans:
    """Disjoint ascending spans that cover the same instants."""
    order = np.argsort(starts, kind="stable")
    first = np.asarray(starts, dtype=np.int64)[order]
    last = np.maximum.accumulate(np.asarray(ends, dtype=np.int64)[order])
    if len(first) == 0:
        return np.empty((0, 2), dtype=np.int64)
    opens = np.concatenate([[True], first[1:] > last[:-1]])
    closes = np.concatenate([opens[1:], [True]])
    return np.stack([first[opens], last[closes]], axis=1)


def covered_ns(spans: Spans) -> int:
    """Length of disjoint spans, ns."""
    return int((spans[:, 1] - spans[:, 0]).sum())


def time_shares(
    compute: tuple[NDArray[Any], NDArray[Any]],
    communication: tuple[NDArray[Any], NDArray[Any]],
    total_ns: int,
) -> dict[str, int]:
    """Split the `total_ns` of one rank: compute, communication, exposed, idle, all in ns.

    Exposed communication is the time with some communication and no computation; idle is the time
    with neither.
    """
    busy = covered_ns(merged(*compute))
    talking = covered_ns(merged(*communication))
    both = (
        np.concatenate([compute[0], communication[0]]),
        np.concatenate([compute[1], communication[1]]),
    )
    either = covered_ns(merged(*both))
    return {
        "compute_ns": busy,
        "communication_ns": talking,
        "exposed_communication_ns": either - busy,
        "idle_ns": max(total_ns - either, 0),
    }


def rank_time_shares(timeline: pl.DataFrame, total_ns: int) -> dict[int, dict[str, int]]:
    """`time_shares` of every rank from `rank`, `kind`, `start_ns` and `end_ns` of its spans.

    The kind of a computation is `compute`; a span without an end lasts until `total_ns`.
    """
    spans = timeline.select(
        "rank",
        (pl.col("kind") == "compute").alias("computes"),
        "start_ns",
        pl.col("end_ns").fill_null(total_ns),
    )
    shares = {}
    for (rank,), mine in spans.sort("rank").group_by("rank", maintain_order=True):
        computes = mine["computes"].to_numpy()
        starts, ends = mine["start_ns"].to_numpy(), mine["end_ns"].to_numpy()
        shares[int(rank)] = time_shares(
            (starts[computes], ends[computes]), (starts[~computes], ends[~computes]), total_ns
        )
    return shares
