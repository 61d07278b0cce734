"""Whole jobs settle where DCQCN's equations say: endpoints, switch and traffic together."""

import numpy as np
import pytest

from emulator.job import JobRequest, build_job
from emulator.predict import predict
from metrics.analysis.fixed_point import FluidParameters, approximate_mark_ratio

WIRE_BYTES = 1106
SLOPE_BYTES = (200e3 - 5e3) / 0.01


def small_p_queue_bytes(flows: int) -> float:
    """The queue of the fluid model's form for small p, for the lab `paper-40g`."""
    fluid = FluidParameters(
        capacity_pps=40e9 / 8 / WIRE_BYTES,
        flows=flows,
        additive_increase_pps=40e6 / 8 / WIRE_BYTES,
        rate_increase_period_s=55e-6,
        rate_increase_packets=10e6 / (WIRE_BYTES - 20),
        fast_recovery_stages=5,
        cnp_interval_s=50e-6,
        alpha_update_period_s=55e-6,
        kmin_bytes=5e3,
        kmax_bytes=200e3,
        pmax_ratio=0.01,
    )
    return 5e3 + approximate_mark_ratio(fluid) * SLOPE_BYTES


@pytest.mark.parametrize("flows", [2, 4, 8])
def test_the_queue_of_an_incast_settles_at_the_fluid_models_form_for_small_p(flows: int) -> None:
    request = JobRequest(
        lab="paper-40g",
        overrides=[f"topology.hosts_per_leaf={flows + 1}", "notification_point.mode=immediate"],
        profile=f"incast,size_bytes={600_000_000 // flows},repeats=1",
    )
    queues = predict(build_job(request))["queues"]
    end_ps = int(queues["time_ps"].max())
    inside = queues["is_switch"] & (queues["port"] == 0) & (queues["priority"] == 3)
    inside &= (queues["time_ps"] > 0.4 * end_ps) & (queues["time_ps"] < 0.9 * end_ps)
    depth_bytes = np.asarray(queues["depth_bytes"][inside], dtype=float)
    assert depth_bytes.mean() == pytest.approx(small_p_queue_bytes(flows), rel=0.25)
