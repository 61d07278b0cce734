"""A controller under the hand of a test: it says what it is told, right or wrong."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from emulator.control import topics
from emulator.control.broker import embedded_broker
from emulator.control.children import Children, login_url
from emulator.control.messages import (
    ActualState,
    AgentHeartbeat,
    ControllerHeartbeat,
    DesiredState,
    Phase,
    State,
    decode,
    encode,
)
from emulator.control.transport import BrokerAddress, Transport, Will, connect

TIMEOUT_S = 15.0
AGENT = "agent-0"


class Puppet:
    """One run of one agent."""

    def __init__(self, transport: Transport, run: str) -> None:
        self.transport = transport
        self.run = run
        self.actual: ActualState | None = None
        self.heartbeat: AgentHeartbeat | None = None
        self.is_beating = False
        self._revision = 0

    async def ask(self, phase: Phase, **facts: object) -> None:
        """Publish a desired state."""
        self._revision += 1
        desired = DesiredState.model_validate({"revision": self._revision, "phase": phase, **facts})
        await self.say(topics.desired(self.run, AGENT), encode(desired), retain=True)

    async def say(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        """Publish anything."""
        await self.transport.publish(topic, payload, retain=retain)

    async def reach(self, state: State) -> ActualState:
        """Wait until the agent reports a state."""
        await until(lambda: self.actual is not None and self.actual.state is state)
        assert self.actual is not None
        return self.actual

    async def beat(self) -> None:
        """Send heartbeats while told to."""
        while True:
            if self.is_beating:
                heartbeat = ControllerHeartbeat(sequence=1, sent_realtime_ns=time.time_ns())
                await self.say(topics.controller_heartbeat(self.run), encode(heartbeat))
            await asyncio.sleep(0.1)

    async def listen(self) -> None:
        """Keep the agent's last words."""
        run = self.run
        await self.transport.subscribe(topics.actual(run, "+"), topics.agent_heartbeat(run, "+"))
        async for message in self.transport.messages():
            topic = topics.parse(message.topic)
            if topic is not None and topic.kind == "actual" and message.payload:
                self.actual = decode(ActualState, message.payload)
            elif topic is not None and topic.kind == "heartbeat":
                self.heartbeat = decode(AgentHeartbeat, message.payload)


async def until(condition: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def puppet(address: BrokerAddress, run: str = "run-1") -> AsyncIterator[Puppet]:
    """Connect a puppet to a broker."""
    will = Will("rankwire/none", b"", retain=False)
    async with connect(address, identifier=f"puppet-{run}", will=will) as transport:
        hand = Puppet(transport, run)
        parts = [asyncio.ensure_future(part) for part in (hand.beat(), hand.listen())]
        try:
            yield hand
        finally:
            for part in parts:
                part.cancel()


@dataclass
class LoneAgent:
    """One real agent process."""

    broker: BrokerAddress
    children: Children

    def ended(self) -> str:
        """Return how the process ended; empty while it lives."""
        return self.children.ended().get(AGENT, "")


@contextlib.asynccontextmanager
async def lone_agent(directory: Path, **keys: object) -> AsyncIterator[LoneAgent]:
    """Run an embedded broker and one real agent process on it."""
    async with embedded_broker() as address, agent_on(address, directory, **keys) as agent:
        yield agent


@contextlib.asynccontextmanager
async def agent_on(
    address: BrokerAddress, directory: Path, **keys: object
) -> AsyncIterator[LoneAgent]:
    """Run one real agent process on a broker."""
    children = Children(directory)
    config = directory / f"{AGENT}.yaml"
    document = {"broker": login_url(address), "mqtt_version": address.mqtt_version, **keys}
    config.write_text(yaml.safe_dump({"name": AGENT, **document}))
    await children.launch(AGENT, config)
    try:
        yield LoneAgent(address, children)
    finally:
        if not children.ended():
            os.kill(children.pids[AGENT], signal.SIGTERM)
        await children.end()
