"""The tables about ways through the fabric."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from metrics.presentation import MISSING, count_text, share_text, size_text
from metrics.report.markup import Cell, Column, Raw, table

__all__ = ["ecmp_table", "flow_path_table"]

FLOW_LIMIT = 40
GROUP_LIMIT = 40
_OF_BUSIEST = (
    "port", "next_node", "share_ratio", "expected_share_ratio", "even_share_ratio",
)  # fmt: skip
_FLOW = ("source_rank", "destination_rank", "source_port")


def flow_path_table(paths: pl.DataFrame, flow_links: pl.DataFrame) -> tuple[Raw, str]:
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
    whole = flow_links.filter(pl.col("source_rank").is_not_null()).select(_FLOW).n_unique()
    missing = whole - paths.select(_FLOW).n_unique()
    if missing:
        note += f" {count_text(missing)} small flows that branch were not taken apart."
    if lost:
        note += f" {count_text(lost)} packets left a NIC and did not arrive."
    return table(columns, rows), note


def ecmp_table(shares: pl.DataFrame) -> tuple[Raw, str]:
    """One row per group of equal-cost ports, the most uneven first; and a note."""
    columns = [
        Column("Switch", numeric=False),
        Column("Ports", hint="Equal-cost ports of the group"),
        Column("Chosen by", numeric=False, hint="Hash of the flow, chance, or the shortest queue"),
        Column("Flows", hint="Acknowledgements are flows of their own"),
        Column("Bytes", hint="Frames with FCS, pauses apart"),
        Column("Largest / mean", hint="Largest load per weight / mean of the group; 1 is even"),
        Column("Expected", hint="The same of what the hash, or an even spread, lets expect"),
        Column("Busiest port", numeric=False),
        Column("Its share"),
        Column("Expected share", hint="By the hash over the job's flows"),
        Column("Even share", hint="Weight of the port / weights of the group"),
    ]
    groups = _groups(shares)
    rows = [_group_row(row) for row in groups.head(GROUP_LIMIT).iter_rows(named=True)]
    moved = float((shares["expected_bytes"] - shares["tx_bytes"].cast(pl.Float64)).abs().sum()) / 2
    total = int(shares["tx_bytes"].sum())
    note = (
        f"The most uneven {len(rows)} of {count_text(len(groups))} groups; ports are in "
        "ecmp.parquet. Expected: what left the NICs, walked through the routes apart from the "
        "engine. "
        f"{share_text(moved / total if total else None)} of the bytes took another port than "
        "expected, or were lost before."
    )
    return table(columns, rows), note


def _groups(shares: pl.DataFrame) -> pl.DataFrame:
    """One row per group with its busiest port, the most uneven first."""
    column = pl.col
    busiest = column("tx_bytes").arg_max()
    members = [column(name).get(busiest) for name in _OF_BUSIEST]
    return (
        shares.group_by("switch", "group", maintain_order=True)
        .agg(
            pl.len().alias("ports"),
            column("decided_by", "max_over_mean", "expected_max_over_mean").first(),
            column("flows").sum(),
            column("tx_bytes").sum(),
            *members,
        )
        .sort("max_over_mean", "switch", "group", descending=[True, False, False], nulls_last=True)
    )


def _group_row(row: Mapping[str, Any]) -> list[Cell]:
    return [
        Cell(row["switch"]),
        Cell(str(row["ports"]), row["ports"]),
        Cell(row["decided_by"]),
        Cell(count_text(row["flows"]), row["flows"]),
        Cell(size_text(row["tx_bytes"]), row["tx_bytes"]),
        _balance(row["max_over_mean"]),
        _balance(row["expected_max_over_mean"]),
        Cell(f"{row['port']} to {row['next_node']}"),
        *(
            Cell(share_text(row[name]), row[name])
            for name in ("share_ratio", "expected_share_ratio", "even_share_ratio")
        ),
    ]


def _balance(ratio: float | None) -> Cell:
    return Cell(MISSING if ratio is None else f"{ratio:.3f}", ratio)


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
