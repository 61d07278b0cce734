"""Quantiles, bandwidth factors, ideal times, fairness and overlap."""

import numpy as np
import polars as pl
import pytest

from metrics.analysis import bandwidth, fairness, loads, overlap, quantiles
from metrics.analysis.ideal import ideal_model
from metrics.records.series import fabric_names
from tests.metrics.synthetic import clos


def test_a_quantile_is_a_sample_by_nearest_rank() -> None:
    """Nearest rank: p95 of 1..100 is 95, p99 is 99."""
    samples = np.arange(1, 101)
    assert quantiles.quantile(samples, 0.95) == 95
    assert quantiles.quantile(samples, 0.99) == 99


@pytest.mark.parametrize(
    ("label", "needed"), [("p50", 2), ("p95", 20), ("p99", 100), ("p99.9", 1000)]
)
def test_a_quantile_needs_enough_samples_to_differ_from_the_largest(
    label: str, needed: int
) -> None:
    """With fewer than 1 / (1 - q) samples there is no quantile."""
    assert quantiles.distribution(np.arange(needed - 1))[label] is None
    assert quantiles.distribution(np.arange(needed))[label] is not None


def test_a_distribution_of_nothing_has_a_count_only() -> None:
    """No samples: count 0 and no figure."""
    row = quantiles.distribution([])
    assert row.pop("count") == 0
    assert set(row.values()) == {None}


def test_a_thinned_curve_keeps_exact_order_statistics_and_both_ends() -> None:
    """Every point (v, share) has exactly share of the samples at or below v."""
    samples = np.random.default_rng(1).exponential(size=50_000)
    values, shares = quantiles.step_curve(samples, 500)
    assert len(values) <= 500
    assert values[-1] == samples.max()
    assert shares[-1] == 1.0
    below = np.searchsorted(np.sort(samples), values, side="right") / len(samples)
    assert np.allclose(below, shares)


@pytest.mark.parametrize(
    ("kind", "ranks", "factor"),
    [
        ("all_reduce", 8, 1.75),
        ("all_gather", 8, 0.875),
        ("reduce_scatter", 8, 0.875),
        ("all_to_all", 8, 0.875),
        ("broadcast", 8, 1.0),
        ("send_recv", 2, 1.0),
        ("all_reduce", 1, 1.0),
    ],
)
def test_bus_factors_are_those_of_nccl_tests(kind: str, ranks: int, factor: float) -> None:
    """nccl-tests PERFORMANCE.md."""
    assert bandwidth.bus_factor(kind, ranks) == factor


def test_wire_bytes_count_every_header() -> None:
    """A full WRITE packet of 4096 B with RETH and immediate takes 4096 + 82 + 16 + 4 B."""
    sizes = np.array([0, 1, 4096, 4097, 3 << 31], dtype=np.uint64)
    wire = bandwidth.message_wire_bytes(sizes, 4096).tolist()
    assert wire[:4] == [102, 106, 4198, 4284]
    packets = (3 << 31) // 4096
    assert wire[4] == (3 << 31) + 82 * packets + 3 * 16 + 4


def test_the_ideal_of_a_ring_all_reduce_is_the_closed_form() -> None:
    """8 ranks, 1 GiB at 400 Gb/s: S * 1.75 / (50 GB/s * 4096/4178), the latency apart."""
    model = ideal_model(clos(8))
    times = model.collective_ns(np.array([2**30 * 1.75]), np.array([0.0]))
    assert times[0] == pytest.approx(2**30 * 1.75 / 50 * 4178 / 4096)
    assert "49.019 GB/s" in model.formula


def test_the_path_latency_is_delays_and_store_and_forward() -> None:
    """Same leaf: two links of 500 ns and one full frame of 4178 B at 20 ps; across: four, three."""
    model = ideal_model(clos(8))
    near, far = model.path_latency_ns(np.array([0, 0]), np.array([1, 7]), np.array([10**6] * 2))
    assert near == pytest.approx(2 * 500 + 4178 * 0.020)
    assert far == pytest.approx(4 * 500 + 3 * 4178 * 0.020)


