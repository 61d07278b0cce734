"""Two guests with a cable between them, one from the first to the host, and an agent in each.

```
   guest0                                guest1
   agent                                 agent
   wire0 198.18.21.1, .11 -------------- wire0 198.18.21.2, .12   from QEMU to QEMU; nothing is lost
   host0 198.18.22.1 --+
   control0 --> 10.0.2.2                 control0 --> 10.0.2.2    QEMU's user networking:
                       |                                          the host's loopback
   host                |
   tap 198.18.22.2 ----+  in a namespace (root), for an agent of the host
   broker and `rankwire run` on loopback
```

The agents are started once and serve run after run.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import aiomqtt
import pytest
import yaml

from emulator.control import topics
from tests.emulator.control.processes import command, until
from tests.kernel_peer.machine import Card, GuestError
from tests.vm_lab.cable import Cable
from tests.vm_lab.guest import Guest, Plug, launch_guest

GUESTS = ("guest0", "guest1")
HOST = "host"
# The guest's address and that of the host's loopback; the defaults of QEMU's user networking.
CONTROL_ADDRESS, CONTROLLER_ADDRESS = "10.0.2.15/24", "10.0.2.2"
TRAFFIC_PREFIX = "198.18.0.0/15"
GUEST_TO_HOST, HOST_TO_GUEST = "198.18.22.1", "198.18.22.2"
# Room for a path MTU of 4096 bytes.
MTU_BYTES = 4200
# An agent takes 12 s to start in a guest, and a minute and more where others want the machine.
ONLINE_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Place:
    """Where a NIC of a job is."""

    agent: str
    interface: str
    address: str
    namespace: str | None = None
    driver: str | None = None
    """None is the lab's."""


def on_the_wire(guest: int, number: int = 0) -> Place:
    """One of the two addresses that a guest has on the cable to the other."""
    return Place(GUESTS[guest], "wire0", f"198.18.21.{10 * number + guest + 1}")


