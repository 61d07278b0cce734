"""A run drives real processes and sockets, and agrees with the prediction of the same job."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from emulator.cli import main
from emulator.commands.run import tell_long_run
from emulator.job import JobRequest, build_job
from metrics.records import RunRecords, load

SMALL = ["single-switch", "--profile=all-to-all", "--size-scale=0.02", "--seed=3", "--quiet"]

Command = Callable[..., int]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """`run` or `predict` of a small job into a directory of that name."""

    def execute(name: str, *more: str) -> int:
        return main([name, *SMALL, "--out", str(tmp_path / name), *more])

    return execute


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


def counts(records: RunRecords) -> list[tuple[object, ...]]:
    """What must be the same in a run and its prediction."""
    columns = ["instance", "kind", "size_bytes", "complete", "bytes_sent", "bytes_received"]
    return records.collectives.select(columns).sort("instance").rows()


@pytest.mark.slow
def test_run_and_predict_agree_on_bytes_and_counts(command: Command, tmp_path: Path) -> None:
    assert command("run") == 0
    assert command("predict") == 0
    ran, predicted = load(tmp_path / "run"), load(tmp_path / "predict")
    assert counts(ran) == counts(predicted)
    assert len(ran.flows) == len(predicted.flows)
    for records in (ran, predicted):
        assert records.run["ops_done"] == records.run["ops_total"]
        assert records.run["byte_conservation"]["holds"]


@pytest.mark.slow
def test_a_run_records_clock_agents_and_lateness(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("run", "--json", "--time-dilation=500", "--metrics-port=0") == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["outcome"] == "complete"
    assert "metrics: http://127.0.0.1:" in told.err
    run = load(tmp_path / "run").run
    assert (run["clock"], run["time_dilation"]) == ("wall", 500)
    assert [agent["name"] for agent in run["control"]["agents"]] == ["agent-0", "agent-1"]
    assert all(agent["lateness"]["events"] > 0 for agent in run["control"]["agents"])


def test_a_run_of_hours_is_told_before_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    job = build_job(JobRequest(lab="loopback-clos", overrides=("time_dilation=1000000",)))
    tell_long_run(job)
    told = capsys.readouterr().err
    assert "computation alone takes" in told
    assert "communication alone takes" in told
    assert told.count("min of wall time at time dilation 1000000") == 2
    tell_long_run(build_job(JobRequest(lab="loopback-clos")))
    assert capsys.readouterr().err == ""


def test_an_unreachable_broker_is_wrong_input_and_leaves_no_directory(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = time.monotonic()
    assert command("run", "--set=control.broker=mqtt://127.0.0.1:1") == 2
    assert time.monotonic() - started < 30
    told = capsys.readouterr().err
    assert "127.0.0.1:1" in told
    assert "Traceback" not in told
    assert not (tmp_path / "run").exists()


def test_a_taken_metrics_port_is_wrong_input(
    command: Command, taken_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("run", f"--metrics-port={taken_port}") == 2
    assert str(taken_port) in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["run", "predict"])
def test_impairments_hold_under_both_clocks_and_are_counted(
    name: str, command: Command, tmp_path: Path
) -> None:
    rule = "{corruption_ratio: 0.01, loss_ratio: 0.01, duplication_ratio: 0.01, packets: [write]}"
    assert command(name, "--set", f"impairments=[{rule}]") == 0
    records = load(tmp_path / name)
    assert records.run["byte_conservation"]["holds"]
    counters = records.run["counters"]
    done = {key: sum(values) for key, values in counters["impairments"].items()}
    assert done["packets"] > 1000
    for misfortune in ("lost", "corrupted", "duplicated"):
        assert 0.003 < done[misfortune] / done["packets"] < 0.03, misfortune
    assert done["reordered"] == done["delayed"] == 0
    # A damaged frame may be lost on its next link, or come twice.
    assert 0 < sum(counters["nics"]["rx_icrc_errors"]) <= done["corrupted"] + done["duplicated"]
    assert "Impairments" in (tmp_path / name / "report.html").read_text()
