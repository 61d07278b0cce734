"""Sets of traces by other people's tools, and what every run of one has to hold.

Every communication node of every rank completes, nothing starts before what it depends on is done,
and the bytes that were sent are those that arrived.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from emulator.job import Job, JobRequest, build_job
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

    @property
    def overrides(self) -> list[str]:
        """Changes of a lab of eight hosts, so that it carries this set."""
        hosts = [f"topology.hosts_per_leaf={self.ranks // 2}"] if self.ranks > 8 else []
        return [f"time_dilation={self.dilation}", *hosts]

    def job(
        self,
        root: Path,
        *,
        lab: str = "loopback-clos",
        overrides: Sequence[str] = (),
        **scales: Any,
    ) -> Job:
        """The job of this set on a lab of eight hosts, or on it with sixteen."""
        traces = root / self.traces
        binding = dict(self.binding)
        if "group_file" in binding:
            binding["group_file"] = traces / binding["group_file"]
        changes = (*self.overrides, *overrides)
        options = BindingOptions(**binding)
        return build_job(JobRequest(lab, changes, traces, binding=options, **scales))


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
