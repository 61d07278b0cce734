"""Collects what the agents of a run give back, and says in words why a run failed."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from emulator.control import columns
from emulator.control.clock_watch import ClockWatch
from emulator.control.engine import empty_records
from emulator.control.event_orders import OrderedEvent
from emulator.control.merge import merge_completed, merge_records, reported_operations
from emulator.control.messages import BlockedOperation, MalformedMessage
from emulator.control.outcome import (
    AgentReport,
    ControlReport,
    EngineRecords,
    RunFailed,
)
from emulator.control.roster import AgentStatus, Roster
from emulator.control.run_plan import RunPlan

__all__ = ["Collection"]

_MAX_PORT_FACTS, _MAX_PORT_WORD = 64, 256
"""Facts that an agent may tell of a port, and the longest word of one."""
_PORT_NUMBER_LIMIT = 1 << 63


class Collection:
    """Records and facts of one run, as they come in."""

    def __init__(self, plan: RunPlan, roster: Roster) -> None:
        self._plan = plan
        self._roster = roster
        self._parts: dict[str, Mapping[str, Any]] = {}
        self._arrived = asyncio.Event()
        self._started_s: float | None = None
        self._stopped_s: float | None = None
        self._told: dict[str, int] = {}

    def take(self, agent: str, data: bytes) -> None:
        """Take in the records that an agent has put; garbage counts as a dropped message."""
        try:
            part = columns.decode(data)
        except MalformedMessage:
            part = {}
        if agent not in self._plan.agents or "records" not in part:
            self._roster.dropped_messages += 1
            return
        self._parts[agent] = part
        self._arrived.set()

    async def wait(self, agents: Sequence[str]) -> None:
        """Wait until the records of some agents are there."""
        while not set(agents) <= self._parts.keys():
            self._arrived.clear()
            await self._arrived.wait()

    def note_start(self) -> None:
        """The run is about to start."""
        self._started_s = time.monotonic()

    def note_stop(self) -> None:
        """The agents are about to be stopped."""
        self._stopped_s = time.monotonic()

    def newly_completed(self) -> Mapping[str, Any]:
        """Return the operations reported since the last call."""
        reports = []
        for agent in self._roster.agents.values():
            reports += agent.completed[self._told.get(agent.name, 0) :]
            self._told[agent.name] = len(agent.completed)
        return merge_completed(reports)

    def records(self) -> EngineRecords | None:
        """Return the tables of all agents as one; None if nothing is known."""
        parts = [self._part(agent) for agent in self._roster.agents.values()]
        known = [part for part in parts if part]
        if not known:
            return None
        events = sum((a.snapshot or {}).get("events", 0) for a in self._roster.agents.values())
        try:
            return merge_records([empty_records(self._plan.config_json), *known]) | {
                "events": events
            }
        except (KeyError, TypeError, ValueError) as error:
            raise RunFailed(f"the records of the agents do not fit together: {error}") from error

    def _part(self, agent: AgentStatus) -> Mapping[str, Any]:
        if agent.name in self._parts:
            records: Mapping[str, Any] = self._parts[agent.name]["records"]
            return records
        if self._started_s is None:
            return {}
        programs = self._plan.programs_of(agent.name)
        return {"ops": reported_operations(programs, agent.completed)} if programs else {}

    def report(
        self,
        broker: str,
        start_realtime_ns: int | None,
        clock: ClockWatch,
        ordered: Sequence[OrderedEvent] = (),
    ) -> ControlReport:
        """Return the facts for the records."""
        ran = self._started_s is not None and self._stopped_s is not None
        return ControlReport(
            run_id=self._plan.run_id,
            broker=broker,
            start_realtime_ns=start_realtime_ns,
            wall_s=self._stopped_s - self._started_s if ran else 0.0,  # type: ignore[operator]
            dropped_messages=self._roster.dropped_messages,
            clock_steps=clock.steps,
            clock_set_ns=clock.total_ns,
            agents=tuple(self._agent_report(agent) for agent in self._roster.agents.values()),
            event_orders=tuple(ordered),
        )

    def _agent_report(self, agent: AgentStatus) -> AgentReport:
        part = self._parts.get(agent.name, {})
        return AgentReport(
            name=agent.name,
            nodes=agent.nodes,
            clock=agent.clock_at_start or agent.clock,
            clock_change_ns=agent.clock_change_ns,
            dropped_messages=agent.dropped_messages,
            lateness=part.get("lateness", {}),
            clock_steps=agent.clock_steps,
            clock_set_ns=agent.clock_set_ns,
            ports=_ports(part, agent.nodes),
            has_records="records" in part,
        )

    def blocked(self) -> list[BlockedOperation]:
        """Return the operations that stopped agents were waiting for."""
        return [
            operation
            for agent in self._roster.agents.values()
            if agent.actual
            for operation in agent.actual.blocked
        ]


def _ports(part: Mapping[str, Any], nodes: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What an agent says of the ports of its own NICs; nothing if it is not plain values."""
    try:
        told = json.loads(str(part.get("ports", "{}")))
        ports = {nic: dict(port) for nic, port in dict(told).items() if nic in nodes}
    except (TypeError, ValueError, RecursionError):
        return {}
    is_short = all(len(port) <= _MAX_PORT_FACTS for port in ports.values())
    words = [word for port in ports.values() for fact in port.items() for word in fact]
    return ports if is_short and all(map(_is_plain, words)) else {}


def _is_plain(value: object) -> bool:
    """A number that JSON and tables have, or a text as short and printable as what a port says."""
    if isinstance(value, str):
        return len(value) <= _MAX_PORT_WORD and value.isprintable()
    return isinstance(value, int | float) and abs(value) < _PORT_NUMBER_LIMIT
