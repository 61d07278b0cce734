"""Whole runs: real agent processes, a real broker, the native engine, frames on loopback wires."""

import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.control.merge import NOT_DONE
from emulator.controller import ControlReport, Progress, RunFailed, run
from emulator.job import Job, JobRequest, build_job
from emulator.predict import predict
from tests.emulator.control.processes import agents_of, mosquitto, until
from traffic_profiles.program import OpKind

AGENTS = 2


def job(*overrides: str) -> Job:
    """Return the demo job, small: about a second of wall time."""
    small = (f"agents.count={AGENTS}", "time_dilation=500")
    request = JobRequest(lab="loopback-clos", size_scale=0.01, overrides=(*small, *overrides))
    return build_job(request)


def total_operations(given: Job) -> int:
    """Count the operations of all ranks."""
    return sum(len(program) for program in given.programs)


class Observer:
    """Notes what a run tells."""

    def __init__(self) -> None:
        self.progress: list[Progress] = []
        self.snapshots: list[Mapping[str, Any]] = []
        self.completed: list[tuple[int, int]] = []
        self.reports: list[ControlReport] = []

    def note_metrics(self, snapshot: Mapping[str, Any], completed: Mapping[str, Any]) -> None:
        """Keep a snapshot and the operations that came with it."""
        self.snapshots.append(snapshot)
        pairs = zip(completed["rank"].tolist(), completed["op"].tolist(), strict=True)
        self.completed += pairs

    def run(self, given: Job) -> dict[str, Any]:
        """Run a job and note everything."""
        return run(
            given,
            on_progress=self.progress.append,
            on_metrics=self.note_metrics,
            on_report=self.reports.append,
        )


@pytest.fixture(scope="module")
def observed() -> tuple[Job, Observer, dict[str, Any]]:
    """One run that several tests look at."""
    given, observer = job(), Observer()
    return given, observer, observer.run(given)


Observed = tuple[Job, Observer, dict[str, Any]]


def test_every_operation_completes(observed: Observed) -> None:
    """Of every rank, once."""
    given, _, records = observed
    assert len(records["ops"]["end_ps"]) == total_operations(given)
    assert (records["ops"]["end_ps"] != NOT_DONE).all()


def test_dependencies_are_kept(observed: Observed) -> None:
    """No operation starts before those that it depends on have ended."""
    given, _, records = observed
    ops = records["ops"]
    for program in given.programs:
        mine = ops["rank"] == program.rank
        start_ps, end_ps = ops["start_ps"][mine], ops["end_ps"][mine]
        counts = np.diff(program.dep_offsets)
        assert (end_ps[program.deps] <= np.repeat(start_ps, counts)).all()


def test_every_byte_arrives(observed: Observed) -> None:
    """What the programs send is what the NICs have received."""
    given, _, records = observed
    sent = sum(int(p.size_bytes[p.kind == OpKind.SEND].sum()) for p in given.programs)
    nics = records["counters"]["nics"]
    assert int(nics["data_payload_bytes_received"].sum()) == sent
    assert int(nics["payload_mismatches"].sum()) == 0


def test_run_and_predict_give_the_same_tables(observed: Observed) -> None:
    """The same columns, and the same operations in the same order."""
    given, _, records = observed
    predicted = predict(given)
    assert set(predicted) <= set(records)
    for name, table in predicted.items():
        if isinstance(table, dict):
            # A run has wires, a prediction does not.
            assert [*table] == [key for key in records[name] if key != "wires"]
    for key in ("rank", "op"):
        np.testing.assert_array_equal(records["ops"][key], predicted["ops"][key])
    for key in ("nic", "rank", "data_payload_bytes_received"):
        mine, theirs = records["counters"]["nics"], predicted["counters"]["nics"]
        np.testing.assert_array_equal(mine[key], theirs[key])


def test_progress_reaches_the_end(observed: Observed) -> None:
    """Through all phases, in order, to all operations."""
    given, observer, _ = observed
    phases = list(dict.fromkeys(point.phase for point in observer.progress))
    assert phases == ["join", "prepare", "connect", "start", "running", "stop"]
    last = [point for point in observer.progress if point.phase == "running"][-1]
    assert last.operations_done == last.operations_total == total_operations(given)


def test_metrics_see_every_operation_once(observed: Observed) -> None:
    """Also the last ones."""
    given, observer, _ = observed
    assert len(observer.completed) == len(set(observer.completed)) == total_operations(given)
    assert observer.snapshots[-1]["ops_done"] == total_operations(given)


def test_clocks_are_compared(observed: Observed) -> None:
    """On one machine they are the same clock."""
    _, observer, _ = observed
    (report,) = observer.reports
    assert [agent.name for agent in report.agents] == ["agent-0", "agent-1"]
    for agent in report.agents:
        assert agent.clock is not None
        assert agent.clock.samples >= 8
        assert abs(agent.clock.offset_ns) <= agent.clock.uncertainty_ns
        assert agent.has_records


