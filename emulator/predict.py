"""The job in virtual time: one process, no wires, as fast as the machine computes."""

from collections.abc import Callable, Mapping
from typing import Any

import dataplane
from dataplane.errors import RunError
from emulator.control.outcome import EngineRecords, RunFailed, RunInterrupted
from emulator.fluid import check_model
from emulator.job import Job
from emulator.lab.events import longest_wait_ps
from emulator.memory import check_memory
from emulator.progress import ProgressPoint
from traffic_profiles.program import NO_ROW, OpKind

__all__ = ["predict"]

_EVENTS_PER_SLICE = 100_000
"""Between two looks at progress and signals: some ten milliseconds."""

_SHOWN_BLOCKED = 8
_LEAST_PATIENCE_PS = 100_000_000_000
_TIMEOUTS_OF_PATIENCE = 16


def predict(
    job: Job, *, on_progress: Callable[[ProgressPoint], None] | None = None
) -> EngineRecords:
    """Run the job to its end under a virtual clock and return what the engine measured.

    Raises `InputError` when it needs more memory than there is, `RunFailed` when the job stalls
    before all operations are complete, and `RunInterrupted` on Ctrl-C; the last two carry the
    records so far.
    """
    check_memory(job)
    check_model(job)
    engine = _engine(job)
    patience = _Patience(job)
    bytes_total = _bytes_total(job)
    try:
        while not engine.advance(None, _EVENTS_PER_SLICE):
            progress = engine.progress()
            if on_progress is not None:
                on_progress(_point(progress, bytes_total))
            if patience.is_exhausted(progress):
                break
    except KeyboardInterrupt:
        raise _with_records(RunInterrupted("interrupted"), engine) from None
    snapshot = engine.snapshot()
    if not engine.is_done:
        raise _with_records(RunFailed(_stalled(job, engine, snapshot)), engine)
    if on_progress is not None:
        on_progress(_point(engine.progress(), bytes_total))
    return _records(engine, snapshot)


class _Patience:
    """Ends a prediction in which events go on but nothing arrives: a deadlock of pauses."""

    def __init__(self, job: Job) -> None:
        timeout_ps = job.lab.transport.retransmission_timeout_ns * 1000
        longest_ps = max((int(p.duration_ps.max()) for p in job.programs if len(p)), default=0)
        self._limit_ps = max(_LEAST_PATIENCE_PS, _TIMEOUTS_OF_PATIENCE * timeout_ps) + longest_ps
        self._limit_ps += longest_wait_ps(job.config["events"])
        self._seen = (-1, -1)
        self._moved_ps = 0

    def is_exhausted(self, progress: Mapping[str, int]) -> bool:
        seen = (progress["ops_done"], progress["bytes_arrived"])
        now_ps = progress["now_ps"]
        if seen != self._seen:
            self._seen, self._moved_ps = seen, now_ps
        return now_ps - self._moved_ps > self._limit_ps


_Engine = dataplane.Emulation | dataplane.FluidEmulation


def _engine(job: Job) -> _Engine:
    kind = dataplane.FluidEmulation if job.request.model == "fluid" else dataplane.Emulation
    try:
        return kind(job.config_json, job.native_programs())
    except dataplane.ConfigError as error:
        raise RunError(f"the engine refuses the job: {error}") from error


def _stalled(job: Job, engine: _Engine, snapshot: Mapping[str, Any]) -> str:
    blocked = engine.blocked(_SHOWN_BLOCKED)
    shown = "; ".join(_describe(job, entry) for entry in blocked)
    return (
        f"stalled at {engine.now_ps / 1e6:.3f} us emulated with {snapshot['ops_done']} of "
        f"{snapshot['ops_total']} operations complete, {snapshot['failed_qps']} queue pairs "
        f"failed: {shown or 'no operation has started'}"
    )


def _describe(job: Job, entry: Mapping[str, Any]) -> str:
    """One phrase for an operation that can't go on, with its trace node and its peer."""
    rank, op = int(entry["rank"]), int(entry["op"])
    row = int(next(p for p in job.programs if p.rank == rank).row[op])
    node = job.row_names(rank, [row])[0] if row != NO_ROW else ""
    text = f"rank {rank} {entry['kind']}"
    if entry["peer"] != rank:
        text += f" with rank {entry['peer']}"
    if node:
        text += f" of node '{node}'"
    if entry["size_bytes"]:
        text += f", {entry['received_bytes']} of {entry['size_bytes']} bytes"
    return f"{text}: {entry['waiting_for']}" if entry["waiting_for"] else text


def _with_records(error: RunFailed, engine: _Engine) -> RunFailed:
    error.records = _records(engine, engine.snapshot())
    return error


def _records(engine: _Engine, snapshot: Mapping[str, Any]) -> EngineRecords:
    return engine.records() | {"events": int(snapshot["events"])}


def _bytes_total(job: Job) -> int:
    """Payload of all messages."""
    return sum(int(p.size_bytes[p.kind == OpKind.SEND].sum()) for p in job.programs)


def _point(progress: Mapping[str, int], bytes_total: int) -> ProgressPoint:
    return ProgressPoint(
        phase="predicting",
        operations_done=progress["ops_done"],
        operations_total=progress["ops_total"],
        bytes_done=min(progress["bytes_arrived"], bytes_total),
        bytes_total=bytes_total,
        emulated_ps=progress["now_ps"],
        events=progress["events"],
    )
