"""Results that others published hold in virtual time: every sweep of lab_configs/published."""

import json
from pathlib import Path

import pytest

from emulator.cli import main

PUBLISHED = Path(__file__).parents[2] / "lab_configs" / "published"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in PUBLISHED.iterdir() if path.is_dir()))
def test_what_was_published_shows_here(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every expectation of the sweep holds on every seed."""
    spec, out = str(PUBLISHED / name / "sweep.yaml"), str(tmp_path / "out")
    status = main(["sweep", spec, "--out", out, "--json", "--quiet"])
    outcomes = json.loads(capsys.readouterr().out)["expectations"]
    assert outcomes
    assert [one["that"] for one in outcomes if not one["holds"]] == []
    assert status == 0
