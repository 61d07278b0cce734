"""Figures of the links of one run: how busy they were, how long idle, how evenly used."""

import polars as pl

from metrics.analysis.ecmp import mean_balance
from metrics.analysis.loads import link_loads, tier_balances
from metrics.analysis.real_network import measured_loads, sampled_loads
from metrics.records import RunRecords
from metrics.records.series import fabric_names

__all__ = ["load_figures"]

_FABRIC_TIER = "switch to switch"


def load_figures(records: RunRecords) -> dict[str, float]:
    """Over all link directions and the whole run, idle ones included.

    `link_utilisation_ratio` is the mean share of time that frames occupied a line,
    `link_idle_ratio` the share of the samples' time in which nothing did, `link_max_over_mean` the
    bytes of the busiest link between switches over the mean of all of them, `ecmp_max_over_mean`
    the same of each set of equal-cost ports, averaged by their bytes.
    """
    end_ns = float(records.run["emulated_ns"])
    directions = fabric_names(records.run["job"]).links
    every = link_loads(records.links, directions, round(end_ns))
    loads = measured_loads(every, records.run, round(end_ns))
    sampled = len(sampled_loads(every, records.run))
    if loads.is_empty() or end_ns <= 0:
        return {}
    busy_ns = records.links.filter(pl.col("busy_ns") > 0)["interval_ns"].sum()
    figures = {
        "link_utilisation_ratio": float(loads["busy_ns"].sum()) / (len(loads) * end_ns),
        "link_idle_ratio": max(0.0, 1 - float(busy_ns) / (sampled * end_ns)),
    }
    for tier in tier_balances(loads):
        if tier.tier == _FABRIC_TIER:
            figures["link_max_over_mean"] = tier.max_over_mean
    balance = mean_balance(records.ecmp)
    return figures if balance is None else figures | {"ecmp_max_over_mean": balance}
