"""What binding found, counted and said in words."""

import numpy as np

from traffic_profiles.actions import RowActions
from traffic_profiles.chakra.node_types import NodeType
from traffic_profiles.chakra.table import TraceTable
from traffic_profiles.graph import RankGraph
from traffic_profiles.workload import BindingReport

__all__ = ["PHRASES", "count_rank", "count_table", "warn"]

PHRASES: dict[str, str] = {
    "ranks_without_nodes": "ranks whose trace has no node",
    "dangling_dependencies_dropped": "dependencies on nodes that are not in the file, dropped",
    "duplicate_node_ids": "nodes with the id of an earlier node; dependencies mean the earlier",
    "duplicate_dependencies_dropped": "repeated dependencies, dropped",
    "ranks_ordered_by_ctrl_deps": "ranks without data_deps, ordered by their ctrl_deps",
    "stream_order_edges_added": "dependencies added between kernels of one stream",
    "communicator_order_edges_added": "dependencies added between collectives of one group",
    "zero_size_collectives": "collectives of no bytes, done at once",
    "single_rank_collectives": "collectives in groups of one rank, done at once",
    "collectives_without_group": "collectives that name no group and run over all ranks",
    "cpu_communication_as_delay": "CPU-side communication wrappers taken as delays, not traffic",
    "untyped_communication_kernels": "communication kernels without type or size, taken as delays",
    "compute_by_roofline": "nodes whose duration is from --peak-flops and --memory-bandwidth",
    "compute_without_duration": (
        "compute nodes without a duration, which take no time "
        "(--peak-flops and --memory-bandwidth give them one)"
    ),
    "nodes_of_unknown_type": "nodes of an unknown type, taken as delays",
    "sizes_one_above_a_multiple_of_32": (
        "communication sizes one byte above a multiple of 32, as converters before 2024-04-26 "
        "write them; used as they are"
    ),
    "idle_kept_ns": "ns of idle CPU time kept, over all ranks",
    "idle_dropped_ns": "ns of idle CPU time dropped, over all ranks",
    "ranks_with_unknown_idle_time": "ranks without time stamps, whose idle time is unknown",
    "jobs_without_communication": "job without any communication between ranks",
}
"""What each count of a `BindingReport` means."""

_KERNEL_PREFIXES = np.array([list(b"nccl"), list(b"rccl")], np.uint8)
_LOWER_CASE = np.uint8(0x20)


def count_table(table: TraceTable, report: BindingReport) -> None:
    """Count what the columns of one rank show by themselves."""
    report.count("ranks_without_nodes", int(len(table) == 0))
    odd = (table.comm_size > 32) & (table.comm_size % 32 == 1)
    report.count("sizes_one_above_a_multiple_of_32", int(np.count_nonzero(odd)))
    report.count("untyped_communication_kernels", _untyped_kernels(table))


def _untyped_kernels(table: TraceTable) -> int:
    """Device computations whose name says that they are communication."""
    width = _KERNEL_PREFIXES.shape[1]
    begin = table.name_offsets[:-1].astype(np.int64)
    long_enough = table.name_offsets[1:] - table.name_offsets[:-1] >= width
    rows = (table.type == NodeType.COMP) & (table.is_cpu_op == 0) & long_enough
    beginnings = table.name_bytes[begin[rows, None] + np.arange(width)] | _LOWER_CASE
    matches = (beginnings[:, None, :] == _KERNEL_PREFIXES).all(axis=2).any(axis=1)
    return int(np.count_nonzero(matches))


def count_rank(graph: RankGraph, actions: RowActions, report: BindingReport) -> None:
    """Count what the graph and the actions of one rank show."""
    report.count("dangling_dependencies_dropped", graph.dangling)
    report.count("duplicate_node_ids", graph.duplicate_ids)
    report.count("duplicate_dependencies_dropped", graph.duplicate_dependencies)
    report.count("ranks_ordered_by_ctrl_deps", int(graph.uses_ctrl_deps))
    for name, amount in actions.counts.items():
        report.count(name, amount)


def warn(report: BindingReport) -> None:
    """Say every count in words."""
    report.warnings += [
        f"{phrase}: {report.counts[name]:,}"
        for name, phrase in PHRASES.items()
        if name in report.counts
    ]
