"""`collectives.parquet`: one row per collective instance and iteration."""

import polars as pl

from metrics.analysis.bandwidth import OVERLAPPED_BY_SLICES, bus_factor, serial_steps
from metrics.analysis.ideal import IdealModel
from metrics.records.flows import nanoseconds
from metrics.records.operations import NONE_U32, NOT_DONE, RECV, SEND, Operations

__all__ = ["COLUMNS", "collective_table", "rank_spans"]

COLUMNS = (
    "instance", "iteration", "kind", "group", "ranks", "algorithm", "size_bytes",
    "traced_size_bytes", "label", "traffic_class", "complete", "start_ns", "last_start_ns",
    "end_ns", "completion_time_ns", "completion_time_after_last_arrival_ns", "straggler_rank",
    "last_rank", "busbw_factor", "serial_steps", "path_latency_ns", "ideal_ns", "ideal_ratio",
    "algbw_GBps", "busbw_GBps", "bytes_sent", "bytes_received", "bytes_expected",
    "retransmitted_packets", "marked_packets", "cnps",
)  # fmt: skip
"""Columns of `collectives.parquet`. `straggler_rank` started last, `last_rank` ended last; GB/s are
10^9 bytes a second; `ideal_ratio` is the ideal time over the completion time."""

_PACKET_COUNTS = ("retransmitted_packets", "marked_packets", "cnps")
"""Null where the engine knows no packets."""


def rank_spans(operations: Operations) -> pl.DataFrame:
    """Start and end of every instance on every rank, ps, with bytes sent and received.

    `start_ps` is null where the rank hasn't started, `end_ps` where something is not complete.
    """
    column = pl.col
    frame = pl.DataFrame(
        {
            "instance": operations.instance,
            "rank": operations.rank,
            "kind": operations.kind,
            "size_bytes": operations.size_bytes,
            "start_ps": operations.start_ps,
            "end_ps": operations.end_ps,
        }
    ).filter(column("instance") != NONE_U32)
    done = column("end_ps") != int(NOT_DONE)
    started = column("start_ps") != int(NOT_DONE)
    return frame.group_by("instance", "rank").agg(
        column("start_ps").filter(started).min(),
        pl.when(done.all()).then(column("end_ps").max()).alias("end_ps"),
        _bytes_of(SEND, done).alias("bytes_sent"),
        _bytes_of(RECV, done).alias("bytes_received"),
        _bytes_of(SEND, pl.lit(True)).alias("bytes_expected"),
    )


def collective_table(
    operations: Operations, instances: pl.DataFrame, flows: pl.DataFrame, ideal: IdealModel
) -> pl.DataFrame:
    """One row per row of `instances` (unique by `instance`), in its order.

    Times are null for an instance that didn't complete; it is kept with `complete` false.
    """
    times = _instance_times(rank_spans(operations))
    packets = flows.group_by("instance").agg(
        *(pl.col(name).sum().cast(pl.UInt64) for name in _PACKET_COUNTS),
        pl.col("path_latency_ns").mean(),
    )
    joined = _facts(instances).join(times, on="instance", how="left", maintain_order="left")
    joined = joined.join(packets, on="instance", how="left", maintain_order="left")
    joined = joined.join(_busiest_bytes(flows), on="instance", how="left", maintain_order="left")
    joined = joined.join(_most_sends(flows), on="instance", how="left", maintain_order="left")
    table = _with_figures(_one_step_where_sliced(joined), ideal)
    unknown = [name for name in _PACKET_COUNTS if getattr(operations, name) is None]
    return table.with_columns(pl.lit(None, pl.UInt64).alias(name) for name in unknown)


def _most_sends(flows: pl.DataFrame) -> pl.DataFrame:
    """Messages of the rank that sends most of them, for each instance."""
    of_rank = flows.group_by("instance", "source_rank").agg(pl.len().alias("most_sends"))
    return of_rank.group_by("instance").agg(pl.col("most_sends").max())


def _busiest_bytes(flows: pl.DataFrame) -> pl.DataFrame:
    """Bytes of the rank that sends or receives most to or from others, for each instance."""
    crossing = flows.filter(pl.col("source_rank") != pl.col("destination_rank"))
    sums = [
        crossing.group_by("instance", pl.col(end).alias("rank")).agg(pl.col("size_bytes").sum())
        for end in ("source_rank", "destination_rank")
    ]
    busiest = pl.col("size_bytes").max().alias("busiest_bytes")
    return pl.concat(sums).group_by("instance").agg(busiest)


