"""Collectives of the same kind, algorithm, size and number of ranks, and their distribution."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from metrics.analysis.fairness import variation_ratio
from metrics.analysis.quantiles import distribution, quantile

__all__ = ["GROUP_KEYS", "collective_groups", "flow_groups"]

GROUP_KEYS = ("kind", "algorithm", "size_bytes", "ranks", "traffic_class")
"""What makes collectives comparable."""


def collective_groups(collectives: pl.DataFrame) -> list[dict[str, Any]]:
    """One row per group of comparable collectives, the most time first.

    Times are ns over the complete ones; `algbw_GBps`, `busbw_GBps` and `ideal_ratio` are those of
    the (nearest-rank) median time; `incomplete` counts the others.
    """
    rows = []
    collectives = collectives.sort("completion_time_ns", nulls_last=True, maintain_order=True)
    for key, group in collectives.group_by(*GROUP_KEYS, maintain_order=True):
        rows.append({**dict(zip(GROUP_KEYS, key, strict=True)), **_figures(group)})
    return sorted(rows, key=lambda row: -row["total_ns"])


def _figures(group: pl.DataFrame) -> Mapping[str, Any]:
    """Distribution and sums of one group."""
    done = group.filter(pl.col("complete"))
    times = done["completion_time_ns"].drop_nulls().to_numpy()
    names = group["group"].unique().sort().to_list()
    return {
        "groups": names,
        **distribution(times),
        **_from_last_start(done),
        "cv_ratio": variation_ratio(times),
        "total_ns": int(np.sum(times)),
        "incomplete": len(group) - len(done),
        **_middle(done),
        "marked_packets": known_sum(group["marked_packets"]),
        "retransmitted_packets": known_sum(group["retransmitted_packets"]),
    }


def _from_last_start(done: pl.DataFrame) -> Mapping[str, float | None]:
    """Median of last end less last start, ns, and the share of the ideal in it.

    The share is above 1 where early ranks did the others' waiting: a receive posted late.
    """
    times = np.sort(done["completion_time_after_last_arrival_ns"].drop_nulls().to_numpy())
    middle = quantile(times, 0.5)
    ideal = _middle(done)["ideal_ns"]
    return {
        "from_last_start_ns": middle,
        "ideal_from_last_start_ratio": ideal / middle if middle and ideal else None,
    }


def flow_groups(flows: pl.DataFrame, classes: pl.Series) -> list[dict[str, Any]]:
    """One row per size class of messages: completion times in ns and slowdowns."""
    rows = []
    named = flows.with_columns(classes.alias("size_class")).filter(
        pl.col("completion_time_ns").is_not_null()
    )
    for (name,), group in named.group_by("size_class", maintain_order=True):
        slowdown = distribution(group["slowdown"].to_numpy())
        rows.append(
            {
                "size_class": name,
                "size_bytes": int(group["size_bytes"].min()),  # type: ignore[arg-type]
                **distribution(group["completion_time_ns"].to_numpy()),
                "slowdown": slowdown,
            }
        )
    return sorted(rows, key=lambda row: int(row["size_bytes"]))


def _middle(done: pl.DataFrame) -> Mapping[str, float | None]:
    """Bandwidths and ideal of the collective with the median time; `done` is ordered by time."""
    figures = ("algbw_GBps", "busbw_GBps", "ideal_ns", "ideal_ratio")
    if done.is_empty():
        return dict.fromkeys(figures)
    return done.select(figures).row((len(done) - 1) // 2, named=True)


def known_sum(counts: pl.Series) -> int | None:
    """Sum of a column of counts; None where nothing was counted."""
    return None if len(counts) > 0 and counts.null_count() == len(counts) else int(counts.sum())
