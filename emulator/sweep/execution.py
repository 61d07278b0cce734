"""Runs the points of a sweep: predictions in a process pool, real runs one after the other.

Each point has a directory of its own; one that is complete is not run again.
"""

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from dataplane.errors import RankwireError
from emulator.commands.execution import run_document, store
from emulator.control.outcome import EngineRecords, RunFailed, RunInterrupted
from emulator.job import Job, JobRequest, TrafficSource, build_job, read_traffic
from emulator.lab import load
from emulator.predict import predict
from emulator.run_directory import writing
from emulator.sweep.figures import figures_of
from emulator.sweep.points import Point
from metrics.records import load as load_records

__all__ = ["PointResult", "run_points"]

_RESULT_FILE = "point.json"
_TABLE_THREADS = "POLARS_MAX_THREADS"


@dataclass(frozen=True, slots=True)
class PointResult:
    """What came of one point."""

    digest: str
    directory: str
    outcome: str
    """`complete`, or why it failed."""
    figures: dict[str, float] = field(default_factory=dict)
    reused: bool = False
    """It was complete already."""

    @property
    def is_complete(self) -> bool:
        """The point has figures."""
        return self.outcome == "complete"


Drive = Callable[[Job], tuple[EngineRecords, dict[str, Any]]]


def run_points(
    points: Iterable[Point],
    directory: Path,
    *,
    workers: int | None = None,
    drive: Drive | None = None,
) -> Iterator[PointResult]:
    """Yield the result of every point as it comes in.

    With `drive` the points are driven by it here, one after the other; without, predicted by
    `workers` processes (default: one per processor that this process may use). The results do not
    depend on their number; only the order in which they come does.
    """
    todo: list[Point] = []
    for point in points:
        known = _known_result(point, directory)
        if known is not None:
            yield known
        else:
            todo.append(point)
    if drive is not None:
        for point in todo:
            yield _run_point(point, directory, drive)
    elif todo:
        yield from _pooled(todo, directory, min(workers or len(os.sched_getaffinity(0)), len(todo)))


def _pooled(todo: list[Point], directory: Path, workers: int) -> Iterator[PointResult]:
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_end_with_parent)
    futures: dict[Future[PointResult], Point] = {}
    try:
        with _ctrl_c_ignored(), _one_thread_each():
            for point in todo:
                futures[pool.submit(_run_point, point, directory, _predict)] = point
        while futures:
            done, _ = wait(futures, return_when=FIRST_COMPLETED)
            for future in done:
                yield _result(future, futures.pop(future), directory)
    except BaseException:
        # Ctrl-C, or nobody wants the rest: a point that was cut off is run again next time.
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _result(future: Future[PointResult], point: Point, directory: Path) -> PointResult:
    try:
        return future.result()
    except BrokenProcessPool:
        outcome = "a worker process was killed, perhaps for want of memory; try fewer --jobs"
        return PointResult(point.digest, str(directory / point.digest), outcome)


def _known_result(point: Point, directory: Path) -> PointResult | None:
    """The result of an earlier, complete run of the point."""
    path = directory / point.digest / _RESULT_FILE
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        result = PointResult(**stored)
    except (OSError, ValueError, TypeError):
        return None
    return replace(result, reused=True) if result.is_complete else None


def _run_point(point: Point, directory: Path, drive: Drive) -> PointResult:
    """Run one point; a failure is a result, not an error. Ctrl-C is passed on."""
    place = directory / point.digest
    try:
        outcome, figures = _drive_point(point, place, drive)
    except RunInterrupted:
        raise KeyboardInterrupt from None
    except RankwireError as error:
        outcome, figures = str(error).splitlines()[0], {}
    result = PointResult(point.digest, str(place), outcome, figures)
    _keep(result, place)
    return result


def _drive_point(point: Point, place: Path, drive: Drive) -> tuple[str, dict[str, float]]:
    shutil.rmtree(place, ignore_errors=True)
    job = build_job(point.request, source=_source(_without_settings(point.request)))
    outcome = "complete"
    facts: dict[str, Any] = {}
    try:
        engine, facts = drive(job)
    except RunInterrupted:
        raise
    except RunFailed as error:
        if error.records is None:
            raise
        engine, outcome = error.records, str(error)
    command = "predict" if drive is _predict else "run"
    facts |= {"outcome": outcome, "sweep_settings": point.settings}
    run = run_document(job, command, facts)
    with writing(place):
        place.mkdir(parents=True, exist_ok=True)
        store(place, job, engine, run)
    return outcome, figures_of(load_records(place)) if outcome == "complete" else {}


def _keep(result: PointResult, place: Path) -> None:
    with writing(place):
        place.mkdir(parents=True, exist_ok=True)
        text = json.dumps(
            {
                "digest": result.digest,
                "directory": result.directory,
                "outcome": result.outcome,
                "figures": result.figures,
            }
        )
        (place / _RESULT_FILE).write_text(text, encoding="utf-8")


def _without_settings(request: JobRequest) -> JobRequest:
    """What decides the traffic; the settings of the lab don't."""
    return replace(request, overrides=_topology_only(request.overrides))


def _topology_only(overrides: Sequence[str]) -> tuple[str, ...]:
    """The overrides that a profile depends on: its number of ranks."""
    return tuple(text for text in overrides if text.startswith(("topology", "default_profile")))


@lru_cache(maxsize=2)
def _source(request: JobRequest) -> TrafficSource:
    """Read once per process, not once per point."""
    return read_traffic(request, load(request.lab, request.overrides))


@contextlib.contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    """Processes that begin here ignore Ctrl-C for good; the parent ends them."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that begin here give tables one thread: the processors are theirs already."""
    before = os.environ.get(_TABLE_THREADS)
    os.environ.setdefault(_TABLE_THREADS, "1")
    try:
        yield
    finally:
        if before is None:
            del os.environ[_TABLE_THREADS]


def _end_with_parent() -> None:
    """Keep no worker alive whose sweep was killed: the pool's own pipes would never tell it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent,), daemon=True).start()


def _exit_after(parent: "multiprocessing.process.BaseProcess") -> None:
    parent.join()
    os._exit(1)


def _predict(job: Job) -> tuple[EngineRecords, dict[str, Any]]:
    engine = predict(job)
    return engine, {"events": engine.get("events")}
