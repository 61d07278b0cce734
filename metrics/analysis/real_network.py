"""Runs whose switches are real: what is known of the network, and what is not.

The engine sees what its NICs send and receive. What switches send is known where the kernel counted
it, in a lab of namespaces, as totals; nothing is known of their queues over time.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

__all__ = ["is_real_network", "measured_loads", "network_totals", "sampled_loads"]

_FCS_BYTES, _LINE_OVERHEAD_BYTES = 4, 24
"""Of each frame, which the kernel does not count: FCS; and with preamble and gap."""


_BY_NICS = pl.col("tier").str.starts_with("NIC")


def is_real_network(run: Mapping[str, Any]) -> bool:
    """Whether the NICs of a run were on interfaces of the operating system."""
    return "ports" in run.get("counters", {})


def sampled_loads(loads: pl.DataFrame, run: Mapping[str, Any]) -> pl.DataFrame:
    """Of `analysis.loads.link_loads` what was sampled over time: that of NICs, if that is all."""
    return loads.filter(_BY_NICS) if is_real_network(run) else loads


def measured_loads(loads: pl.DataFrame, run: Mapping[str, Any], end_ns: int) -> pl.DataFrame:
    """Of `analysis.loads.link_loads` what was measured: by NICs, and by the kernel at switches.

    The kernel's totals have no peak and no pauses: null. All of it where the fabric is emulated.
    """
    if not is_real_network(run):
        return loads
    column = pl.col
    kernel = run["counters"].get("kernel")
    if not kernel:
        return sampled_loads(loads, run)
    packets = column("packets")
    counted = pl.DataFrame(
        {
            "link": kernel["link"],
            "direction": kernel["direction"],
            "bytes": kernel["tx_bytes"],
            "packets": kernel["tx_packets"],
        }
    ).cast(
        {
            "direction": loads.schema["direction"],
            "bytes": loads.schema["tx_bytes"],
            "packets": loads.schema["tx_bytes"],
        }
    )
    line_bytes = column("bytes") + _LINE_OVERHEAD_BYTES * packets
    busy_ns = (line_bytes * 8e9 / column("rate_bps")).cast(loads.schema["busy_ns"])

    def where_nics(name: str, other: pl.Expr) -> pl.Expr:
        return pl.when(_BY_NICS).then(column(name)).otherwise(other).alias(name)

    return (
        loads.join(counted, on=["link", "direction"], how="inner", maintain_order="left")
        .with_columns(
            where_nics("tx_bytes", column("bytes") + _FCS_BYTES * packets),
            where_nics("busy_ns", busy_ns),
            where_nics("mean_ratio", busy_ns / max(end_ns, 1)),
            where_nics("peak_ratio", pl.lit(None)),
            where_nics("paused_ns", pl.lit(None)),
        )
        .drop("bytes", "packets")
        .sort("tx_bytes", "source", "destination", descending=[True, False, False])
    )


def network_totals(run: Mapping[str, Any]) -> dict[str, int | None]:
    """Marks, drops and bytes of the whole network, by the kernel; `None`: nobody counted.

    Packets that a switch marked, packets that ports dropped, and frames with FCS on all links.
    """
    names = ("ecn_marked_packets", "dropped_packets", "link_bytes")
    kernel = run["counters"].get("kernel")
    if not kernel:
        return dict.fromkeys(names)
    drops = ("tx_dropped_packets", "queue_dropped_packets", "dropped_packets")
    return {
        "ecn_marked_packets": _sum(kernel["marked_packets"]),
        "dropped_packets": sum(_sum(kernel[name]) for name in drops),
        "link_bytes": _sum(kernel["tx_bytes"]) + _FCS_BYTES * _sum(kernel["tx_packets"]),
    }


def _sum(values: Sequence[int | None]) -> int:
    return sum(value or 0 for value in values)
