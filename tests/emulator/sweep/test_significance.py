"""A ranking says when its order means little."""

from emulator.job import JobRequest
from emulator.sweep.execution import PointResult
from emulator.sweep.points import Point
from emulator.sweep.ranking import Ranking, rank
from emulator.sweep.significance import significance_warnings

FIGURE = "all.p99_ns"


def ranked(*settings: list[float], figure: str = FIGURE, count: float = 100.0) -> Ranking:
    """One setting for each list of values, one value for each seed."""
    points, results = [], []
    for number, values in enumerate(settings):
        for seed, value in enumerate(values):
            digest = f"{number}-{seed}"
            points.append(Point(digest, {"a.x": number}, seed, JobRequest(lab="any")))
            figures = {figure: value, "all.count": count}
            results.append(PointResult(digest, f"/runs/{digest}", "complete", figures))
    return rank(points, results, figure)


def test_settings_that_lose_on_every_seed_are_told_from_the_first() -> None:
    ranking = ranked([10.0, 20.0], [11.0, 21.0])
    assert ranking.table["worse_than_first"].to_list() == [0, 2]
    assert ranking.table["compared_with_first"].to_list() == [2, 2]
    assert significance_warnings(ranking) == []


def test_settings_that_win_on_one_seed_tie_with_the_first() -> None:
    ranking = ranked([10.0, 20.0], [9.0, 25.0])
    assert ranking.table["worse_than_first"].to_list() == [0, 1]
    (warning,) = significance_warnings(ranking)
    assert "1 of 1 other settings are not worse than the first on every seed" in warning


def test_with_more_is_better_the_smaller_loses() -> None:
    ranking = ranked([10.0, 20.0], [11.0, 21.0], figure="all.busbw_GBps")
    assert ranking.table["a.x"].to_list() == [1, 0]
    assert ranking.table["worse_than_first"].to_list() == [0, 2]


def test_a_quantile_of_too_few_samples_is_called_the_largest() -> None:
    (warning,) = significance_warnings(ranked([10.0, 20.0], [11.0, 21.0], count=99.0))
    assert warning.startswith("all.p99_ns rests on 99 samples a run and needs 100")


def test_one_seed_is_said_to_tell_nothing() -> None:
    (warning,) = significance_warnings(ranked([10.0], [11.0]))
    assert "one seed" in warning


def test_a_setting_without_a_complete_run_is_compared_on_no_seed() -> None:
    points = [Point(str(n), {"a.x": n}, 1, JobRequest(lab="any")) for n in (0, 1)]
    results = [
        PointResult("0", "/runs/0", "complete", {FIGURE: 1.0}),
        PointResult("1", "/runs/1", "stalled", {}),
    ]
    assert rank(points, results, FIGURE).table["compared_with_first"].to_list() == [1, 0]
