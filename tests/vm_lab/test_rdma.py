"""Agents in virtual machines whose NICs are RDMA devices: the driver `verbs` over rdma_rxe."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from metrics.records import load
from tests.emulator.control.processes import command
from tests.vm_lab.jobs import (
    RUN_TIMEOUT_S,
    column,
    expect_complete,
    expect_valid_frames,
    lab_file,
    run_job,
    wait_for_traffic,
)
from tests.vm_lab.laboratory import GUESTS, Laboratory, on_the_wire

pytestmark = [pytest.mark.kernel_peer, pytest.mark.slow]

# Devices can't be slowed, so time is not stretched; the rate is the soft endpoint's alone.
# The timeout is longer than a guest is ever busy with something else.
REAL_TIME: dict[str, Any] = {
    "time_dilation": 1,
    "rate_gbps": 0.02,
    "transport": {"retransmission_timeout_ns": 4_000_000_000},
}
# Some seconds of traffic, and less than the retries last.
LONG_JOB = "all-reduce,repeats=16,size_bytes=524288"
OUTAGE_S = 0.5


def adapter_counters(run: Mapping[str, Any]) -> dict[int, dict[str, int]]:
    """What each rank's device has counted during the run, as the records have it."""
    found: dict[int, dict[str, int]] = {}
    table = run["counters"]["adapter_counters"]
    for nic, name, value in zip(table["nic"], table["name"], table["value"], strict=True):
        found.setdefault(nic, {})[name] = value
    return found


def kernel_counters(laboratory: Laboratory, guest: str, card: str) -> dict[str, int]:
    """What the kernel of a guest says of the device on a card."""
    return laboratory.guests[guest].ask("rdma", device=f"rxe_{card}")


def growth(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """By how much counters have grown."""
    return {name: after[name] - before[name] for name in after}


def expect_no_trouble(counted: Mapping[str, int]) -> None:
    """The device had nothing to send again, to refuse or to drop."""
    quiet = set(counted) - {"sent_pkts", "rcvd_pkts", "rdma_recvs", "rdma_sends", "ack_deferred"}
    assert {name: counted[name] for name in quiet} == dict.fromkeys(quiet, 0)


@pytest.mark.parametrize("mtu_bytes", [1024, 4096])
def test_a_job_runs_between_the_rdma_devices_of_two_guests(
    laboratory: Laboratory, tmp_path: Path, mtu_bytes: int
) -> None:
    """What one kernel sent the other received, and the records have the kernels' counters."""
    laboratory.with_rdma()
    before = [kernel_counters(laboratory, name, "wire0") for name in GUESTS]
    places = laboratory.between_guests()
    ran = run_job(laboratory, tmp_path, places, "verbs", mtu_bytes=mtu_bytes, **REAL_TIME)
    run = expect_complete(ran)
    after = [kernel_counters(laboratory, name, "wire0") for name in GUESTS]
    kernels = [growth(*counters) for counters in zip(before, after, strict=True)]
    assert adapter_counters(run) == dict(enumerate(kernels))
    for counted in kernels:
        expect_no_trouble(counted)
    assert kernels[0]["sent_pkts"] == kernels[1]["rcvd_pkts"]
    assert kernels[1]["sent_pkts"] == kernels[0]["rcvd_pkts"]
    sent, received = (
        column(run, "nics", f"data_payload_bytes_{what}") for what in ("sent", "received")
    )
    assert sent == received[::-1] == column(run, "adapters", "bytes_posted")
    data_packets = sent[0] // mtu_bytes
    messages = column(run, "adapters", "messages_received")[0]
    # And at most one acknowledgement for each packet, at least one for each message.
    assert messages <= kernels[0]["sent_pkts"] - data_packets <= data_packets
    assert column(run, "adapters", "payload_mismatches") == [0, 0]


def test_a_device_carries_several_ranks(laboratory: Laboratory, tmp_path: Path) -> None:
    """Each has an address and a GID of its own; what two of them say stays in the device."""
    laboratory.with_rdma()
    places = [on_the_wire(guest, number) for number in range(2) for guest in range(2)]
    ran = run_job(laboratory, tmp_path, places, "verbs", mtu_bytes=4096, **REAL_TIME)
    run = expect_complete(ran)
    assert column(run, "adapters", "payload_mismatches") == [0] * 4
    for counted in adapter_counters(run).values():
        expect_no_trouble(counted)


@pytest.mark.privileged
@pytest.mark.parametrize("mtu_bytes", [1024, 4096])
def test_a_job_runs_between_an_rdma_device_and_the_soft_endpoint(
    laboratory: Laboratory, tmp_path: Path, mtu_bytes: int
) -> None:
    """The kernel took every frame of rankwire's, and rankwire every one of the kernel's."""
    guest, host = laboratory.guest_and_host()
    laboratory.with_rdma()
    places = (replace(guest, driver="verbs"), replace(host, driver="udp"))
    ran = run_job(laboratory, tmp_path, places, "udp", mtu_bytes=mtu_bytes, **REAL_TIME)
    run = expect_complete(ran)
    expect_valid_frames(run)
    counted = adapter_counters(run)[0]
    expect_no_trouble(counted)
    assert column(run, "ports", "frames_sent") == [counted["rcvd_pkts"]]
    assert column(run, "ports", "frames_received") == [counted["sent_pkts"]]
    nics = run["counters"]["nics"]
    assert nics["data_payload_bytes_received"] == nics["data_payload_bytes_sent"][::-1]
    assert nics["retransmitted_packets"] == [0, 0]


@pytest.mark.privileged
def test_a_pulled_cable_is_survived_by_both_kinds_of_endpoints(
    laboratory: Laboratory, tmp_path: Path
) -> None:
    """What was lost is sent again, and every collective completes."""
    guest, host = laboratory.guest_and_host()
    laboratory.with_rdma()
    places = (replace(guest, driver="verbs"), replace(host, driver="udp"))
    keys = REAL_TIME | {"transport": {"mtu_bytes": 1024, "retransmission_timeout_ns": 250_000_000}}
    lab = lab_file(laboratory, tmp_path / "lab.yaml", places, "udp", **keys)
    out = tmp_path / "run"
    words = ("run", str(lab), "--profile", LONG_JOB, "--out", str(out), "--quiet")
    with command(*words, directory=tmp_path) as process:
        wait_for_traffic(laboratory, guest, process)
        assert laboratory.cable is not None
        with laboratory.cable.pulled():
            time.sleep(OUTAGE_S)
        _, said = process.communicate(timeout=RUN_TIMEOUT_S)
    assert process.returncode == 0, said
    run = load(out).run
    assert run["ops_done"] == run["ops_total"] > 0
    assert run["byte_conservation"]["holds"]
    # The kernel is quicker, and may have had nothing under way.
    assert sum(column(run, "nics", "retransmitted_packets")) > 0


def test_a_guest_without_a_device_is_told_how_to_get_one(
    laboratory: Laboratory, tmp_path: Path
) -> None:
    """Before anything is sent."""
    laboratory.without_rdma()
    places = laboratory.between_guests()
    ran = run_job(laboratory, tmp_path, places, "verbs", mtu_bytes=1024, **REAL_TIME)
    assert ran.ended.status == 1
    assert "this host has no RDMA device" in ran.ended.err
    assert "rdma link add" in ran.ended.err
