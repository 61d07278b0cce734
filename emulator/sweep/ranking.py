"""From the points' figures to a ranked table: repetitions joined, best first."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from rich.table import Table

from emulator.run_directory import writing
from emulator.sweep.execution import PointResult
from emulator.sweep.figures import HIGHER_IS_BETTER
from emulator.sweep.points import Point

__all__ = ["Ranking", "rank", "ranking_table", "write_ranking"]

_SHOWN_ROWS = 30


@dataclass(frozen=True, slots=True)
class Ranking:
    """Settings, best first."""

    figure: str
    settings: list[str]
    """Paths of the grid: columns of both tables."""
    table: pl.DataFrame
    """One row per setting: `place`, the settings, `value`, `lowest`, `highest`, `repetitions`,
    `failed`, `worse_than_first` of `compared_with_first` seeds, and the mean of every figure."""
    points: pl.DataFrame
    """One row per point."""

    @property
    def higher_is_better(self) -> bool:
        """Direction of the figure."""
        return self.figure.rpartition(".")[2] in HIGHER_IS_BETTER


def rank(points: Sequence[Point], results: Sequence[PointResult], figure: str) -> Ranking:
    """Join the repetitions of each setting and order them by `figure`."""
    by_digest = {result.digest: result for result in results}
    paths = list(points[0].settings) if points else []
    rows = [_row(point, by_digest[point.digest]) for point in points if point.digest in by_digest]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    figures = sorted({name for result in results for name in result.figures})
    value = pl.col(figure) if figure in frame.columns else pl.lit(None, dtype=pl.Float64)
    best_last = figure.rpartition(".")[2] in HIGHER_IS_BETTER
    table = (
        frame.group_by(paths, maintain_order=True)
        .agg(
            value.mean().alias("value"),
            value.min().alias("lowest"),
            value.max().alias("highest"),
            (pl.col("outcome") == "complete").sum().alias("repetitions"),
            (pl.col("outcome") != "complete").sum().alias("failed"),
            *(pl.col(name).mean() for name in figures if name in frame.columns),
        )
        .sort("value", descending=best_last, nulls_last=True, maintain_order=True)
        .with_row_index("place", offset=1)
    )
    table = _beside_the_first(table, frame.with_columns(value.alias("value")), paths, best_last)
    return Ranking(figure, paths, table, frame)


def _beside_the_first(
    table: pl.DataFrame, points: pl.DataFrame, paths: list[str], best_last: bool
) -> pl.DataFrame:
    """Add on how many seeds each setting is worse than the first, of those that both completed.

    A seed decides the traffic, so that only points of the same seed are compared.
    """
    first = points.join(table.head(1), on=paths, how="semi", nulls_equal=True)
    paired = points.join(first.select("seed", first="value"), on="seed").drop_nulls(
        ["value", "first"]
    )
    worse = pl.col("value") < pl.col("first") if best_last else pl.col("value") > pl.col("first")
    counts = paired.group_by(paths).agg(
        worse.sum().alias("worse_than_first"), pl.len().alias("compared_with_first")
    )
    joined = table.join(counts, on=paths, how="left", nulls_equal=True, maintain_order="left")
    return joined.with_columns(pl.col("worse_than_first", "compared_with_first").fill_null(0))


def write_ranking(ranking: Ranking, directory: Path, facts: dict[str, Any]) -> None:
    """Write sweep.parquet (one row per point) and sweep.json (the ranked table)."""
    document = {
        **facts,
        "rank_by": ranking.figure,
        "higher_is_better": ranking.higher_is_better,
        "table": ranking.table.to_dicts(),
    }
    with writing(directory):
        ranking.points.write_parquet(directory / "sweep.parquet")
        text = json.dumps(document, indent=1)
        (directory / "sweep.json").write_text(text, encoding="utf-8")


def ranking_table(ranking: Ranking) -> Table:
    """The best settings for a terminal."""
    table = Table(box=None, header_style="bold")
    table.add_column("place", justify="right")
    for path in ranking.settings:
        table.add_column(path, justify="right")
    extra: list[str] = [
        name
        for name in ("emulated_ns", "marked_packets", "cnps", "pause_frames", "max_queue_bytes")
        if name in ranking.table.columns and name != ranking.figure
    ]
    for heading in (f"{ranking.figure}, mean", "spread", "worse than first", "runs", *extra):
        table.add_column(heading, justify="right")
    for row in ranking.table.head(_SHOWN_ROWS).iter_rows(named=True):
        table.add_row(*_cells(row, ranking.settings, extra))
    return table


def _row(point: Point, result: PointResult) -> dict[str, Any]:
    settings = {path: _plain(value) for path, value in point.settings.items()}
    facts = {"seed": point.seed, "outcome": result.outcome, "directory": result.directory}
    return {**settings, **facts, **result.figures}


def _plain(value: Any) -> Any:
    """Lists and mappings as text, so that they fit into a column."""
    return json.dumps(value) if isinstance(value, dict | list) else value


def _cells(row: dict[str, Any], settings: list[str], extra: list[str]) -> list[str]:
    runs = str(row["repetitions"]) + (f" ({row['failed']} failed)" if row["failed"] else "")
    spread = "-"
    if row["value"] is not None:
        spread = _number(row["highest"] - row["lowest"])
    return [
        str(row["place"]),
        *(str(row[path]) for path in settings),
        _number(row["value"]),
        spread,
        _seeds_worse(row),
        runs,
        *(_number(row[name]) for name in extra),
    ]


def _seeds_worse(row: dict[str, Any]) -> str:
    if row["place"] == 1 or not row["compared_with_first"]:
        return "-"
    return f"on {row['worse_than_first']} of {row['compared_with_first']} seeds"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"
