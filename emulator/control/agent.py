"""The agent process: listens to the broker, answers heartbeats, reports, and lets `AgentRun` act.

It serves one run at a time. A desired state is followed only after a heartbeat of its controller
was heard on this connection: what a dead controller left on the broker moves nothing.
"""

import asyncio
import contextlib
import logging
import secrets
import signal
import time
from typing import Any, Final

import numpy as np

from dataplane import __version__
from dataplane.errors import InputError
from emulator.control import columns, topics
from emulator.control.agent_config import AgentConfig
from emulator.control.agent_run import AgentRun
from emulator.control.backoff import Backoff
from emulator.control.dead_man import DeadMan
from emulator.control.engine import Engine, EngineFactory, wall_engine
from emulator.control.messages import (
    MAX_MESSAGE_BYTES,
    ActualState,
    AgentHeartbeat,
    ControllerHeartbeat,
    DesiredState,
    MalformedMessage,
    Phase,
    Presence,
    State,
    decode,
    encode,
)
from emulator.control.tasks import until_first
from emulator.control.transport import (
    BrokerAddress,
    BrokerLost,
    Received,
    Transport,
    Will,
    connect,
)

__all__ = ["Agent", "serve"]

_LOG: Final = logging.getLogger(__name__)

_POLL_INTERVAL_S: Final = 0.1
_PROGRESS_INTERVAL_S: Final = 0.5
_MOMENT_INTERVAL_S: Final = 0.01
"""Where a job has events that wait for moments: it costs more than a hundredth of a processor."""
_COMPLETED_CHUNK: Final = 20_000
"""Completed operations in one message: 24 bytes each, so well below the message limit."""
_FAREWELL_S: Final = 4.0
"""How long an agent without a controller tries to give its records; its traffic has stopped."""
_MAX_RUNS: Final = 64
"""Runs that an agent keeps in mind: what dead controllers left on a broker has no end."""


