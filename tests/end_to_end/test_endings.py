"""How a run ends that can't go on: soon, with a message that names who, and with its records."""

import contextlib
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.control.outcome import RunFailed
from emulator.controller import longest_silence_s, run
from emulator.job import JobRequest, build_job
from metrics.records import load
from tests.emulator.control.processes import agents_of, mosquitto, until
from tests.end_to_end.commands import (
    TIMEOUT_S,
    assert_nobody_left,
    environment,
    living_in_session,
    rankwire,
)
from traffic_profiles.chakra import TraceBuilder
from traffic_profiles.chakra.node_types import CollectiveType

pytestmark = pytest.mark.slow

MINUTES = ["run", "loopback-clos", "--time-dilation=60000", "--out=kept", "--quiet"]
"""A run that would take minutes."""


class Running:
    """A run in the background, in a session of its own."""

    def __init__(self, process: subprocess.Popen[str], directory: Path) -> None:
        self.process = process
        self.records = directory / "kept"

    def agents(self) -> dict[str, int]:
        """Name -> process id of the living agents."""
        return agents_of(self.process.pid)

    def ended(self, within_s: float) -> tuple[int, str]:
        """Wait for the end: exit status and stderr; nobody of the session is left then."""
        _, err = self.process.communicate(timeout=within_s)
        assert_nobody_left(self.process.pid)
        assert "Traceback" not in err
        return self.process.returncode, err


@contextlib.contextmanager
def running(directory: Path, *more: str) -> Iterator[Running]:
    """A run whose traffic flows."""
    process = subprocess.Popen(
        [sys.executable, "-m", "emulator", *MINUTES, "--metrics-port=0", *more],
        cwd=directory,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield _flowing(Running(process, directory))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=TIMEOUT_S)


def _flowing(running: Running) -> Running:
    """Wait until operations complete, as the run's own metrics tell."""
    assert running.process.stderr is not None
    said = iter(running.process.stderr.readline, "")
    line = next((line for line in said if line.startswith("metrics: ")), None)
    assert line is not None, "the run ended without serving metrics"
    url = line.removeprefix("metrics: ").strip()
    until(lambda: running.process.poll() is not None or completed_operations(url) > 0)
    assert running.process.poll() is None, running.process.communicate()
    return running


def completed_operations(url: str) -> float:
    """A counter of the metrics that a run serves."""
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as page:  # noqa: S310
        lines = page.read().decode().splitlines()
    name = "rankwire_operations_completed_total"
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def assert_records_kept(directory: Path, outcome: str) -> None:
    """What was recorded so far can be read, and says how the run ended."""
    facts = load(directory).run
    assert outcome in facts["outcome"]
    assert facts["ops_done"] < facts["ops_total"]
    assert (directory / "report.html").is_file()


def test_ctrl_c_ends_a_run_in_order(tmp_path: Path) -> None:
    with running(tmp_path) as a_run:
        a_run.process.send_signal(signal.SIGINT)
        status, err = a_run.ended(within_s=30)
    assert status == 130
    assert "interrupted by the user" in err
    assert_records_kept(a_run.records, "interrupted")


@pytest.mark.parametrize(
    ("number", "said"), [(signal.SIGKILL, "was lost"), (signal.SIGSTOP, "has not answered for 5 s")]
)
def test_a_lost_agent_ends_the_run_and_is_named(
    number: signal.Signals, said: str, tmp_path: Path
) -> None:
    """Killed it is missed at once, stopped after some seconds without an answer."""
    with running(tmp_path) as a_run:
        os.kill(a_run.agents()["agent-1"], number)
        status, err = a_run.ended(within_s=60)
    assert status == 1
    assert "agent-1" in err
    assert said in err
    assert "host" in err
    assert_records_kept(a_run.records, "agent-1")


def test_agents_whose_controller_was_killed_end_within_two_seconds(tmp_path: Path) -> None:
    with running(tmp_path) as a_run:
        agents = a_run.agents()
        a_run.process.kill()
        a_run.process.wait()
        until(lambda: not living_in_session(a_run.process.pid), timeout_s=4)
    assert len(agents) == 2


def test_a_run_on_an_external_broker_ends_when_that_is_gone(tmp_path: Path) -> None:
    with (
        mosquitto(tmp_path) as (url, broker),
        running(tmp_path, f"--set=control.broker={url}") as a,
    ):
        os.kill(broker, signal.SIGKILL)
        status, err = a.ended(within_s=60)
    assert status == 1
    assert url.removeprefix("mqtt://") in err
    assert_records_kept(a.records, "broker")


def test_a_run_on_an_external_broker_completes(tmp_path: Path) -> None:
    with mosquitto(tmp_path) as (url, _):
        ended = rankwire(*SHORT, f"--set=control.broker={url}", directory=tmp_path)
    assert ended.status == 0, ended.err
    assert load(tmp_path / "kept").run["control"]["broker"] == url


SHORT = ["run", "single-switch", "--profile=all-to-all", "--size-scale=0.01", "--out=kept"]


def test_queue_pairs_that_give_up_end_the_run_and_are_named(tmp_path: Path) -> None:
    """A retransmission timer below the round trip, and no retry."""
    impatient = ["transport.retransmission_timeout_ns=1000", "transport.retry_count=0"]
    ended = rankwire(*SHORT, *(f"--set={value}" for value in impatient), directory=tmp_path)
    assert ended.status == 1
    assert "queue pairs failed; rank " in ended.err
    assert " on host" in ended.err
    assert_records_kept(tmp_path / "kept", "queue pairs failed")


def test_a_run_in_which_nothing_moves_ends_and_names_who_waits_for_whom(tmp_path: Path) -> None:
    """One rank computes for a minute; the limit is set below that."""
    for rank in range(2):
        builder = TraceBuilder()
        builder.collective(
            "sum", CollectiveType.ALL_REDUCE, 4096, after=[builder.compute("long", rank * 10_000)]
        )
        builder.write(tmp_path / f"job.{rank}.et")
    job = build_job(JobRequest("single-switch", ("time_dilation=6000",), trace=tmp_path))
    with pytest.raises(RunFailed) as caught:
        run(job, stall_timeout_s=2 - longest_silence_s(job))
    told = str(caught.value)
    assert "the run stalled: no operation completed and no byte arrived for 2 s" in told
    assert "rank 0 on " in told
    assert "waits for rank 1 on " in told
    assert caught.value.records is not None
