"""What the protocol needs of a broker: the embedded one and, where it is installed, Mosquitto."""

import asyncio
import dataclasses
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dataplane.errors import InputError
from emulator.control.broker import embedded_broker
from emulator.control.transport import (
    BrokerAddress,
    BrokerLost,
    Received,
    Transport,
    Will,
    connect,
)
from tests.emulator.control.processes import mosquitto

TIMEOUT_S = 5
CLIENTS = 24
BROKERS = ["embedded", "mosquitto", "mosquitto in MQTT 3.1.1"]


@asynccontextmanager
async def broker(kind: str, directory: Path) -> AsyncIterator[BrokerAddress]:
    """Run a broker of some kind."""
    if kind == "embedded":
        async with embedded_broker() as address:
            yield address
        return
    with mosquitto(directory) as (url, _):
        yield BrokerAddress.parse(url, mqtt_version=5 if kind == "mosquitto" else "3.1.1")


def client(address: BrokerAddress, name: str):
    """Connect with a retained last will."""
    return connect(address, identifier=name, will=Will(f"rankwire/presence/{name}", b"lost", True))


async def first(transport: Transport) -> Received:
    """Return the next message."""
    async with asyncio.timeout(TIMEOUT_S):
        async for message in transport.messages():
            return message
    raise AssertionError


def drive(kind: str, directory: Path, scenario: Callable[[BrokerAddress], Awaitable[None]]) -> None:
    """Run a scenario against a broker."""

    async def run() -> None:
        async with broker(kind, directory) as address:
            await scenario(address)

    asyncio.run(run())


@pytest.mark.parametrize("kind", BROKERS)
def test_a_retained_message_reaches_a_late_subscriber(kind: str, tmp_path: Path) -> None:
    """An agent that joins late finds its desired state."""

    async def scenario(address: BrokerAddress) -> None:
        async with client(address, "a") as sender, client(address, "b") as receiver:
            await sender.publish("rankwire/r/agents/b/desired", b"state", retain=True)
            await receiver.subscribe("rankwire/+/agents/b/desired")
            assert await first(receiver) == Received("rankwire/r/agents/b/desired", b"state", True)

    drive(kind, tmp_path, scenario)


@pytest.mark.parametrize("kind", BROKERS)
def test_a_cleared_message_is_gone(kind: str, tmp_path: Path) -> None:
    """A run leaves nothing on the broker."""

    async def scenario(address: BrokerAddress) -> None:
        async with client(address, "a") as sender, client(address, "b") as receiver:
            await sender.publish("rankwire/r/agents/b/desired", b"state", retain=True)
            await sender.publish("rankwire/r/agents/b/desired", b"", retain=True)
            await receiver.subscribe("rankwire/#")
            await sender.publish("rankwire/r/controller", b"beat", qos=0)
            assert (await first(receiver)).payload == b"beat"

    drive(kind, tmp_path, scenario)


@pytest.mark.parametrize("kind", BROKERS)
def test_the_last_will_of_a_broken_connection_is_published(kind: str, tmp_path: Path) -> None:
    """A dead process says so through the broker."""

    async def scenario(address: BrokerAddress) -> None:
        async with client(address, "watcher") as watcher:
            await watcher.subscribe("rankwire/presence/+")
            async with client(address, "victim") as victim:
                break_connection(victim)
                with pytest.raises(BrokerLost):
                    await first(victim)
            assert await first(watcher) == Received("rankwire/presence/victim", b"lost", False)

    drive(kind, tmp_path, scenario)


@pytest.mark.parametrize(("kind", "dropped"), [("mosquitto", 0), ("mosquitto in MQTT 3.1.1", 1)])
def test_a_broker_of_mqtt_5_keeps_what_is_too_large_to_itself(
    kind: str, dropped: int, tmp_path: Path
) -> None:
    """It need not even be received, let alone held; with the older version it is dropped here."""

    async def scenario(address: BrokerAddress) -> None:
        async with client(address, "a") as sender, client(address, "b") as receiver:
            await receiver.subscribe("rankwire/r/controller")
            await sender.publish("rankwire/r/controller", b"x" * (2 << 20))
            await sender.publish("rankwire/r/controller", b"beat")
            assert (await first(receiver)).payload == b"beat"
            assert receiver.dropped_messages == dropped

    drive(kind, tmp_path, scenario)


