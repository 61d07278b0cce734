"""`rankwire report`: write the HTML report of a run again."""

import argparse
from pathlib import Path

from emulator.run_directory import writing
from metrics.report import write_report

__all__ = ["execute", "register"]


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "report",
        help="write the HTML report of a run again",
        description="Write report.html into a run directory from its tables, and print its path. "
        "The file needs no network and nothing beside it.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="directory of a run or prediction")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Write the report; its path goes to stdout."""
    with writing(options.run):
        path = write_report(options.run)
    print(path)
    return 0
