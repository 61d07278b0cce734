"""The embedded broker: for labs on one machine, when no broker is named.

The only module that imports amqtt. It listens on the loopback interface only, on a port that the
system chooses, and lets in only who knows the run's password: other users of the machine do not.
It runs in the controller's event loop, so that it can neither outlive nor be outlived by it.
"""

import asyncio
import contextlib
import functools
import hmac
import logging
import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Final

from amqtt.broker import Broker
from amqtt.contexts import BrokerConfig, ListenerConfig, ListenerType
from amqtt.plugins.base import BaseAuthPlugin
from amqtt.session import Session

from dataplane.errors import InputError, Problem
from emulator.control.transport import BrokerAddress

__all__ = ["RunPassword", "embedded_broker"]

LOOPBACK_ADDRESS: Final = "127.0.0.1"
_USERNAME: Final = "rankwire"
_LISTENER: Final = "default"
_MQTT_VERSION: Final = "3.1.1"
"""The library knows no other; a CONNECT of MQTT 5 makes it wait for ever."""


class RunPassword(BaseAuthPlugin):  # type: ignore[misc]  # the library has no types
    """Lets in clients that know the password of the run."""

    @dataclass
    class Config:
        """Options of the plugin."""

        password: str = ""

    async def authenticate(self, *, session: Session) -> bool:
        """Return whether the client may connect."""
        given = session.password or ""
        return hmac.compare_digest(given.encode(), self.config.password.encode())


class _SteadyDict(dict[str, Any]):
    """A dict that may change while somebody goes through it: iteration sees it as it was."""

    def __iter__(self) -> Iterator[str]:
        return iter(list(super().__iter__()))

    def items(self) -> Any:
        """Return the pairs of now."""
        return list(super().items())


@contextlib.asynccontextmanager
async def embedded_broker(port: int = 0) -> AsyncIterator[BrokerAddress]:
    """Run a broker on the loopback interface and yield its address.

    `port` 0 lets the system choose. Raises `InputError` when the port is taken.
    """
    for name in ("amqtt", "transitions"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    password = secrets.token_urlsafe(24)
    broker = Broker(
        BrokerConfig(
            listeners={_LISTENER: ListenerConfig(type=ListenerType.EXTERNAL, bind="external")},
            plugins={f"{__name__}.{RunPassword.__name__}": {"password": password}},
        )
    )
    # The library waits inside of its loops over these two, and other clients subscribe and publish
    # meanwhile: "dictionary changed size during iteration" would end a connection or all delivery.
    broker._subscriptions = _SteadyDict()
    broker._retained_messages = _SteadyDict()
    await broker.start()
    try:
        server = await _listen(broker, port)
        bound_port: int = server.sockets[0].getsockname()[1]
        try:
            yield BrokerAddress(
                LOOPBACK_ADDRESS, bound_port, False, _USERNAME, password, _MQTT_VERSION
            )
        finally:
            server.close()
    finally:
        await broker.shutdown()


async def _listen(broker: Broker, port: int) -> asyncio.Server:
    serve = functools.partial(broker.stream_connected, listener_name=_LISTENER)
    try:
        return await asyncio.start_server(serve, LOOPBACK_ADDRESS, port)
    except OSError as error:
        raise InputError(
            Problem(
                f"{LOOPBACK_ADDRESS}:{port}",
                f"the embedded broker cannot listen: {error.strerror}",
                "choose a free port, or 0 to let the system choose",
            )
        ) from error
