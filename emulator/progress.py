"""Progress on stderr: a bar on a terminal, a line now and then elsewhere, nothing when quiet."""

import sys
import time
from collections import deque
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

__all__ = ["ProgressDisplay", "ProgressPoint"]

_LINE_PERIOD_S = 10.0
_LOOK_BACK_S = 60.0
"""The speed of the last minute tells the time left."""
_LOOK_PERIOD_S = 0.5
_LEAST_LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class ProgressPoint:
    """How far a run or prediction is."""

    phase: str
    """One word: joining, running, predicting, ..."""
    operations_done: int = 0
    operations_total: int = 0
    emulated_ps: int = 0
    """Emulated time."""
    events: int = 0
    """Events handled so far; 0 when unknown."""
    late_frames: int = 0
    """Frames that came over their wires after their time; runs only."""
    notices: tuple[str, ...] = ()
    """Sentences that are shown once each."""
    bytes_done: int = 0
    """Payload that has arrived."""
    bytes_total: int = 0
    """Payload of all messages; 0 when unknown."""

    @property
    def share(self) -> float:
        """Part of the work that is done: of the bytes where they are known, else of operations.

        A packet costs time whatever operation it belongs to; an operation may be one byte or a
        gigabyte. A hundredth is left for what happens when all bytes have arrived.
        """
        operations = self.operations_done / max(self.operations_total, 1)
        if self.bytes_total == 0:
            return operations
        return 0.99 * self.bytes_done / self.bytes_total + 0.01 * operations


class ProgressDisplay:
    """Shows `ProgressPoint`s; use it as a context manager."""

    def __init__(self, title: str, *, quiet: bool = False, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, file=sys.stderr)
        self._title = title
        self._quiet = quiet
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._line_due_s = time.monotonic() + _LINE_PERIOD_S
        self._rate = _Rate()
        self._left = _TimeLeft()
        self._told: set[str] = set()

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._quiet:
            self._bar = Progress(
                TextColumn("[bold]{task.description}"),
                BarColumn(bar_width=10),
                TextColumn("{task.percentage:>3.0f}% {task.fields[detail]}"),
                console=self._console,
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=None, detail="")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, point: ProgressPoint) -> None:
        """Show the newest state; cheap enough to be called many times a second."""
        now_s = time.monotonic()
        if not self._quiet:
            self._tell(point.notices)
        if self._bar is not None:
            self._bar.update(
                self._task,
                description=f"{self._title} {point.phase}",
                total=1.0 if point.operations_total else None,
                completed=point.share,
                detail=self._detail(point, now_s),
            )
        elif not self._quiet and now_s >= self._line_due_s:
            self._line_due_s = now_s + _LINE_PERIOD_S
            detail = self._detail(point, now_s)
            share = 100 * point.share
            print(f"{self._title} {point.phase} {share:.0f}%  {detail}", file=sys.stderr)

    def _tell(self, notices: tuple[str, ...]) -> None:
        for notice in notices:
            if notice not in self._told:
                self._told.add(notice)
                self._console.print(
                    f"rankwire: {notice}", soft_wrap=True, markup=False, highlight=False
                )

    def _detail(self, point: ProgressPoint, now_s: float) -> str:
        done, total = _scaled(point.operations_done), _scaled(point.operations_total)
        parts = [f"{done.rstrip()}/{total.rstrip()} ops"]
        parts.append(f"{_scaled(point.emulated_ps / 1e12)}s")
        rate = self._rate.of(point.events, now_s)
        if rate > 0:
            parts.append(f"{_scaled(rate)}events/s")
        if point.late_frames:
            parts.append(f"{_scaled(point.late_frames).rstrip()} late frames")
        left_s = self._left.of(point, now_s)
        if left_s is not None:
            parts.append(f"{_clock(left_s)} left")
        return " ".join(parts)


class _TimeLeft:
    """What is left at the speed of late: neither of what came before the phase, nor of long ago."""

    def __init__(self) -> None:
        self._phase = ""
        self._seen: deque[tuple[float, float]] = deque()

    def of(self, point: ProgressPoint, now_s: float) -> float | None:
        """Seconds; `None` before the speed is known."""
        if point.phase != self._phase:
            self._phase = point.phase
            self._seen.clear()
        if not self._seen or now_s - self._seen[-1][0] >= _LOOK_PERIOD_S:
            self._seen.append((now_s, point.share))
        while len(self._seen) > 2 and now_s - self._seen[1][0] > _LOOK_BACK_S:
            self._seen.popleft()
        then_s, then_share = self._seen[0]
        gained, elapsed_s = point.share - then_share, now_s - then_s
        if elapsed_s < _LEAST_LOOK_S or gained <= 0:
            return None
        return elapsed_s * (1 - point.share) / gained


class _Rate:
    """Events per second over the last second or so."""

    def __init__(self) -> None:
        self._at_s = 0.0
        self._events = 0
        self._rate = 0.0

    def of(self, events: int, now_s: float) -> float:
        if now_s - self._at_s >= 0.5:
            if self._at_s > 0:
                self._rate = (events - self._events) / (now_s - self._at_s)
            self._at_s, self._events = now_s, events
        return self._rate


def _scaled(value: float) -> str:
    """Three digits, a space and an SI prefix: `1.23 m`, `45.6 k`."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}"
    for factor, prefix in ((1e-3, "m"), (1e-6, "u"), (1e-9, "n")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}"
    return "0 "


def _clock(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
