"""What must be equal between two runs of one job: counts, bytes and order. Times don't matter.

Order is that of starts on each rank. It is compared where a program decides it: among the
collectives of one group on one rank, and among the messages of one group from one rank to
another. What concurrent groups do to each other is a matter of time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from metrics.records import RunRecords

__all__ = ["Check", "agreement"]

EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must be equal."""

    name: str
    compared: int
    """How many were compared."""
    differing: int
    examples: Sequence[str] = ()
    """The first that differ."""

    @property
    def holds(self) -> bool:
        """All that were compared are equal."""
        return self.differing == 0


def agreement(first: RunRecords, second: RunRecords) -> list[Check]:
    """All checks, the cheapest first."""
    collectives = (first.collectives, second.collectives)
    flows = (_with_group(first), _with_group(second))
    spans = (_collective_spans(first), _collective_spans(second))
    column = pl.col
    number = ("instance", "iteration", "kind", "group", "size_bytes")
    kinds = ("kind", "algorithm", "ranks", "size_bytes")
    path = ("group", "source_rank", "destination_rank")
    return [
        _compared("collectives by kind and size", collectives, kinds,
                  [pl.len(), column("complete").sum()]),
        _compared("bytes of every collective", collectives, number,
                  [column("bytes_sent", "bytes_received").sum(), column("complete").all()]),
        _compared("messages and bytes from rank to rank", flows, path,
                  [pl.len(), column("size_bytes").sum(), column("arrival_ns").count()]),
        _compared("order of collectives per rank and group", spans, ("rank", "group"),
                  [column("instance").sort_by("start_ns", "instance")]),
        _compared("order of messages from rank to rank per group", flows, path,
                  [column("place", "size_bytes").sort_by("start_ns", "place")]),
    ]  # fmt: skip


def _with_group(records: RunRecords) -> pl.DataFrame:
    """Messages with the name of their group and their place among the run's messages."""
    groups = records.collectives.select("instance", "group")
    return records.flows.with_row_index("place").join(groups, on="instance", how="left")


def _collective_spans(records: RunRecords) -> pl.DataFrame:
    """Start of every collective on every rank."""
    spans = records.timeline.filter(pl.col("instance").is_not_null())
    groups = records.collectives.select("instance", "group")
    return spans.select("rank", "instance", "start_ns").join(groups, on="instance", how="left")


def _compared(
    name: str,
    tables: tuple[pl.DataFrame, pl.DataFrame],
    keys: Sequence[str],
    figures: Sequence[pl.Expr],
) -> Check:
    """Group both tables by `keys`, and compare the figures of every key of either."""
    left, right = (table.group_by(keys).agg(figures) for table in tables)
    names = [column for column in left.columns if column not in keys]
    both = left.join(right, on=keys, how="full", coalesce=True, nulls_equal=True, suffix=" second")
    same = [pl.col(column).eq_missing(pl.col(f"{column} second")) for column in names]
    wrong = both.filter(~pl.all_horizontal(same)).sort(keys)
    examples = [_example(row, keys, names) for row in wrong.head(EXAMPLES).iter_rows(named=True)]
    return Check(name, len(both), len(wrong), examples)


def _example(row: dict[str, object], keys: Sequence[str], names: Sequence[str]) -> str:
    """One difference in words."""
    place = ", ".join(f"{key} {row[key]}" for key in keys)
    sides = (
        f"{name} {_short(row[name], row[other])} / {_short(row[other], row[name])}"
        for name in names
        if row[name] != row[(other := f"{name} second")]
    )
    return f"{place}: {'; '.join(sides)}"


def _short(mine: object, other: object) -> str:
    """A value; of a sequence the part from the first difference on."""
    if not isinstance(mine, list):
        return "none" if mine is None else str(mine)
    theirs = other if isinstance(other, list) else []
    common = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
    start = min(len(mine), len(theirs)) if common is None else common
    return f"[{start}:] {mine[start : start + 3]}"