@dataclass
class Laboratory:
    """Guests, agents and their broker."""

    packages: Path
    """The guests' kernel and tools."""
    work: Path
    broker: str
    """URL on loopback."""
    stack: contextlib.ExitStack
    """Ends what was started."""
    cable: Cable | None = None
    """From the first guest to the host; None where there can be none."""
    no_cable: str = ""
    """Why there is none."""
    guests: dict[str, Guest] = field(default_factory=dict)
    _host_agent: subprocess.Popen[str] | None = None

    def __post_init__(self) -> None:
        self._wire_port = free_port()

    def make_ready(self) -> None:
        """Start what does not run: guests, their agents, and the host's."""
        missing = [name for name in GUESTS if name not in self.guests]
        self.guests |= {name: self._launch(name) for name in missing}
        for name in missing:
            self.guests[name].peer.wait_until_ready()
            self.guests[name].start_agent(self._agent_file(name))
        absent = set(missing)
        if self.cable is not None and self._host_agent is None:
            self._start_host_agent(self.cable)
            absent.add(HOST)
        try:
            asyncio.run(until_online(self.broker, absent))
        except TimeoutError:
            said = "\n".join(guest.said() for guest in self.guests.values())
            raise GuestError(f"{absent} are not online; the guests said:\n{said}") from None

    def kill(self, name: str) -> None:
        """End a guest as a power cut does."""
        self.guests.pop(name).peer.close()

    def between_guests(self) -> tuple[Place, Place]:
        """Both ends of the cable between the guests."""
        return on_the_wire(0), on_the_wire(1)

    def guest_and_host(self) -> tuple[Place, Place]:
        """Both ends of the cable to the host; skips where there is none."""
        if self.cable is None:
            pytest.skip(f"no cable from a guest to the host: {self.no_cable}")
        host = Place(HOST, self.cable.interface, HOST_TO_GUEST, self.cable.namespace)
        return Place(GUESTS[0], "host0", GUEST_TO_HOST), host

    def greet(self) -> None:
        """Let the guests know each other's MAC addresses: until then a kernel keeps few packets."""
        for number, name in enumerate(GUESTS):
            self.guests[name].ask("greet", address=on_the_wire(1 - number).address)

    def with_rdma(self) -> None:
        """Let the guests' kernels have RDMA devices, and with them UDP port 4791."""
        for guest in self.guests.values():
            guest.make_rdma()

    def without_rdma(self) -> None:
        """Leave UDP port 4791 of the guests to others."""
        for guest in self.guests.values():
            guest.remove_rdma()

    def _launch(self, name: str) -> Guest:
        number = GUESTS.index(name)
        plugs = self._plugs(number)
        work = self.work / f"{name}-{len(list(self.work.iterdir()))}"
        work.mkdir()
        has_cable = self.cable is not None and number == 0
        descriptors = [self.cable.descriptor] if self.cable is not None and has_cable else []
        guest = launch_guest(name, self.packages, work, plugs, descriptors)
        self.stack.callback(guest.peer.close)
        # The other QEMU tries to connect once.
        until(lambda: is_listening(self._wire_port))
        return guest

    def _plugs(self, number: int) -> list[Plug]:
        mac = f"02:00:00:00:0{number}"
        wire = f"stream,server={'off' if number else 'on'},{loopback(self._wire_port)}"
        addresses = [f"{on_the_wire(number, place).address}/24" for place in range(2)]
        plugs = [
            Plug("wire0", Card(wire, f"{mac}:01"), addresses, MTU_BYTES),
            Plug(
                "control0",
                Card("user,ipv6=off", f"{mac}:02"),
                [CONTROL_ADDRESS],
                1500,
                is_for_traffic=False,
            ),
        ]
        if self.cable is not None and number == 0:
            card = Card(f"tap,fd={self.cable.descriptor}", f"{mac}:03")
            plugs.append(Plug("host0", card, [f"{GUEST_TO_HOST}/24"], MTU_BYTES))
        return plugs

    def _agent_file(self, name: str) -> str:
        port = urlsplit(self.broker).port
        keys = {
            "name": name,
            "broker": f"mqtt://{CONTROLLER_ADDRESS}:{port}",
            "controller_address": CONTROLLER_ADDRESS,
            "allowed_prefixes": [f"{CONTROLLER_ADDRESS}/32", TRAFFIC_PREFIX],
            "bind_address": on_the_wire(GUESTS.index(name)).address,
            "interfaces": ["wire0", "host0"],
            "rate_cap_bps": 1_000_000_000,
            "allow_device_rate": True,
        }
        return yaml.safe_dump(keys)

    def _start_host_agent(self, cable: Cable) -> None:
        keys = {
            "name": HOST,
            "broker": self.broker,
            "allowed_prefixes": ["127.0.0.0/8", TRAFFIC_PREFIX],
            "interfaces": [f"{cable.namespace}/{cable.interface}"],
            "rate_cap_bps": 1_000_000_000,
        }
        path = self.work / "host.yaml"
        path.write_text(yaml.safe_dump(keys), encoding="utf-8")
        agent = command("agent", "--config", str(path), directory=self.work)
        self._host_agent = self.stack.enter_context(agent)


def free_port() -> int:
    """A TCP port of loopback that nobody has now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def loopback(port: int) -> str:
    """An address as QEMU's `-netdev stream` takes it."""
    return f"addr.type=inet,addr.host=127.0.0.1,addr.port={port}"


def is_listening(port: int) -> bool:
    """Whether somebody waits at a TCP port of loopback, or is connected there."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[1] == f"0100007F:{port:04X}" for line in lines)


async def until_online(broker: str, absent: set[str]) -> None:
    """Wait until agents have said that they are there; those that have leave the set."""
    parts = urlsplit(broker)
    async with (
        asyncio.timeout(ONLINE_TIMEOUT_S),
        aiomqtt.Client(parts.hostname, parts.port) as client,
    ):
        await client.subscribe(topics.presence("+"))
        while absent:
            message = await anext(client.messages)
            if b'"online"' in bytes(message.payload):
                absent.discard(message.topic.value.rpartition("/")[2])
