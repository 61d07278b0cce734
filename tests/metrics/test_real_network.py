"""Where the switches are real, a report says what was measured and no more."""

from typing import Any

import polars as pl
import pytest

from metrics.analysis.real_network import (
    is_real_network,
    measured_loads,
    network_totals,
    sampled_loads,
)

LOADS = pl.DataFrame(
    {
        "link": ["host0-leaf0", "host0-leaf0"],
        "direction": [0, 1],
        "source": ["host0", "leaf0:0"],
        "destination": ["leaf0:0", "host0"],
        "rate_bps": [8_000_000_000, 8_000_000_000],
        "tx_bytes": [500, 0],
        "busy_ns": [520, 0],
        "paused_ns": [0, 0],
        "peak_ratio": [0.9, 0.0],
        "tier": ["NIC to switch", "switch to NIC"],
        "mean_ratio": [0.52, 0.0],
    },
    schema_overrides={"tx_bytes": pl.UInt64, "direction": pl.UInt8},
)
KERNEL: dict[str, Any] = {
    "link": ["host0-leaf0", "host0-leaf0"],
    "direction": [0, 1],
    "tx_bytes": [496, 3000],
    "tx_packets": [1, 2],
}


def rows(loads: pl.DataFrame) -> dict[str, dict[str, Any]]:
    return {row["source"]: row for row in loads.iter_rows(named=True)}


def test_an_emulated_network_is_measured_whole() -> None:
    run: dict[str, Any] = {"counters": {"nics": {}}}
    assert not is_real_network(run)
    assert measured_loads(LOADS, run, 1000) is LOADS
    assert sampled_loads(LOADS, run) is LOADS


def test_without_the_kernels_counters_only_nics_are_known() -> None:
    run: dict[str, Any] = {"counters": {"ports": {}}}
    assert list(rows(measured_loads(LOADS, run, 1000))) == ["host0"]
    assert list(rows(sampled_loads(LOADS, run))) == ["host0"]


def test_what_switches_sent_is_the_kernels_total_and_has_no_peak() -> None:
    """Two frames of 1500 bytes: with FCS 3008, and 3048 on a line of 1 byte per ns."""
    run = {"counters": {"ports": {}, "kernel": KERNEL}}
    found = rows(measured_loads(LOADS, run, 10_000))
    assert list(found) == ["leaf0:0", "host0"]
    switch, nic = found["leaf0:0"], found["host0"]
    assert (switch["tx_bytes"], switch["busy_ns"]) == (3008, 3048)
    assert switch["mean_ratio"] == pytest.approx(0.3048)
    assert switch["peak_ratio"] is switch["paused_ns"] is None
    assert (nic["tx_bytes"], nic["peak_ratio"], nic["mean_ratio"]) == (500, 0.9, 0.52)


def test_totals_are_the_kernels_or_unknown() -> None:
    counted = KERNEL | {
        "marked_packets": [None, 7],
        "tx_dropped_packets": [1, 0],
        "queue_dropped_packets": [0, 2],
        "dropped_packets": [None, 3],
    }
    run = {"counters": {"ports": {}, "kernel": counted}}
    assert network_totals(run) == {
        "ecn_marked_packets": 7,
        "dropped_packets": 6,
        "link_bytes": 3496 + 3 * 4,
    }
    assert set(network_totals({"counters": {"ports": {}}}).values()) == {None}