def break_connection(transport: Transport) -> None:
    """Close the socket without a farewell, as the kernel does for a killed process."""
    inner = transport._client._client.socket()
    assert inner is not None
    inner.shutdown(socket.SHUT_RDWR)


def test_the_embedded_broker_lets_nobody_in_without_the_password(tmp_path: Path) -> None:
    """Loopback is shared by all users of a machine."""

    async def scenario(address: BrokerAddress) -> None:
        guessed = dataclasses.replace(address, password="guess")
        for login in (guessed, dataclasses.replace(address, username=None, password=None)):
            with pytest.raises(InputError, match="refuses"):
                async with client(login, "stranger"):
                    pass

    drive("embedded", tmp_path, scenario)


def test_the_embedded_broker_survives_garbage(tmp_path: Path) -> None:
    """A client that does not speak MQTT harms nobody."""

    async def scenario(address: BrokerAddress) -> None:
        for garbage in (b"\x00" * 64, b"\x10\xff\xff\xff\x7f", b"GET / HTTP/1.1\r\n\r\n"):
            _, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(garbage)
            writer.close()
        async with client(address, "a") as transport:
            await transport.subscribe("rankwire/#")
            await transport.publish("rankwire/r/controller", b"beat")
            assert (await first(transport)).payload == b"beat"

    drive("embedded", tmp_path, scenario)


def test_the_embedded_broker_takes_many_clients_at_once(tmp_path: Path) -> None:
    """Agents of a run connect while others subscribe and publish."""

    async def scenario(address: BrokerAddress) -> None:
        async def come(index: int) -> None:
            name = f"agent-{index}"
            await asyncio.sleep(0.001 * index)
            async with client(address, name) as transport:
                await transport.publish(f"rankwire/r/agents/{name}/actual", b"here", retain=True)
                await transport.subscribe(f"rankwire/+/agents/{name}/desired", "rankwire/r/#")
                seen = set()
                while len(seen) < CLIENTS:
                    seen.add((await first(transport)).topic)

        await asyncio.gather(*(come(index) for index in range(CLIENTS)))

    drive("embedded", tmp_path, scenario)


def test_an_unreachable_broker_is_an_input_error_with_a_remedy() -> None:
    """It names the address and what to do."""

    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        with pytest.raises(InputError, match=f"mqtt://127.0.0.1:{port}: no MQTT broker.*start"):
            async with client(BrokerAddress("127.0.0.1", port), "a"):
                pass

    asyncio.run(run())


def test_a_taken_port_is_an_input_error() -> None:
    """The embedded broker says which."""

    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(InputError, match=f"127.0.0.1:{port}.*cannot listen"):
                async with embedded_broker(port):
                    pass

    asyncio.run(run())


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("mqtt://h", BrokerAddress("h", 1883)),
        ("mqtts://h", BrokerAddress("h", 8883, tls=True)),
        ("mqtt://u:p%40ss@[::1]:99/", BrokerAddress("::1", 99, False, "u", "p@ss")),
    ],
)
def test_a_url_is_parsed(url: str, address: BrokerAddress) -> None:
    """With defaults for the port and escapes in the password."""
    assert BrokerAddress.parse(url) == address


@pytest.mark.parametrize(
    "url", ["", "h:1883", "http://u:secret@h", "mqtt://", "mqtt://u:secret@h:99999", "mqtt://h/x"]
)
def test_a_wrong_url_is_an_input_error_without_the_password(url: str) -> None:
    """Messages go to logs."""
    with pytest.raises(InputError, match="write mqtt://") as caught:
        BrokerAddress.parse(url)
    assert "secret" not in str(caught.value)


def test_an_address_is_shown_without_the_password() -> None:
    """Neither by str nor by repr."""
    address = BrokerAddress.parse("mqtt://user:secret@h:1")
    assert str(address) == "mqtt://h:1"
    assert "secret" not in repr(address)
