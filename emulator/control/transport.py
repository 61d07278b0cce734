"""The MQTT client: the only module that imports aiomqtt.

It knows addresses, topics and bytes, nothing of what they mean. The library's exceptions end
here: a broker that cannot be reached is an `InputError`, one that is lost is a `BrokerLost`.
MQTT 5, in which a client says how large a packet it takes and messages can expire, or 3.1.1 for a
broker that speaks nothing newer. The two cannot be told apart by asking: a broker of the older one
may wait for the rest of what it takes for a packet of its own.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, cast
from urllib.parse import unquote, urlsplit

import aiomqtt
from aiomqtt.exceptions import MqttConnectError
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from dataplane.errors import InputError, Problem, RunError
from emulator.control.inbox import AGENT_LIMITS, Inbox, InboxLimits
from emulator.control.messages import MAX_MESSAGE_BYTES

__all__ = [
    "BrokerAddress",
    "BrokerLost",
    "MqttVersion",
    "Received",
    "Transport",
    "Will",
    "connect",
]

MqttVersion = Literal[5, "3.1.1"]
"""Version of the protocol that a broker is spoken to in."""

_DEFAULT_PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
_KEEP_ALIVE_S: Final = 2
"""The broker sends the last will after one and a half of these (MQTT 3.1.1, 3.1.2.10)."""
_CONNECT_TIMEOUT_S: Final = 5.0
_MAX_PACKET_BYTES: Final = MAX_MESSAGE_BYTES + (64 << 10)
"""A payload with topic and properties; a broker of MQTT 5 keeps larger packets to itself
(MQTT 5, 3.1.2.11.4)."""
_RETAINED_S: Final = 24 * 3600
"""After which a broker of MQTT 5 forgets what nobody has cleared, as a killed controller."""
_PENDING_PUBLISHES: Final = 10_000
"""Messages that the broker has not acknowledged, above which the client library complains."""
_PROTOCOLS: Final = {5: aiomqtt.ProtocolVersion.V5, "3.1.1": aiomqtt.ProtocolVersion.V311}


# What the library logs is raised as well.
logging.getLogger("mqtt").setLevel(logging.CRITICAL)


class BrokerLost(RunError):  # noqa: N818
    """The connection to the broker broke after it had been made."""


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a broker is and how to log in."""

    host: str
    port: int
    tls: bool = False
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    mqtt_version: MqttVersion = 5

    @classmethod
    def parse(
        cls,
        url: str,
        *,
        source: str = "broker",
        mqtt_version: MqttVersion = 5,
        password_file: Path | None = None,
    ) -> "BrokerAddress":
        """Return the address in `mqtt[s]://[user:password@]host[:port]`; raises `InputError`.

        The first line of `password_file` is the password, instead of one in the URL.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise _unusable(source, "the URL is not readable") from None
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
            raise _unusable(source, f"scheme {parts.scheme!r}, host {parts.hostname!r}")
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise _unusable(source, "there is something after host and port")
        password = unquote(parts.password) if parts.password else None
        if password_file is not None:
            if password is not None or not parts.username:
                raise _unusable(source, "a password file needs a user and no password in the URL")
            password = _read_password(password_file)
        return cls(
            host=parts.hostname,
            port=port or _DEFAULT_PORTS[parts.scheme],
            tls=parts.scheme == "mqtts",
            username=unquote(parts.username) if parts.username else None,
            password=password,
            mqtt_version=mqtt_version,
        )

    def __str__(self) -> str:
        """Return the URL without user and password, for messages and logs."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtts' if self.tls else 'mqtt'}://{host}:{self.port}"


def _unusable(source: str, what: str) -> InputError:
    remedy = "write mqtt://[user:password@]host:port, or mqtts:// for TLS"
    return InputError(Problem(source, f"not the URL of a broker: {what}", remedy))


