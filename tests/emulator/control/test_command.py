"""What the controller tells each agent of the others."""

import asyncio
from typing import Any, cast

from dataplane import __version__
from emulator.control import topics
from emulator.control.command import Command
from emulator.control.messages import (
    ActualState,
    DesiredState,
    DeviceEnd,
    Phase,
    State,
    decode,
    encode,
)
from emulator.control.roster import Roster
from emulator.control.transport import Received, Transport


class Publications:
    """A broker that keeps what is published."""

    def __init__(self) -> None:
        self.last: dict[str, bytes] = {}

    async def publish(self, topic: str, payload: bytes, **_options: Any) -> None:
        """Keep it."""
        self.last[topic] = payload


def device(**queue_pairs: list[int]) -> DeviceEnd:
    return DeviceEnd(memory_address=4096, remote_key=7, memory_bytes=1024, queue_pairs=queue_pairs)


def prepared(roster: Roster, agent: str, **devices: DeviceEnd) -> None:
    """Let an agent report that it is prepared."""
    actual = ActualState(
        incarnation="1" * 64,
        revision=1,
        state=State.PREPARED,
        version=__version__,
        devices=devices,
    )
    roster.handle(Received(topics.actual("r", agent), encode(actual), False), 0.0, 0)


def told(nodes: dict[str, list[str]], **devices: dict[str, DeviceEnd]) -> dict[str, DesiredState]:
    """Return what every agent is told when it is to connect."""
    roster, broker = Roster("r", nodes), Publications()
    for agent in nodes:
        prepared(roster, agent, **devices.get(agent, {}))
    command = Command(cast(Transport, broker), "r", roster, "token")
    asyncio.run(command.ask(Phase.CONNECT))
    return {agent: decode(DesiredState, broker.last[topics.desired("r", agent)]) for agent in nodes}


def test_each_agent_learns_the_queue_pairs_towards_its_own_nics() -> None:
    """And of no others: a message stays as small as what its agent carries."""
    nodes = {"a": ["h0"], "b": ["h1"], "c": ["h2"]}
    states = told(nodes, a={"h0": device(h1=[17, 18], h2=[19])}, b={"h1": device(h0=[33, 34])})
    assert states["a"].devices == {"h1": device(h0=[33, 34])}
    assert states["b"].devices == {"h0": device(h1=[17, 18])}
    assert states["c"].devices == {"h0": device(h2=[19])}


def test_nics_of_one_agent_learn_of_each_other() -> None:
    """Two devices of a host may be peers."""
    ends = {"h0": device(h1=[17]), "h1": device(h0=[18])}
    assert told({"a": ["h0", "h1"]}, a=ends)["a"].devices == ends


def test_an_agent_speaks_for_its_own_nics_alone() -> None:
    """Another's NIC would draw traffic to where it says."""
    states = told({"a": ["h0"], "b": ["h1"]}, a={"h1": device(h0=[1]), "h0": device(h1=[2])})
    assert states["a"].devices == {}
    assert states["b"].devices == {"h0": device(h1=[2])}
