"""`links`, `queues`, `qps` and `flow_links.parquet`: what the engine counted, with names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from metrics.analysis.bandwidth import PREAMBLE_AND_GAP_BYTES
from metrics.records.operations import NONE_U32

__all__ = ["Fabric", "fabric_names", "flow_link_table", "link_table", "qp_table", "queue_table"]


@dataclass(frozen=True)
class Fabric:
    """Names of nodes, links and ports of a job, by the indices that the engine uses."""

    nics: Sequence[str]
    switches: Sequence[str]
    links: pl.DataFrame
    """link, direction, name, source, destination, rate_bps."""
    ports: pl.DataFrame
    """node, is_switch, port, link_name, rate_bps: which link a port belongs to."""


def fabric_names(config: Mapping[str, Any]) -> Fabric:
    """Names in a job configuration as the dataplane takes it."""
    nics = [nic["name"] for nic in config["nics"]]
    switches = [switch["name"] for switch in config["switches"]]
    links, ports = [], []
    for index, link in enumerate(config["links"]):
        ends = [link["a"], link["b"]]
        names = [_end_name(end, nics, switches) for end in ends]
        for direction in (0, 1):
            node = ends[direction]["node"]
            links.append(
                (index, direction, link["name"], names[direction], names[1 - direction],
                 float(link["rate_bps"]))
            )  # fmt: skip
            ports.append(
                (next(iter(node.values())), "switch" in node, ends[direction]["port"],
                 link["name"], float(link["rate_bps"]))
            )  # fmt: skip
    return Fabric(
        nics,
        switches,
        pl.DataFrame(links, schema=_NAMED_LINK_SCHEMA, orient="row"),
        pl.DataFrame(ports, schema=_NAMED_PORT_SCHEMA, orient="row"),
    )


def link_table(series: Mapping[str, NDArray[Any]], fabric: Fabric) -> pl.DataFrame:
    """Utilisation of every link and direction over time.

    `utilisation_ratio` is the time that frames, preambles and gaps occupied the line, over the
    interval.
    """
    column = pl.col
    frame = _frame(series, _LINK_SCHEMA).join(
        fabric.links, on=["link", "direction"], how="left", maintain_order="left"
    )
    used = (column("busy_ps") / column("interval_ps")).alias("utilisation_ratio")
    frame = frame.with_columns(used)
    return _in_nanoseconds(frame, "time", "interval", "busy", "paused").select(
        "time_ns",
        "interval_ns",
        column("name").cast(pl.Categorical).alias("link"),
        "direction",
        column("source", "destination").cast(pl.Categorical),
        "rate_bps",
        "tx_bytes",
        "tx_packets",
        "data_bytes",
        "busy_ns",
        "paused_ns",
        "utilisation_ratio",
    )


def queue_table(series: Mapping[str, NDArray[Any]], fabric: Fabric) -> pl.DataFrame:
    """Depth, utilisation, marks, drops and pauses of every queue that wasn't idle, over time.

    `utilisation_ratio` is that of the priority's own frames; a frame counts when it begins.
    """
    frame = _frame(series, _QUEUE_SCHEMA)
    named = frame.with_columns(_node_names(frame, fabric)).join(
        fabric.ports, on=["node", "is_switch", "port"], how="left", maintain_order="left"
    )
    line_bytes = pl.col("tx_bytes") + PREAMBLE_AND_GAP_BYTES * pl.col("tx_packets")
    used = line_bytes * 8e12 / (pl.col("rate_bps") * pl.col("interval_ps"))
    named = named.with_columns(used.clip(upper_bound=1.0).alias("utilisation_ratio"))
    return _in_nanoseconds(named, "time", "interval", "paused").select(
        "time_ns",
        "interval_ns",
        pl.col("node_name").cast(pl.Categorical).alias("node"),
        "is_switch",
        "port",
        pl.col("link_name").cast(pl.Categorical).alias("link"),
        "priority",
        "depth_bytes",
        "max_depth_bytes",
        "tx_packets",
        "tx_bytes",
        "utilisation_ratio",
        "paused_ns",
        "marked_packets",
        "dropped_packets",
        "dropped_bytes",
        "wred_dropped_packets",
        "pause_frames_sent",
        "pause_frames_received",
    )


def qp_table(series: Mapping[str, NDArray[Any]]) -> pl.DataFrame:
    """Rates and alpha of the queue pairs that had work, over time; rates in bits/s."""
    return _in_nanoseconds(_frame(series, _QP_SCHEMA), "time")


def flow_link_table(series: Mapping[str, NDArray[Any]], fabric: Fabric) -> pl.DataFrame:
    """What every flow sent over every direction of a link, since the start.

    Rows without ranks are the pause frames, which belong to no flow.
    """
    column = pl.col
    frame = _frame(series, _FLOW_LINK_SCHEMA).join(
        fabric.links, on=["link", "direction"], how="left", maintain_order="left"
    )
    return frame.select(
        *(
            pl.when(column(rank) != NONE_U32).then(column(rank)).alias(rank)
            for rank in ("source_rank", "destination_rank")
        ),
        "source_port",
        column("name").cast(pl.Categorical).alias("link"),
        "direction",
        column("source", "destination").cast(pl.Categorical),
        "tx_packets",
        "tx_bytes",
        "data_bytes",
    )


_NAMED_LINK_SCHEMA = {
    "link": pl.UInt32, "direction": pl.UInt8, "name": pl.String, "source": pl.String,
    "destination": pl.String, "rate_bps": pl.Float64,
}  # fmt: skip
_NAMED_PORT_SCHEMA = {
    "node": pl.UInt32, "is_switch": pl.Boolean, "port": pl.UInt16, "link_name": pl.String,
    "rate_bps": pl.Float64,
}  # fmt: skip
_LINK_SCHEMA = {
    "time_ps": pl.UInt64, "interval_ps": pl.UInt64, "link": pl.UInt32, "direction": pl.UInt8,
    "tx_bytes": pl.UInt64, "tx_packets": pl.UInt64, "data_bytes": pl.UInt64,
    "busy_ps": pl.UInt64, "paused_ps": pl.UInt64,
}  # fmt: skip
_QUEUE_SCHEMA = {
    "time_ps": pl.UInt64, "interval_ps": pl.UInt64, "node": pl.UInt32, "is_switch": pl.Boolean,
    "port": pl.UInt16, "priority": pl.UInt8, "depth_bytes": pl.UInt64,
    "max_depth_bytes": pl.UInt64, "tx_packets": pl.UInt64, "tx_bytes": pl.UInt64,
    "paused_ps": pl.UInt64, "marked_packets": pl.UInt64, "dropped_packets": pl.UInt64,
    "dropped_bytes": pl.UInt64, "wred_dropped_packets": pl.UInt64, "pause_frames_sent": pl.UInt64,
    "pause_frames_received": pl.UInt64,
}  # fmt: skip
_FLOW_LINK_SCHEMA = {
    "link": pl.UInt32, "direction": pl.UInt8, "source_rank": pl.UInt32,
    "destination_rank": pl.UInt32, "source_port": pl.UInt16, "tx_packets": pl.UInt64,
    "tx_bytes": pl.UInt64, "data_bytes": pl.UInt64,
}  # fmt: skip
_QP_SCHEMA = {
    "time_ps": pl.UInt64, "source_rank": pl.UInt32, "destination_rank": pl.UInt32,
    "qp": pl.UInt32, "traffic_class": pl.UInt8, "current_rate_bps": pl.Float64,
    "target_rate_bps": pl.Float64, "alpha": pl.Float64,
}  # fmt: skip


def _frame(series: Mapping[str, NDArray[Any]], schema: Mapping[str, Any]) -> pl.DataFrame:
    """The engine's columns in fixed types; columns that it doesn't have are null."""
    length = max((len(values) for values in series.values()), default=0)
    return pl.DataFrame(
        [
            pl.Series(name, series[name], strict=False).cast(dtype)
            if name in series
            else pl.repeat(None, length, dtype=dtype, eager=True).alias(name)
            for name, dtype in schema.items()
        ]
    )


def _in_nanoseconds(frame: pl.DataFrame, *stems: str) -> pl.DataFrame:
    """Columns `<stem>_ps` replaced by `<stem>_ns` as Int64, in the same places."""
    return frame.with_columns(
        [(pl.col(f"{stem}_ps") // 1000).cast(pl.Int64) for stem in stems]
    ).rename({f"{stem}_ps": f"{stem}_ns" for stem in stems})


def _node_names(frame: pl.DataFrame, fabric: Fabric) -> pl.Series:
    """Names of the nodes of a queue series."""
    names = np.array([*fabric.nics, *fabric.switches], dtype=object)
    node = frame["node"].to_numpy().astype(np.int64)
    index = np.where(frame["is_switch"].to_numpy(), len(fabric.nics) + node, node)
    return pl.Series("node_name", names[index].tolist(), dtype=pl.String)


def _end_name(end: Mapping[str, Any], nics: Sequence[str], switches: Sequence[str]) -> str:
    """`nic` or `switch:port` of one end of a link."""
    node = end["node"]
    if "nic" in node:
        return str(nics[node["nic"]])
    return f"{switches[node['switch']]}:{end['port']}"
