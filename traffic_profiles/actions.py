"""What each row of a trace does: its action, duration and lane.

One rank at a time; groups are names here, peers are numbers.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dataplane.errors import Problem
from traffic_profiles.binding_options import BindingOptions
from traffic_profiles.chakra.node_types import CollectiveType, NodeType
from traffic_profiles.chakra.table import TraceTable
from traffic_profiles.workload import NO_LANE, Action

__all__ = ["RowActions", "row_actions"]

Mask = npt.NDArray[np.bool_]
_PS_PER_US = 1_000_000
_PS_PER_S = 1e12
_PROBLEMS_AT_MOST = 5
_MAX_TYPE = max(CollectiveType)
MAX_SIZE_BYTES = 1 << 48
"""Largest size of one communication, 256 TiB: whatever is larger was written wrongly."""
MAX_DURATION_US = 10**12
"""Longest node, 11.6 days: whatever is longer was written wrongly."""


@dataclass(frozen=True, slots=True, eq=False)
class RowActions:
    """Actions of one rank's rows, before groups and peers are looked at; n rows."""

    action: npt.NDArray[np.uint8]
    duration_ps: npt.NDArray[np.uint64]
    lane: npt.NDArray[np.int32]
    lanes: tuple[str, ...]
    counts: Counter[str]
    problems: list[Problem]


def row_actions(table: TraceTable, options: BindingOptions) -> RowActions:
    """Classify the rows of a trace; problems are collected, not raised."""
    counts: Counter[str] = Counter()
    action = np.full(len(table), Action.DELAY, np.uint8)
    action[(table.type == NodeType.INVALID) | (table.type == NodeType.METADATA)] = Action.NONE
    problems = _classify_communication(table, action, counts)
    problems += _impossible_values(table, action) + _unnamed_dimensions(table, action)
    duration_ps = _durations(table, action, options, counts)
    lane, lanes = _lanes(table, action)
    counts["nodes_of_unknown_type"] = int(np.count_nonzero(table.type > max(NodeType)))
    return RowActions(action, duration_ps, lane, lanes, counts, problems)


def _classify_communication(
    table: TraceTable, action: npt.NDArray[np.uint8], counts: Counter[str]
) -> list[Problem]:
    on_cpu = table.is_cpu_op == 1
    collective = table.type == NodeType.COMM_COLL
    barrier = table.comm_type == CollectiveType.BARRIER
    complete = (table.comm_type >= 0) & ((table.comm_size >= 0) | barrier)
    action[collective & complete] = Action.COLLECTIVE
    empty = collective & complete & (table.comm_size == 0) & ~barrier
    action[empty] = Action.NONE

    send, receive = table.type == NodeType.COMM_SEND, table.type == NodeType.COMM_RECV
    sized = _transfer_sizes(table) >= 0
    action[send & (table.comm_dst >= 0) & sized] = Action.SEND
    action[receive & (table.comm_src >= 0) & sized] = Action.RECEIVE

    # What is left of communication is a delay: a wrapper on the CPU, or a trace with a hole.
    left = (collective | send | receive) & (action == Action.DELAY)
    counts["zero_size_collectives"] = int(np.count_nonzero(empty))
    counts["cpu_communication_as_delay"] = int(np.count_nonzero(left & on_cpu))
    hole = left & ~on_cpu
    return [
        *_holes(table, hole & collective, "is a collective without comm_type or comm_size"),
        *_holes(table, hole & send, "is a send without comm_dst or comm_size"),
        *_holes(table, hole & receive, "is a receive without comm_src or comm_size"),
        *_holes(
            table,
            (action == Action.COLLECTIVE) & (table.comm_type > _MAX_TYPE),
            f"has a comm_type above {int(_MAX_TYPE)}",
        ),
    ]


def _impossible_values(table: TraceTable, action: npt.NDArray[np.uint8]) -> list[Problem]:
    too_large = (action >= Action.COLLECTIVE) & (_transfer_sizes(table) > MAX_SIZE_BYTES)
    too_long = (action == Action.DELAY) & (table.duration_us > MAX_DURATION_US)
    return [
        *_holes(table, too_large, f"communicates more than {MAX_SIZE_BYTES} bytes"),
        *_holes(table, too_long, f"takes more than {MAX_DURATION_US} microseconds"),
    ]


