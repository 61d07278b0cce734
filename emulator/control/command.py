"""What the controller says: desired states, heartbeats, and the farewell.

It knows the plan and what agents have reported; when to say what is the business of `controller`.
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from emulator.control import topics
from emulator.control.messages import (
    BlobReference,
    ControllerHeartbeat,
    DesiredState,
    DeviceEnd,
    EventOrder,
    Phase,
    WireAddress,
    encode,
)
from emulator.control.roster import AgentStatus, Roster
from emulator.control.transport import Transport, Will

__all__ = ["Command", "farewell_will"]

_START_LEAD_S: Final = 0.25
_START_LEAD_PER_AGENT_S: Final = 0.01


class Command:
    """The controller's voice in one run."""

    def __init__(self, transport: Transport, run: str, roster: Roster, token: str) -> None:
        self._transport = transport
        self._run = run
        self._roster = roster
        self._token = token
        self._revision = 0
        self._sequence = 0
        self._peers: Mapping[str, Mapping[str, WireAddress]] = {}
        self._devices: Mapping[str, Mapping[str, DeviceEnd]] = {}
        self.jobs: Mapping[str, BlobReference] = {}
        """Agent -> where it finds its job; set before `prepare`."""
        self.records_urls: Mapping[str, str] = {}
        """Agent -> where it puts its records."""
        self.event_orders: Sequence[EventOrder] = ()
        """Events of links that were ordered so far."""
        self.start_realtime_ns: int | None = None
        """Emulated time 0 on the controller's CLOCK_REALTIME; set by `choose_start`."""

    async def ask(self, phase: Phase) -> None:
        """Publish the desired state of every agent."""
        self._revision += 1
        if phase is Phase.CONNECT:
            self._peers = _opposite_ends(self._roster.agents.values())
            self._devices = _device_ends(self._roster.agents.values())
        await self._publish_retained(
            (topics.desired(self._run, agent.name), encode(self._desired(agent, phase)))
            for agent in self._roster.agents.values()
        )

    def _desired(self, agent: AgentStatus, phase: Phase) -> DesiredState:
        return DesiredState(
            revision=self._revision,
            phase=phase,
            job=self.jobs.get(agent.name),
            peers=dict(self._peers.get(agent.name, {})),
            devices=dict(self._devices.get(agent.name, {})),
            start_realtime_ns=self._start_of(agent),
            records_url=self.records_urls.get(agent.name),
            event_orders=list(self.event_orders),
            token=self._token,
        )

    def choose_start(self) -> None:
        """Choose emulated time 0: far enough ahead for every agent to hear of it before."""
        lead_s = _START_LEAD_S + _START_LEAD_PER_AGENT_S * len(self._roster.agents)
        self.start_realtime_ns = time.time_ns() + round(lead_s * 1e9)
        for agent in self._roster.agents.values():
            agent.clock_at_start = agent.clock

    async def beat(self, *, gone: bool = False) -> None:
        """Send one heartbeat, or the last one."""
        self._sequence += 1
        heartbeat = ControllerHeartbeat(
            sequence=self._sequence, sent_realtime_ns=time.time_ns(), gone=gone
        )
        topic = topics.controller_heartbeat(self._run)
        await self._transport.publish(topic, encode(heartbeat), qos=0)

    async def clear(self) -> None:
        """Remove the retained messages of the run from the broker."""
        await self._publish_retained(
            (topic(self._run, name), b"")
            for name in self._roster.agents
            for topic in (topics.desired, topics.actual)
        )

    async def _publish_retained(self, messages: Iterable[tuple[str, bytes]]) -> None:
        """Publish all at once: one after the other, each would wait for its acknowledgement."""
        publish = self._transport.publish
        await asyncio.gather(*(publish(topic, text, retain=True) for topic, text in messages))

    def _start_of(self, agent: AgentStatus) -> int | None:
        if self.start_realtime_ns is None:
            return None
        clock = agent.clock_at_start
        return self.start_realtime_ns + (clock.correction_ns if clock else 0)


def farewell_will(run: str) -> Will:
    """Return the controller's last will: no more heartbeats will come."""
    heartbeat = ControllerHeartbeat(sequence=0, sent_realtime_ns=time.time_ns(), gone=True)
    return Will(topics.controller_heartbeat(run), encode(heartbeat), retain=False)


def _opposite_ends(agents: Iterable[AgentStatus]) -> dict[str, dict[str, WireAddress]]:
    """Return for every agent the addresses of the wire ends opposite to its own."""
    known = [(agent.name, agent.actual) for agent in agents if agent.actual]
    where = {
        end: WireAddress(address=actual.address, port=port)
        for _, actual in known
        for end, port in actual.ports.items()
    }
    return {
        name: {end: where[_opposite(end)] for end in actual.ports if _opposite(end) in where}
        for name, actual in known
    }


def _device_ends(agents: Collection[AgentStatus]) -> dict[str, dict[str, DeviceEnd]]:
    """Return for every agent what its NICs must know of those that RDMA devices carry."""
    ends = {
        nic: end
        for agent in agents
        if agent.actual
        for nic, end in agent.actual.devices.items()
        if nic in agent.nodes
    }
    towards = {
        agent.name: {nic: end.towards(agent.nodes) for nic, end in ends.items()} for agent in agents
    }
    return {
        name: {nic: end for nic, end in known.items() if end.queue_pairs}
        for name, known in towards.items()
    }


def _opposite(end: str) -> str:
    link, side = end.rsplit("/", 1)
    return f"{link}/{1 - int(side)}"
