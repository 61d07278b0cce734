"""The tables about ways through the fabric."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from metrics.presentation import count_text, share_text, size_text
from metrics.report.markup import Cell, Column, Raw, table

__all__ = ["flow_path_table"]

FLOW_LIMIT = 40
_FLOW = ("source_rank", "destination_rank", "source_port")


def flow_path_table(paths: pl.DataFrame) -> tuple[Raw, str]:
    """The largest flows that carry data, with their ways, and a note about what is left out."""
    columns = [
        Column("From rank"),
        Column("To rank"),
        Column("UDP port", hint="Source port: what ECMP hashes beside the addresses"),
        Column("Bytes", hint="Frames with FCS that left the NIC, resent ones included"),
        Column("Packets"),
        Column("Paths"),
        Column("Largest path", hint="Packets on it / packets that left the NIC"),
        Column("Over", numeric=False, hint="Nodes of the largest path"),
    ]
    flows = _flows(paths)
    rows = [_row(flow) for flow in flows.head(FLOW_LIMIT).iter_rows(named=True)]
    lost = int(paths.filter(~pl.col("arrives"))["tx_packets"].sum())
    note = (
        f"The largest {len(rows)} of {count_text(len(flows))} flows that carry data; all of them, "
        "with acknowledgements, are in paths.parquet and flow_links.parquet. Packets are counted "
        "per flow and link; where a flow branches, paths are taken apart from that."
    )
    if lost:
        note += f" {count_text(lost)} packets left a NIC and did not arrive."
    return table(columns, rows), note


def _flows(paths: pl.DataFrame) -> pl.DataFrame:
    """One row per data flow, the largest first."""
    column = pl.col
    return (
        paths.filter(column("is_data"))
        .sort(*_FLOW, "path")
        .group_by(_FLOW, maintain_order=True)
        .agg(
            column("tx_bytes", "tx_packets").sum(),
            pl.len().alias("paths"),
            column("share_ratio", "nodes").first(),
        )
        .sort("tx_bytes", *_FLOW, descending=[True, False, False, False])
    )


def _row(flow: Mapping[str, Any]) -> list[Cell]:
    return [
        *(Cell(str(flow[name]), flow[name]) for name in _FLOW),
        Cell(size_text(flow["tx_bytes"]), flow["tx_bytes"]),
        Cell(count_text(flow["tx_packets"]), flow["tx_packets"]),
        Cell(str(flow["paths"]), flow["paths"]),
        Cell(share_text(flow["share_ratio"]), flow["share_ratio"]),
        Cell(" → ".join(flow["nodes"])),
    ]
