"""The table of who paused whom."""

from collections.abc import Sequence

from metrics.analysis.pause_trees import PauseTree
from metrics.presentation import count_text, duration_text, share_text, size_text
from metrics.report.charts.pauses import indented, root_text
from metrics.report.markup import Cell, Column, Raw, table

__all__ = ["pause_tree_table"]

ROW_LIMIT = 200


def pause_tree_table(trees: Sequence[PauseTree], end_ns: int, left_out: int) -> tuple[Raw, str]:
    """Trees as indented rows, those with most paused time first; and a note."""
    columns = [
        Column("From a congested port to who was paused", numeric=False),
        Column("Pauses"),
        Column("First"),
        Column("Last end"),
        Column("Paused", hint="All pauses of this place together"),
        Column("Share", hint="Of the emulated time"),
        Column("Most held", hint="Of the ingress, headroom included; of a congested port: depth "
               "of its queue when it made an ingress pause"),
    ]  # fmt: skip
    rows = []
    for tree in trees:
        blank = Cell("", -1.0)
        depth = Cell(size_text(tree.max_depth_bytes), tree.max_depth_bytes)
        rows.append([Cell(root_text(tree)), *[blank] * 5, depth])
        for level, node in tree.walk():
            first, last = node.spans[0][0], node.spans[-1][1]
            rows.append(
                [
                    Cell(indented(level, node)),
                    Cell(count_text(len(node.spans)), len(node.spans)),
                    Cell(duration_text(first), first),
                    Cell(duration_text(last), last),
                    Cell(duration_text(node.paused_ns), node.paused_ns),
                    Cell(share_text(node.paused_ns / max(end_ns, 1)), node.paused_ns),
                    Cell(size_text(node.max_held_bytes), node.max_held_bytes),
                ]
            )
    note = (
        f"{count_text(min(len(rows), ROW_LIMIT))} of {count_text(len(rows))} rows of "
        f"{count_text(len(trees))} congested ports. A pause follows from another if the queue that "
        "filled was paused itself for half of the time that its oldest frame had waited, or for "
        "less and took in no more than its line carries. Single pauses are in pauses.parquet."
    )
    if left_out:
        note += f" {count_text(left_out)} later pauses were not kept (telemetry.max_pauses)."
    return table(columns, rows[:ROW_LIMIT]), note
