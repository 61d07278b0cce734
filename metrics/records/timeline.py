"""`timeline.parquet`: what every rank did when, one row per trace node and occurrence."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from metrics.records.flows import nanoseconds
from metrics.records.operations import DELAY, NONE_U32, NOT_DONE, Operations

__all__ = ["RowNames", "timeline_table"]

RowNames = Callable[[int, NDArray[Any]], Sequence[str]]
"""Names of trace rows: (rank, rows uint32[n]) -> n names."""


def timeline_table(
    operations: Operations,
    instances: pl.DataFrame,
    row_names: RowNames | None,
    lanes: Mapping[int, Sequence[str]] | None,
) -> pl.DataFrame:
    """Spans in order of rank and start: `compute` or the kind of the collective.

    The operations of one collective on one rank are one span; every computation is its own.
    `lane` is the name of a computation's lane, if any. `end_ns` is null for what
    didn't complete; what never started is left out.
    """
    column = pl.col
    compute = (operations.kind == DELAY) & (operations.instance == NONE_U32)
    communication = operations.instance != NONE_U32
    spans = pl.concat([_columns(operations, compute), _grouped(operations, communication)])
    kinds = instances.select("instance", "kind", "label")
    spans = spans.join(kinds, on="instance", how="left").sort("rank", "start_ps", "row")
    spans = spans.with_columns(_names(spans, row_names))
    return _with_lanes(spans, lanes or {}).select(
        "rank",
        pl.when(column("row") != NONE_U32).then(column("row")).alias("row"),
        pl.coalesce("label", "row_name", pl.lit("")).alias("name"),
        column("lane_name").cast(pl.Categorical).alias("lane"),
        column("kind").fill_null("compute").cast(pl.Categorical),
        nanoseconds("start_ps").alias("start_ns"),
        nanoseconds("end_ps").alias("end_ns"),
        pl.when(column("instance") != NONE_U32).then(column("instance")).alias("instance"),
    )


def _columns(operations: Operations, mask: NDArray[np.bool_]) -> pl.DataFrame:
    """The columns of a span, of the started operations under `mask`."""
    chosen = mask & (operations.start_ps != NOT_DONE)
    return pl.DataFrame(
        {
            "rank": operations.rank[chosen],
            "row": operations.row[chosen],
            "instance": operations.instance[chosen],
            "lane": operations.lane[chosen],
            "start_ps": operations.start_ps[chosen],
            "end_ps": operations.end_ps[chosen],
        }
    )


def _grouped(operations: Operations, mask: NDArray[np.bool_]) -> pl.DataFrame:
    """One span per rank and instance; not done (the largest value) wins as the end."""
    spans = _columns(operations, mask)
    return spans.group_by("rank", "instance").agg(
        pl.col("row", "lane", "start_ps").min(), pl.col("end_ps").max()
    ).select(spans.columns)  # fmt: skip


def _names(spans: pl.DataFrame, row_names: RowNames | None) -> pl.Series:
    """Names of the computations' trace rows; null elsewhere. `spans` is ordered by rank."""
    names = np.full(len(spans), None, dtype=object)
    if row_names is not None:
        rank, row = spans["rank"].to_numpy(), spans["row"].to_numpy()
        wanted = spans["label"].is_null().to_numpy() & (row != NONE_U32)
        for value in np.unique(rank):
            places = np.flatnonzero((rank == value) & wanted)
            names[places] = row_names(int(value), row[places])
    return pl.Series("row_name", names.tolist(), dtype=pl.String)


def _with_lanes(spans: pl.DataFrame, lanes: Mapping[int, Sequence[str]]) -> pl.DataFrame:
    """Add `lane_name`; null where the rank has no name for the lane."""
    named = [(rank, lane, name) for rank, names in lanes.items() for lane, name in enumerate(names)]
    schema = {"rank": pl.UInt32, "lane": pl.Int32, "lane_name": pl.String}
    table = pl.DataFrame(named, schema=schema, orient="row")
    return spans.join(table, on=["rank", "lane"], how="left", maintain_order="left")
