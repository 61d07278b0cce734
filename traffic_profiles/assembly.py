"""Lays the operations of all ranks out in flat arrays and cuts them into programs.

While they are put together, operations have global numbers: rank by rank, within a rank row by row
in topological order, within a communication row an entry JOIN, the schedule's operations and an
exit JOIN. One iteration is assembled; `programs` repeats it. Knows no algorithm and no size rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from traffic_profiles.collectives.schedule import Ints, Schedule
from traffic_profiles.program import NO_INSTANCE, NO_LANE, NO_ROW, OpKind, Program
from traffic_profiles.workload import Action, Instance, Workload

__all__ = ["Assembly", "Layout"]

BATCH_ELEMENTS = 1 << 22
"""Array elements that one batch of instances may take in a temporary."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the operations of each trace row are; rows of all ranks are numbered through."""

    row_base: Ints
    """`int64[ranks + 1]`, number of each rank's first row."""
    op_base: Ints
    """`int64[ranks + 1]`, number of each rank's first operation."""
    entry: Ints
    """`int64[rows]`, first operation of each row."""
    exit: Ints
    """`int64[rows]`, last operation of each row: it completes when the row is done."""

    @classmethod
    def of(cls, workload: Workload, ops_of_row: Ints) -> "Layout":
        """Number the operations, given how many each row has; one more ends the iteration."""
        row_base = first_rows(workload)
        order = np.concatenate(
            [
                base + workload.bound[rank].order.astype(np.int64)
                for rank, base in zip(workload.ranks, row_base, strict=False)
            ]
        )
        rank_of_row = np.repeat(np.arange(len(workload.ranks)), np.diff(row_base))
        count = ops_of_row[order]
        entry = np.empty_like(ops_of_row)
        entry[order] = np.cumsum(count) - count + rank_of_row
        ops_of_rank = np.zeros(len(workload.ranks), np.int64)
        np.add.at(ops_of_rank, rank_of_row, ops_of_row)
        op_base = np.concatenate([[0], np.cumsum(ops_of_rank + 1)])
        return cls(row_base, op_base, entry, entry + ops_of_row - 1)


def first_rows(workload: Workload) -> Ints:
    """Number of each rank's first row, and the number of all rows: `int64[ranks + 1]`."""
    lengths = [len(workload.bound[rank].table) for rank in workload.ranks]
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


