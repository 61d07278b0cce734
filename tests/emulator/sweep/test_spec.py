"""A sweep file is checked whole, with every combination, before anything runs."""

from collections.abc import Callable
from pathlib import Path

import pytest

import lab_configs
from dataplane.errors import InputError
from emulator.sweep.points import expand_points
from emulator.sweep.spec import load_sweep

SPEC = """\
name: small
lab: single-switch
grid:
  ecn.kmin_bytes: [100_000, 800_000]
  ecn.kmax_bytes: [400_000, 1_600_000]
seeds: [1, 2]
skip_impossible: true
rank_by: all_reduce.p99_ns
"""

Write = Callable[[str], Path]


@pytest.fixture
def spec_file(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "sweep.yaml"
        path.write_text(text)
        return path

    return write


def told(spec: Path) -> str:
    with pytest.raises(InputError) as caught:
        expand_points(load_sweep(spec))
    return str(caught.value)


@pytest.mark.parametrize(
    "path", sorted((Path(lab_configs.__file__).parent / "sweeps").glob("*.yaml"))
)
def test_a_shipped_sweep_loads_and_has_the_name_of_its_file(path: Path) -> None:
    sweep = load_sweep(path)
    assert sweep.spec.name == path.stem
    assert expand_points(sweep).points


def test_every_combination_is_a_point_for_every_seed(spec_file: Write) -> None:
    found = expand_points(load_sweep(spec_file(SPEC)))
    assert len(found.points) == 3 * 2
    assert len({point.digest for point in found.points}) == 6


def test_impossible_combinations_are_left_out_with_the_reason(spec_file: Write) -> None:
    found = expand_points(load_sweep(spec_file(SPEC)))
    ((settings, reason),) = found.impossible
    assert settings == {"ecn.kmin_bytes": 800_000, "ecn.kmax_bytes": 400_000}
    assert "above kmax_bytes" in reason


def test_impossible_combinations_are_an_error_unless_they_may_be_skipped(spec_file: Write) -> None:
    text = SPEC.replace("skip_impossible: true", "skip_impossible: false")
    assert "above kmax_bytes" in told(spec_file(text))


def test_a_digest_changes_with_the_common_settings_and_not_with_the_order_of_the_grid(
    spec_file: Write,
) -> None:
    before = {point.digest for point in expand_points(load_sweep(spec_file(SPEC))).points}
    lines = SPEC.splitlines()
    lines[3], lines[4] = lines[4], lines[3]
    swapped = expand_points(load_sweep(spec_file("\n".join(lines))))
    assert {point.digest for point in swapped.points} == before
    other = expand_points(load_sweep(spec_file(SPEC + "iterations: 2\n")))
    assert not {point.digest for point in other.points} & before


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ecn.kmin_bytes", "ecn.kmn_bytes", "did you mean switches.ecn.kmin_bytes?"),
        ("all_reduce.p99_ns", "all_reduce.p98_ns", "which is no figure; did you mean"),
        ("all_reduce.p99_ns", "speed", "write KIND.FIGURE"),
        ("[1, 2]", "[1, 1]", "name a seed twice"),
        ("[1, 2]", "[]", "at least 1 entries"),
        ("[100_000, 800_000]", "[]", "list at least one value"),
        ("single-switch", "single-swich", "did you mean single-switch?"),
        ("seeds", "seed", "did you mean seeds?"),
        ("lab: single-switch", "lab: single-switch\ntrace: a\nprofile: b", "keep one of the two"),
    ],
)
def test_a_wrong_sweep_file_is_told(spec_file: Write, old: str, new: str, said: str) -> None:
    assert said in told(spec_file(SPEC.replace(old, new)))