def _read_password(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        what = f"the password cannot be read: {getattr(error, 'strerror', 'is not text')}"
        raise InputError(Problem(str(path), what, "name a readable file")) from None
    if not lines or not lines[0]:
        raise InputError(Problem(str(path), "is empty", "write the password on its first line"))
    return lines[0]


@dataclass(frozen=True, slots=True)
class Will:
    """The message that the broker publishes when this client is lost."""

    topic: str
    payload: bytes
    retain: bool


@dataclass(frozen=True, slots=True)
class Received:
    """One message."""

    topic: str
    payload: bytes
    retained: bool
    """The broker had it before the subscription."""


class Transport:
    """A connection to a broker; made by `connect`."""

    def __init__(self, client: aiomqtt.Client, address: BrokerAddress, inbox: Inbox) -> None:
        self._client = client
        self._inbox = inbox
        self.address = address

    @property
    def dropped_messages(self) -> int:
        """Messages that were larger, more or more frequent than allowed."""
        return self._inbox.dropped_messages

    async def publish(
        self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False
    ) -> None:
        """Send a message; with QoS 1 return when the broker has it. Raises `BrokerLost`."""
        with _translated(self.address):
            await self._client.publish(
                topic, payload, qos=qos, retain=retain, properties=self._expiry(payload, retain)
            )

    def _expiry(self, payload: bytes, retain: bool) -> Properties | None:
        if not (retain and payload) or self.address.mqtt_version != 5:
            return None
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        properties.MessageExpiryInterval = _RETAINED_S
        return properties

    async def subscribe(self, *topics: str) -> None:
        """Subscribe to topic filters with QoS 1; raises `BrokerLost`."""
        with _translated(self.address):
            await self._client.subscribe([(topic, 1) for topic in topics])

    async def messages(self) -> AsyncIterator[Received]:
        """Yield messages until the connection breaks, then raise `BrokerLost`."""
        with _translated(self.address):
            async for message in self._client.messages:
                yield Received(message.topic.value, message.payload, bool(message.retain))


@contextlib.contextmanager
def _translated(address: BrokerAddress) -> Iterator[None]:
    try:
        yield
    except aiomqtt.MqttError as error:
        raise BrokerLost(f"the broker {address} was lost: {error}") from error


@contextlib.asynccontextmanager
async def connect(
    address: BrokerAddress, *, identifier: str, will: Will, limits: InboxLimits = AGENT_LIMITS
) -> AsyncIterator[Transport]:
    """Connect; raises `InputError` when the broker cannot be reached or refuses.

    Messages beyond `limits` are dropped.
    """
    inbox = Inbox(limits)
    client = aiomqtt.Client(
        address.host,
        address.port,
        username=address.username,
        password=address.password,
        identifier=identifier,
        will=aiomqtt.Will(will.topic, will.payload, qos=1, retain=will.retain),
        keepalive=_KEEP_ALIVE_S,
        timeout=_CONNECT_TIMEOUT_S,
        tls_context=ssl.create_default_context() if address.tls else None,
        queue_type=cast("type[Inbox]", lambda **_: inbox),
        protocol=_PROTOCOLS[address.mqtt_version],
        properties=_connect_properties() if address.mqtt_version == 5 else None,
    )
    client.pending_calls_threshold = _PENDING_PUBLISHES
    try:
        await client.__aenter__()
    except (aiomqtt.MqttError, OSError) as error:
        raise _unreachable(address, error) from error
    try:
        yield Transport(client, address, inbox)
    finally:
        # A connection that is broken already cannot be closed in order.
        with contextlib.suppress(aiomqtt.MqttError, OSError):
            await client.__aexit__(None, None, None)
        _look_at(client._disconnected)


def _connect_properties() -> Properties:
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.MaximumPacketSize = _MAX_PACKET_BYTES
    return properties


def _look_at(lost: asyncio.Future[None]) -> None:
    """Keep asyncio from complaining that nobody looked at why the connection was lost."""
    if lost.done() and not lost.cancelled():
        lost.exception()


def _unreachable(address: BrokerAddress, error: Exception) -> InputError:
    if isinstance(error, MqttConnectError):
        remedy = "give a user and a password that the broker accepts"
        return InputError(Problem(str(address), f"the broker refuses: {error}", remedy))
    remedy = (
        "start the broker, correct the URL, set mqtt_version to 3.1.1 if it speaks nothing newer, "
        "or leave it out for the embedded broker"
    )
    return InputError(Problem(str(address), f"no MQTT broker answers: {error}", remedy))
