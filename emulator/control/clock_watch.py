"""Whether this host's clock is set: CLOCK_REALTIME against CLOCK_MONOTONIC, looked at now and then.

Slewing (NTP, PTP) moves both alike; only a clock that is set moves one against the other. Runs go
by CLOCK_MONOTONIC after their start, so that this is told and changes nothing.
"""

import time
from collections.abc import Callable
from typing import Final

__all__ = ["LEAST_STEP_NS", "ClockNotices", "ClockWatch"]

LEAST_STEP_NS: Final = 1_000_000
"""Smaller ones are not told from a process that lost its processor between two looks at clocks."""
_TRIES: Final = 5
_PROMPT_NS: Final = 50_000
"""Two looks at clocks with nothing in between take less."""
_MAX_STEPS_TOLD: Final = 8
"""Of one clock: a host may say without end that its clock was set. The records have the total."""
Clock = Callable[[], int]


class ClockWatch:
    """The steps of one host's clock since the watch began."""

    def __init__(self, realtime: Clock | None = None, monotonic: Clock = time.monotonic_ns) -> None:
        """Watch this host's clocks, or others that tell nanoseconds."""
        self._realtime, self._monotonic = realtime or _realtime_ns, monotonic
        self.steps = 0
        """Times that the clock was set."""
        self.total_ns = 0
        """By how much, all steps together: new less old time."""
        self._offset_ns, self._doubt_ns = self._offset()

    def look(self) -> int:
        """Compare the clocks; returns by how much one was set since the last look, 0 if not."""
        offset_ns, doubt_ns = self._offset()
        change_ns = offset_ns - self._offset_ns
        if abs(change_ns) < LEAST_STEP_NS + doubt_ns + self._doubt_ns:
            if doubt_ns < self._doubt_ns:
                self._offset_ns, self._doubt_ns = offset_ns, doubt_ns
            return 0
        self._offset_ns, self._doubt_ns = offset_ns, doubt_ns
        self.steps += 1
        self.total_ns += change_ns
        return change_ns

    def _offset(self) -> tuple[int, int]:
        """CLOCK_REALTIME less CLOCK_MONOTONIC, and how much of it is doubtful."""
        looks = []
        for _ in range(_TRIES):
            before_ns = self._monotonic()
            realtime_ns = self._realtime()
            took_ns = self._monotonic() - before_ns
            looks.append((took_ns, realtime_ns - before_ns - took_ns // 2))
            if took_ns < _PROMPT_NS:
                break
        took_ns, offset_ns = min(looks)
        return offset_ns, took_ns


class ClockNotices:
    """What somebody who watches a run is told of clocks, each step once."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, int], str] = {}

    def note(self, who: str, steps: int, total_ns: int) -> None:
        """Take in how often a clock was set so far, and by how much all together."""
        if 0 < steps <= _MAX_STEPS_TOLD:
            self._told.setdefault(
                (who, steps),
                f"the clock of {who} was set by {total_ns * 1e-9:+.3f} s; the run goes on by "
                "CLOCK_MONOTONIC, and its times hold",
            )

    def sentences(self) -> tuple[str, ...]:
        """Return all so far, in the order in which they were noted first."""
        return tuple(self._told.values())


def _realtime_ns() -> int:
    return time.time_ns()
