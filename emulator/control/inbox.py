"""Messages between the MQTT client and who handles them: bounded in size, count, bytes and rate.

What is beyond a bound is counted and dropped before anybody looks into it. It knows payloads as
bytes, nothing of what they mean.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from emulator.control.messages import MAX_MESSAGE_BYTES
from emulator.control.rate_limit import RateLimit

__all__ = ["AGENT_LIMITS", "Inbox", "InboxLimits", "controller_limits"]


@dataclass(frozen=True, slots=True)
class InboxLimits:
    """What one connection takes in."""

    messages_per_s: float
    """Messages per second, a second's worth at once."""
    waiting_messages: int
    """Messages that wait to be handled."""
    waiting_bytes: int
    """Payload of all of them."""


AGENT_LIMITS: Final = InboxLimits(
    messages_per_s=1000, waiting_messages=2000, waiting_bytes=16 * MAX_MESSAGE_BYTES
)
"""A run sends an agent five messages per second, and a hundred while clocks are compared."""

_CONTROLLER_BASE: Final = 2000
_CONTROLLER_PER_AGENT: Final = 200


def controller_limits(agents: int) -> InboxLimits:
    """Return what a controller of some agents takes in: twice what they send at their busiest."""
    count = _CONTROLLER_BASE + _CONTROLLER_PER_AGENT * agents
    return InboxLimits(count, 5 * count, 256 * MAX_MESSAGE_BYTES)


class Inbox(asyncio.Queue[Any]):
    """A queue of MQTT messages that drops what is beyond its limits and counts it."""

    def __init__(self, limits: InboxLimits, clock_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._limits = limits
        self._rate = RateLimit(limits.messages_per_s)
        self._clock_s = clock_s
        self._waiting_bytes = 0
        self.dropped_messages = 0
        """Messages beyond a limit, or whose payload is not bytes."""

    def put_nowait(self, item: Any) -> None:
        """Take in a message, or count it and drop it; never raises `QueueFull`."""
        # Asked for every message: a flood of what is too large is a flood, too.
        is_in_time = self._rate.allows(self._clock_s())
        if not is_in_time or not self._has_room(item.payload):
            self.dropped_messages += 1
            return
        self._waiting_bytes += len(item.payload)
        super().put_nowait(item)

    def _has_room(self, payload: Any) -> bool:
        if not isinstance(payload, bytes) or len(payload) > MAX_MESSAGE_BYTES:
            return False
        is_within_bytes = self._waiting_bytes + len(payload) <= self._limits.waiting_bytes
        return is_within_bytes and self.qsize() < self._limits.waiting_messages

    def _get(self) -> Any:
        item = super()._get()
        self._waiting_bytes -= len(item.payload)
        return item
