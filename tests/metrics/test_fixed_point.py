"""The fixed point of DCQCN's fluid model against the digits of an independent solver."""

import math

import pytest

from metrics.analysis.fixed_point import FluidParameters, approximate_mark_ratio, fixed_point

# 40 Gb/s, packets of 1 KB, the paper's parameters. N: p*, p* for small p, q* in KB, alpha*, CNP/s.
PUBLISHED = {
    1: (3.1823e-4, 3.7027e-4, 11.21, 0.08381, 1530),
    2: (7.7699e-4, 9.2469e-4, 20.15, 0.10136, 1852),
    4: (1.88767e-3, 2.31952e-3, 41.81, 0.12182, 2228),
    8: (4.55211e-3, 5.83151e-3, 93.77, 0.14516, 2658),
    10: (6.03196e-3, 7.84866e-3, 122.62, 0.15328, 2807),
    12: (7.58566e-3, 1.00055e-2, 152.92, 0.16012, 2934),
}


def parameters(flows: int, kmax_bytes: float = 200e3, pmax_ratio: float = 0.01) -> FluidParameters:
    return FluidParameters(
        capacity_pps=5e6,
        flows=flows,
        additive_increase_pps=5e3,
        rate_increase_period_s=55e-6,
        rate_increase_packets=1e4,
        fast_recovery_stages=5,
        cnp_interval_s=50e-6,
        alpha_update_period_s=55e-6,
        kmin_bytes=5e3,
        kmax_bytes=kmax_bytes,
        pmax_ratio=pmax_ratio,
    )


@pytest.mark.parametrize("flows", PUBLISHED)
def test_the_fixed_point_has_the_published_digits(flows: int) -> None:
    mark_ratio, small_p, queue_kb, alpha, cnps = PUBLISHED[flows]
    point = fixed_point(parameters(flows))
    assert point.mark_ratio == pytest.approx(mark_ratio, rel=2e-5)
    assert approximate_mark_ratio(parameters(flows)) == pytest.approx(small_p, rel=2e-5)
    assert point.queue_bytes / 1e3 == pytest.approx(queue_kb, abs=0.006)
    assert point.alpha == pytest.approx(alpha, abs=6e-6)
    assert point.cnps_per_second == pytest.approx(cnps, abs=0.6)


@pytest.mark.parametrize(("flows", "queue_kb"), [(16, 221.91), (64, 1183.1), (100, 1984.3)])
def test_a_longer_slope_holds_more_flows(flows: int, queue_kb: float) -> None:
    point = fixed_point(parameters(flows, kmax_bytes=2e6, pmax_ratio=0.1))
    assert point.queue_bytes / 1e3 == pytest.approx(queue_kb, rel=1e-3)


def test_a_slope_that_ends_before_the_fixed_point_pins_the_queue_at_its_end() -> None:
    point = fixed_point(parameters(15))
    assert point.is_pinned
    assert math.isnan(point.mark_ratio)
    assert point.queue_bytes == 200e3
    assert not fixed_point(parameters(14)).is_pinned
