"""The table at the end of a run: one row per kind, algorithm, size and number of ranks."""

from dataclasses import asdict, dataclass
from typing import Any

import polars as pl
from rich.table import Table

from metrics.analysis.groups import collective_groups
from metrics.presentation import (
    bandwidth_text,
    count_text,
    duration_text,
    kind_text,
    share_text,
    size_text,
)

__all__ = ["SummaryRow", "summarise", "summary_table"]

_SHOWN_ROWS = 40


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """The completed instances of one kind, algorithm, size and number of ranks."""

    kind: str
    algorithm: str
    ranks: int
    size_bytes: int
    """As in nccl-tests, after scaling."""
    count: int
    incomplete: int
    p50_ns: float | None
    """Quantiles of the completion time; `None` when there are too few samples to name one."""
    p95_ns: float | None
    p99_ns: float | None
    p999_ns: float | None
    max_ns: float | None
    from_last_start_p50_ns: float | None
    """Median of last end less last start: without waiting for late ranks."""
    mean_ns: float | None
    algbw_GBps: float | None  # noqa: N815  nccl-tests spells it so
    """Of the median time, 10^9 bytes per second."""
    busbw_GBps: float | None  # noqa: N815
    """Of the median time, 10^9 bytes per second."""
    ideal_ns: float | None
    """Ideal completion time."""
    percent_of_ideal: float | None
    """100 x ideal time / median completion time."""

    def as_dict(self) -> dict[str, Any]:
        """The row as plain values."""
        return asdict(self)


def summarise(collectives: pl.DataFrame) -> list[SummaryRow]:
    """Rows for `collectives.parquet`, by kind and size."""
    rows = [_row(group) for group in collective_groups(collectives)]
    return sorted(rows, key=lambda row: (row.kind, row.size_bytes, row.ranks, row.algorithm))


def summary_table(rows: list[SummaryRow]) -> Table:
    """The rows for a terminal; the first ones only when there are very many."""
    table = Table(box=None, header_style="bold")
    for heading in ("collective", "algorithm"):
        table.add_column(heading)
    for heading in (
        "ranks", "size", "count", "p50", "p95", "p99", "p99.9", "max", "p50 from last start",
        "algbw GB/s", "busbw GB/s", "of ideal",
    ):  # fmt: skip
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows[:_SHOWN_ROWS]:
        table.add_row(*_cells(row))
    if len(rows) > _SHOWN_ROWS:
        table.caption = f"{len(rows) - _SHOWN_ROWS} more rows in the report"
    return table


def _row(group: dict[str, Any]) -> SummaryRow:
    ratio = group["ideal_ratio"]
    return SummaryRow(
        kind=group["kind"],
        algorithm=group["algorithm"] or "",
        ranks=group["ranks"],
        size_bytes=group["size_bytes"],
        count=group["count"],
        incomplete=group["incomplete"],
        p50_ns=group["p50"],
        p95_ns=group["p95"],
        p99_ns=group["p99"],
        p999_ns=group["p99.9"],
        max_ns=group["max"],
        from_last_start_p50_ns=group["from_last_start_ns"],
        mean_ns=group["mean"],
        algbw_GBps=group["algbw_GBps"],
        busbw_GBps=group["busbw_GBps"],
        ideal_ns=group["ideal_ns"],
        percent_of_ideal=None if ratio is None else 100 * ratio,
    )


def _cells(row: SummaryRow) -> list[str]:
    incomplete = f" (+{row.incomplete} incomplete)" if row.incomplete else ""
    quantiles = (row.p50_ns, row.p95_ns, row.p99_ns, row.p999_ns, row.max_ns)
    times = (*quantiles, row.from_last_start_p50_ns)
    ratio = None if row.percent_of_ideal is None else row.percent_of_ideal / 100
    return [
        kind_text(row.kind),
        row.algorithm,
        str(row.ranks),
        size_text(row.size_bytes),
        f"{count_text(row.count)}{incomplete}",
        *(duration_text(time) for time in times),
        bandwidth_text(row.algbw_GBps),
        bandwidth_text(row.busbw_GBps),
        share_text(ratio),
    ]
