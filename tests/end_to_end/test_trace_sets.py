"""Five sets of traces by other people's tools, predicted and run to the end.

Every communication node of every rank completes, nothing starts before what it depends on is done,
and the bytes that were sent are those that arrived. A run and its prediction agree on all that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.cli import main
from emulator.commands.execution import run_document, store
from emulator.controller import run
from emulator.job import Job, JobRequest, build_job
from emulator.predict import predict
from metrics.records import verify_bytes
from traffic_profiles.binding_options import BindingOptions
from traffic_profiles.program import OpKind, Program
from traffic_profiles.workload import Action

NOT_DONE = 2**64 - 1
MICROBENCHMARKS = "astra-sim/workload/microbenchmarks"
COMMUNICATION = (Action.COLLECTIVE, Action.SEND, Action.RECEIVE)


@dataclass(frozen=True, slots=True)
class TraceSet:
    """One set, and what makes a run of it take seconds."""

    traces: str
    ranks: int
    binding: Mapping[str, Any] = field(default_factory=dict)
    """Options without which it can't be bound; `group_file` is a name within the set."""
    shortened: Mapping[str, Any] = field(default_factory=dict)
    """Scales of the run."""
    predicted: Mapping[str, Any] = field(default_factory=dict)
    """Scales of the prediction, where it would take more than seconds otherwise."""
    dilation: int = 4000

    def job(self, root: Path, **scales: Any) -> Job:
        """The job of this set on eight or sixteen hosts."""
        traces = root / self.traces
        binding = dict(self.binding)
        if "group_file" in binding:
            binding["group_file"] = traces / binding["group_file"]
        overrides = [f"time_dilation={self.dilation}"]
        if self.ranks > 8:
            overrides.append(f"topology.hosts_per_leaf={self.ranks // 2}")
        options = BindingOptions(**binding)
        return build_job(JobRequest("loopback-clos", overrides, traces, binding=options, **scales))


SETS = {
    "megatron_tp8": TraceSet(
        "converted/megatron_tp8",
        8,
        binding={"idle": "drop"},
        shortened={"size_scale": 0.0005, "compute_scale": 0.01},
        predicted={"size_scale": 0.05},
        dilation=1000,
    ),
    "stage_dp2tp2pp2": TraceSet(
        "stage/stage_dp2tp2pp2",
        8,
        binding={"group_file": "workload.json"},
        shortened={"size_scale": 0.01},
    ),
    "send_recv_ring": TraceSet(
        "astra-sim/system/custom_collectives/custom_ring_allreduce_8npus_1MB", 8
    ),
    "sizes_above_4_gib": TraceSet(
        "ericdinging/test-1-comm-group",
        2,
        binding={"world_group": True},
        shortened={"size_scale": 0.0001, "compute_scale": 0.01},
        dilation=1000,
    ),
    "all_reduce_8": TraceSet(f"{MICROBENCHMARKS}/all_reduce/8npus_1MB", 8),
    "all_gather_8": TraceSet(f"{MICROBENCHMARKS}/all_gather/8npus_1MB", 8),
    "reduce_scatter_4": TraceSet(f"{MICROBENCHMARKS}/reduce_scatter/4npus_1MB", 4),
    "all_to_all_16": TraceSet(f"{MICROBENCHMARKS}/all_to_all/16npus_1MB", 16),
}

every_set = pytest.mark.parametrize("name", SETS)


@every_set
def test_a_prediction_completes_every_communication_in_order(
    name: str, sample_traces: Path
) -> None:
    """At the size that was traced, where that takes seconds."""
    job = SETS[name].job(sample_traces, **SETS[name].predicted)
    engine = predict(job, on_progress=lambda _point: None)
    assert_complete(job, engine["ops"])
    assert_bytes_conserved(job, engine)


@pytest.mark.slow
@every_set
def test_a_run_completes_every_communication_in_order_and_agrees_with_its_prediction(
    name: str, sample_traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = SETS[name].job(sample_traces, **SETS[name].shortened)
    drives = {"predict": lambda: predict(job, on_progress=lambda _point: None)}
    drives["run"] = lambda: run(job)
    for command, drive in drives.items():
        engine = drive()
        assert_complete(job, engine["ops"])
        assert_bytes_conserved(job, engine)
        (tmp_path / command).mkdir()
        facts = {"outcome": "complete", "wall_seconds": 0.0, "started_at": ""}
        verify_bytes(store(tmp_path / command, job, engine, run_document(job, command, facts)))
    assert main(["compare", str(tmp_path / "predict"), str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out


def assert_complete(job: Job, ops: Mapping[str, Any]) -> None:
    """Every operation is done, after its own dependencies, and covers its trace's rows."""
    for program in job.programs:
        start, end = times(ops, program)
        assert (end != NOT_DONE).all()
        assert (start <= end).all()
        children = np.repeat(np.arange(len(program)), np.diff(program.dep_offsets))
        assert (start[children] >= end[program.deps]).all()
        assert_trace_order(job, program, start, end)


def assert_trace_order(job: Job, program: Program, start: Any, end: Any) -> None:
    """What the file says: a node starts when the nodes of its `data_deps` are done."""
    bound = job.source.workload.bound[program.rank]
    table = bound.table
    issued = np.flatnonzero(np.isin(bound.action, COMMUNICATION))
    has_row = program.row < len(table)
    assert set(issued) <= set(program.row[has_row].tolist())
    first, last = np.full(len(table), NOT_DONE, np.uint64), np.zeros(len(table), np.uint64)
    np.minimum.at(first, program.row[has_row], start[has_row])
    np.maximum.at(last, program.row[has_row], end[has_row])
    row_of = {int(node): row for row, node in reversed(list(enumerate(table.id)))}
    counts = np.diff(table.data_dep_offsets.astype(np.int64))
    for child, parent in zip(
        np.repeat(np.arange(len(table)), counts), table.data_deps.tolist(), strict=True
    ):
        if parent in row_of:
            assert first[child] >= last[row_of[parent]]


def times(ops: Mapping[str, Any], program: Program) -> tuple[Any, Any]:
    """Start and end of each operation of a program, picoseconds."""
    mine = ops["rank"] == program.rank
    order = np.argsort(ops["op"][mine])
    assert mine.sum() == len(program)
    return ops["start_ps"][mine][order], ops["end_ps"][mine][order]


def assert_bytes_conserved(job: Job, engine: Mapping[str, Any]) -> None:
    """Sent = received, in the programs and on the endpoints, once repetitions are taken off."""
    sent, received = (moved(job.programs, kind) for kind in (OpKind.SEND, OpKind.RECV))
    assert sent == received > 0
    nics = engine["counters"]["nics"]
    repeated = int(np.sum(nics["data_payload_bytes_retransmitted"]))
    assert int(np.sum(nics["data_payload_bytes_sent"])) - repeated == sent
    assert int(np.sum(nics["payload_mismatches"])) == 0


def moved(programs: Sequence[Program], kind: OpKind) -> int:
    """Bytes of all operations of a kind."""
    return sum(int(program.size_bytes[program.kind == kind].sum()) for program in programs)
