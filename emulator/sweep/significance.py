"""What a ranking can't tell: too few samples for its quantile, too few seeds, settings that tie.

Knows the ranked table; nothing of how the points came about.
"""

import math

import polars as pl

from emulator.sweep.figures import quantile_of
from emulator.sweep.ranking import Ranking

__all__ = ["significance_warnings"]


def significance_warnings(ranking: Ranking) -> list[str]:
    """One sentence for each reason not to believe the order of the settings."""
    return [*_few_samples(ranking), *_one_seed(ranking), *_ties(ranking)]


def _few_samples(ranking: Ranking) -> list[str]:
    """A quantile q needs 1 / (1 - q) samples; with fewer it is the largest of them."""
    share = quantile_of(ranking.figure)
    column = f"{ranking.figure.rpartition('.')[0]}.count"
    if share is None or share == 1 or column not in ranking.points.columns:
        return []
    fewest = ranking.points[column].min()
    needed = math.ceil(round(1 / (1 - share), 9))
    if not isinstance(fewest, float) or fewest >= needed:
        return []
    return [
        f"{ranking.figure} rests on {fewest:.0f} samples a run and needs {needed}: it is the "
        "largest of them; raise `iterations`"
    ]


def _one_seed(ranking: Ranking) -> list[str]:
    if ranking.points["seed"].n_unique() > 1 or len(ranking.table) < 2:
        return []
    return ["one seed can't tell a setting's effect from chance; give several `seeds`"]


def _ties(ranking: Ranking) -> list[str]:
    """Settings that are not worse than the first on every seed that both completed."""
    others = ranking.table.slice(1).filter(pl.col("repetitions") > 0)
    tied = others.filter(pl.col("worse_than_first") < pl.col("compared_with_first"))
    if ranking.points["seed"].n_unique() < 2 or tied.is_empty():
        return []
    return [
        f"{len(tied)} of {len(others)} other settings are not worse than the first on every seed: "
        "the order among these means little"
    ]
