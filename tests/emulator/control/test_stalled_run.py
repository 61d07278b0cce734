"""A run that can never end: two ranks that wait for each other, on the native engine."""

import asyncio
import os
import time

import numpy as np
import pytest

from emulator.control.controller import Controller
from emulator.control.outcome import RunFailed
from emulator.control.run_plan import RunPlan, spread
from emulator.job import JobRequest, build_job
from tests.emulator.control.fabrics import joins
from tests.emulator.control.processes import agents_of
from traffic_profiles.program import NO_INSTANCE, NO_LANE, NO_ROW, OpKind, Program

DILATION = 1000


def exchange(rank: int, peer: int) -> Program:
    """Return a program that sends to its peer only after it has heard from it."""
    return Program(
        rank=rank,
        kind=np.array([OpKind.RECV, OpKind.SEND], np.uint8),
        peer=np.full(2, peer, np.uint32),
        size_bytes=np.full(2, 100_000, np.uint64),
        duration_ps=np.zeros(2, np.uint64),
        lane=np.full(2, NO_LANE, np.int32),
        peer_op=np.array([1, 0], np.uint32),
        channel=np.zeros(2, np.uint16),
        traffic_class=np.zeros(2, np.uint8),
        instance=np.full(2, NO_INSTANCE, np.uint32),
        row=np.full(2, NO_ROW, np.uint32),
        dep_offsets=np.array([0, 0, 1], np.uint32),
        deps=np.array([0], np.uint32),
    )


def test_a_stalled_run_ends_and_says_who_waits_for_whom() -> None:
    """With ranks, nodes and peers, and with the records so far."""
    job = build_job(JobRequest(lab="single-switch", overrides=(f"time_dilation={DILATION}",)))
    programs = [exchange(0, 5), *(joins(rank, 1) for rank in (1, 2, 3, 4)), exchange(5, 0)]
    programs += [joins(rank, 1) for rank in (6, 7)]
    plan = RunPlan(
        "stalled",
        job.config_json,
        programs,
        DILATION,
        spread(job.config_json, 2),
        stall_timeout_s=1.0,
    )

    async def drive() -> None:
        await Controller(plan).drive()

    since = time.monotonic()
    with pytest.raises(RunFailed) as caught:
        asyncio.run(drive())
    assert time.monotonic() - since < 15
    message = str(caught.value)
    assert "the run stalled: no operation completed and no byte arrived for 1 s" in message
    assert "rank 0 on host0 waits for rank 5 on host5, operation 0" in message
    assert "rank 5 on host5 waits for rank 0 on host0, operation 0" in message
    assert caught.value.records is not None
    assert agents_of(os.getpid()) == {}
