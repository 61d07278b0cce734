"""A clock that is set on one agent's host: the agent is a real process that sees another time.

libfaketime stands in for the host's clock: the agent asks the C library for the time, and gets it
with what a file says added, from the moment that it says so. CLOCK_MONOTONIC stays the kernel's.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.commands.execution import control_facts, run_document, store
from emulator.control.merge import NOT_DONE
from emulator.controller import ControlReport, Progress, RunFailed, run
from emulator.job import Job, JobRequest, build_job
from metrics.report import write_report
from tests.emulator.control.processes import mosquitto
from tests.end_to_end.commands import REPOSITORY

pytestmark = pytest.mark.slow

STEP_S = 7200


def libfaketime() -> Path:
    """The library; without it the test is skipped."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    if not found:
        pytest.skip("libfaketime is not installed: apt-get install libfaketime")
    return found[0]


@contextlib.contextmanager
def agent(name: str, url: str, directory: Path, **environment: str) -> Iterator[None]:
    """A standing agent."""
    config = directory / f"{name}.yaml"
    config.write_text(f"name: {name}\nbroker: {url}\n")
    with subprocess.Popen(
        [sys.executable, "-m", "emulator", "agent", "--config", str(config)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield
        finally:
            process.terminate()


@pytest.fixture
def standing(tmp_path: Path) -> Iterator[tuple[Job, Path]]:
    """A job for two standing agents, and the file that sets the clock of the second."""
    library, clock = libfaketime(), tmp_path / "clock"
    clock.write_text("+0")
    faked = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    with (
        mosquitto(tmp_path) as (url, _),
        agent("agent-0", url, tmp_path),
        agent("agent-1", url, tmp_path, **faked),
    ):
        overrides = ("agents.spawn=false", "agents.count=2", f"control.broker={url}")
        lab = (*overrides, "time_dilation=2000")
        yield build_job(JobRequest("loopback-clos", lab, size_scale=0.01)), clock


def test_it_is_told_whose_clock_was_set_and_the_run_goes_on(
    standing: tuple[Job, Path], tmp_path: Path
) -> None:
    """At once, in the records, and by how much; the other agent and the controller saw none."""
    job, clock = standing
    notices: list[str] = []

    def on_progress(point: Progress) -> None:
        notices.extend(set(point.notices) - set(notices))
        if point.phase == "running" and point.operations_done:
            clock.write_text(f"+{STEP_S}")

    reports: list[ControlReport] = []
    records = run(job, on_progress=on_progress, on_report=reports.append)
    assert (records["ops"]["end_ps"] != NOT_DONE).all()
    (notice,) = notices
    assert "the clock of agent agent-1 (" in notice
    assert f"was set by +{STEP_S}.0" in notice
    run_json = run_document(job, "run", control_facts(reports[0]))
    control = run_json["control"]
    seen = {one["name"]: one["clock_steps"] for one in control["agents"]}
    assert (control["clock_steps"], seen) == (0, {"agent-0": 0, "agent-1": 1})
    (other, stepped) = control["agents"]
    for told in ("clock_set_ns", "clock_change_ns"):
        assert stepped[told] * 1e-9 == pytest.approx(STEP_S, abs=1)
    assert abs(other["clock_change_ns"]) < 10**9
    facts = run_json | {"outcome": "complete", "wall_seconds": 0.0, "started_at": ""}
    kept = store(tmp_path, job, records, facts)
    (warning,) = [text for text in kept.run["warnings"] if "clocks were set" in text]
    assert "while the run went on: agent-1 (+7200." in warning
    assert "Clock set" in write_report(tmp_path).read_text(encoding="utf-8")


def test_a_clock_that_is_set_before_the_start_fails_the_run(standing: tuple[Job, Path]) -> None:
    """By a tenth of a second: the agent would start at another instant than the rest."""
    job, clock = standing

    def on_progress(point: Progress) -> None:
        if point.phase == "prepare":
            clock.write_text("+0.1")

    with pytest.raises(RunFailed, match=r"agent-1 .*this host's clock was set by \+0\.1"):
        run(job, on_progress=on_progress)
