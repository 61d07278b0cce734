"""What binding found, counted and said in words."""

import numpy as np

from traffic_profiles.actions import RowActions
from traffic_profiles.chakra.node_types import NodeType
from traffic_profiles.chakra.table import TraceTable
from traffic_profiles.graph import RankGraph
from traffic_profiles.workload import BindingReport

__all__ = ["SENTENCES", "count_rank", "count_table", "warn"]

SENTENCES: dict[str, str] = {
    "ranks_without_nodes": "ranks have a trace without any node ({count})",
    "dangling_dependencies_dropped": (
        "dependencies on nodes that are not in the file were dropped ({count})"
    ),
    "duplicate_node_ids": (
        "nodes have the id of an earlier node ({count}); dependencies mean the earlier one"
    ),
    "duplicate_dependencies_dropped": "repeated dependencies were dropped ({count})",
    "ranks_ordered_by_ctrl_deps": (
        "ranks have no data_deps and are ordered by their ctrl_deps ({count})"
    ),
    "stream_order_edges_added": (
        "kernels of one stream run one after the other: dependencies were added ({count})"
    ),
    "communicator_order_edges_added": (
        "collectives of one group run one after the other: dependencies were added ({count})"
    ),
    "zero_size_collectives": "collectives have no bytes and are done at once ({count})",
    "single_rank_collectives": (
        "collectives are in groups of one rank and are done at once ({count})"
    ),
    "collectives_without_group": "collectives name no group and run over all ranks ({count})",
    "cpu_communication_as_delay": (
        "CPU-side communication wrappers were taken as delays, not as traffic ({count})"
    ),
    "untyped_communication_kernels": (
        "communication kernels have no type or size and were taken as delays ({count})"
    ),
    "compute_by_roofline": (
        "nodes have their duration from --peak-flops and --memory-bandwidth ({count})"
    ),
    "compute_without_duration": (
        "compute nodes have no duration and take no time ({count}); "
        "--peak-flops and --memory-bandwidth give them one"
    ),
    "nodes_of_unknown_type": "nodes have an unknown type and were taken as delays ({count})",
    "sizes_one_above_a_multiple_of_32": (
        "communication sizes are one byte above a multiple of 32, as converters before 2024-04-26 "
        "write them, and were used as they are ({count})"
    ),
    "idle_kept_ns": "idle CPU time was kept ({count} ns over all ranks)",
    "idle_dropped_ns": "idle CPU time was dropped ({count} ns over all ranks)",
    "ranks_with_unknown_idle_time": (
        "ranks have no time stamps, so that their idle time is unknown ({count})"
    ),
    "jobs_without_communication": "the job has no communication between ranks",
}
"""What each count of a `BindingReport` means, with `{count}` in its place."""

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
        sentence.format(count=f"{report.counts[name]:,}")
        for name, sentence in SENTENCES.items()
        if name in report.counts
    ]
