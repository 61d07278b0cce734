"""Whether the points of a sweep of real runs may be compared at all.

Knows the records of the points; nothing of how they came about.
"""

from collections.abc import Iterable
from pathlib import Path

from metrics.presentation import share_text
from metrics.records import LATENESS_LIMIT_RATIO, lateness_ratio, load

__all__ = ["lateness_warnings"]


def lateness_warnings(directories: Iterable[str]) -> list[str]:
    """One sentence when the machine was too slow for the time dilation in some of the points."""
    records = [load(Path(directory)) for directory in directories]
    ratios = [lateness_ratio(point.run, point.collectives) for point in records]
    late = [ratio for ratio in ratios if ratio > LATENESS_LIMIT_RATIO]
    if not late:
        return []
    return [
        f"the machine was too slow for the time dilation in {len(late)} of {len(ratios)} points: "
        f"frames were late by as much as {share_text(max(late))} of the median completion time, so "
        "smaller differences between points mean nothing; give the spec a larger time_dilation "
        "under `set`"
    ]
