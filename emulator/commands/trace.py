"""`rankwire trace`: what is in a set of traces, whether it can be run, and its nodes."""

import argparse
import fnmatch
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dataplane.errors import InputError, Problem
from emulator.commands.options import add_binding_options, binding_options
from traffic_profiles.binding import bind
from traffic_profiles.chakra import CollectiveType, NodeType, TraceTable, read_traces
from traffic_profiles.workload import KINDS, Workload

__all__ = ["execute", "register"]

_EPILOG = """\
examples:
  rankwire trace info traces/
  rankwire trace validate traces/ --group-file comm_group.json
  rankwire trace show traces/ --rank 0 --type COMM_COLL"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "trace",
        help="inspect and validate Chakra execution traces",
        description="What is in a set of Chakra execution traces, and whether it can be run.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    info = _with_traces(actions.add_parser("info", help="what every rank's trace holds"))
    info.add_argument("--json", action="store_true", help="print one JSON object")
    validate = _with_traces(
        actions.add_parser("validate", help="check that the job can run; exit status 2 if not")
    )
    validate.add_argument("--json", action="store_true", help="print one JSON object")
    add_binding_options(validate)
    show = _with_traces(actions.add_parser("show", help="nodes of one rank"))
    _add_show_arguments(show)
    parser.set_defaults(execute=execute)


def _with_traces(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument(
        "traces",
        type=Path,
        metavar="DIR",
        help="directory with one file per rank, NAME.RANK.et, or DIR/NAME where it has several",
    )
    return parser


def _add_show_arguments(parser: argparse.ArgumentParser) -> None:
    types = [node_type.name for node_type in NodeType]
    parser.add_argument("--rank", type=int, default=0, metavar="N", help="rank (default 0)")
    parser.add_argument("--type", choices=types, help="only nodes of this type")
    parser.add_argument(
        "--name", metavar="PATTERN", help="only names that match, for example '*nccl*'"
    )
    parser.add_argument("--id", type=int, action="append", metavar="ID", help="only this node id")
    parser.add_argument(
        "--limit", type=int, default=50, metavar="N", help="nodes to show, 0 for all (default 50)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def execute(options: argparse.Namespace) -> int:
    """Run the chosen action."""
    {"info": _info, "validate": _validate, "show": _show}[options.action](options)
    return 0


def _info(options: argparse.Namespace) -> None:
    tables = read_traces(options.traces)
    if options.json:
        ranks = {rank: rank_summary(table) for rank, table in tables.items()}
        print(json.dumps({"traces": str(options.traces), "ranks": ranks}))
        return
    console = Console()
    table = Table("rank", "file", "dialect", "nodes", "types", "groups", box=None)
    for rank, trace in tables.items():
        summary = rank_summary(trace)
        types = ", ".join(f"{name} {count}" for name, count in summary["types"].items())
        groups = ", ".join(trace.groups) or "-"
        file = escape(trace.path.name)
        table.add_row(str(rank), file, trace.dialect, str(len(trace)), types, escape(groups))
    console.print(table)
    console.print()
    console.print(_communication_table(tables))


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


def _communication_table(tables: Mapping[int, TraceTable]) -> Table:
    """Kinds, groups and sizes over all ranks."""
    total: Counter[tuple[str, str | None, int]] = Counter()
    ranks: Counter[tuple[str, str | None, int]] = Counter()
    for trace in tables.values():
        counts = communication_counts(trace)
        total += counts
        ranks.update(counts.keys())
    table = Table("communication", "group", "comm_size (bytes)", "nodes", "ranks", box=None)
    for key, count in total.most_common():
        kind, group, size = key
        size_text = f"{size:,}" if size >= 0 else "-"
        table.add_row(kind, escape(group or "-"), size_text, str(count), str(ranks[key]))
    return table


def _validate(options: argparse.Namespace) -> None:
    tables = read_traces(options.traces)
    workload = bind(tables, source=options.traces, options=binding_options(options))
    if options.json:
        print(json.dumps(workload_summary(workload)))
        return
    console = Console(highlight=False)
    console.print(_instances_table(workload))
    console.print()
    for warning in workload.report.warnings:
        console.print(f"  {warning}", markup=False)
    nodes = sum(len(table) for table in tables.values())
    console.print(
        f"{options.traces}: {len(tables)} ranks, {nodes} nodes, {len(workload.instances)} "
        "communications between ranks; the job can run",
        markup=False,
        soft_wrap=True,
    )


def workload_summary(workload: Workload) -> dict[str, Any]:
    """The bound workload in short, as JSON values."""
    return {
        "traces": str(workload.source),
        "ranks": len(workload.ranks),
        "groups": {name: list(ranks) for name, ranks in workload.groups.items()},
        "communications": [
            {"kind": kind, "group": group, "ranks": ranks, "size_bytes": size, "count": count}
            for (kind, group, ranks, size), count in _instance_counts(workload).most_common()
        ],
        "counts": workload.report.counts,
        "warnings": workload.report.warnings,
    }


def _instance_counts(workload: Workload) -> Counter[tuple[str, str, int, int]]:
    return Counter(
        (instance.kind, instance.group, len(instance.ranks), instance.size_bytes)
        for instance in workload.instances
    )


def _instances_table(workload: Workload) -> Table:
    table = Table("communication", "group", "ranks", "size (bytes)", "count", box=None)
    for (kind, group, ranks, size), count in _instance_counts(workload).most_common():
        table.add_row(kind, escape(group or "-"), str(ranks), f"{size:,}", str(count))
    return table


def _show(options: argparse.Namespace) -> None:
    tables = read_traces(options.traces)
    if options.rank not in tables:
        what = f"there is no rank {options.rank}"
        raise InputError(Problem("--rank", what, f"name one of 0..{len(tables) - 1}"))
    trace = tables[options.rank]
    rows = list(_chosen_rows(trace, options))
    shown = rows[: options.limit] if options.limit > 0 else rows
    nodes = [node_summary(trace, row) for row in shown]
    if options.json:
        print(json.dumps({"rank": options.rank, "matching": len(rows), "nodes": nodes}))
        return
    table = Table("row", "id", "type", "name", "us", "attributes", "data_deps", box=None)
    for node in nodes:
        table.add_row(*_cells(node))
    console = Console()
    console.print(table)
    if len(shown) < len(rows):
        console.print(f"{len(shown)} of {len(rows)} nodes; --limit 0 shows all")


def _chosen_rows(trace: TraceTable, options: argparse.Namespace) -> Iterator[int]:
    chosen = np.ones(len(trace), np.bool_)
    if options.type:
        chosen &= trace.type == NodeType[options.type]
    if options.id:
        chosen &= np.isin(trace.id, np.array(options.id, np.uint64))
    for row in np.flatnonzero(chosen).tolist():
        if options.name is None or fnmatch.fnmatchcase(trace.name(row), options.name):
            yield row


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


_CELL_CHARACTERS = 60


def _cells(node: dict[str, Any]) -> Iterator[str]:
    attributes = " ".join(f"{name}={value}" for name, value in node["attributes"].items())
    dependencies = " ".join(map(str, node["data_deps"]))
    for text in (
        str(node["row"]),
        str(node["id"]),
        node["type"],
        node["name"],
        str(node["duration_us"]),
        attributes,
        dependencies,
    ):
        short = len(text) <= _CELL_CHARACTERS or text is attributes
        yield escape(text if short else text[: _CELL_CHARACTERS - 3] + "...")
