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
from emulator.commands.arguments import natural, positive_int
from emulator.commands.options import add_binding_options, binding_options
from emulator.trace_summary import (
    communication_counts,
    instance_counts,
    node_summary,
    rank_summary,
    workload_summary,
)
from traffic_profiles.binding import bind
from traffic_profiles.chakra import (
    NodeType,
    TraceTable,
    convert_trace,
    rank_of,
    read_trace,
    read_traces,
)
from traffic_profiles.profiles import PROFILES, generate
from traffic_profiles.workload import Workload

__all__ = ["execute", "register"]

_EPILOG = """\
examples:
  rankwire trace info traces/
  rankwire trace validate traces/ --group-file comm_group.json
  rankwire trace show traces/ --rank 0 --type COMM_COLL
  rankwire trace convert old-traces/ traces/
  rankwire trace profiles
  rankwire trace generate moe-training traces/ --ranks 16 --parameter layers=2"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "trace",
        help="inspect, validate and generate Chakra execution traces",
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
    convert = _with_traces(actions.add_parser("convert", help="write traces as Chakra v0.0.4"))
    convert.add_argument("directory", type=Path, metavar="OUT", help="where to write the traces")
    convert.add_argument("--gzip", action="store_true", help="compress the files")
    profiles = actions.add_parser("profiles", help="the built-in jobs and their parameters")
    profiles.add_argument("--json", action="store_true", help="print one JSON object")
    _add_generate_arguments(actions.add_parser("generate", help="write a built-in job's traces"))
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
    parser.add_argument("--rank", type=int, metavar="N", help="rank (default: the first)")
    parser.add_argument("--type", choices=types, help="only nodes of this type")
    parser.add_argument(
        "--name", metavar="PATTERN", help="only names that match, for example '*nccl*'"
    )
    parser.add_argument("--id", type=int, action="append", metavar="ID", help="only this node id")
    parser.add_argument(
        "--limit", type=int, default=50, metavar="N", help="nodes to show, 0 for all (default 50)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_generate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="NAME", help="a built-in job: rankwire trace profiles")
    parser.add_argument("directory", type=Path, metavar="DIR", help="where to write the traces")
    parser.add_argument("--ranks", type=positive_int, default=8, metavar="N", help="default 8")
    parser.add_argument(
        "--seed", type=natural, default=1, metavar="N", help="seed of every random choice"
    )
    parser.add_argument(
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="change one parameter of the job; may be repeated",
    )


def execute(options: argparse.Namespace) -> int:
    """Run the chosen action."""
    action = {
        "info": _info,
        "validate": _validate,
        "show": _show,
        "convert": _convert,
        "profiles": _profiles,
        "generate": _generate,
    }[options.action]
    action(options)
    return 0


def _convert(options: argparse.Namespace) -> None:
    tables = read_traces(options.traces)
    suffix = ".et.gz" if options.gzip else ".et"
    files = {rank: options.directory / f"trace.{rank}{suffix}" for rank in tables}
    taken = [str(file) for file in files.values() if file.exists()]
    if taken:
        problem = Problem(taken[0], "the file exists", "name an empty directory")
        raise InputError(problem)
    options.directory.mkdir(parents=True, exist_ok=True)
    for rank, trace in tables.items():
        convert_trace(trace, files[rank])
    print(f"{len(files)} traces in {options.directory}")


def _profiles(options: argparse.Namespace) -> None:
    if options.json:
        print(
            json.dumps(
                {
                    name: {
                        "description": profile.description,
                        "parameters": {one.name: one.default for one in profile.parameters},
                    }
                    for name, profile in PROFILES.items()
                }
            )
        )
        return
    console = Console()
    for name, profile in PROFILES.items():
        console.print(f"[bold]{name}[/bold]  {escape(profile.description)}", highlight=False)
        table = Table(box=None, show_header=False, padding=(0, 0, 0, 2))
        for one in profile.parameters:
            table.add_row(one.name, f"{one.default:,}", escape(one.doc))
        console.print(table)


def _generate(options: argparse.Namespace) -> None:
    parameters: dict[str, object] = {}
    for item in options.parameter:
        name, equals, value = item.partition("=")
        if name in ("name", "directory", "ranks", "seed"):
            what = f"'{name}' is no parameter of a job"
            raise InputError(Problem("--parameter", what, "there are --ranks and --seed"))
        if not equals:
            raise InputError(Problem("--parameter", f"'{item}' has no '='", "write NAME=VALUE"))
        parameters[name] = value
    written = generate(
        options.profile,
        options.directory,
        ranks=options.ranks,
        seed=options.seed,
        **parameters,
    )
    print(f"{len(written.files)} traces of {written.name} in {written.directory}")


def _inspected(path: Path) -> dict[int, TraceTable]:
    """Traces to look at: those of a job, or one file by itself, whatever its name."""
    if not path.is_file():
        return read_traces(path)
    rank = rank_of(path) or 0
    return {rank: read_trace(path, rank)}


def _info(options: argparse.Namespace) -> None:
    tables = _inspected(options.traces)
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


def _instances_table(workload: Workload) -> Table:
    table = Table("communication", "group", "ranks", "size (bytes)", "count", box=None)
    for (kind, group, ranks, size), count in instance_counts(workload).most_common():
        table.add_row(kind, escape(group or "-"), str(ranks), f"{size:,}", str(count))
    return table


def _show(options: argparse.Namespace) -> None:
    tables = _inspected(options.traces)
    rank = next(iter(tables)) if options.rank is None else options.rank
    if rank not in tables:
        remedy = f"name one of {', '.join(map(str, tables))}"
        raise InputError(Problem("--rank", f"there is no rank {rank}", remedy))
    trace = tables[rank]
    rows = list(_chosen_rows(trace, options))
    shown = rows[: options.limit] if options.limit > 0 else rows
    nodes = [node_summary(trace, row) for row in shown]
    if options.json:
        print(json.dumps({"rank": rank, "matching": len(rows), "nodes": nodes}))
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