class Agent:
    """One agent: what it serves now, across reconnections."""

    def __init__(self, config: AgentConfig, engine_factory: EngineFactory = wall_engine) -> None:
        self._config = config
        self._engine_factory = engine_factory
        self._incarnation = secrets.token_hex(32)
        self._run_id: str | None = None
        self._run: AgentRun | None = None
        self._desired: DesiredState | None = None
        self._dead_man: DeadMan | None = None
        self._ending: asyncio.Task[None] | None = None
        self._pending: dict[str, DesiredState] = {}
        self._heard: dict[str, None] = {}
        self._changed = asyncio.Event()
        self._dropped_messages = 0
        self._loop = asyncio.get_running_loop()
        self.finished = asyncio.Event()
        """Set when the process shall end."""

    # Connection

    def will(self) -> Will:
        """Return the last will."""
        return Will(topics.presence(self._config.name), self._presence("lost"), retain=True)

    async def attend(self, transport: Transport) -> None:
        """Serve over one connection until it breaks or the agent is finished."""
        self._heard.clear()
        name, run = self._config.name, self._config.run or "+"
        await transport.publish(topics.presence(name), self._presence("online"), retain=True)
        await transport.subscribe(topics.desired(run, name), topics.controller_heartbeat(run))
        try:
            await until_first(
                _wait(self.finished),
                self._receive(transport),
                self._act(transport),
                self._report(transport),
                self._tell_moments(transport),
            )
        finally:
            # Not waited for: the broker may be gone with the controller.
            with contextlib.suppress(BrokerLost):
                await transport.publish(topics.presence(name), self._presence("lost"), qos=0)
                await transport.publish(topics.presence(name), b"", qos=0, retain=True)

    async def abandon(self, reason: str) -> None:
        """Stop the traffic of the current run, try to put its records, and forget it."""
        current, desired = self._run, self._desired
        try:
            if current is not None and desired is not None:
                current.stop_traffic()
                async with asyncio.timeout(_FAREWELL_S):
                    await current.stop(desired, reason)
        except TimeoutError:
            _LOG.warning("the records could not be given to the controller: %s", reason)
        finally:
            self._forget(current)

    def _presence(self, presence: str) -> bytes:
        return encode(
            Presence.model_validate({"incarnation": self._incarnation, "presence": presence})
        )

    # Messages in

    async def _receive(self, transport: Transport) -> None:
        async for message in transport.messages():
            try:
                await self._handle(transport, message)
            except MalformedMessage:
                self._dropped_messages += 1

    async def _handle(self, transport: Transport, message: Received) -> None:
        topic = topics.parse(message.topic)
        if topic is None:
            raise MalformedMessage(f"unknown topic {message.topic!r}")
        if not self._concerns(topic):
            return
        if topic.kind == "controller":
            await self._handle_heartbeat(
                transport, topic.run, decode(ControllerHeartbeat, message.payload)
            )
        elif topic.kind == "desired" and message.payload:
            self._handle_desired(topic.run, decode(DesiredState, message.payload))

    def _concerns(self, topic: topics.Topic) -> bool:
        """Return whether a message is for this agent.

        Some brokers give a new client retained messages that it has not subscribed to.
        """
        is_mine = topic.agent in ("", self._config.name)
        return is_mine and self._config.run in (None, topic.run)

    async def _handle_heartbeat(
        self, transport: Transport, run: str, heartbeat: ControllerHeartbeat
    ) -> None:
        received_ns = time.time_ns()
        if heartbeat.gone:
            self._heard.pop(run, None)
            if run == self._run_id:
                self._silence(self._run)
            return
        if run not in self._heard:
            self._make_room(self._heard)
            self._heard[run] = None
            self._changed.set()
        if run != self._run_id:
            return
        if self._dead_man is not None:
            self._dead_man.heard()
        if self._run is not None:
            self._run.clock.look()
        answer = AgentHeartbeat(
            incarnation=self._incarnation,
            sequence=heartbeat.sequence,
            controller_sent_realtime_ns=heartbeat.sent_realtime_ns,
            received_realtime_ns=received_ns,
            sent_realtime_ns=time.time_ns(),
            dropped_messages=self._dropped_messages + transport.dropped_messages,
            clock_steps=self._run.clock.steps if self._run else 0,
            clock_set_ns=self._run.clock.total_ns if self._run else 0,
        )
        await transport.publish(
            topics.agent_heartbeat(run, self._config.name), encode(answer), qos=0
        )

    def _handle_desired(self, run: str, desired: DesiredState) -> None:
        last = self._pending.get(run)
        if last is None:
            self._make_room(self._pending)
        if last is None or desired.revision > last.revision:
            self._pending[run] = desired
            self._changed.set()

    def _make_room(self, runs: dict[str, Any]) -> None:
        """If there are too many runs, forget one: not the agent's own, one that is dead if any."""
        if len(runs) < _MAX_RUNS:
            return
        others = [run for run in runs if run != self._run_id]
        dead = (run for run in others if run not in self._heard or run not in self._pending)
        del runs[next(dead, others[0])]

    # Actions

    async def _act(self, transport: Transport) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            for run in [run for run in self._pending if run in self._heard]:
                await self._follow(transport, run)

    async def _follow(self, transport: Transport, run: str) -> None:
        if self._run_id is None and self._pending[run].phase is not Phase.RELEASE:
            self._take_up(run)
        if run != self._run_id or self._run is None:
            await self._decline(transport, run)
            return
        current = self._run
        desired = self._desired = self._pending[run]
        while await self._step(current, desired):
            await self._publish_actual(transport, run, current.actual())
            # While it waited, the controller may have gone and the run been forgotten.
            if self._run is not current or current.state is State.FAILED:
                break
            desired = self._desired = self._pending[run]
        if desired.phase is Phase.RELEASE:
            self._forget(current)

    async def _step(self, run: AgentRun, desired: DesiredState) -> bool:
        with self._dead_man.patience() if self._dead_man else contextlib.nullcontext():
            return await run.approach(desired)

    def _take_up(self, run: str) -> None:
        self._run_id = run
        self._run = AgentRun(self._config, self._incarnation, self._engine_factory)
        current = self._run

        def on_silence() -> None:
            current.stop_traffic()
            self._loop.call_soon_threadsafe(self._silence, current)

        self._dead_man = DeadMan(on_silence)

    async def _decline(self, transport: Transport, run: str) -> None:
        desired = self._pending.pop(run)
        if desired.phase is Phase.RELEASE:
            return
        refusal = ActualState(
            incarnation=self._incarnation,
            revision=desired.revision,
            state=State.FAILED,
            version=__version__,
            reason=f"the agent serves the run {self._run_id}",
        )
        await self._publish_actual(transport, run, refusal)

    def _silence(self, current: AgentRun | None) -> None:
        """The controller is gone: end its run; a spawned agent ends with it."""
        if current is None or current is not self._run or self._ending is not None:
            return
        current.stop_traffic()
        self._ending = self._loop.create_task(self.abandon("the controller is gone"))

    def _forget(self, current: AgentRun | None) -> None:
        """Forget a run, unless that has been done and there is another already."""
        if current is not self._run:
            return
        if self._dead_man is not None:
            self._dead_man.release()
        if self._run_id is not None:
            self._pending.pop(self._run_id, None)
            self._heard.pop(self._run_id, None)
        self._run_id = self._run = self._desired = self._dead_man = self._ending = None
        if self._config.exit_with_controller:
            self.finished.set()

    async def _publish_actual(self, transport: Transport, run: str, actual: ActualState) -> None:
        topic = topics.actual(run, self._config.name)
        await transport.publish(topic, encode(actual), retain=True)

    # Reports

    async def _report(self, transport: Transport) -> None:
        published_s = 0.0
        was_complete = False
        while True:
            await asyncio.sleep(_POLL_INTERVAL_S)
            run, engine = self._run_id, self._run.running_engine if self._run else None
            if run is None or engine is None:
                was_complete = False
                continue
            await self._check_engine(transport, run, engine)
            snapshot = engine.snapshot()
            is_complete = snapshot["ops_done"] == snapshot["ops_total"]
            is_due = time.monotonic() - published_s >= _PROGRESS_INTERVAL_S
            if is_due or (is_complete and not was_complete):
                published_s = time.monotonic()
                was_complete = is_complete
                await self._publish_progress(transport, run, engine, snapshot)

    async def _tell_moments(self, transport: Transport) -> None:
        """Say at once what others wait for."""
        while True:
            is_awaited = self._run is not None and self._run.awaits_moments
            await asyncio.sleep(_MOMENT_INTERVAL_S if is_awaited else _POLL_INTERVAL_S)
            run, current = self._run_id, self._run
            if run is not None and current is not None and current.notice_moments():
                await self._publish_actual(transport, run, current.actual())

    async def _check_engine(self, transport: Transport, run: str, engine: Engine) -> None:
        """Report an engine that has ended without being asked to."""
        is_asked = self._ending is not None or (
            self._desired is not None and self._desired.phase is not Phase.START
        )
        if engine.is_running or is_asked or self._run is None:
            return
        self._run.fail("the engine ended by itself")
        await self._publish_actual(transport, run, self._run.actual())

    async def _publish_progress(
        self, transport: Transport, run: str, engine: Engine, snapshot: dict[str, Any]
    ) -> None:
        topic = topics.progress(run, self._config.name)
        completed = engine.completed()
        count = len(completed["op"])
        for first in range(0, max(count, 1), _COMPLETED_CHUNK):
            chunk = {
                name: np.asarray(column)[first : first + _COMPLETED_CHUNK]
                for name, column in completed.items()
            }
            tree = {"incarnation": self._incarnation, "snapshot": snapshot, "completed": chunk}
            await transport.publish(topic, _encode_progress(tree), qos=0)


