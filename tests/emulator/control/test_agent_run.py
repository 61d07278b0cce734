"""One run as an agent sees it, with an engine that the test chooses; no broker."""

import asyncio
import ipaddress
import json
import re
import time
from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import pytest

from emulator.control.agent_config import AgentConfig
from emulator.control.agent_run import AgentRun
from emulator.control.assignment import Topology, wire_ends
from emulator.control.blobs import serve_blobs
from emulator.control.engine import Engine
from emulator.control.job_document import JobDocument
from emulator.control.messages import ActualState, DesiredState, Phase, State, WireAddress
from tests.emulator.control.test_agent_limits import plan

CONFIG = AgentConfig.model_validate({"name": "agent-0", "broker": "mqtt://127.0.0.1"})


def prepared_with(failure: Exception) -> ActualState:
    """Return what an agent says that is asked to prepare a job and whose engine raises."""

    def refuse(_job: JobDocument, _bind_address: str) -> Engine:
        raise failure

    async def run() -> ActualState:
        current = AgentRun(CONFIG, "1" * 64, refuse)
        async with serve_blobs(lambda *_: None) as server:
            job = server.offer(plan().document("agent-0").encode())
            desired = DesiredState(revision=1, phase=Phase.PREPARE, job=job, token=server.token)
            while await current.approach(desired) and current.state is not State.FAILED:
                pass
        return current.actual()

    return asyncio.run(run())


@pytest.mark.parametrize(
    "failure",
    [
        TypeError("Program() got an unexpected keyword argument 'channel'"),
        AttributeError("module 'dataplane' has no attribute 'WallEmulation'"),
        KeyError("rate_bps"),
    ],
)
def test_an_engine_of_another_version_fails_the_agent_and_never_ends_it(failure: Exception) -> None:
    """The controller hears what went wrong and where to look."""
    actual = prepared_with(failure)
    assert actual.state is State.FAILED
    assert repr(failure) in actual.reason
    assert actual.reason.startswith("prepare: ")
    assert "same rankwire" in actual.reason


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_start_that_is_far_away_fails_with_the_likely_cause(hours: int) -> None:
    """A clock was set between the comparison of the clocks and the start."""
    engine = MagicMock(bind=dict, device_ends=lambda: "{}")

    async def scenario() -> ActualState:
        current = AgentRun(CONFIG, "1" * 64, lambda *_: engine)
        async with serve_blobs(lambda *_: None) as server:
            desired = DesiredState(
                revision=1,
                phase=Phase.START,
                job=server.offer(plan().document("agent-0").encode()),
                token=server.token,
                start_realtime_ns=time.time_ns() + hours * 3600 * 10**9,
                peers={
                    end: WireAddress(address="127.0.0.1", port=9)
                    for end in wire_ends(Topology(json.loads(plan().config_json)), carried())
                },
            )
            while await current.approach(desired) and current.state is not State.FAILED:
                pass
        return current.actual()

    actual = asyncio.run(scenario())
    assert actual.state is State.FAILED
    told = re.search(r"the start is (-?\d+) s away: a clock was set", actual.reason)
    assert told is not None, actual.reason
    assert int(told[1]) == pytest.approx(hours * 3600, abs=60)


def test_a_job_is_fetched_from_the_address_in_the_agents_own_file() -> None:
    """A host behind a translation of addresses does not reach the one that the controller names."""
    config = CONFIG.model_copy(update={"controller_address": ipaddress.ip_address("127.0.0.1")})

    async def scenario() -> ActualState:
        engine = MagicMock(bind=dict, device_ends=lambda: "{}")
        current = AgentRun(config, "1" * 64, lambda *_: engine)
        async with serve_blobs(lambda *_: None) as server:
            server.base_url = server.base_url.replace("127.0.0.1", "192.0.2.1")
            job = server.offer(plan().document("agent-0").encode())
            desired = DesiredState(revision=1, phase=Phase.PREPARE, job=job, token=server.token)
            while await current.approach(desired) and current.state is not State.FAILED:
                pass
        return current.actual()

    actual = asyncio.run(scenario())
    assert (actual.state, actual.reason) == (State.PREPARED, "")


def test_moments_are_looked_for_where_events_wait_and_until_they_have_come() -> None:
    """Of each event once; a job without such events costs nothing."""
    waiting = {"kind": "last_end", "operations": [{"rank": 0, "op": 5}]}
    triggers = [{"kind": "time", "at_ps": 0}, waiting]

    async def running(triggers: list[Any]) -> AgentRun:
        engine = MagicMock(bind=dict, device_ends=lambda: "{}", moments=lambda: [(1, 70)])
        current = AgentRun(CONFIG, "1" * 64, lambda *_: engine)
        document = plan().document("agent-0")
        events = [{"links": [0], "trigger": trigger, "changes": []} for trigger in triggers]
        config_json = json.dumps(json.loads(document.config_json) | {"events": events})
        async with serve_blobs(lambda *_: None) as server:
            desired = DesiredState(
                revision=1,
                phase=Phase.START,
                job=server.offer(replace(document, config_json=config_json).encode()),
                token=server.token,
                start_realtime_ns=time.time_ns(),
                peers={
                    end: WireAddress(address="127.0.0.1", port=9)
                    for end in wire_ends(Topology(json.loads(config_json)), carried())
                },
            )
            while await current.approach(desired) and current.state is not State.FAILED:
                pass
        assert current.state is State.RUNNING, current.actual().reason
        return current

    current = asyncio.run(running(triggers))
    assert current.awaits_moments
    assert current.notice_moments()
    assert [moment.time_ps for moment in current.actual().moments] == [70]
    assert not current.awaits_moments
    assert not asyncio.run(running(triggers[:1])).awaits_moments


def carried() -> set[str]:
    """Return the nodes of the agent."""
    return set(plan().agents["agent-0"])
