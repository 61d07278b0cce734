"""Figures of two runs side by side: totals, queues, and the settings that differ."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from metrics.analysis.ecmp import mean_balance
from metrics.analysis.groups import known_sum
from metrics.analysis.real_network import is_real_network, network_totals
from metrics.fluid import is_fluid
from metrics.records import RunRecords
from metrics.report.facts import flattened

__all__ = ["Totals", "differing_facts", "ecmp_sides", "path_sides", "queue_sides", "totals"]

Totals = dict[str, float | None]

_COMPARED_FACTS = (
    "model", "lab", "trace", "profile", "ranks", "seed", "iterations", "size_scale", "binding",
    "job", "lab_resolved",
)  # fmt: skip

_OF_QUEUES = (
    "ecn_marked_packets", "pause_frames_sent", "time_paused_ns", "dropped_packets",
    "largest_queue_bytes",
)  # fmt: skip
"""Totals that a prediction by flows doesn't have; of a real network the kernel knows some."""


def totals(records: RunRecords) -> Totals:
    """Totals of one run by name; units are in the names."""
    queues, links = records.queues, records.links
    collectives = records.collectives
    nics = records.run.get("counters", {}).get("nics", {})
    switches = queues.filter(pl.col("is_switch"))
    figures = {
        "emulated_ns": records.run.get("emulated_ns"),
        "collectives": len(collectives),
        "messages": len(records.flows),
        "sent_bytes": records.run["byte_conservation"]["sent_bytes"],
        "resent_packets": known_sum(collectives["retransmitted_packets"]),
        "ecn_marked_packets": int(queues["marked_packets"].sum()),
        "cnps_sent": _counted(nics, "cnps_sent"),
        "cnps_handled": _counted(nics, "cnps_handled"),
        "pause_frames_sent": int(queues["pause_frames_sent"].sum()),
        "time_paused_ns": int(queues.select(_paused(queues)).item() or 0),
        "dropped_packets": int(queues["dropped_packets"].sum()),
        "largest_queue_bytes": switches["max_depth_bytes"].max() or 0,
        "largest_utilisation_ratio": links["utilisation_ratio"].max(),
        "ecmp_max_over_mean": mean_balance(records.ecmp),
        "link_bytes": int(links["tx_bytes"].sum()),
    }
    if is_fluid(records.run):
        figures |= dict.fromkeys(_OF_QUEUES)
    if is_real_network(records.run):
        figures |= dict.fromkeys(_OF_QUEUES) | network_totals(records.run)
    return figures


def queue_sides(first: RunRecords, second: RunRecords, limit: int = 12) -> list[dict[str, Any]]:
    """Watermark, marks and paused time of switch queues in both runs; the deepest first.

    They are None on the side of a prediction by flows, or of a run in a real network.
    """
    keys = ["node", "port", "priority"]
    sides = [
        records.queues.filter(pl.col("is_switch"))
        .cast({"node": pl.String})
        .group_by(keys)
        .agg(
            pl.col("max_depth_bytes").max().alias(f"{name}_max_depth_bytes"),
            pl.col("marked_packets").sum().alias(f"{name}_marked_packets"),
            _paused(records.queues).alias(f"{name}_paused_ns"),
        )
        for name, records in (("first", first), ("second", second))
    ]
    both = sides[0].join(sides[1], on=keys, how="full", coalesce=True).fill_null(0)
    depth = pl.max_horizontal("first_max_depth_bytes", "second_max_depth_bytes")
    unknown = [
        f"{name}_{figure}"
        for name, records in (("first", first), ("second", second))
        if is_fluid(records.run) or is_real_network(records.run)
        for figure in ("max_depth_bytes", "marked_packets", "paused_ns")
    ]
    order = both.with_columns(depth.alias("deepest")).filter(pl.col("deepest") > 0)
    return order.sort("deepest", *keys, descending=[True, False, False, False]).drop(
        "deepest"
    ).head(limit).with_columns(pl.lit(None).alias(name) for name in unknown).to_dicts()  # fmt: skip


def _paused(queues: pl.DataFrame) -> pl.Expr:
    """Time that queues were paused, together; 0 in records of versions that don't have it."""
    return pl.col("paused_ns").sum() if "paused_ns" in queues.columns else pl.lit(0)


def path_sides(first: RunRecords, second: RunRecords) -> tuple[int, int]:
    """Data flows of both runs whose largest path differs, and all data flows of both."""
    flow = ["source_rank", "destination_rank", "source_port"]
    left, right = (
        records.paths.filter(pl.col("is_data") & (pl.col("path") == 0)).select(*flow, "links")
        for records in (first, second)
    )
    both = left.join(right, on=flow, suffix="_second")
    return len(both.filter(pl.col("links") != pl.col("links_second"))), len(both)


def ecmp_sides(first: RunRecords, second: RunRecords, limit: int = 12) -> list[dict[str, Any]]:
    """Largest load over mean of the equal-cost ports in both runs; the most uneven first."""
    keys = ["switch", "group"]
    sides = [
        records.ecmp.group_by(keys).agg(
            pl.col("max_over_mean", "expected_max_over_mean").first().name.prefix(f"{name}_"),
            pl.col("tx_bytes").sum().alias(f"{name}_bytes"),
        )
        for name, records in (("first", first), ("second", second))
    ]
    both = sides[0].join(sides[1], on=keys, how="full", coalesce=True)
    most = pl.max_horizontal("first_max_over_mean", "second_max_over_mean")
    return both.sort(most, *keys, descending=[True, False, False], nulls_last=True).head(
        limit
    ).to_dicts()  # fmt: skip


def differing_facts(
    first: RunRecords, second: RunRecords
) -> list[tuple[str, str | None, str | None]]:
    """Settings that are not the same: path and both values."""
    left, right = (
        dict(flattened({"model": "packets"} | _compared(records.run)))
        for records in (first, second)
    )
    return [
        (path, left.get(path), right.get(path))
        for path in dict.fromkeys([*left, *right])
        if left.get(path) != right.get(path)
    ]


def _compared(run: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that are compared, as far as the run says them."""
    return {key: run[key] for key in _COMPARED_FACTS if run.get(key) is not None}


def _counted(nics: Mapping[str, Any], name: str) -> int | None:
    """Sum of a NIC counter; None if it isn't counted."""
    return sum(nics[name]) if name in nics else None
