"""A trace of any form as v0.0.4 nodes: what its columns hold, and nothing else."""

from collections.abc import Iterator
from pathlib import Path

from traffic_profiles.chakra.node_types import NodeType
from traffic_profiles.chakra.table import TraceTable
from traffic_profiles.chakra.writer import (
    PROCESS_GROUP_NODE,
    AttributeValue,
    TraceNode,
    write_trace,
)

__all__ = ["convert_trace", "trace_nodes"]

_NUMBERS = {
    "stream": "stream",
    "tid": "tid",
    "ts_us": "ts",
    "comm_type": "comm_type",
    "comm_size": "comm_size",
    "comm_src": "comm_src",
    "comm_dst": "comm_dst",
    "comm_tag": "comm_tag",
    "num_ops": "num_ops",
    "tensor_size": "tensor_size",
}
"""Column -> attribute."""


def convert_trace(table: TraceTable, path: Path) -> None:
    """Write a trace as v0.0.4, gzip when the name ends in `.gz`.

    Reading it again gives equal columns; attributes that become no column are left out.
    """
    metadata = {
        name: value
        for name, value in table.metadata.items()
        if name != "version" and isinstance(value, int | float | str)
    }
    write_trace(path, trace_nodes(table), metadata=metadata)


def trace_nodes(table: TraceTable) -> Iterator[TraceNode]:
    """Nodes of a trace in the order of its rows."""
    numbers = {name: getattr(table, column).tolist() for column, name in _NUMBERS.items()}
    data_deps, ctrl_deps = table.data_deps.tolist(), table.ctrl_deps.tolist()
    data_offsets = table.data_dep_offsets.tolist()
    ctrl_offsets = table.ctrl_dep_offsets.tolist()
    partial = set(table.rows_in_some_dimensions.tolist())
    declaration = _declaration_row(table)
    for row in range(len(table)):
        attributes: dict[str, AttributeValue] = {
            name: values[row] for name, values in numbers.items() if values[row] != -1
        }
        if table.is_cpu_op[row] >= 0:
            attributes["is_cpu_op"] = bool(table.is_cpu_op[row])
        group = table.group_name(row)
        if group is not None:
            attributes["pg_name"] = group
        if row in partial:
            attributes["involved_dim"] = [True, False]
        yield TraceNode(
            id=int(table.id[row]),
            name=table.name(row),
            type=int(table.type[row]),
            duration_us=int(table.duration_us[row]),
            start_us=int(table.start_us[row]),
            data_deps=data_deps[data_offsets[row] : data_offsets[row + 1]],
            ctrl_deps=ctrl_deps[ctrl_offsets[row] : ctrl_offsets[row + 1]],
            attributes=attributes,
            input_values=table.process_groups_json or "" if row == declaration else "",
        )


def _declaration_row(table: TraceTable) -> int | None:
    """Row of the node that lists the process groups."""
    if table.process_groups_json is None:
        return None
    stem = PROCESS_GROUP_NODE.strip("# ")
    rows = (row for row in range(len(table)) if stem in table.name(row))
    return next((row for row in rows if table.type[row] <= NodeType.COMP), None)
