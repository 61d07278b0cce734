"""The dead man's switch of an agent: traffic stops when the controller is not heard any more.

A thread of its own, so that a busy event loop neither delays nor hides it. It knows a time limit
and a callback, nothing of messages.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

__all__ = ["CONTROLLER_SILENCE_LIMIT_S", "DeadMan"]

CONTROLLER_SILENCE_LIMIT_S: Final = 1.5
"""Silence after which the controller counts as gone: six missed heartbeats, and 0.5 s are left
for the stop within the promised 2 s."""

_PATIENCE_S: Final = 30.0
_CHECK_INTERVAL_S: Final = 0.05
_GRACE_S: Final = 0.25


class DeadMan:
    """Calls `on_silence` once, from its own thread, when `heard` was not called for the limit."""

    def __init__(
        self, on_silence: Callable[[], None], limit_s: float = CONTROLLER_SILENCE_LIMIT_S
    ) -> None:
        self._on_silence = on_silence
        self._limit_s = limit_s
        self._is_patient = False
        self._heard_s = time.monotonic()
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="dead-man", daemon=True)
        self._thread.start()

    def heard(self) -> None:
        """Note that the controller was heard now."""
        self._heard_s = time.monotonic()

    @contextlib.contextmanager
    def patience(self) -> Iterator[None]:
        """Wait longer in this block, in which the agent is busy with itself and sends nothing.

        Unpacking a large job or packing large records can keep heartbeats from being handled.
        """
        self._is_patient = True
        try:
            yield
        finally:
            self.heard()
            self._is_patient = False

    def release(self) -> None:
        """Switch off; the callback is not called afterwards, save a call that is under way."""
        self._released.set()

    def _watch(self) -> None:
        woken_s = time.monotonic()
        excused_s = 0.0
        while not self._released.wait(_CHECK_INTERVAL_S):
            now_s = time.monotonic()
            heard_s = self._heard_s
            if now_s - woken_s > _GRACE_S and excused_s < heard_s:
                # The process itself was held up: heartbeats may wait to be handled. Once.
                excused_s = now_s
            woken_s = now_s
            limit_s = _PATIENCE_S if self._is_patient else self._limit_s
            is_excused = excused_s > heard_s and now_s - excused_s < _GRACE_S
            if now_s - heard_s > limit_s and not is_excused:
                self._on_silence()
                return
