"""Workloads made by hand: what binding would return, without a trace file."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from traffic_profiles.chakra.table import TraceTable
from traffic_profiles.workload import (
    NO_INSTANCE,
    NO_LANE,
    Action,
    BindingReport,
    BoundTrace,
    Instance,
    Workload,
)


@dataclass
class Rows:
    """The rows of one rank while they are collected."""

    action: list[int] = field(default_factory=list)
    duration_ps: list[int] = field(default_factory=list)
    lane: list[int] = field(default_factory=list)
    instance: list[int] = field(default_factory=list)
    parents: list[list[int]] = field(default_factory=list)

    def add(self, action, parents, duration_ps=0, lane=NO_LANE, instance=NO_INSTANCE) -> int:
        """Append a row."""
        self.action.append(action)
        self.duration_ps.append(duration_ps)
        self.lane.append(lane)
        self.instance.append(instance)
        self.parents.append(list(parents))
        return len(self.action) - 1


class WorkloadBuilder:
    """Appends computes, collectives and transfers; parents are rows of the same rank."""

    def __init__(self, ranks: int) -> None:
        self.rows = [Rows() for _ in range(ranks)]
        self.instances: list[Instance] = []

    def compute(self, rank, duration_ps, parents=(), lane=0) -> int:
        """Append a compute row."""
        return self.rows[rank].add(Action.DELAY, parents, duration_ps, lane)

    def collective(self, kind, ranks, size_bytes, parents=None, group="g") -> Instance:
        """Append a collective; `parents` is a mapping of rank to rows."""
        return self._instance(kind, group, ranks, size_bytes, parents or {})

    def transfer(self, source, destination, size_bytes, parents=None) -> Instance:
        """Append a send and its receive; `parents` are the rows before each of them."""
        number = len(self.instances)
        sides = parents or ([], [])
        rows = (
            self.rows[source].add(Action.SEND, sides[0], instance=number),
            self.rows[destination].add(Action.RECEIVE, sides[1], instance=number),
        )
        ranks = (source, destination)
        self.instances.append(
            Instance(number, "send_recv", "", ranks, rows, size_bytes, size_bytes, "send")
        )
        return self.instances[-1]

    def _instance(self, kind, group, ranks, size_bytes, parents) -> Instance:
        number = len(self.instances)
        rows = tuple(
            self.rows[rank].add(Action.COLLECTIVE, parents.get(rank, ()), instance=number)
            for rank in ranks
        )
        self.instances.append(
            Instance(number, kind, group, tuple(ranks), rows, size_bytes, size_bytes, kind)
        )
        return self.instances[-1]

    def build(self) -> Workload:
        """Bind what was added."""
        ranks = tuple(range(len(self.rows)))
        return Workload(
            source="synthetic",
            ranks=ranks,
            bound={rank: bound_trace(rank, rows) for rank, rows in enumerate(self.rows)},
            groups={"g": ranks},
            instances=self.instances,
            report=BindingReport(),
        )


def bound_trace(rank: int, rows: Rows) -> BoundTrace:
    """One rank's rows, in the order in which they were added."""
    count = len(rows.action)
    return BoundTrace(
        table=table(rank, count),
        action=np.array(rows.action, np.uint8),
        duration_ps=np.array(rows.duration_ps, np.uint64),
        idle_ps=np.zeros(count, np.uint64),
        lane=np.array(rows.lane, np.int32),
        lanes=("cpu", "stream 7"),
        instance=np.array(rows.instance, np.uint32),
        order=np.arange(count, dtype=np.uint32),
        parent_offsets=np.cumsum([0, *map(len, rows.parents)]).astype(np.uint64),
        parents=np.array([p for parents in rows.parents for p in parents], np.uint32),
    )


def table(rank: int, count: int) -> TraceTable:
    """A table of so many nameless rows."""
    absent = np.full(count, -1, np.int64)
    offsets, none = np.zeros(count + 1, np.uint64), np.zeros(0, np.uint64)
    return TraceTable(
        rank=rank,
        path=Path(f"synthetic.{rank}.et"),
        dialect="v0.0.4",
        id=np.arange(count, dtype=np.uint64),
        type=np.zeros(count, np.uint8),
        name_offsets=offsets,
        name_bytes=np.zeros(0, np.uint8),
        data_dep_offsets=offsets,
        data_deps=none,
        ctrl_dep_offsets=offsets,
        ctrl_deps=none,
        duration_us=np.zeros(count, np.uint64),
        start_us=np.zeros(count, np.uint64),
        is_cpu_op=absent.astype(np.int8),
        stream=absent,
        tid=absent,
        ts_us=absent,
        comm_type=absent.astype(np.int8),
        comm_size=absent,
        comm_src=absent,
        comm_dst=absent,
        comm_tag=absent,
        group=absent.astype(np.int32),
        groups=(),
        num_ops=absent,
        tensor_size=absent,
        frame_offsets=np.zeros(count, np.uint64),
        metadata={},
        process_groups_json=None,
    )
