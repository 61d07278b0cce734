"""An agent with the native engine and a controller that asks for what the agent's file forbids."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from emulator.control.blobs import serve_blobs
from emulator.control.messages import ActualState, Phase, State
from emulator.control.run_plan import RunPlan
from emulator.job import JobRequest, build_job
from tests.emulator.control.puppet import AGENT, Puppet, lone_agent, puppet

Scenario = Callable[[Puppet, Mapping[str, object]], Awaitable[None]]


@functools.cache
def plan() -> RunPlan:
    """Return a small job that one agent carries whole."""
    request = JobRequest(lab="single-switch", size_scale=0.01, overrides=("time_dilation=1000",))
    job = build_job(request)
    nodes = [node["name"] for node in (*job.config["nics"], *job.config["switches"])]
    return RunPlan("run-1", job.config_json, job.programs, 1000, {AGENT: nodes})


def drive(directory: Path, scenario: Scenario, **keys: object) -> None:
    """Bring one agent into a run and serve it a real job."""

    async def run() -> None:
        async with (
            serve_blobs(lambda *_: None) as server,
            lone_agent(directory, **keys) as agent,
            puppet(agent.broker) as hand,
        ):
            job = server.offer(plan().document(AGENT).encode())
            hand.is_beating = True
            await scenario(hand, {"job": job.model_dump(), "token": server.token})

    asyncio.run(run())


async def prepare(hand: Puppet, facts: Mapping[str, object]) -> ActualState:
    """Have the job prepared."""
    await hand.ask(Phase.PREPARE, **facts)
    return await hand.reach(State.PREPARED)


def peers_at(address: str, prepared: ActualState) -> dict[str, object]:
    """Return peers that would have every wire end send to one address."""
    return {end: {"address": address, "port": 9} for end in prepared.ports}


@pytest.mark.parametrize("address", ["198.18.0.1", "8.8.8.8", "localhost", "255.255.255.255"])
def test_an_agent_does_not_send_outside_of_its_prefixes(tmp_path: Path, address: str) -> None:
    """The engine is never told of such an address."""

    async def scenario(hand: Puppet, facts: Mapping[str, object]) -> None:
        prepared = await prepare(hand, facts)
        await hand.ask(Phase.CONNECT, **facts, peers=peers_at(address, prepared))
        failed = await hand.reach(State.FAILED)
        assert f"would send to {address}, outside of the agent's allowed_prefixes" in failed.reason

    drive(tmp_path, scenario)


def test_an_agent_keeps_its_rate_cap(tmp_path: Path) -> None:
    """16 wire ends of 400 Gb/s, dilated a thousand times, need 6.4 Gb/s."""

    async def scenario(hand: Puppet, facts: Mapping[str, object]) -> None:
        await hand.ask(Phase.PREPARE, **facts)
        failed = await hand.reach(State.FAILED)
        assert "6400000000 bit/s, its rate_cap_bps is 6399999999" in failed.reason

    drive(tmp_path, scenario, rate_cap_bps=6_399_999_999)


def test_an_agent_at_its_rate_cap_prepares(tmp_path: Path) -> None:
    """The cap itself is allowed, and every wire end has a port of its own."""

    async def scenario(hand: Puppet, facts: Mapping[str, object]) -> None:
        prepared = await prepare(hand, facts)
        assert len(set(prepared.ports.values())) == len(prepared.ports) == 16

    drive(tmp_path, scenario, rate_cap_bps=6_400_000_000)


def test_another_job_is_refused_once_one_is_prepared(tmp_path: Path) -> None:
    """The programs of all agents belong together."""

    async def scenario(hand: Puppet, facts: Mapping[str, object]) -> None:
        await prepare(hand, facts)
        job = facts["job"]
        assert isinstance(job, dict)
        await hand.ask(Phase.PREPARE, **{**facts, "job": {**job, "sha256": "0" * 64}})
        failed = await hand.reach(State.FAILED)
        assert "another job" in failed.reason

    drive(tmp_path, scenario)
