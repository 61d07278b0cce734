"""The agent's half of one run: applies actions to the engine and holds the actual state.

It knows the engine, the job and the agent's own file; topics and connections are `agent`'s.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from dataplane import __version__
from dataplane.errors import RankwireError, RunError
from emulator.control import blobs, columns, safety
from emulator.control.agent_config import AgentConfig
from emulator.control.assignment import Topology, wire_ends
from emulator.control.clock import monotonic_instant_ns
from emulator.control.clock_watch import ClockWatch
from emulator.control.desired import Action, Actual, Refusal, diff
from emulator.control.engine import Engine, EngineFactory
from emulator.control.job_document import JobDocument
from emulator.control.messages import (
    ActualState,
    BlockedOperation,
    DesiredState,
    DeviceEnd,
    EventMoment,
    MalformedMessage,
    State,
)
from emulator.control.reach import read_routes

__all__ = ["AgentRun"]

_STOP_TIMEOUT_S: Final = 5.0
_FARTHEST_START_S: Final = 60.0
"""From now to the start either way; the controller chooses one a few seconds ahead."""
_BLOCKED_LIMIT: Final = 64


class AgentRun:
    """One run as an agent sees it."""

    def __init__(
        self, config: AgentConfig, incarnation: str, engine_factory: EngineFactory
    ) -> None:
        self._config = config
        self._incarnation = incarnation
        self._engine_factory = engine_factory
        self._engine: Engine | None = None
        self._has_run = False
        self._state = State.IDLE
        self._revision = 0
        self._reason = ""
        self._job_sha256: str | None = None
        self._ends: set[str] = set()
        self._ports: Mapping[str, int] = {}
        self._devices: Mapping[str, DeviceEnd] = {}
        self._awaited_events = 0
        self._moments: list[EventMoment] = []
        self._ordered: set[int] = set()
        self._blocked: list[BlockedOperation] = []
        self._records_sha256: str | None = None
        self._step = asyncio.Lock()
        self.clock = ClockWatch()
        """Of this host's clock, since the run was taken up."""

    @property
    def state(self) -> State:
        """How far the agent is."""
        return self._state

    @property
    def running_engine(self) -> Engine | None:
        """The engine while traffic may flow, else None."""
        return self._engine if self._state is State.RUNNING else None

    def actual(self) -> ActualState:
        """Return the actual state as a message."""
        return ActualState(
            incarnation=self._incarnation,
            revision=self._revision,
            state=self._state,
            version=__version__,
            reason=self._reason[:4096],
            address=str(self._config.bind_address),
            ports=dict(self._ports),
            devices=dict(self._devices),
            records_sha256=self._records_sha256,
            moments=self._moments,
            blocked=self._blocked,
        )

    @property
    def awaits_moments(self) -> bool:
        """Whether events of links wait for operations, and not all moments have come here."""
        return len(self._moments) < self._awaited_events

    def notice_moments(self) -> bool:
        """Note moments of events of links that have come; returns whether there are new ones."""
        if self._engine is None or self._state is not State.RUNNING:
            return False
        new = [EventMoment(event=event, time_ps=ps) for event, ps in self._engine.moments()]
        self._moments += new
        return bool(new)

    def stop_traffic(self) -> None:
        """Stop sending at once; callable from any thread. The records are kept."""
        if self._engine is not None:
            self._engine.stop()

    def fail(self, reason: str) -> None:
        """Stop sending and note why."""
        self.stop_traffic()
        self._state = State.FAILED
        self._reason = reason

    async def approach(self, desired: DesiredState) -> bool:
        """Take the next step towards the desired state; returns whether there was one.

        After a step the actual state has changed, or is `failed`.
        """
        async with self._step:
            return await self._approach(desired)

    async def stop(self, desired: DesiredState, reason: str) -> None:
        """Stop for a reason of the agent's own."""
        async with self._step:
            if self._state is not State.STOPPED:
                self._reason = self._reason or reason
                await self._apply(Action.STOP, desired)

    async def _approach(self, desired: DesiredState) -> bool:
        self._revision = desired.revision
        actions = diff(desired, Actual(self._state, self._job_sha256))
        if isinstance(actions, Refusal):
            if self._state is State.FAILED:
                return False
            self.fail(actions.reason)
            return True
        if not actions:
            self._order_events(desired)
            return False
        await self._apply(actions[0], desired)
        return True

    def _order_events(self, desired: DesiredState) -> None:
        """Pass on the orders that are new, while traffic flows."""
        if self._engine is None or self._state is not State.RUNNING:
            return
        for order in desired.event_orders:
            if order.event not in self._ordered:
                self._ordered.add(order.event)
                self._engine.order_event(order.event, order.base_ps)

    async def _apply(self, action: Action, desired: DesiredState) -> None:
        appliers: dict[Action, Callable[[DesiredState], Awaitable[None]]] = {
            Action.JOIN: self._join,
            Action.PREPARE: self._prepare,
            Action.CONNECT: self._connect,
            Action.START: self._start,
            Action.STOP: self._stop,
            Action.RELEASE: self._release,
        }
        try:
            await appliers[action](desired)
        except (RankwireError, MalformedMessage, OSError, RuntimeError, ValueError) as error:
            self.fail(f"{action}: {error}")
        except Exception as error:  # noqa: BLE001
            # A job or a native module of another version fails in ways that nobody foresees, and
            # the controller, which waits, has to hear of it.
            self.fail(f"{action}: {error!r}; is the same rankwire installed on both sides?")

    async def _join(self, desired: DesiredState) -> None:
        del desired
        self._state = State.JOINED

    async def _prepare(self, desired: DesiredState) -> None:
        if desired.job is None:
            raise MalformedMessage("no job to prepare")
        job = desired.job.model_copy(update={"url": self._reachable(desired.job.url)})
        data = await blobs.fetch(job, token=desired.token, allowed=self._config.allowed_prefixes)
        engine, self._ends = await asyncio.to_thread(self._build, data)
        self._ports, self._devices = await asyncio.to_thread(_open, engine)
        self._engine = engine
        self._job_sha256 = desired.job.sha256
        self._state = State.PREPARED

    def _build(self, data: bytes) -> tuple[Engine, set[str]]:
        job = JobDocument.decode(data)
        config = json.loads(job.config_json)
        triggers = [event["trigger"] for event in config.get("events", ())]
        self._awaited_events = sum("operations" in trigger for trigger in triggers)
        topology = Topology(config)
        nodes = set(job.nodes)
        safety.check_nodes(topology, nodes)
        safety.check_rates(self._config, topology, nodes, job.time_dilation)
        if job.ports is not None:
            safety.check_ports(self._config, job.ports, nodes, topology.addresses)
        engine = self._engine_factory(job, str(self._config.bind_address))
        return engine, set(wire_ends(topology, nodes)) if job.ports is None else set()

    async def _connect(self, desired: DesiredState) -> None:
        safety.check_peers(self._config, desired.peers, self._ends)
        safety.check_routes(self._config, desired.peers, read_routes())
        peers = {end: desired.peers[end] for end in self._ends}
        addresses = {end: (peer.address, peer.port) for end, peer in peers.items()}
        devices = json.dumps({name: end.model_dump() for name, end in desired.devices.items()})
        # An RDMA device asks the network for the peer's MAC address, which takes its time.
        await asyncio.to_thread(self._prepared_engine().connect, addresses, devices)
        self._state = State.CONNECTED

    async def _start(self, desired: DesiredState) -> None:
        if desired.start_realtime_ns is None:
            raise MalformedMessage("no instant to start at")
        instant_ns = monotonic_instant_ns(desired.start_realtime_ns)
        away_s = (instant_ns - time.monotonic_ns()) * 1e-9
        if abs(away_s) > _FARTHEST_START_S:
            raise RunError(f"the start is {away_s:.0f} s away: a clock was set meanwhile")
        self.clock.look()
        if self.clock.steps:
            raise RunError(
                f"this host's clock was set by {self.clock.total_ns * 1e-9:+.3f} s after the run "
                "was joined, so that its start is not known; run again"
            )
        self._prepared_engine().start(instant_ns)
        self._has_run = True
        self._state = State.RUNNING

    async def _stop(self, desired: DesiredState) -> None:
        """Stop the engine, name what had not completed, and put the records.

        Records that cannot be put are a reason, not a failure: the traffic has stopped.
        """
        self.stop_traffic()
        if self._engine is not None and self._has_run:
            await self._join_engine(self._engine)
            self._blocked = _blocked(self._engine)
            await self._put_records(self._engine, desired)
        self._state = State.STOPPED

    async def _join_engine(self, engine: Engine) -> None:
        if not await asyncio.to_thread(engine.join, _STOP_TIMEOUT_S):
            raise RunError(f"the engine did not stop within {_STOP_TIMEOUT_S} s")

    async def _put_records(self, engine: Engine, desired: DesiredState) -> None:
        if desired.records_url is None:
            return
        data = await asyncio.to_thread(_encode_records, engine)
        try:
            self._records_sha256 = await blobs.put(
                self._reachable(desired.records_url),
                data,
                token=desired.token,
                allowed=self._config.allowed_prefixes,
            )
        except blobs.BlobError as error:
            self._reason = f"{self._reason}; {error}" if self._reason else str(error)

    def _reachable(self, url: str) -> str:
        """Return the controller's URL as this host reaches it."""
        address = self._config.controller_address
        return url if address is None else blobs.at_address(url, address)

    async def _release(self, desired: DesiredState) -> None:
        del desired
        self.stop_traffic()
        if self._engine is not None and self._has_run:
            await self._join_engine(self._engine)
        self._engine = None
        self._state = State.IDLE

    def _prepared_engine(self) -> Engine:
        if self._engine is None:
            raise RunError("there is no prepared engine")
        return self._engine


def _open(engine: Engine) -> tuple[Mapping[str, int], Mapping[str, DeviceEnd]]:
    """Open what carries the NICs; returns what others must know of it."""
    ports = engine.bind()
    ends = json.loads(engine.device_ends())
    return ports, {name: DeviceEnd.model_validate(end) for name, end in ends.items()}


def _encode_records(engine: Engine) -> bytes:
    return columns.encode(
        {
            "records": engine.records(),
            "lateness": engine.lateness(),
            "ports": json.dumps(engine.ports()),
        }
    )


def _blocked(engine: Engine) -> list[BlockedOperation]:
    return [_blocked_operation(entry) for entry in engine.blocked(_BLOCKED_LIMIT)]


def _blocked_operation(entry: Mapping[str, Any]) -> BlockedOperation:
    detail = str(entry.get("waiting_for", ""))
    if size_bytes := entry.get("size_bytes"):
        detail = f"{entry.get('received_bytes', 0)} of {size_bytes} bytes arrived, {detail}"
    return BlockedOperation(
        rank=entry["rank"],
        op=entry["op"],
        kind=str(entry["kind"]).lower(),
        peer=entry["peer"],
        detail=detail[:512],
    )
