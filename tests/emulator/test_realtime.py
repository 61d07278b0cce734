"""A run that didn't keep up with its clock says so, with a time dilation that would fit."""

from typing import Any

import pytest

from emulator.job import Job, JobRequest, build_job
from emulator.realtime import allowed_lateness_ns, realtime_warnings


@pytest.fixture(scope="module")
def job() -> Job:
    return build_job(JobRequest(lab="loopback-clos", overrides=("time_dilation=1000",)))


def warnings(job: Job, late_ns: int, overflows: int = 0) -> list[str]:
    agents: list[dict[str, Any]] = [
        {"name": "agent-0", "lateness": {"p99_ns": late_ns}},
        {"name": "agent-1", "lateness": {}},
    ]
    wires = {"receive_overflows": [0, overflows]}
    return realtime_warnings(job, agents, {"counters": {"wires": wires}})


def test_what_may_be_late_is_the_longest_way_through_the_fabric(job: Job) -> None:
    """2 x 500 ns + 2 x 600 ns + 4 x 4178 B at 400 Gb/s = 2534.24 ns, times the dilation."""
    assert allowed_lateness_ns(job) == pytest.approx(2_534_240, abs=10)


def test_a_punctual_run_has_no_warning(job: Job) -> None:
    assert warnings(job, 2_000_000) == []


def test_a_late_run_names_a_dilation_that_would_fit(job: Job) -> None:
    (told,) = warnings(job, 10_000_000)
    assert "too slow for time dilation 1000" in told
    assert "--time-dilation 4000" in told


def test_frames_lost_by_the_machine_are_told(job: Job) -> None:
    (told,) = warnings(job, 0, overflows=421)
    assert told.startswith("421 frames were lost in this machine's sockets")
