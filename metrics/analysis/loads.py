"""What every link direction carried in a run, idle ones included, and how even each tier is."""

from dataclasses import dataclass

import polars as pl

from metrics.analysis.fairness import jain_index, max_over_mean

__all__ = ["TierBalance", "link_loads", "tier_balances", "tier_of"]


@dataclass(frozen=True, slots=True)
class TierBalance:
    """How evenly the bytes of a tier are spread over its link directions, idle ones included."""

    tier: str
    directions: int
    max_over_mean: float
    jain_index: float


def tier_of(source: str, destination: str) -> str:
    """Tier of a direction by its end names: a switch end is `name:port`, a NIC's is its name."""
    if ":" not in source:
        return "NIC to switch" if ":" in destination else "NIC to NIC"
    return "switch to switch" if ":" in destination else "switch to NIC"


def link_loads(links: pl.DataFrame, directions: pl.DataFrame, end_ns: int) -> pl.DataFrame:
    """One row per direction of `directions` (`name`, `direction`, ends, `rate_bps`), busiest first.

    `mean_ratio` is busy time over the `end_ns` of the run, `peak_ratio` that of the busiest sample.
    """
    column = pl.col
    sums = links.group_by("link", "direction").agg(
        column("tx_bytes", "busy_ns", "paused_ns").sum(),
        column("utilisation_ratio").max().alias("peak_ratio"),
    )
    named = directions.select(
        column("name").alias("link"), "direction", "source", "destination", "rate_bps"
    )
    loads = named.join(sums.cast({"link": pl.String}), on=["link", "direction"], how="left")
    tiers = [tier_of(*ends) for ends in loads.select("source", "destination").iter_rows()]
    return loads.with_columns(
        column("tx_bytes", "busy_ns", "paused_ns", "peak_ratio").fill_null(0),
        pl.Series("tier", tiers, dtype=pl.String),
    ).with_columns(
        (column("busy_ns") / max(end_ns, 1)).alias("mean_ratio")
    ).sort("tx_bytes", "source", "destination", descending=[True, False, False])  # fmt: skip


def tier_balances(loads: pl.DataFrame) -> list[TierBalance]:
    """Balance of every tier that carried something."""
    balances = []
    for (tier,), part in loads.sort("tier").group_by("tier", maintain_order=True):
        sizes = part["tx_bytes"].to_numpy()
        index, ratio = jain_index(sizes), max_over_mean(sizes)
        if index is not None and ratio is not None:
            balances.append(TierBalance(str(tier), len(part), ratio, index))
    return balances
