"""The controller: brings the agents through the phases of one run and collects what they measured.

It sends desired states and heartbeats and waits; what an agent does with them is the agent's. All
it knows of agents stands in `Roster`. Whatever happens, the agents are stopped, their records are
asked for, and nothing is left on the broker or in the process table.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from dataplane.errors import RunError
from emulator.control import topics
from emulator.control.blobs import BlobServer, serve_blobs
from emulator.control.broker import embedded_broker
from emulator.control.children import Children, spawn_agents
from emulator.control.clock_watch import ClockNotices, ClockWatch
from emulator.control.collection import Collection
from emulator.control.command import Command, farewell_will
from emulator.control.event_orders import EventOrders
from emulator.control.inbox import controller_limits
from emulator.control.merge import merge_snapshots
from emulator.control.messages import EventOrder, Phase, State
from emulator.control.outcome import (
    ControlReport,
    EngineRecords,
    Progress,
    RunFailed,
    RunInterrupted,
)
from emulator.control.roster import AgentStatus, Roster
from emulator.control.run_plan import RunPlan
from emulator.control.stall import StallWatch, describe_failures, describe_stall
from emulator.control.tasks import until_first
from emulator.control.transport import BrokerAddress, BrokerLost, Transport, connect

__all__ = ["Controller", "OnMetrics", "OnProgress"]

HEARTBEAT_INTERVAL_S: Final = 0.25
_TICK_S: Final = 0.05
_REPORT_INTERVAL_S: Final = 0.5
_CLOCK_EXCHANGES: Final = 8
_CLOCK_TIMEOUT_S: Final = 1.0
_CLOCK_INTERVAL_PER_AGENT_S: Final = 0.001
"""At most a thousand answers per second, as long as that leaves ten exchanges."""
_EXIT_STATUS_TIMEOUT_S: Final = 0.5
"""The last will of a process may come before its exit status, which says more."""
_STOP_TIMEOUT_S: Final = 20.0
_LAST_UPLOADS_TIMEOUT_S: Final = 6.0
"""Agents that have lost the broker stop within 2 s and then have 4 s to put their records."""

OnProgress = Callable[[Progress], None]
OnMetrics = Callable[[Mapping[str, Any], Mapping[str, Any]], None]
"""Called with the merged snapshot and the operations that completed since the last call."""


class Controller:
    """One run. Use `drive` once."""

    def __init__(
        self,
        plan: RunPlan,
        *,
        on_progress: OnProgress | None = None,
        on_metrics: OnMetrics | None = None,
    ) -> None:
        self._plan = plan
        self._on_progress = on_progress
        self._on_metrics = on_metrics
        self._roster = Roster(plan.run_id, plan.agents, plan.agent_silence_limit_s)
        self._collection = Collection(plan, self._roster)
        self._children: Children | None = None
        self._interrupted = False
        self._describe_end: Callable[[], str] | None = None
        self._start_realtime_ns: int | None = None
        self._start_s = 0.0
        self._broker = "embedded"
        self._events = EventOrders(
            json.loads(plan.config_json) if len(plan.agents) > 1 else {},
            plan.agents_of_ranks,
            plan.event_notice_ps,
        )
        self._failure: RunFailed | None = None
        self._clock = ClockWatch()
        self._clock_notices = ClockNotices()

    @property
    def children(self) -> Children | None:
        """The spawned agents, while there are some."""
        return self._children

    def interrupt(self) -> None:
        """End the run in order; the records so far are kept."""
        self._interrupted = True

    async def drive(self) -> tuple[EngineRecords, ControlReport]:
        """Carry out the run.

        Raises `InputError` if it could not begin, and `RunFailed` with the records so far if it
        ended before all operations were complete.
        """
        async with contextlib.AsyncExitStack() as stack:
            address = await self._open_broker(stack)
            server = await stack.enter_async_context(
                serve_blobs(self._collection.take, address=self._plan.http_address)
            )
            transport = await stack.enter_async_context(self._connect(address))
            if self._plan.spawns_agents:
                self._children = await stack.enter_async_context(
                    spawn_agents(
                        list(self._plan.agents),
                        self._plan.run_id,
                        address,
                        self._plan.agent_limits,
                    )
                )
            await self._converse(transport, server)
        report = self._collection.report(
            self._broker, self._start_realtime_ns, self._clock, self._events.ordered
        )
        records = self._collection.records()
        if self._failure is not None:
            self._failure.records = records
            self._failure.report = report
            raise self._failure
        if records is None:
            raise RunFailed("no agent gave records")
        return records, report

    async def _open_broker(self, stack: contextlib.AsyncExitStack) -> BrokerAddress:
        if self._plan.broker is None:
            return await stack.enter_async_context(embedded_broker(self._plan.broker_port))
        self._broker = str(self._plan.broker)
        return self._plan.broker

    def _connect(
        self, address: BrokerAddress
    ) -> "contextlib.AbstractAsyncContextManager[Transport]":
        run = self._plan.run_id
        return connect(
            address,
            identifier=f"rankwire-controller-{run}",
            will=farewell_will(run),
            limits=controller_limits(len(self._plan.agents)),
        )

    async def _converse(self, transport: Transport, server: BlobServer) -> None:
        command = Command(transport, self._plan.run_id, self._roster, server.token)
        command.records_urls = {name: server.records_url(name) for name in self._plan.agents}
        try:
            await until_first(
                self._conduct(command, server), self._receive(transport), self._beat(command)
            )
        except BrokerLost as error:
            self._failure = self._failure or RunFailed(str(error))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_UPLOADS_TIMEOUT_S):
                    await self._collection.wait(list(self._plan.agents))
        finally:
            self._roster.dropped_messages += transport.dropped_messages

    async def _receive(self, transport: Transport) -> None:
        run = self._plan.run_id
        await transport.subscribe(
            topics.actual(run, "+"),
            topics.agent_heartbeat(run, "+"),
            topics.progress(run, "+"),
            topics.presence("+"),
        )
        async for message in transport.messages():
            self._roster.handle(message, time.monotonic(), time.time_ns())

    async def _beat(self, command: Command) -> None:
        while True:
            await command.beat()
            await asyncio.sleep(HEARTBEAT_INTERVAL_S)

    # The phases

    async def _conduct(self, command: Command, server: BlobServer) -> None:
        try:
            await self._begin(command, server)
            await self._watch(command)
        except RunFailed as failure:
            self._failure = failure
        except BrokerLost:
            raise
        except RunError as error:
            self._failure = RunFailed(str(error))
        await self._end(command)

    async def _begin(self, command: Command, server: BlobServer) -> None:
        patience_s = self._plan.join_timeout_s
        await self._reach(command, Phase.JOIN, State.JOINED, patience_s)
        if self._children is not None:
            self._children.forget_files()
        command.jobs = {
            agent: server.offer(await asyncio.to_thread(self._plan.document(agent).encode))
            for agent in self._plan.agents
        }
        await self._reach(command, Phase.PREPARE, State.PREPARED, patience_s)
        await self._reach(command, Phase.CONNECT, State.CONNECTED, patience_s)
        await self._compare_clocks(command)
        command.choose_start()
        self._start_realtime_ns = command.start_realtime_ns
        self._start_s = self._start_instant_s()
        self._collection.note_start()
        await self._reach(command, Phase.START, State.RUNNING, patience_s)

    async def _reach(
        self,
        command: Command,
        phase: Phase,
        state: State,
        patience_s: float,
    ) -> None:
        await command.ask(phase)
        await self._tell_progress(Progress(phase.value))
        deadline_s = time.monotonic() + patience_s
        while behind := self._roster.behind(state):
            await self._check_faults()
            if time.monotonic() > deadline_s:
                names = "; ".join(map(str, behind))
                raise RunFailed(f"not {state} within {patience_s:g} s: {names}")
            await asyncio.sleep(_TICK_S / 5)

    async def _compare_clocks(self, command: Command) -> None:
        """Exchange a few heartbeats in quick succession; a late agent is not waited for."""
        deadline_s = time.monotonic() + _CLOCK_TIMEOUT_S
        agents = self._roster.agents.values()
        interval_s = min(max(_TICK_S / 5, _CLOCK_INTERVAL_PER_AGENT_S * len(agents)), _TICK_S * 2)
        while time.monotonic() < deadline_s:
            if all(len(agent.clock_samples) >= _CLOCK_EXCHANGES for agent in agents):
                return
            await command.beat()
            await asyncio.sleep(interval_s)

    async def _check_faults(self) -> None:
        if self._interrupted:
            raise RunInterrupted("interrupted by the user")
        fault = self._roster.fault(time.monotonic())
        if fault and self._children is not None:
            await self._children.wait_for_end(_EXIT_STATUS_TIMEOUT_S)
        for name, how in self._ended_children().items():
            raise RunFailed(f"{self._roster.agents[name]} was lost: {how}")
        if fault:
            raise RunFailed(fault)

    def _ended_children(self) -> Mapping[str, str]:
        return self._children.ended() if self._children is not None else {}

    # While traffic flows

    async def _watch(self, command: Command) -> None:
        start_s = self._start_s
        watch = StallWatch(self._plan.stall_timeout_s, max(start_s, time.monotonic()))
        reported_s = 0.0
        while True:
            await self._check_faults()
            self._check_clocks()
            snapshot = self._snapshot()
            now_s = time.monotonic()
            is_done = self._is_done(snapshot)
            if is_done or now_s - reported_s >= _REPORT_INTERVAL_S:
                reported_s = now_s
                await self._tell(snapshot, now_s - start_s)
            if is_done:
                return
            self._check_movement(watch, snapshot, now_s)
            await self._pause(command)

    async def _pause(self, command: Command) -> None:
        """Wait for the next look at everything; look at events of links more often."""
        end_s = time.monotonic() + _TICK_S
        while self._events.is_waiting and time.monotonic() < end_s:
            await self._order_events(command)
            await asyncio.sleep(_TICK_S / 5)
        await asyncio.sleep(max(end_s - time.monotonic(), 0))

    async def _order_events(self, command: Command) -> None:
        """Tell every agent of events whose moment has come on some."""
        now_s = time.monotonic()
        for agent in self._roster.agents.values():
            if agent.actual is not None and agent.actual.moments:
                told = [(moment.event, moment.time_ps) for moment in agent.actual.moments]
                self._events.take(agent.name, told, now_s)
        if self._events.order(now_s, time.time_ns()):
            command.event_orders = [
                EventOrder(event=order.event, base_ps=order.base_ps)
                for order in self._events.ordered
            ]
            await command.ask(Phase.START)

    def _check_movement(self, watch: StallWatch, snapshot: Mapping[str, Any], now_s: float) -> None:
        watch.observe(
            now_s,
            operations_done=snapshot.get("ops_done", 0),
            # Of a message that an adapter carries, parts move before its bytes count.
            bytes_delivered=snapshot.get("bytes_delivered", 0)
            + snapshot.get("adapter_advances", 0),
        )
        if snapshot.get("failed_qps", 0):
            self._describe_end = self._failure_message
            raise RunFailed("a queue pair failed")
        if watch.is_stalled(now_s):
            self._describe_end = self._stall_message
            raise RunFailed("the run stalled")

    def _check_clocks(self) -> None:
        """Tell of clocks that were set: the run goes by CLOCK_MONOTONIC."""
        self._clock.look()
        self._clock_notices.note("the controller", self._clock.steps, self._clock.total_ns)
        for agent in self._roster.agents.values():
            self._clock_notices.note(str(agent), agent.clock_steps, agent.clock_set_ns)

    def _start_instant_s(self) -> float:
        ahead_ns = (self._start_realtime_ns or time.time_ns()) - time.time_ns()
        return time.monotonic() + ahead_ns * 1e-9

    def _snapshot(self) -> dict[str, Any]:
        known = [agent.snapshot for agent in self._roster.agents.values() if agent.snapshot]
        try:
            return merge_snapshots(known)
        except (TypeError, ValueError) as error:
            raise RunFailed(f"the counters of the agents do not fit together: {error}") from error

    def _is_done(self, snapshot: Mapping[str, Any]) -> bool:
        everyone = all(agent.snapshot for agent in self._roster.agents.values())
        return everyone and snapshot["ops_done"] == snapshot["ops_total"]

    async def _tell(self, snapshot: Mapping[str, Any], wall_s: float) -> None:
        if not snapshot:
            return
        await self._tell_progress(
            Progress(
                "running",
                operations_done=snapshot["ops_done"],
                operations_total=sum(len(program) for program in self._plan.programs),
                emulated_ps=snapshot["now_ps"],
                wall_s=max(wall_s, 0.0),
                late_frames=snapshot.get("late_frames", 0),
                notices=self._clock_notices.sentences(),
            )
        )
        if self._on_metrics is not None:
            completed = self._collection.newly_completed()
            await asyncio.to_thread(self._on_metrics, snapshot, completed)

    async def _tell_progress(self, progress: Progress) -> None:
        if self._on_progress is not None:
            await asyncio.to_thread(self._on_progress, progress)

    # The end

    async def _end(self, command: Command) -> None:
        """Stop every agent that still answers, collect, release, and clear the broker."""
        self._collection.note_stop()
        await self._tell_progress(Progress(Phase.STOP.value))
        await self._stop(command)
        if self._describe_end is not None:
            self._failure = RunFailed(self._describe_end())
        await command.ask(Phase.RELEASE)
        await command.beat(gone=True)
        if self._children is not None:
            await self._children.end()
        await command.clear()

    def _stall_message(self) -> str:
        timeout_s = self._plan.stall_timeout_s
        return describe_stall(timeout_s, self._collection.blocked(), self._plan.nodes_of_ranks)

    def _failure_message(self) -> str:
        records = self._collection.records() or {}
        return describe_failures(
            records.get("failures", {}), self._collection.blocked(), self._plan.nodes_of_ranks
        )

    async def _stop(self, command: Command) -> None:
        await command.ask(Phase.STOP)
        deadline_s = time.monotonic() + _STOP_TIMEOUT_S
        while waiting := self._still_stopping():
            if time.monotonic() > deadline_s:
                names = "; ".join(map(str, waiting))
                self._failure = self._failure or RunFailed(f"did not stop: {names}")
                return
            await asyncio.sleep(_TICK_S / 5)

    def _still_stopping(self) -> list[AgentStatus]:
        now_s = time.monotonic()
        gone = self._ended_children()
        return [
            agent
            for agent in self._roster.behind(State.STOPPED)
            if agent.name not in gone and agent.actual is not None and agent.is_present(now_s)
        ]
