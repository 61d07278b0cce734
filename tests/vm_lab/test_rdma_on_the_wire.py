"""What an RDMA device makes of a lab's settings: its packets as the peer's kernel sees them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.vm_lab.jobs import column, expect_complete, run_job
from tests.vm_lab.laboratory import GUEST_TO_HOST, HOST_TO_GUEST, Laboratory
from tests.vm_lab.sniffer import packets, sniffer

pytestmark = [pytest.mark.kernel_peer, pytest.mark.slow, pytest.mark.privileged]

# DSCP 26 with ECT(0): the defaults of a lab, and what an adapter gives its acknowledgements too.
TRAFFIC_CLASS = 26 << 2 | 2
TRANSPORT: dict[str, Any] = {
    "retransmission_timeout_ns": 4_000_000_000,
    "qps_per_peer": 2,
    "qp_distribution": "split",
    "clear_to_send": True,
}


def test_packets_have_the_planned_source_ports_and_the_labs_traffic_class(
    laboratory: Laboratory, tmp_path: Path
) -> None:
    """Also with two queue pairs each way, which messages are spread over and cleared on.

    The soft endpoint sends from the planned ports; a device that chose its own would have others.
    """
    guest, host = laboratory.guest_and_host()
    laboratory.with_rdma()
    assert laboratory.cable is not None
    places = (replace(guest, driver="verbs"), replace(host, driver="udp"))
    keys: dict[str, Any] = {"time_dilation": 1, "rate_gbps": 0.02, "transport": TRANSPORT}
    with sniffer(laboratory.cable) as listener:
        ran = run_job(laboratory, tmp_path, places, "udp", mtu_bytes=4096, **keys)
        seen = packets(listener)
    run = expect_complete(ran)
    assert column(run, "nics", "payload_mismatches") == [0, 0]
    assert min(column(run, "nics", "clear_to_send_sent")) > 0
    by_device = [packet for packet in seen if packet.source == GUEST_TO_HOST]
    assert len(by_device) == column(run, "ports", "frames_received")[0]
    assert {packet.traffic_class for packet in by_device} == {TRAFFIC_CLASS}
    assert {packet.time_to_live for packet in by_device} == {64}
    ports = {packet.source_port for packet in by_device}
    assert len(ports) == 4
    assert ports == {packet.source_port for packet in seen if packet.source == HOST_TO_GUEST}
