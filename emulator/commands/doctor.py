"""`rankwire doctor`: what is wrong with a lab, before a run."""

import argparse
import json
from dataclasses import asdict

from rich.table import Table

from emulator.commands.arguments import add_lab_arguments
from emulator.doctor import Diagnosis, Level, diagnose
from emulator.lab import load
from emulator.terminal import print_table

__all__ = ["execute", "register"]

_EPILOG = """\
examples:
  rankwire doctor loopback-clos
  rankwire doctor my-lab.yaml --set ecn.kmin_bytes=4000000

exit status: 0 nothing is wrong (but see the warnings), 1 something is, 2 it can't be loaded"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "doctor",
        help="what is wrong with a lab, before a run",
        description="Check a lab against the rules of the field: marks before pauses, classes, "
        "headroom, minimum rates, and what this machine can carry.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_lab_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Diagnose, tell, and fail when something is wrong."""
    findings = diagnose(load(options.lab, options.set))
    if options.json:
        rows = [asdict(item) | {"level": item.level.name.lower()} for item in findings]
        print(json.dumps({"findings": rows}))
    else:
        _tell(findings)
    return int(any(item.level is Level.WRONG for item in findings))


_STYLES = {Level.WRONG: "bold red", Level.WARNING: "yellow", Level.GOOD: "green"}


def _tell(findings: list[Diagnosis]) -> None:
    table = Table("", "rule", "finding", "remedy", box=None)
    for item in findings:
        mark = f"[{_STYLES[item.level]}]{item.level.name.lower()}"
        table.add_row(mark, item.rule, item.finding, item.remedy)
    print_table(table)
