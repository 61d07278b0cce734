"""What a sweep is expected to show: by figure, by ratio, on every seed, with exit status 1."""

import json
from pathlib import Path

import pytest

from emulator.cli import main
from emulator.sweep.expectations import (
    Divisor,
    Expectation,
    Measured,
    check_expectations,
    expectation_problems,
)

GRID = {"lab": ["a", "b"], "topology.host_link.rate_gbps": [100, 400]}


def measured(seed: int, slow_ns: float, fast_ns: float) -> list[Measured]:
    """Lab a at two rates."""
    return [
        Measured({"lab": "a", "topology.host_link.rate_gbps": rate}, seed, {"all.p50_ns": time_ns})
        for rate, time_ns in ((100, slow_ns), (400, fast_ns))
    ]


def expectation(**bounds: float) -> Expectation:
    """The slow time over the fast one."""
    return Expectation(
        that="a quarter of the bandwidth takes four times as long",
        figure="all.p50_ns",
        where={"lab": "a", "topology.host_link.rate_gbps": 100},
        over=Divisor(where={"topology.host_link.rate_gbps": 400}),
        **bounds,
    )


def test_a_ratio_is_taken_of_points_of_one_seed() -> None:
    points = measured(1, 40, 10) + measured(2, 90, 30)
    (outcome,) = check_expectations([expectation(at_least=3.0, at_most=4.0)], points)
    assert outcome.values == [4.0, 3.0]
    assert outcome.holds


def test_it_must_hold_on_every_seed() -> None:
    points = measured(1, 40, 10) + measured(2, 90, 30)
    (outcome,) = check_expectations([expectation(at_least=3.5)], points)
    assert not outcome.holds
    assert "DOES NOT HOLD" in outcome.text


def test_a_failed_point_can_not_meet_it() -> None:
    points = [*measured(1, 40, 10), Measured(measured(2, 1, 1)[0].settings, 2, {})]
    (outcome,) = check_expectations([expectation(at_least=1)], points)
    assert not outcome.holds


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"figure": "all.p51_ns"}, "no figure"),
        ({"where": {"lab": "a"}}, "leaves topology.host_link.rate_gbps open"),
        ({"where": {"lab": "c", "topology.host_link.rate_gbps": 100}}, "no point"),
        ({"where": {"ecn.kmin_bytes": 1}}, "is not varied"),
        ({"at_least": None}, "no bound"),
    ],
)
def test_what_can_not_be_checked_is_told_before_anything_runs(
    changes: dict[str, object], what: str
) -> None:
    given = expectation(at_least=1).model_copy(update=changes)
    assert any(what in problem for _, problem, _ in expectation_problems([given], GRID))


SPEC = """\
name: little
lab: [single-switch, incast-8]
profile: all-to-all,repeats=1
grid:
  topology.hosts_per_leaf: [8]
expect:
  - {{that: slower links take longer, figure: all_to_all.p50_ns, at_least: {bound},
      where: {{lab: incast-8}}, over: {{where: {{lab: single-switch}}}}}}
  - {{that: links are busy, figure: link_utilisation_ratio, at_least: 0.1,
      where: {{lab: single-switch}}}}
"""


@pytest.mark.parametrize(("bound", "status"), [(2, 0), (40, 1)])
def test_a_sweep_over_labs_fails_where_an_expectation_does_not_hold(
    bound: int, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "little.yaml"
    spec.write_text(SPEC.format(bound=bound))
    out = tmp_path / "out"
    assert main(["sweep", str(spec), "--out", str(out), "--json", "--quiet"]) == status
    answer = json.loads(capsys.readouterr().out)
    assert [one["holds"] for one in answer["expectations"]] == [status == 0, True]
    assert {row["lab"] for row in answer["table"]} == {"single-switch", "incast-8"}