@dataclass(slots=True, eq=False)
class Assembly:
    """The operations of one iteration of all ranks, column by column."""

    layout: Layout
    """Where they are."""
    # The columns of `Program`, over all ranks; peers by index, numbers within the peer's program.
    kind: npt.NDArray[np.uint8]
    peer: Ints
    peer_op: Ints
    channel: npt.NDArray[np.uint16]
    traffic_class: npt.NDArray[np.uint8]
    size_bytes: Ints
    duration_ps: npt.NDArray[np.uint64]
    lane: npt.NDArray[np.int32]
    instance: Ints
    row: Ints
    _edges: list[tuple[Ints, Ints]] = field(default_factory=list)

    @classmethod
    def of(cls, workload: Workload, layout: Layout, compute_scale: float) -> "Assembly":
        """Begin with what each row does by itself: delays, and joins for all others."""
        ranks = len(workload.ranks)
        total = int(layout.op_base[-1])
        assembly = cls(
            layout=layout,
            kind=np.full(total, OpKind.JOIN, np.uint8),
            peer=np.repeat(np.arange(ranks), np.diff(layout.op_base)),
            peer_op=np.zeros(total, np.int64),
            channel=np.zeros(total, np.uint16),
            traffic_class=np.zeros(total, np.uint8),
            size_bytes=np.zeros(total, np.int64),
            duration_ps=np.zeros(total, np.uint64),
            lane=np.full(total, NO_LANE, np.int32),
            instance=np.full(total, NO_INSTANCE, np.int64),
            row=np.full(total, NO_ROW, np.int64),
        )
        for index, rank in enumerate(workload.ranks):
            assembly._add_rank(workload, index, rank, compute_scale)
        return assembly

    def _add_rank(self, workload: Workload, index: int, rank: int, compute_scale: float) -> None:
        bound = workload.bound[rank]
        rows = slice(int(self.layout.row_base[index]), int(self.layout.row_base[index + 1]))
        entry, exit_ = self.layout.entry[rows], self.layout.exit[rows]
        self.row[entry] = np.arange(len(entry))
        delays = np.flatnonzero(bound.action == Action.DELAY)
        self.kind[entry[delays]] = OpKind.DELAY
        self.lane[entry[delays]] = bound.lane[delays]
        duration = bound.duration_ps[delays]
        scaled = duration if compute_scale == 1 else np.rint(duration * compute_scale)
        self.duration_ps[entry[delays]] = scaled.astype(np.uint64)
        parents = bound.parents.astype(np.int64)
        child = np.repeat(np.arange(len(entry)), np.diff(bound.parent_offsets).astype(np.int64))
        self._edges.append((entry[child], exit_[parents]))
        last = np.ones(len(entry), np.bool_)
        last[parents] = False
        sinks = exit_[last]
        self._edges.append((np.full(len(sinks), self.layout.op_base[index + 1] - 1), sinks))

    def add(
        self,
        instances: Sequence[Instance],
        schedule: Schedule,
        class_of_instance: npt.NDArray[np.uint8],
    ) -> None:
        """Add instances that share a schedule, which must have operations."""
        batch = max(1, BATCH_ELEMENTS // max(1, len(schedule)))
        for first in range(0, len(instances), batch):
            self._add_batch(instances[first : first + batch], schedule, class_of_instance)

    def _add_batch(
        self,
        instances: Sequence[Instance],
        schedule: Schedule,
        class_of_instance: npt.NDArray[np.uint8],
    ) -> None:
        rows, ranks, ids = instance_arrays(instances)
        entry = self.layout.entry[self.layout.row_base[ranks] + rows]
        slot = np.arange(len(schedule)) - schedule.first_op[schedule.position]
        self._mark_ends(schedule, ids, ranks, rows)
        begin = entry[:, schedule.position]
        op = begin + 1 + slot
        peer = ranks[:, schedule.peer]
        self.kind[op] = schedule.kind
        self.peer[op] = peer
        self.peer_op[op] = op[:, schedule.partner] - self.layout.op_base[peer]
        self.channel[op] = schedule.channel
        self.traffic_class[op] = class_of_instance[ids][:, None]
        self.size_bytes[op] = schedule.size_bytes
        self.instance[op] = ids[:, None]
        self.row[op] = rows[:, schedule.position]
        exit_ = self.layout.exit[self.layout.row_base[ranks] + rows][:, schedule.position]
        for waiting, dependency in (
            (op[:, schedule.begins], begin[:, schedule.begins]),
            (op[:, schedule.edge_op], op[:, schedule.edge_dependency]),
            (exit_[:, schedule.ends], op[:, schedule.ends]),
        ):
            self._edges.append((waiting.ravel(), dependency.ravel()))

    def _mark_ends(self, schedule: Schedule, ids: Ints, ranks: Ints, rows: Ints) -> None:
        """Tag entry and exit; a position without operations has one JOIN for both."""
        row = self.layout.row_base[ranks] + rows
        for end in (self.layout.entry[row], self.layout.exit[row]):
            self.instance[end] = ids[:, None]
            self.row[end] = rows
        busy = np.diff(schedule.first_op) > 0
        idle_entry, idle_exit = self.layout.entry[row][:, ~busy], self.layout.exit[row][:, ~busy]
        apart = idle_entry != idle_exit
        self._edges.append((idle_exit[apart], idle_entry[apart]))

    def add_without_traffic(self, instances: Sequence[Instance]) -> None:
        """Add instances that need no message: of one rank, or from a rank to itself."""
        for one in instances:
            rows = self.layout.row_base[list(one.ranks)] + np.asarray(one.rows)
            self.instance[self.layout.entry[rows]] = one.id
            if len(rows) == 2 and one.kind == "send_recv":
                self._edges.append((self.layout.entry[rows[1:]], self.layout.exit[rows[:1]]))

    def programs(self, ranks: Sequence[int], iterations: int, instances: int) -> list[Program]:
        """Cut into one program per rank and repeat the iteration."""
        waiting, dependency = (np.concatenate(side) for side in zip(*self._edges, strict=True))
        order = np.argsort(waiting, kind="stable")
        waiting, dependency = waiting[order], dependency[order]
        self._edges.clear()
        bounds = np.searchsorted(waiting, self.layout.op_base)
        programs = []
        for index, rank in enumerate(ranks):
            edges = slice(int(bounds[index]), int(bounds[index + 1]))
            base = self.layout.op_base[index]
            cut = (waiting[edges] - base, dependency[edges] - base)
            programs.append(self._program(index, rank, cut, iterations, instances))
        return programs

    def _program(
        self, index: int, rank: int, edges: tuple[Ints, Ints], iterations: int, instances: int
    ) -> Program:
        first, last = self.layout.op_base[index], self.layout.op_base[index + 1]
        own = slice(int(first), int(last))
        length = int(last - first)
        turn = np.repeat(np.arange(iterations), length)
        message = np.tile(self.kind[own] <= OpKind.RECV, iterations)
        peer = np.tile(self.peer[own], iterations)
        peer_length = np.diff(self.layout.op_base)[peer]
        instance = np.tile(self.instance[own], iterations)
        shifted = instance + np.where(instance != NO_INSTANCE, turn * instances, 0)
        offsets, deps = unroll(*edges, length, iterations)
        return Program(
            rank=rank,
            kind=np.tile(self.kind[own], iterations),
            peer=np.asarray(peer, np.uint32),
            size_bytes=np.tile(self.size_bytes[own].astype(np.uint64), iterations),
            duration_ps=np.tile(self.duration_ps[own], iterations),
            lane=np.tile(self.lane[own], iterations),
            peer_op=np.where(
                message, np.tile(self.peer_op[own], iterations) + turn * peer_length, 0
            ).astype(np.uint32),
            channel=np.tile(self.channel[own], iterations),
            traffic_class=np.tile(self.traffic_class[own], iterations),
            instance=shifted.astype(np.uint32),
            row=np.tile(self.row[own].astype(np.uint32), iterations),
            dep_offsets=offsets,
            deps=deps,
        )


def instance_arrays(instances: Sequence[Instance]) -> tuple[Ints, Ints, Ints]:
    """Rows and ranks of the positions, `int64[instances, n]`, and ids, `int64[instances]`."""
    rows = np.array([one.rows for one in instances], np.int64)
    ranks = np.array([one.ranks for one in instances], np.int64)
    return rows, ranks, np.array([one.id for one in instances], np.int64)


def unroll(
    waiting: Ints, dependency: Ints, length: int, iterations: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Repeat a rank's sorted edges; what waits for nothing waits for the iteration before.

    The last of the `length` operations is the end of the iteration. Returns offsets and
    dependencies in compressed rows.
    """
    count = np.bincount(waiting, minlength=length)
    roots = np.flatnonzero(count == 0)
    later_waiting = np.concatenate([waiting, roots])
    later = np.concatenate([dependency, np.full(len(roots), -1)])
    later = later[np.argsort(later_waiting, kind="stable")]
    later_count = np.maximum(count, 1)
    counts = np.concatenate([count, np.tile(later_count, iterations - 1)])
    turns = np.repeat(np.arange(1, iterations), len(later))
    deps = np.concatenate([dependency, np.tile(later, iterations - 1) + turns * length])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return offsets.astype(np.uint32), deps.astype(np.uint32)
