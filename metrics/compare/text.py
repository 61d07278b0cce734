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
            f"Completion times: error of {names[1]} against {names[0]}",
            rows.error_headings(names),
            rows.error_rows(comparison),
        ),
        _table("Totals", ["", *names, "difference"], rows.total_rows(comparison)),
    ]
    queues = rows.queue_rows(comparison)
    if queues:
        tables.append(_table("Deepest switch queues", rows.queue_headings(names), queues))
    if comparison.differing:
        title = f"Settings that differ ({len(comparison.differing)})"
        tables.append(_table(title, ["setting", *names], rows.difference_rows(comparison)))
    return tables


def _table(title: str, headings: Sequence[str], body: Sequence[Sequence[str]]) -> Table:
    """A plain table, the first column to the left."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number == 0 else "right", overflow="fold")
    for row in body:
        table.add_row(*row)
    return table
