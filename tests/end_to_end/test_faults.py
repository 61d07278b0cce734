"""Faults of what a run stands on: its broker, its disk, its clock, its links."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from emulator.control.merge import NOT_DONE
from emulator.controller import ControlReport, Progress, RunFailed, run
from emulator.job import Job, JobRequest, build_job
from metrics.records import load
from tests.emulator.control.processes import agents_of, command, mosquitto
from tests.end_to_end.commands import TIMEOUT_S, Ended, environment, rankwire

pytestmark = pytest.mark.slow

SMALL = ["run", "single-switch", "--profile=all-to-all", "--size-scale=0.01", "--quiet"]
UNDER_LIMIT = """
import os, resource, sys
limit_bytes = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
os.execv(sys.executable, [sys.executable, "-m", "emulator", *sys.argv[2:]])
"""


def ended(words: list[str], directory: Path) -> Ended:
    """Run a command to its end."""
    started_s = time.monotonic()
    result = subprocess.run(
        words,
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    seconds = time.monotonic() - started_s
    return Ended(result.returncode, result.stdout, result.stderr, seconds)


def job(*overrides: str, size_scale: float = 0.01) -> Job:
    """Return the demo job for two agents."""
    request = JobRequest("loopback-clos", ("agents.count=2", *overrides), size_scale=size_scale)
    return build_job(request)


def once_running(action: Callable[[], object]) -> Callable[[Progress], None]:
    """Return a progress callback that acts once, when the first operations are complete."""
    acted = threading.Event()

    def on_progress(point: Progress) -> None:
        if point.phase == "running" and point.operations_done and not acted.is_set():
            acted.set()
            action()

    return on_progress


def test_a_disk_that_fills_up_is_told_and_what_was_written_can_be_read(tmp_path: Path) -> None:
    """The kernel refuses every file above a size, which the largest records reach."""
    words = [sys.executable, "-c", UNDER_LIMIT, "12000", *SMALL, "--out=kept"]
    result = ended(words, tmp_path)
    assert result.status == 1
    assert "kept: records can't be written: File too large; free some space" in result.err
    assert "Traceback" not in result.err
    assert len(pl.read_parquet(tmp_path / "kept" / "collectives.parquet")) > 0


def test_a_disk_that_is_nearly_full_is_told_before_anything_starts(tmp_path: Path) -> None:
    """8 MiB in memory, mounted for this command alone."""
    alone = ["unshare", "--mount", "sh", "-c"]
    mounted = 'mount -t tmpfs -o size=8m none "$0" && cd "$0" && exec "$@"'
    if subprocess.run([*alone, 'mount -t tmpfs none "$0"', tmp_path], check=False).returncode:
        pytest.skip("a file system cannot be mounted here")
    words = [sys.executable, "-m", "emulator", *SMALL, "--out=kept"]
    result = ended([*alone, mounted, str(tmp_path), *words], tmp_path)
    assert result.status == 2
    assert "kept: is on a disk with 8 MiB left" in result.err or "with 7 MiB left" in result.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step_s", [-3600, 3600])
def test_a_clock_that_is_set_while_traffic_flows_changes_nothing(
    step_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller's by an hour, so that every exchange with an agent shows it."""
    real = time.time_ns
    step = once_running(
        lambda: monkeypatch.setattr(time, "time_ns", lambda: real() + step_s * 10**9)
    )
    reports: list[ControlReport] = []
    records = run(job("time_dilation=5000"), on_progress=step, on_report=reports.append)
    assert (records["ops"]["end_ps"] != NOT_DONE).all()
    (report,) = reports
    assert 0 < report.wall_s < TIMEOUT_S
    for agent in report.as_dict()["agents"]:
        assert abs(agent["clock_offset_ns"]) < 10**9
        assert agent["clock_change_ns"] / 1e9 == pytest.approx(-step_s, abs=5)


def test_a_link_that_goes_down_for_good_is_named_with_who_waits_for_whom(tmp_path: Path) -> None:
    """After the retries of the queue pairs that use it."""
    result = rankwire(
        *(*SMALL, "--out=kept", "--set", "agents.count=2"),
        *("--set", "events=[{links: host3-*, change: down, at_ns: 12000}]"),
        *("--set", "transport.retry_count=2"),
        *("--set", "transport.retransmission_timeout_ns=100000"),
        directory=tmp_path,
    )
    assert result.status == 1
    assert "queue pairs failed" in result.err
    assert "link host3-leaf0 is down since 12.000 us" in result.err
    assert " waits for rank " in result.err or " sends to rank 3 on host3" in result.err
    facts = load(tmp_path / "kept").run
    assert 0 < facts["ops_done"] < facts["ops_total"]


def test_standing_agents_outlive_a_broker_that_is_restarted_in_mid_run(tmp_path: Path) -> None:
    """The run ends with its records; the next one finds the same agents."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(contextlib.ExitStack())
        url, broker = first.enter_context(mosquitto(tmp_path))
        agents = []
        for name in ("agent-0", "agent-1"):
            config = tmp_path / f"{name}.yaml"
            config.write_text(f"name: {name}\nbroker: {url}\n")
            words = ("agent", "--config", str(config))
            agents.append(stack.enter_context(command(*words, directory=tmp_path)))
        standing = ("agents.spawn=false", f"control.broker={url}")
        kill = once_running(lambda: os.kill(broker, signal.SIGKILL))
        with pytest.raises(RunFailed) as caught:
            run(job(*standing, "time_dilation=5000"), on_progress=kill)
        assert f"the broker {url} was lost" in str(caught.value)
        assert caught.value.records is not None
        assert [agent.has_records for agent in caught.value.report.agents] == [True, True]  # type: ignore[union-attr]
        first.close()
        stack.enter_context(mosquitto(tmp_path, port=int(url.rsplit(":", 1)[1])))
        records = run(job(*standing, "time_dilation=2000"))
        assert (records["ops"]["end_ps"] != NOT_DONE).all()
        assert [agent.poll() for agent in agents] == [None, None]
        assert agents_of(os.getpid()).keys() == {"agent-0", "agent-1"}
