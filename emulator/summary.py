"""The table at the end of a run: one row per kind, size, group size and algorithm."""

from dataclasses import asdict, dataclass
from typing import Any

import polars as pl
from rich.table import Table

from metrics.analysis.quantiles import distribution

__all__ = ["SummaryRow", "summarise", "summary_table"]

_SHOWN_ROWS = 40


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """The completed instances of one kind, size, group size and algorithm."""

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
    max_ns: float | None
    mean_ns: float | None
    algbw_GBps: float | None  # noqa: N815  nccl-tests spells it so
    """Median, 10^9 bytes per second."""
    busbw_GBps: float | None  # noqa: N815
    """Median, 10^9 bytes per second."""
    ideal_ns: float | None
    """Median of the ideal completion time."""
    percent_of_ideal: float | None
    """100 x ideal time / completion time, median."""

    def as_dict(self) -> dict[str, Any]:
        """The row as plain values."""
        return asdict(self)


def summarise(collectives: pl.DataFrame) -> list[SummaryRow]:
    """Rows for `collectives.parquet`, by kind and size."""
    keys = ["kind", "size_bytes", "algorithm", "group_ranks"]
    frame = collectives.with_columns(_group_size(collectives), pl.col("kind").cast(pl.String))
    rows = [
        _row(part)
        for part in frame.partition_by(keys, maintain_order=True)
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (row.kind, row.size_bytes, row.ranks, row.algorithm))


def summary_table(rows: list[SummaryRow]) -> Table:
    """The rows for a terminal; the first ones only when there are very many."""
    table = Table(box=None, header_style="bold")
    for heading in ("collective", "algorithm"):
        table.add_column(heading)
    for heading in (
        "ranks", "size", "count", "p50 us", "p95 us", "p99 us", "max us",
        "algbw GB/s", "busbw GB/s", "% of ideal",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    for row in rows[:_SHOWN_ROWS]:
        table.add_row(*_cells(row))
    if len(rows) > _SHOWN_ROWS:
        table.caption = f"{len(rows) - _SHOWN_ROWS} more rows in the report"
    return table


def _group_size(collectives: pl.DataFrame) -> pl.Expr:
    ranks = pl.col("ranks")
    is_list = isinstance(collectives.schema["ranks"], pl.List)
    return (ranks.list.len() if is_list else ranks).cast(pl.Int64).alias("group_ranks")


def _row(part: pl.DataFrame) -> SummaryRow:
    complete = part.filter(pl.col("complete"))
    times = distribution(complete["completion_time_ns"].to_numpy())
    ratio = _median(complete, "ideal_ratio")
    first = part.row(0, named=True)
    return SummaryRow(
        kind=first["kind"],
        algorithm=str(first["algorithm"]),
        ranks=first["group_ranks"],
        size_bytes=first["size_bytes"],
        count=len(complete),
        incomplete=len(part) - len(complete),
        p50_ns=times["p50"],
        p95_ns=times["p95"],
        p99_ns=times["p99"],
        max_ns=times["max"],
        mean_ns=times["mean"],
        algbw_GBps=_median(complete, "algbw_GBps"),
        busbw_GBps=_median(complete, "busbw_GBps"),
        ideal_ns=_median(complete, "ideal_ns"),
        percent_of_ideal=None if ratio is None else 100 * ratio,
    )


def _median(frame: pl.DataFrame, column: str) -> float | None:
    value = frame[column].drop_nulls().median()
    return float(value) if isinstance(value, int | float) else None


def _cells(row: SummaryRow) -> list[str]:
    incomplete = f" (+{row.incomplete} incomplete)" if row.incomplete else ""
    times = (row.p50_ns, row.p95_ns, row.p99_ns, row.max_ns)
    figures = (row.algbw_GBps, row.busbw_GBps, row.percent_of_ideal)
    return [
        row.kind,
        row.algorithm,
        str(row.ranks),
        _size(row.size_bytes),
        f"{row.count}{incomplete}",
        *(_shown(value, 1e3) for value in times),
        *(_shown(value, 1) for value in figures),
    ]


def _shown(value: float | None, unit: float) -> str:
    return "-" if value is None else f"{value / unit:,.1f}"


def _size(size_bytes: int) -> str:
    for factor, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.4g} {unit}"
    return f"{size_bytes} B"
