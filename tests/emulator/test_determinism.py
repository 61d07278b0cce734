"""A seed decides every record bit for bit, on any machine: digests of small jobs are kept here.

A digest that differs is a change of what a prediction says. If it was meant, say so in the
changelog, and take the new one from the failure.
"""

import hashlib
from collections.abc import Mapping

import pytest

from emulator.job import Job, JobRequest, build_job
from emulator.predict import predict

COLUMNS = {
    "ops": "rank op start_ps end_ps retransmitted_packets marked_packets cnps",
    "links": "time_ps interval_ps link direction tx_bytes tx_packets data_bytes busy_ps paused_ps",
    "queues": "time_ps interval_ps node is_switch port priority depth_bytes max_depth_bytes "
    "marked_packets dropped_packets dropped_bytes pause_frames_sent pause_frames_received",
    "qps": "time_ps source_rank destination_rank qp current_rate_bps target_rate_bps alpha",
}
"""What the digests are over; columns that come later don't change them."""

GOLDEN = {
    # DCQCN, marking by chance, ECMP. Without skew and jitter nothing is drawn outside the engine.
    "dcqcn": (
        JobRequest("loopback-clos", profile="moe-training,skew=0,jitter=0"),
        "be14d012cd3e7a8d7e441a3b9e6f3375",
    ),
    # Swift's window and its square roots; a window of packets sprayed by chance.
    "swift": (
        JobRequest(
            "loopback-clos",
            (
                "congestion_control={algorithm: swift}",
                "switches.path_selection={mode: packet}",
                "transport.loss_recovery=selective_repeat",
                "transport.reordering_packets=64",
            ),
            profile="all-to-all",
            seed=2,
        ),
        "ef8a60388453191b88805a9dba63afe5",
    ),
}
"""A name -> a job and the digest of its records."""


FLUID_COLUMNS = {
    "ops": "rank op start_ps end_ps",
    "links": "time_ps interval_ps link direction tx_bytes tx_packets data_bytes busy_ps",
}


def digest(job: Job, columns: Mapping[str, str] = COLUMNS) -> str:
    """SHA-256 over names, types and bytes of the engine's columns, little-endian."""
    records = predict(job)
    total = hashlib.sha256()
    for table, names in columns.items():
        for name in names.split():
            column = records[table][name]
            little = column.astype(column.dtype.newbyteorder("<"))
            total.update(f"{table}.{name} {little.dtype.str}".encode())
            total.update(little.tobytes())
    return total.hexdigest()[:32]


@pytest.mark.parametrize("name", GOLDEN)
def test_the_records_of_a_fixed_job_are_those_that_were_kept(name: str) -> None:
    request, expected = GOLDEN[name]
    job = build_job(request)
    assert digest(job) == expected
    assert digest(job) == expected, "a second prediction of the same job differs"


def test_flows_give_the_records_that_were_kept() -> None:
    """Rates are floating point numbers; additions to divisions are the same on every machine."""
    profile = "moe-training,skew=0,jitter=0"
    job = build_job(JobRequest("loopback-clos", profile=profile, model="fluid"))
    assert digest(job, FLUID_COLUMNS) == "8645129918edfc32dd5418635f843a10"


def test_flows_on_links_that_fail_give_the_records_that_were_kept() -> None:
    """An uplink fails under a collective, flows are rerouted, another uplink slows down."""
    profile = "moe-training,skew=0,jitter=0"
    job = build_job(JobRequest("link-flap", profile=profile, model="fluid"))
    assert digest(job, FLUID_COLUMNS) == "1bbdfda787b65b86567a979ff321687b"
