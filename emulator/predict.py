"""The job in virtual time: one process, no wires, as fast as the machine computes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dataplane
from emulator.control.outcome import EngineRecords, RunFailed, RunInterrupted
from emulator.job import Job
from emulator.progress import ProgressPoint

__all__ = ["describe_blocked", "predict"]

_EVENTS_PER_SLICE = 100_000
"""Between two looks at progress and signals: some ten milliseconds."""

_SHOWN_BLOCKED = 8


def predict(
    job: Job, *, on_progress: Callable[[ProgressPoint], None] | None = None
) -> EngineRecords:
    """Run the job to its end under a virtual clock and return what the engine measured.

    Raises `RunFailed` when nothing is left to happen before all operations are complete, and
    `RunInterrupted` on Ctrl-C; both carry the records so far.
    """
    native: Any = dataplane
    engine = native.Emulation(job.config_json, job.native_programs())
    try:
        while not engine.advance(None, _EVENTS_PER_SLICE):
            if on_progress is not None:
                on_progress(_point(engine.snapshot()))
    except KeyboardInterrupt:
        raise _with_records(RunInterrupted("interrupted"), engine) from None
    snapshot = engine.snapshot()
    if snapshot["ops_done"] < snapshot["ops_total"]:
        raise _with_records(RunFailed(_stalled(engine, snapshot)), engine)
    if on_progress is not None:
        on_progress(_point(snapshot))
    return dict(engine.records()) | {"events": int(snapshot["events"])}


def describe_blocked(entry: Mapping[str, Any]) -> str:
    """One phrase for an operation that can't go on."""
    kind, rank, op = entry["kind"], entry["rank"], entry["op"]
    text = f"rank {rank} op {op} ({kind}"
    if entry.get("peer") not in (None, rank):
        text += f", peer rank {entry['peer']}"
    if entry.get("size_bytes"):
        text += f", {entry.get('received_bytes', 0)} of {entry['size_bytes']} bytes"
    return text + ")"


def _stalled(engine: Any, snapshot: Mapping[str, Any]) -> str:
    blocked: Sequence[Mapping[str, Any]] = engine.blocked(_SHOWN_BLOCKED)
    shown = "; ".join(describe_blocked(entry) for entry in blocked)
    return (
        f"stalled at {engine.now_ps / 1e6:.3f} us emulated with "
        f"{snapshot['ops_done']} of {snapshot['ops_total']} operations complete: {shown}"
    )


def _with_records(error: RunFailed, engine: Any) -> RunFailed:
    error.records = dict(engine.records())
    return error


def _point(snapshot: Mapping[str, Any]) -> ProgressPoint:
    return ProgressPoint(
        phase="predicting",
        operations_done=int(snapshot["ops_done"]),
        operations_total=int(snapshot["ops_total"]),
        emulated_ps=int(snapshot["now_ps"]),
        events=int(snapshot["events"]),
    )
