"""The dead man's switch of an agent: traffic stops when the controller is not heard any more.

A thread of its own, so that a busy event loop neither delays nor hides it. It knows a time limit
and a callback, nothing of messages.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

__all__ = ["CONTROLLER_SILENCE_LIMIT_S", "DeadMan"]

CONTROLLER_SILENCE_LIMIT_S: Final = 1.5
"""Silence after which the controller counts as gone: six missed heartbeats, and 0.5 s are left
for the stop within the promised 2 s."""

_CHECK_INTERVAL_S: Final = 0.05


class DeadMan:
    """Calls `on_silence` once, from its own thread, when `heard` was not called for the limit."""

    def __init__(
        self, on_silence: Callable[[], None], limit_s: float = CONTROLLER_SILENCE_LIMIT_S
    ) -> None:
        self._on_silence = on_silence
        self._limit_s = limit_s
        self._heard_s = time.monotonic()
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="dead-man", daemon=True)
        self._thread.start()

    def heard(self) -> None:
        """Note that the controller was heard now."""
        self._heard_s = time.monotonic()

    def release(self) -> None:
        """Switch off; the callback is not called afterwards, save a call that is under way."""
        self._released.set()

    def _watch(self) -> None:
        while not self._released.wait(_CHECK_INTERVAL_S):
            if time.monotonic() - self._heard_s > self._limit_s:
                self._on_silence()
                return