def test_the_ideal_of_a_flow_includes_the_way_back_of_its_acknowledgement() -> None:
    """4096 B to the neighbour: transmission, one more hop, two delays; an ACK of 86 B back."""
    model = ideal_model(clos(8))
    (ideal,) = model.flow_ns(np.array([0]), np.array([1]), np.array([4096]))
    ahead = 4198 * 0.020 + 4178 * 0.020 + 1000
    back = 2 * 86 * 0.020 + 1000
    assert ideal == pytest.approx(ahead + back)


def test_the_ideal_on_a_real_network_has_no_latency_that_nobody_knows() -> None:
    """A lower bound: transmission of the message and of its acknowledgement; said so."""
    model = ideal_model(clos(8), is_real_network=True)
    ends = (np.array([0]), np.array([7]), np.array([4096]))
    assert np.isnan(model.path_latency_ns(*ends)).all()
    assert model.flow_ns(*ends) == pytest.approx((4198 + 86) * 0.020)
    for formula in (model.formula, model.flow_formula):
        assert "path latency" not in formula
        assert "latency of the real network is unknown" in formula


def test_serial_steps_follow_the_algorithm() -> None:
    """A ring all-reduce of 8 has 14 dependent steps, halving-doubling 6, a linear all-to-all 1."""
    assert bandwidth.serial_steps("all_reduce", "ring", 8) == 14
    assert bandwidth.serial_steps("all_reduce", "halving_doubling", 8) == 6
    assert bandwidth.serial_steps("all_to_all", "linear", 8) == 1
    assert bandwidth.serial_steps("all_gather", "ring", 1) == 0


def test_fairness_of_even_and_one_sided_loads() -> None:
    """Jain: 1 when even, 1/n when one has all; max/mean: 1 and n; nothing without a load."""
    even, lopsided = np.full(4, 3.0), np.array([8.0, 0, 0, 0])
    assert fairness.jain_index(even) == pytest.approx(1.0)
    assert fairness.jain_index(lopsided) == pytest.approx(0.25)
    assert fairness.max_over_mean(lopsided) == pytest.approx(4.0)
    assert fairness.normalised_entropy(even) == pytest.approx(1.0)
    assert fairness.normalised_entropy(lopsided) == pytest.approx(0.0)
    assert fairness.jain_index(np.zeros(4)) is None


def test_idle_links_count_in_the_balance_of_their_tier() -> None:
    """Two of eight directions between switches carry all: largest/mean 4, Jain 1/4."""
    directions = fabric_names(clos(4)).links
    links = pl.DataFrame(
        {
            "link": ["leaf0-spine0", "leaf1-spine0"],
            "direction": [0, 1],
            "tx_bytes": [1000, 1000],
            "busy_ns": [50, 50],
            "paused_ns": [0, 0],
            "utilisation_ratio": [1.0, 1.0],
        },
        schema_overrides={"direction": pl.UInt8},
    )
    table = loads.link_loads(links, directions, end_ns=100)
    assert table["mean_ratio"].to_list()[:3] == [0.5, 0.5, 0.0]
    (balance,) = loads.tier_balances(table)
    assert (balance.tier, balance.directions) == ("switch to switch", 8)
    assert balance.max_over_mean == pytest.approx(4.0)
    assert balance.jain_index == pytest.approx(0.25)


def test_exposed_communication_is_what_no_computation_hides() -> None:
    """Compute 0-10 and 20-30, communication 5-25 and 40-45, 50 in all."""
    compute = (np.array([0, 20]), np.array([10, 30]))
    communication = (np.array([5, 40]), np.array([25, 45]))
    assert overlap.time_shares(compute, communication, 50) == {
        "compute_ns": 20,
        "communication_ns": 25,
        "exposed_communication_ns": 15,
        "idle_ns": 15,
    }
