"""Agents in virtual machines with rankwire's own endpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vm_lab.jobs import column, expect_complete, expect_valid_frames, run_job
from tests.vm_lab.laboratory import GUESTS, Laboratory, on_the_wire

pytestmark = [pytest.mark.kernel_peer, pytest.mark.slow]


def sent_by_guest(laboratory: Laboratory, guest: str) -> int:
    """Packets that the kernel of a guest has sent to the other."""
    return int(laboratory.guests[guest].ask("interface", name="wire0")["tx_packets"])


@pytest.mark.parametrize("driver", ["udp", "af_packet", "af_xdp"])
def test_a_job_runs_between_two_guests(laboratory: Laboratory, tmp_path: Path, driver: str) -> None:
    """Each guest's kernel has sent what its port says; frames that are not RoCEv2's are a few."""
    laboratory.without_rdma()
    laboratory.greet()
    before = [sent_by_guest(laboratory, name) for name in GUESTS]
    ran = run_job(laboratory, tmp_path, laboratory.between_guests(), driver, mtu_bytes=1024)
    run = expect_complete(ran)
    expect_valid_frames(run)
    for rank, name in enumerate(GUESTS):
        own = column(run, "ports", "frames_sent")[rank]
        assert own <= sent_by_guest(laboratory, name) - before[rank] <= own + 50


def test_a_guest_carries_several_ranks(laboratory: Laboratory, tmp_path: Path) -> None:
    """Each has an address of its own; what two of them say to each other stays inside."""
    laboratory.without_rdma()
    places = [on_the_wire(guest, number) for number in range(2) for guest in range(2)]
    run = expect_complete(run_job(laboratory, tmp_path, places, "udp", mtu_bytes=4096))
    expect_valid_frames(run)
    assert [agent["nodes"] for agent in run["control"]["agents"]] == [["n0", "n2"], ["n1", "n3"]]


@pytest.mark.privileged
def test_a_job_runs_between_a_guest_and_the_host(laboratory: Laboratory, tmp_path: Path) -> None:
    """The host's agent sends from a namespace; both find the controller at their own address."""
    places = laboratory.guest_and_host()
    laboratory.without_rdma()
    run = expect_complete(run_job(laboratory, tmp_path, places, "udp", mtu_bytes=4096))
    expect_valid_frames(run)
