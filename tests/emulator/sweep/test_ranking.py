"""Settings are ranked by the mean of one figure over their repetitions, failures last."""

import json
from pathlib import Path

import pytest

from emulator.job import JobRequest
from emulator.sweep.execution import PointResult
from emulator.sweep.page import write_page
from emulator.sweep.points import Point
from emulator.sweep.ranking import Ranking, rank, write_ranking


def ranked(figure: str, *axes: str) -> Ranking:
    """Four settings of two seeds each; the figure is 10, 20, 30 and failed."""
    points, results = [], []
    for number, value in enumerate((30.0, 10.0, 20.0, None)):
        settings = {axis: number if position == 0 else 1 for position, axis in enumerate(axes)}
        for seed in (1, 2):
            digest = f"{number}-{seed}"
            points.append(Point(digest, settings, seed, JobRequest(lab="any")))
            figures = {} if value is None else {figure: value + seed, "emulated_ns": 5.0}
            outcome = "stalled" if value is None else "complete"
            results.append(PointResult(digest, f"/runs/{digest}", outcome, figures))
    return rank(points, results, figure)


def test_a_shorter_time_is_better() -> None:
    ranking = ranked("all.p99_ns", "ecn.kmin_bytes")
    assert ranking.table["ecn.kmin_bytes"].to_list() == [1, 2, 0, 3]
    assert ranking.table["value"].to_list() == [11.5, 21.5, 31.5, None]


def test_more_bandwidth_is_better() -> None:
    ranking = ranked("all_reduce.busbw_GBps", "ecn.kmin_bytes")
    assert ranking.table["ecn.kmin_bytes"].to_list() == [0, 2, 1, 3]


def test_repetitions_and_failures_are_counted() -> None:
    last = ranked("all.p99_ns", "ecn.kmin_bytes").table.row(3, named=True)
    assert (last["repetitions"], last["failed"], last["value"]) == (0, 2, None)
    first = ranked("all.p99_ns", "ecn.kmin_bytes").table.row(0, named=True)
    assert (first["repetitions"], first["lowest"], first["highest"]) == (2, 11.0, 12.0)


@pytest.mark.parametrize("axes", [("a.x",), ("a.x", "a.y"), ("a.x", "a.y", "a.z")])
def test_table_and_page_are_written_for_any_number_of_axes(
    tmp_path: Path, axes: tuple[str, ...]
) -> None:
    ranking = ranked("all.p99_ns", *axes)
    write_ranking(ranking, tmp_path, {"name": "test"})
    write_page(ranking, tmp_path / "sweep.html", title="A <sweep>", notes=["a & b"])
    document = json.loads((tmp_path / "sweep.json").read_text())
    assert [row["place"] for row in document["table"]] == [1, 2, 3, 4]
    page = (tmp_path / "sweep.html").read_text()
    assert "A &lt;sweep&gt;" in page
    assert "src=" not in page.split("<body>")[1].split("<script")[0]
