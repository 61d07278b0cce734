"""Whole jobs settle where DCQCN's equations say: endpoints, switch and traffic together."""

import json

import numpy as np
import pytest

from emulator.job import Job, JobRequest, build_job
from emulator.predict import predict
from metrics.analysis.fixed_point import (
    FluidParameters,
    approximate_queue_bytes,
    fluid_parameters,
)


def incast(flows: int) -> Job:
    """`flows` senders and one receiver on the lab `paper-40g`."""
    return build_job(
        JobRequest(
            lab="paper-40g",
            overrides=[f"topology.hosts_per_leaf={flows + 1}", "notification_point.mode=immediate"],
            profile=f"incast,size_bytes={600_000_000 // flows},repeats=1",
        )
    )


def test_the_fluid_model_takes_its_parameters_from_the_job() -> None:
    """The paper's, with packets of 1024 B that are 1086 B as frames and 1106 B on the link."""
    assert fluid_parameters(json.loads(incast(4).config_json), 4) == FluidParameters(
        capacity_pps=40e9 / 8 / 1106,
        flows=4,
        additive_increase_pps=40e6 / 8 / 1106,
        rate_increase_period_s=55e-6,
        rate_increase_packets=10e6 / 1086,
        fast_recovery_stages=5,
        cnp_interval_s=50e-6,
        alpha_update_period_s=55e-6,
        kmin_bytes=5e3,
        kmax_bytes=200e3,
        pmax_ratio=0.01,
    )


@pytest.mark.parametrize("flows", [2, 4, 8])
def test_the_queue_of_an_incast_settles_at_the_fluid_models_form_for_small_p(flows: int) -> None:
    job = incast(flows)
    queues = predict(job)["queues"]
    end_ps = int(queues["time_ps"].max())
    inside = queues["is_switch"] & (queues["port"] == 0) & (queues["priority"] == 3)
    inside &= (queues["time_ps"] > 0.4 * end_ps) & (queues["time_ps"] < 0.9 * end_ps)
    depth_bytes = np.asarray(queues["depth_bytes"][inside], dtype=float)
    settled = approximate_queue_bytes(fluid_parameters(json.loads(job.config_json), flows))
    assert depth_bytes.mean() == pytest.approx(settled, rel=0.25)
