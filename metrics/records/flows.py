"""`flows.parquet`: one row per message, from its posting to its acknowledgement."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from metrics.analysis.ideal import IdealModel
from metrics.records.operations import NONE_U32, NOT_DONE, SEND, Operations

__all__ = ["flow_table", "nanoseconds"]


def nanoseconds(name: str) -> pl.Expr:
    """A picosecond column as whole nanoseconds, rounded down; null where it is `NOT_DONE`."""
    column = pl.col(name)
    return pl.when(column != int(NOT_DONE)).then((column // 1000).cast(pl.Int64))


def flow_table(
    operations: Operations, nic_of_rank: NDArray[np.int64], ideal: IdealModel
) -> pl.DataFrame:
    """One row per SEND, in order of source rank and operation.

    `completion_time_ns` ends with the acknowledgement; `arrival_ns` is when the receiver had all
    of it. Both are null for a message that didn't get there. `path_latency_ns` is one way, null
    on a real network. Counts of packets are null where the engine knows none.
    """
    sends = np.flatnonzero(operations.kind == SEND)
    partner = operations.partner[sends]
    source, destination = operations.rank[sends], operations.peer[sends]
    ends = (nic_of_rank[source], nic_of_rank[destination])
    size = operations.size_bytes[sends]
    frame = pl.DataFrame(
        {
            "instance": operations.instance[sends],
            "source_rank": source,
            "destination_rank": destination,
            "size_bytes": size,
            "start_ps": operations.start_ps[sends],
            "end_ps": operations.end_ps[sends],
            "arrival_ps": operations.end_ps[partner],
            "ideal_ns": ideal.flow_ns(*ends, size),
            "path_latency_ns": pl.Series(ideal.path_latency_ns(*ends, size)).fill_nan(None),
            "retransmitted_packets": _counted(operations.retransmitted_packets, sends),
            "marked_packets": _counted(operations.marked_packets, partner),
            "cnps": _counted(operations.cnps, sends),
        }
    )
    done = pl.col("end_ps") != int(NOT_DONE)
    elapsed_ps = (pl.col("end_ps") - pl.col("start_ps")).cast(pl.Int64)
    return frame.select(
        pl.when(pl.col("instance") != NONE_U32).then(pl.col("instance")).alias("instance"),
        "source_rank",
        "destination_rank",
        "size_bytes",
        nanoseconds("start_ps").alias("start_ns"),
        nanoseconds("end_ps").alias("end_ns"),
        nanoseconds("arrival_ps").alias("arrival_ns"),
        "path_latency_ns",
        "ideal_ns",
        "retransmitted_packets",
        "marked_packets",
        "cnps",
        pl.when(done).then(elapsed_ps // 1000).alias("completion_time_ns"),
        pl.when(done).then(elapsed_ps / 1000 / pl.col("ideal_ns")).alias("slowdown"),
    )


def _counted(values: NDArray[np.uint32] | None, index: NDArray[np.int64]) -> pl.Series:
    """Counts of some operations."""
    if values is None:
        return pl.repeat(None, len(index), dtype=pl.UInt32, eager=True)
    return pl.Series(values[index])
