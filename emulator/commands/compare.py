"""`rankwire compare`: two runs of a job side by side, also a run against its prediction."""

import argparse
import json
from pathlib import Path

from dataplane.errors import InputError, Problem
from emulator.terminal import print_table
from metrics.compare import Comparison, compare, comparison_tables, write_comparison

__all__ = ["execute", "register"]

_EPILOG = """\
examples:
  rankwire compare runs/demo runs/demo-predicted
  rankwire compare runs/a runs/b --json | jq .completion_time_errors

exit status: 0 counts, bytes and order agree; 1 they don't; 2 a directory can't be read"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "compare",
        help="compare two runs, or a run with its prediction",
        description="Check that two runs did the same (counts, bytes, order), and say how far "
        "their completion times, queues and marks are apart. The first run is the reference.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("first", metavar="RUN", type=Path, help="directory of the reference")
    parser.add_argument("second", metavar="RUN", type=Path, help="directory of the other run")
    parser.add_argument(
        "--html",
        metavar="FILE",
        type=Path,
        help="where the page goes (default compare.html in the second directory)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Compare, tell, and fail when counts, bytes or order differ."""
    comparison = compare(options.first, options.second)
    page = _written(comparison, options.html or options.second / "compare.html")
    if options.json:
        print(json.dumps({**comparison.as_dict(), "page": str(page)}))
    else:
        _tell(comparison, page)
    return 0 if comparison.agrees else 1


def _written(comparison: Comparison, path: Path) -> Path:
    try:
        return write_comparison(comparison, path)
    except OSError as error:
        what = f"can't be written: {error.strerror or error}"
        raise InputError(Problem(str(path), what, "give a writable file with --html")) from error


def _tell(comparison: Comparison, page: Path) -> None:
    for table in comparison_tables(comparison):
        print_table(table)
        print()
    for check in comparison.checks:
        for example in check.examples[:2]:
            print(f"{check.name}: {example}")
    for text in comparison.explanations:
        print(text)
    print(f"page: {page}")
