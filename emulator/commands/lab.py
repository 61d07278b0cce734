"""`rankwire lab`: the labs that come with rankwire, and what a lab file resolves to."""

import argparse
import json
import sys
from typing import Any

import yaml
from rich.table import Table

from emulator.commands import lab_drawing, lab_exchange, lab_namespaces, lab_paths
from emulator.commands.arguments import add_lab_arguments
from emulator.job_config import job_config
from emulator.lab import Lab, LoadedLab, list_labs, load
from emulator.lab.fat_tree import shape_text
from emulator.lab.mlx5_names import mlx5_name
from emulator.lab.overrides import all_paths
from emulator.lab.sources import sourced_tables
from emulator.lab.topology import FatTree
from emulator.terminal import print_lines, print_table

__all__ = ["execute", "register"]

_EPILOG = f"""\
examples:
  rankwire lab list
  rankwire lab show loopback-clos --set dcqcn.preset=paper
  rankwire lab show clos-64 --svg clos-64.svg
  rankwire lab check my-lab.yaml
  rankwire lab paths loopback-clos 0 5      every equal-cost path from rank 0 to rank 5
{lab_namespaces.EXAMPLES}
  rankwire lab import fabric.clab.yml --binding binding.yaml --out my-lab.yaml
  rankwire lab export my-lab.yaml --format infragraph --out fabric.yaml --binding binding.yaml
  rankwire lab schema > lab.schema.json     for completion in an editor
  rankwire lab keys                         every path that --set takes"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "lab",
        help="list, show, check, build and remove labs",
        description="The labs that come with rankwire, and what a lab file resolves to.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the labs that come with rankwire")
    listing.add_argument("--json", action="store_true", help="print one JSON object")
    show = actions.add_parser("show", help="effective settings with their sources, and the fabric")
    add_lab_arguments(show)
    show.add_argument("--json", action="store_true", help="print one JSON object")
    lab_drawing.add_options(show)
    lab_paths.register(actions)
    check = actions.add_parser("check", help="validate a lab file; exit status 2 if it is wrong")
    add_lab_arguments(check)
    lab_exchange.register(actions)
    actions.add_parser("schema", help="the JSON schema of lab files")
    actions.add_parser("keys", help="every path that --set takes")
    lab_namespaces.add_actions(actions)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Run the chosen action."""
    action = {
        "list": _list,
        "show": _show,
        "paths": lab_paths.show_paths,
        "check": _check,
        "import": lab_exchange.import_file,
        "export": lab_exchange.export_file,
        "schema": _schema,
        "keys": _keys,
        **lab_namespaces.ACTIONS,
    }[options.action]
    action(options)
    return 0


def _list(options: argparse.Namespace) -> None:
    labs = {name: load(path) for name, path in list_labs().items()}
    if options.json:
        print(json.dumps({name: str(item.path) for name, item in labs.items()}))
        return
    table = Table("lab", "hosts", "switches", "description", box=None)
    for name, item in labs.items():
        counts = str(len(item.fabric.nics)), str(len(item.fabric.switches))
        table.add_row(name, *counts, item.lab.description)
    print_table(table)


def _check(options: argparse.Namespace) -> None:
    loaded = load(options.lab, options.set)
    print(f"{loaded.path}: {_counts(loaded)}; nothing wrong")


def _schema(_options: argparse.Namespace) -> None:
    json.dump(Lab.model_json_schema(), sys.stdout, indent=2)
    print()


def _keys(_options: argparse.Namespace) -> None:
    print("\n".join(all_paths(Lab)))


def _show(options: argparse.Namespace) -> None:
    loaded = load(options.lab, options.set)
    if options.svg is not None:
        lab_drawing.draw(loaded, options)
        return
    if options.json:
        print(json.dumps(resolved(loaded)))
        return
    lab = loaded.lab
    print_lines(f"{lab.name}  {loaded.path}", lab.description, _counts(loaded))
    if isinstance(lab.topology, FatTree):
        print_lines(shape_text(lab.topology))
    for title, values in sourced_tables(loaded).items():
        names = {key: mlx5_name(key) for key in values}
        columns = ["mlx5 name"] if any(names.values()) else []
        table = Table(title, *columns, "value", "source", box=None)
        for key, item in values.items():
            table.add_row(key, *(names[key] for _ in columns), str(item.value), item.source)
        print_table(table)
    rest = lab.model_dump(mode="json", exclude={"congestion_control", "notification_point"})
    print_lines(yaml.safe_dump(rest, sort_keys=False), *lab_drawing.hints(loaded, options.lab))


def resolved(loaded: LoadedLab) -> dict[str, Any]:
    """The lab, its resolved values with sources, and the engine's document, as JSON values."""
    return {
        "file": str(loaded.path),
        "lab": loaded.lab.model_dump(mode="json"),
        "resolved": {
            title: {key: [item.value, item.source] for key, item in values.items()}
            for title, values in sourced_tables(loaded).items()
        },
        "config": job_config(loaded.lab, loaded.fabric, seed=1),
    }


def _counts(loaded: LoadedLab) -> str:
    fabric = loaded.fabric
    return f"{len(fabric.nics)} NICs, {len(fabric.switches)} switches, {len(fabric.links)} links"
