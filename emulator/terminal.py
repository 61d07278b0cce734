"""How results are printed: tables whole, never cut to fit a narrow terminal or a pipe."""

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

__all__ = ["print_lines", "print_table"]

_WIDEST = 400


def print_table(table: Table) -> None:
    """Print a table to stdout with every cell on one line; a narrow terminal wraps the lines."""
    console = Console()
    for column in table.columns:
        column.no_wrap = True
    options = console.options.update(max_width=_WIDEST)
    needed = Measurement.get(console, options, table).maximum
    Console(width=max(console.width, min(needed, _WIDEST))).print(table)


def print_lines(*lines: str) -> None:
    """Print lines to stdout as they are."""
    for line in lines:
        print(line)