def _unnamed_dimensions(table: TraceTable, action: npt.NDArray[np.uint8]) -> list[Problem]:
    """Collectives over a part of the ranks that only a simulated topology's dimensions tell."""
    partial = np.zeros(len(table), np.bool_)
    partial[table.rows_in_some_dimensions.astype(np.int64)] = True
    named = np.array([bool(name) for name in table.groups] + [False])[table.group]
    what = "runs over some dimensions only (involved_dim) and names no process group"
    return _holes(
        table,
        (action == Action.COLLECTIVE) & partial & ~named,
        what,
        "name the ranks that take part as a process group (pg_name)",
    )


def _transfer_sizes(table: TraceTable) -> npt.NDArray[np.int64]:
    """Bytes of sends and receives; some writers give them as tensor_size."""
    return np.where(table.comm_size >= 0, table.comm_size, table.tensor_size)


def _holes(
    table: TraceTable,
    mask: Mask,
    what: str,
    remedy: str = "correct the node: sizes are bytes, ranks global, durations microseconds",
) -> list[Problem]:
    rows = np.flatnonzero(mask)
    problems = [
        Problem(
            str(table.path),
            f"'{table.name(int(row))}' {what}",
            remedy,
            place=f"rank {table.rank} row {row} node {int(table.id[row])}",
        )
        for row in rows[:_PROBLEMS_AT_MOST]
    ]
    if len(rows) > _PROBLEMS_AT_MOST:
        more = f"{len(rows) - _PROBLEMS_AT_MOST} more nodes have the same fault"
        problems.append(Problem(str(table.path), more, "see above", place=f"rank {table.rank}"))
    return problems


def _durations(
    table: TraceTable,
    action: npt.NDArray[np.uint8],
    options: BindingOptions,
    counts: Counter[str],
) -> npt.NDArray[np.uint64]:
    delay = action == Action.DELAY
    duration_ps = np.where(delay, table.duration_us * np.uint64(_PS_PER_US), np.uint64(0))
    work = np.maximum(table.num_ops, 0).astype(np.float64)
    touched = np.maximum(table.tensor_size, 0).astype(np.float64)
    open_rows = delay & (table.duration_us == 0) & ((work > 0) | (touched > 0))
    modelled_ps = np.zeros(len(table))
    if options.peak_flops is not None:
        modelled_ps = work / options.peak_flops * _PS_PER_S
    if options.memory_bandwidth_bytes_per_s is not None:
        memory_ps = touched / options.memory_bandwidth_bytes_per_s * _PS_PER_S
        modelled_ps = np.maximum(modelled_ps, memory_ps)
    modelled = open_rows & (modelled_ps > 0)
    duration_ps[modelled] = np.rint(modelled_ps[modelled]).astype(np.uint64)
    counts["compute_by_roofline"] = int(np.count_nonzero(modelled))
    counts["compute_without_duration"] = int(np.count_nonzero(open_rows & ~modelled))
    return duration_ps


def _lanes(
    table: TraceTable, action: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Lane of each delay: a CPU thread, a device stream, or the device where no stream is said."""
    lane = np.full(len(table), NO_LANE, np.int32)
    lanes: list[str] = []
    delay = action == Action.DELAY
    on_cpu = delay & (table.is_cpu_op == 1)
    on_device = delay & ~on_cpu
    on_stream = on_device & (table.is_cpu_op == 0) & (table.stream >= 0)
    for mask, numbers, prefix in (
        (on_cpu, table.tid, "cpu"),
        (on_stream, table.stream, "stream"),
        (on_device & ~on_stream, np.full(len(table), -1), "device"),
    ):
        for number in np.unique(numbers[mask]):
            lane[mask & (numbers == number)] = len(lanes)
            lanes.append(prefix if number < 0 else f"{prefix} {number}")
    return lane, tuple(lanes)