def test_no_process_is_left_behind(observed: Observed) -> None:
    """When `run` returns, its agents are gone."""
    assert observed
    assert agents_of(os.getpid()) == {}


def fail(given: Job, **options: Any) -> RunFailed:
    """Run a job that must fail; returns the failure."""
    with pytest.raises(RunFailed) as caught:
        run(given, **options)
    assert agents_of(os.getpid()) == {}
    return caught.value


def once_running(action: Any) -> Any:
    """Return a progress callback that acts once, when the first operations are complete."""
    acted = threading.Event()

    def on_progress(point: Progress) -> None:
        if point.phase == "running" and point.operations_done and not acted.is_set():
            acted.set()
            action()

    return on_progress


def test_a_killed_agent_ends_the_run_and_the_records_are_kept() -> None:
    """The message names the agent, its nodes and how it ended."""
    lost_ranks = [4, 5, 6, 7]
    killed = threading.Event()

    def kill_once_it_has_reported(_snapshot: Any, completed: Any) -> None:
        if np.isin(completed["rank"], lost_ranks).any() and not killed.is_set():
            killed.set()
            os.kill(agents_of(os.getpid())["agent-1"], signal.SIGKILL)

    given = job("time_dilation=5000")
    failure = fail(given, on_metrics=kill_once_it_has_reported)
    assert "agent agent-1 (host" in str(failure)
    assert "by signal 9" in str(failure)
    assert failure.exit_status == 1
    assert failure.records is not None
    done = failure.records["ops"]["end_ps"] != NOT_DONE
    assert len(done) == total_operations(given)
    assert 0 < done.sum() < len(done)
    lost = np.isin(failure.records["ops"]["rank"], lost_ranks)
    assert done[lost].any()
    assert failure.report is not None
    assert [agent.has_records for agent in failure.report.agents] == [True, False]


def test_a_hanging_agent_ends_the_run() -> None:
    """It is alive, and silent."""

    def freeze() -> None:
        os.kill(agents_of(os.getpid())["agent-0"], signal.SIGSTOP)

    failure = fail(job("time_dilation=20000"), on_progress=once_running(freeze))
    assert "agent agent-0" in str(failure)
    assert "has not answered for 5 s" in str(failure)


def test_a_failed_queue_pair_ends_the_run() -> None:
    """A timeout shorter than the round trip and no retry: the message names both ranks."""
    hopeless = ("transport.retransmission_timeout_ns=1000", "transport.retry_count=0")
    failure = fail(job(*hopeless))
    assert "queue pairs failed; rank " in str(failure)
    assert failure.records is not None


def test_a_run_works_over_an_external_broker(tmp_path: Path) -> None:
    """And leaves nothing on it."""
    with mosquitto(tmp_path) as (url, _):
        given = job(f"control.broker={url}")
        records = run(given)
    assert (records["ops"]["end_ps"] != NOT_DONE).all()


def test_a_lost_broker_ends_the_run_and_the_records_are_kept(tmp_path: Path) -> None:
    """Agents stop by themselves and put their records by HTTP."""
    with mosquitto(tmp_path) as (url, pid):
        given = job(f"control.broker={url}", "time_dilation=5000")
        kill = once_running(lambda: os.kill(pid, signal.SIGKILL))
        failure = fail(given, on_progress=kill)
    assert f"the broker {url} was lost" in str(failure)
    assert failure.records is not None
    done = failure.records["ops"]["end_ps"] != NOT_DONE
    assert 0 < done.sum() < len(done)
    assert failure.report is not None
    assert all(agent.has_records for agent in failure.report.agents)


def test_many_agents_run_one_job() -> None:
    """One for each host and switch."""
    given = job("agents.count=8", "time_dilation=2000")
    records = run(given)
    assert (records["ops"]["end_ps"] != NOT_DONE).all()


def test_an_agent_that_never_joins_is_named() -> None:
    """With its nodes, after the time for joining."""
    given = job("agents.spawn=false")
    failure = fail(given, join_timeout_s=0.5)
    assert "not joined within 0.5 s" in str(failure)
    assert "agent agent-0 (host" in str(failure)


def test_agents_stop_when_a_run_is_interrupted() -> None:
    """As by Ctrl-C; the records so far are kept."""
    given = job("time_dilation=5000")
    interrupt = once_running(lambda: os.kill(os.getpid(), signal.SIGINT))
    failure = fail(given, on_progress=interrupt)
    assert str(failure) == "interrupted by the user"
    assert failure.records is not None
    until(lambda: not agents_of(os.getpid()))
