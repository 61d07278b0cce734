"""Five sets of traces by other people's tools, predicted and run to the end.

A run and its prediction agree on order, counts and bytes.
"""

from pathlib import Path

import pytest

from emulator.cli import main
from emulator.commands.execution import run_document, store
from emulator.controller import run
from emulator.predict import predict
from metrics.records import verify_bytes
from tests.end_to_end.trace_sets import SETS, assert_bytes_conserved, assert_complete

every_set = pytest.mark.parametrize("name", SETS)


@every_set
def test_a_prediction_completes_every_communication_in_order(
    name: str, sample_traces: Path
) -> None:
    """At the size that was traced, where that takes seconds."""
    job = SETS[name].job(sample_traces, **SETS[name].predicted)
    engine = predict(job, on_progress=lambda _point: None)
    assert_complete(job, engine["ops"])
    assert_bytes_conserved(job, engine)


@pytest.mark.slow
@every_set
def test_a_run_completes_every_communication_in_order_and_agrees_with_its_prediction(
    name: str, sample_traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = SETS[name].job(sample_traces, **SETS[name].shortened)
    drives = {"predict": lambda: predict(job, on_progress=lambda _point: None)}
    drives["run"] = lambda: run(job)
    for command, drive in drives.items():
        engine = drive()
        assert_complete(job, engine["ops"])
        assert_bytes_conserved(job, engine)
        (tmp_path / command).mkdir()
        facts = {"outcome": "complete", "wall_seconds": 0.0, "started_at": ""}
        verify_bytes(store(tmp_path / command, job, engine, run_document(job, command, facts)))
    assert main(["compare", str(tmp_path / "predict"), str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out