def _one_step_where_sliced(joined: pl.DataFrame) -> pl.DataFrame:
    """Where steps have several messages each, one step's latency hides behind other slices."""
    overlapped = pl.col("algorithm").is_in(sorted(OVERLAPPED_BY_SLICES)) & (
        pl.col("most_sends") > pl.col("serial_steps")
    )
    steps = pl.when(overlapped).then(1).otherwise(pl.col("serial_steps"))
    return joined.with_columns(steps.cast(joined["serial_steps"].dtype).alias("serial_steps"))


def _bytes_of(kind: int, condition: pl.Expr) -> pl.Expr:
    """Sum of the sizes of one kind of operation."""
    return pl.col("size_bytes").filter((pl.col("kind") == kind) & condition).sum()


def _instance_times(spans: pl.DataFrame) -> pl.DataFrame:
    """Over the ranks of each instance: first and last start, end, straggler, bytes."""
    column = pl.col
    started = column("start_ps").is_not_null()
    complete = column("end_ps").is_not_null().all()
    spans = spans.sort("instance", "rank")
    return (
        spans.group_by("instance", maintain_order=True)
        .agg(
            column("start_ps").min(),
            column("start_ps").max().alias("last_start_ps"),
            pl.when(complete).then(column("end_ps").max()).alias("end_ps"),
            column("rank")
            .filter(started)
            .get(column("start_ps").filter(started).arg_max(), null_on_oob=True)
            .alias("straggler_rank"),
            pl.when(complete)
            .then(column("rank").get(column("end_ps").arg_max(), null_on_oob=True))
            .alias("last_rank"),
            column("bytes_sent", "bytes_received", "bytes_expected").sum(),
            complete.alias("complete"),
        )
        .with_columns(column("start_ps", "last_start_ps", "end_ps").fill_null(int(NOT_DONE)))
        .with_columns(
            nanoseconds("start_ps").alias("start_ns"),
            nanoseconds("last_start_ps").alias("last_start_ns"),
            nanoseconds("end_ps").alias("end_ns"),
        )
        .drop("start_ps", "last_start_ps", "end_ps")
    )


def _facts(instances: pl.DataFrame) -> pl.DataFrame:
    """The instances with the number of their ranks, the busbw factor and the serial steps."""
    named = instances.with_columns(pl.col("ranks").list.len().cast(pl.UInt32))
    if "traffic_class" not in named.columns:
        named = named.with_columns(traffic_class=pl.lit("data"))
    kinds = named.select("kind", "algorithm", "ranks").unique()
    return named.join(
        kinds.with_columns(
            pl.Series("busbw_factor", [bus_factor(k, n) for k, _, n in kinds.iter_rows()]),
            pl.Series("serial_steps", [serial_steps(*row) for row in kinds.iter_rows()]),
        ),
        on=["kind", "algorithm", "ranks"],
        how="left",
        maintain_order="left",
        nulls_equal=True,
    )


def _bus_bytes() -> pl.Expr:
    """What no schedule can save a rank's NIC: S x factor.

    An all-to-all may be uneven; there it is what the busiest rank sends or receives.
    """
    even = pl.col("size_bytes") * pl.col("busbw_factor")
    busiest = pl.col("busiest_bytes").cast(pl.Float64).fill_null(even)
    return pl.when(pl.col("kind") == "all_to_all").then(busiest).otherwise(even)


def _with_figures(joined: pl.DataFrame, ideal: IdealModel) -> pl.DataFrame:
    """Completion times, bandwidths and the ideal."""
    column = pl.col
    bus_bytes = joined.select(_bus_bytes()).to_series().to_numpy()
    latency = (joined["serial_steps"] * joined["path_latency_ns"].fill_null(0.0)).to_numpy()
    elapsed = column("completion_time_ns")
    return (
        joined.with_columns(
            (column("end_ns") - column("start_ns")).alias("completion_time_ns"),
            (column("end_ns") - column("last_start_ns")).alias(
                "completion_time_after_last_arrival_ns"
            ),
            column("complete").fill_null(column("ranks") < 2),
            column("bytes_sent", "bytes_received", "bytes_expected").fill_null(0),
            column("retransmitted_packets", "marked_packets", "cnps").fill_null(0),
            pl.Series("ideal_ns", ideal.collective_ns(bus_bytes, latency)),
        )
        .with_columns(
            pl.when(elapsed > 0).then(column("size_bytes") / elapsed).alias("algbw_GBps"),
            pl.when(elapsed > 0).then(column("ideal_ns") / elapsed).alias("ideal_ratio"),
        )
        .with_columns((column("algbw_GBps") * column("busbw_factor")).alias("busbw_GBps"))
        .select(COLUMNS)
    )
