"""Traces and workloads in short: what `rankwire trace` prints, as JSON values."""

from collections import Counter
from typing import Any

import numpy as np

from traffic_profiles.chakra import CollectiveType, NodeType, TraceTable
from traffic_profiles.workload import KINDS, Workload

__all__ = [
    "communication_counts",
    "instance_counts",
    "node_summary",
    "rank_summary",
    "workload_summary",
]

_SHOWN_ATTRIBUTES = (
    "is_cpu_op",
    "stream",
    "tid",
    "ts_us",
    "comm_size",
    "comm_src",
    "comm_dst",
    "comm_tag",
    "num_ops",
    "tensor_size",
)


def rank_summary(table: TraceTable) -> dict[str, Any]:
    """What one rank's trace holds, as JSON values."""
    types, counts = np.unique(table.type, return_counts=True)
    return {
        "file": str(table.path),
        "dialect": table.dialect,
        "nodes": len(table),
        "types": {
            _type_name(int(number)): int(count) for number, count in zip(types, counts, strict=True)
        },
        "communication": [
            {"kind": kind, "group": group, "comm_size": size, "count": count}
            for (kind, group, size), count in communication_counts(table).most_common()
        ],
        "groups": list(table.groups),
        "declares_groups": table.process_groups_json is not None,
        "has_timestamps": bool((table.ts_us >= 0).any()),
        "streams": np.unique(table.stream[table.is_cpu_op == 0]).tolist(),
        "metadata": {
            name: value[:200] if isinstance(value, str) else value
            for name, value in table.metadata.items()
        },
    }


def communication_counts(table: TraceTable) -> Counter[tuple[str, str | None, int]]:
    """How often each kind, group and size of communication occurs in a trace."""
    counts: Counter[tuple[str, str | None, int]] = Counter()
    for row in np.flatnonzero(
        (table.type >= NodeType.COMM_SEND) & (table.type <= NodeType.COMM_COLL)
    ):
        kind = _communication_kind(table, int(row))
        counts[kind, table.group_name(int(row)), int(table.comm_size[row])] += 1
    return counts


def _communication_kind(table: TraceTable, row: int) -> str:
    if table.type[row] != NodeType.COMM_COLL:
        return "send" if table.type[row] == NodeType.COMM_SEND else "receive"
    number = int(table.comm_type[row])
    if number < 0:
        return "wrapper" if table.is_cpu_op[row] == 1 else "untyped"
    return KINDS[number] if number <= max(CollectiveType) else f"comm_type {number}"


def _type_name(number: int) -> str:
    return NodeType(number).name if number <= max(NodeType) else f"type {number}"


def workload_summary(workload: Workload) -> dict[str, Any]:
    """The bound workload in short, as JSON values."""
    return {
        "traces": workload.source,
        "ranks": len(workload.ranks),
        "groups": {name: list(ranks) for name, ranks in workload.groups.items()},
        "communications": [
            {"kind": kind, "group": group, "ranks": ranks, "size_bytes": size, "count": count}
            for (kind, group, ranks, size), count in instance_counts(workload).most_common()
        ],
        "counts": workload.report.counts,
        "warnings": workload.report.warnings,
    }


def instance_counts(workload: Workload) -> Counter[tuple[str, str, int, int]]:
    """How often each kind, group, count of ranks and size occurs among the instances."""
    return Counter(
        (instance.kind, instance.group, len(instance.ranks), instance.size_bytes)
        for instance in workload.instances
    )


def node_summary(trace: TraceTable, row: int) -> dict[str, Any]:
    """One node, as JSON values; absent attributes are left out."""
    attributes = {name: int(getattr(trace, name)[row]) for name in _SHOWN_ATTRIBUTES}
    present: dict[str, Any] = {name: value for name, value in attributes.items() if value >= 0}
    if trace.comm_type[row] >= 0:
        present["comm_type"] = _communication_kind(trace, row)
    if trace.group[row] >= 0:
        present["group"] = trace.group_name(row)
    return {
        "row": row,
        "id": int(trace.id[row]),
        "type": _type_name(int(trace.type[row])),
        "name": trace.name(row),
        "duration_us": int(trace.duration_us[row]),
        "attributes": present,
        "data_deps": _dependencies(trace.data_dep_offsets, trace.data_deps, row),
        "ctrl_deps": _dependencies(trace.ctrl_dep_offsets, trace.ctrl_deps, row),
    }


def _dependencies(offsets: Any, ids: Any, row: int) -> list[int]:
    items: list[int] = ids[int(offsets[row]) : int(offsets[row + 1])].tolist()
    return items
