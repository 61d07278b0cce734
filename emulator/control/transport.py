"""The MQTT client: the only module that imports aiomqtt.

It knows addresses, topics and bytes, nothing of what they mean. The library's exceptions end
here: a broker that cannot be reached is an `InputError`, one that is lost is a `BrokerLost`.
MQTT 3.1.1, which every broker speaks.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import unquote, urlsplit

import aiomqtt
from aiomqtt.exceptions import MqttConnectError

from dataplane.errors import InputError, Problem, RunError
from emulator.control.inbox import AGENT_LIMITS, Inbox, InboxLimits

__all__ = ["BrokerAddress", "BrokerLost", "Received", "Transport", "Will", "connect"]

_DEFAULT_PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
_KEEP_ALIVE_S: Final = 2
"""The broker sends the last will after one and a half of these (MQTT 3.1.1, 3.1.2.10)."""
_CONNECT_TIMEOUT_S: Final = 5.0
_PENDING_PUBLISHES: Final = 10_000
"""Messages that the broker has not acknowledged, above which the client library complains."""


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

    @classmethod
    def parse(cls, url: str, *, source: str = "broker") -> "BrokerAddress":
        """Return the address in `mqtt[s]://[user:password@]host[:port]`; raises `InputError`."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise _unusable(source, "the URL is not readable") from None
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
            raise _unusable(source, f"scheme {parts.scheme!r}, host {parts.hostname!r}")
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise _unusable(source, "there is something after host and port")
        return cls(
            host=parts.hostname,
            port=port or _DEFAULT_PORTS[parts.scheme],
            tls=parts.scheme == "mqtts",
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
        )

    def __str__(self) -> str:
        """Return the URL without user and password, for messages and logs."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtts' if self.tls else 'mqtt'}://{host}:{self.port}"


def _unusable(source: str, what: str) -> InputError:
    remedy = "write mqtt://[user:password@]host:port, or mqtts:// for TLS"
    return InputError(Problem(source, f"not the URL of a broker: {what}", remedy))


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
            await self._client.publish(topic, payload, qos=qos, retain=retain)

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
        protocol=aiomqtt.ProtocolVersion.V311,
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


def _look_at(lost: asyncio.Future[None]) -> None:
    """Keep asyncio from complaining that nobody looked at why the connection was lost."""
    if lost.done() and not lost.cancelled():
        lost.exception()


def _unreachable(address: BrokerAddress, error: Exception) -> InputError:
    if isinstance(error, MqttConnectError):
        remedy = "give a user and a password that the broker accepts"
        return InputError(Problem(str(address), f"the broker refuses: {error}", remedy))
    remedy = "start the broker, correct the URL, or leave it out for the embedded broker"
    return InputError(Problem(str(address), f"no MQTT broker answers: {error}", remedy))
