"""A comparison as tables for a terminal."""

from collections.abc import Sequence

from rich.table import Table

from metrics.compare import rows
from metrics.compare.comparison import Comparison

__all__ = ["comparison_tables"]


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Agreement, completion-time errors, totals, queues, and settings that differ."""
    names = comparison.names
    tables = [
        _table("Agreement", ["check", "compared", "result"], rows.check_rows(comparison)),
        _table(
            "Completion times",
            _narrow(rows.error_headings(names)),
            [_narrow(row) for row in rows.error_rows(comparison)],
        ),
        _table("Totals", ["total", *names, "difference"], rows.total_rows(comparison)),
    ]
    queues = rows.queue_rows(comparison)
    if queues:
        tables.append(_table("Deepest switch queues", rows.queue_headings(comparison), queues))
    if comparison.ecmp:
        headings = rows.ecmp_headings(names)
        tables.append(_table("Equal-cost ports", headings, rows.ecmp_rows(comparison)))
    if comparison.differing:
        title = f"Settings that differ ({len(comparison.differing)})"
        tables.append(_table(title, ["setting", *names], rows.difference_rows(comparison)))
    return tables


def _narrow(row: Sequence[str]) -> list[str]:
    """A row of errors without the columns that a terminal has no room for."""
    return [text for number, text in enumerate(row) if number not in {6, 8, 10}]


def _table(title: str, headings: Sequence[str], body: Sequence[Sequence[str]]) -> Table:
    """A plain table, the first column to the left."""
    # The title is the first heading: a title of its own would be wrapped to the table's width.
    headings = [title, *headings[1:]]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number == 0 else "right", no_wrap=number > 0)
    for row in body:
        table.add_row(*row)
    return table