def _encode_progress(tree: dict[str, Any]) -> bytes:
    """Return a progress message that is small enough: tables of a very large fabric stay out."""
    data = columns.encode(tree, compress=True)
    if len(data) > MAX_MESSAGE_BYTES:
        totals = {key: v for key, v in tree["snapshot"].items() if not isinstance(v, dict)}
        data = columns.encode(tree | {"snapshot": totals}, compress=True)
    return data


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


async def serve(config: AgentConfig, engine_factory: EngineFactory = wall_engine) -> int:
    """Serve runs until told to end; returns the exit status.

    Raises `InputError` when the broker cannot be reached at first; later losses are retried with
    random pauses, see `Backoff`.
    """
    address = BrokerAddress.parse(
        config.broker.get_secret_value(),
        source="agent file: broker",
        mqtt_version=config.mqtt_version,
        password_file=config.broker_password_file,
    )
    agent = Agent(config, engine_factory)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, agent.finished.set)
    backoff = Backoff()
    was_connected = False
    while not agent.finished.is_set():
        try:
            async with connect(
                address, identifier=f"rankwire-agent-{config.name}", will=agent.will()
            ) as transport:
                was_connected = True
                connected_s = time.monotonic()
                await agent.attend(transport)
        except BrokerLost:
            if config.exit_with_controller:
                break
            backoff.held(time.monotonic() - connected_s)
        except InputError:
            if not was_connected:
                raise
        await _pause(agent, backoff)
    await agent.abandon("the agent was told to end, or lost its broker")
    return 0


async def _pause(agent: Agent, backoff: Backoff) -> None:
    """Wait before the next attempt, or until the agent shall end."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(backoff.pause_s()):
            await agent.finished.wait()
