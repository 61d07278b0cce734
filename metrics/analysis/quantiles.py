"""Quantiles by nearest rank over pooled samples, and when there are too few to name one.

Source: nearest rank as in nccl-tests' p99; a quantile q is the largest sample as long as there are
fewer than 1 / (1 - q) samples, so it is not given then.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["QUANTILES", "distribution", "needed_samples", "quantile", "step_curve"]

QUANTILES: Mapping[str, float] = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
"""The quantiles of every table and gauge, by label."""


def needed_samples(share: float) -> int:
    """Fewest samples with which the quantile `share` (0 to 1) is not just the largest one."""
    return math.ceil(round(1.0 / (1.0 - share), 6))


def quantile(ordered: NDArray[Any], share: float) -> float | None:
    """Nearest-rank quantile `share` of ascending samples; None when there are too few."""
    count = len(ordered)
    if count < needed_samples(share):
        return None
    # The product is rounded first: 0.95 * 100 is 95.00000000000001 in binary.
    rank = math.ceil(round(share * count, 9))
    return float(ordered[max(rank, 1) - 1])


def distribution(samples: NDArray[Any] | Sequence[float]) -> dict[str, float | int | None]:
    """Count, quantiles, least, mean and largest of pooled samples, in the samples' unit."""
    ordered = np.sort(np.asarray(samples))
    row: dict[str, float | int | None] = {"count": len(ordered)}
    row.update({label: quantile(ordered, share) for label, share in QUANTILES.items()})
    some = len(ordered) > 0
    row["min"] = float(ordered[0]) if some else None
    row["mean"] = float(ordered.mean()) if some else None
    row["max"] = float(ordered[-1]) if some else None
    return row


def step_curve(
    samples: NDArray[Any], limit: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points of the cumulative distribution: values ascending and the share at or below each.

    At most `limit` points: exact order statistics, denser towards the tail, both ends kept.
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    count = len(ordered)
    if count == 0:
        return ordered, ordered
    ranks = np.arange(1, count + 1)
    if count > limit:
        half = limit // 2
        body = np.linspace(1, count, half)
        tail = count + 1 - np.geomspace(count, 1, limit - half)
        ranks = np.unique(np.concatenate([body, tail]).round().astype(np.int64))
    return ordered[ranks - 1], ranks / count
