"""The kernel's counters in the report: a row for each port, and the marks against the profile."""

from typing import Any

import pytest

from metrics.report.charts.marks import marks_by_depth
from metrics.report.kernel_table import kernel_table

KERNEL: dict[str, list[Any]] = {
    "node": ["host0", "leaf0"],
    "port": [0, 3],
    "link": ["host0-leaf0", "host0-leaf0"],
    "direction": [0, 1],
    "is_switch": [False, True],
    "tx_bytes": [1000, 500],
    "rx_bytes": [500, 1000],
    "tx_packets": [10, 5],
    "overlimits": [7, 0],
    "tx_dropped_packets": [0, 1],
    "queue_dropped_packets": [0, 2],
    "dropped_packets": [None, 4],
    "capable_packets": [None, 200],
    "marked_packets": [None, 50],
    "bucket_bytes": [None, 100],
    "histogram": [None, [100, 60, 3, 37]],
    "marked_histogram": [None, [0, 13, 3, 37]],
}
PORTS = {"bytes_sent": [1000], "bytes_received": [496]}
PROFILE = {"kmin_bytes": 100, "kmax_bytes": 200, "pmax_ratio": 0.5}
JOB = {"switches": [{"priorities": [{"ecn": None}, {"ecn": PROFILE}]}]}


def test_drops_of_every_kind_are_one_number_and_marks_have_a_share() -> None:
    body, _ = kernel_table(KERNEL, PORTS)
    assert body.count("<tr>") == 3
    assert ">7<" in body
    assert "25.0 %" in body


def test_hosts_and_drivers_are_compared_byte_for_byte() -> None:
    _, note = kernel_table(KERNEL, PORTS)
    assert "sent 1,000 by the kernel, 1,000 by the drivers: the same" in note
    assert "received 500 by the kernel, 496 by the drivers: 4 apart" in note


def test_bytes_without_ethernet_headers_are_explained() -> None:
    """Under XDP veth leaves out 14 bytes of each received frame, to the byte."""
    ports = {"bytes_received": [542], "frames_received": [3]}
    assert (
        "received 500 by the kernel, 542 by the drivers: the same without"
        in kernel_table(KERNEL, ports)[1]
    )
    assert "43 apart" in kernel_table(KERNEL, ports | {"bytes_received": [543]})[1]


def test_marks_are_shown_where_there_are_packets_enough() -> None:
    chart = marks_by_depth(KERNEL, JOB)
    assert chart is not None
    assert "200 packets at 1 ports" in chart.note
    assert [series["name"] for series in chart.data] == ["profile", "measured"]


@pytest.mark.parametrize(
    ("change", "job"),
    [
        ({}, {"switches": []}),
        ({"bucket_bytes": [None, None]}, JOB),
        ({"histogram": [None, [100, 0, 0, 0]]}, JOB),
    ],
)
def test_nothing_is_shown_without_queues_marks_or_profile(
    change: dict[str, Any], job: dict[str, Any]
) -> None:
    assert marks_by_depth(KERNEL | change, job) is None
