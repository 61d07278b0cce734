"""A real run, real frames on loopback wires in several processes, against its prediction."""

import json
from pathlib import Path

import pytest

from emulator.cli import main
from metrics.compare import compare
from metrics.records import load, verify_bytes


@pytest.mark.slow
def test_run_and_predict_agree_on_counts_bytes_and_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Same job, same seed: `compare` finds no difference but in time, and says so with status 0."""
    run, prediction = tmp_path / "run", tmp_path / "predict"
    job = ["loopback-clos", "--size-scale", "0.1", "--quiet", "--out"]
    assert main(["run", *job, str(run), "--metrics-port", "0"]) == 0
    assert main(["predict", *job, str(prediction)]) == 0
    capsys.readouterr()
    assert main(["compare", str(run), str(prediction), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["agrees"]
    assert answer["totals"]["first"]["sent_bytes"] == answer["totals"]["second"]["sent_bytes"]
    for directory in (run, prediction):
        verify_bytes(load(directory))
        totals = load(directory).links["tx_bytes"].sum()
        assert load(directory).flow_links["tx_bytes"].sum() == totals
    result = compare(run, prediction)
    assert result.paths[0] == 0
    assert result.paths[1] > 0
    assert result.errors[-1]["count"] == len(load(run).collectives)
    assert result.flows is not None
