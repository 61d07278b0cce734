"""Labs of network namespaces: how long they take to build, and what shaping and marking cost.

A Clos of 64 hosts, 8 leaves and 4 spines is brought up and taken down. Then one sender sends UDP
packets with a 4096-byte payload as fast as it can over leaf, spine and leaf, in turns through a lab
with HTB and the marking program on every port and through one with neither. Needs root.

    python -m bench.namespaces [--json]
"""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench._report import Figure, Ratio, Report, ratios, show
from dataplane.errors import InputError
from emulator.lab import load
from emulator.namespaces import Layout, bring_up, counters, difference, lay_out, take_down
from emulator.namespaces.kernel import inside

BUILDS = 3
ROUNDS = 5
SECONDS = 1.0
PAYLOAD_BYTES = 4096
PACKETS_PER_CALL = 8
UDP_SEGMENT = 103
MOST_UP_S, MOST_DOWN_S = 15.0, 10.0

LARGE = (
    "topology.leaves=8",
    "topology.spines=4",
    "topology.hosts_per_leaf=8",
    "switches.buffer_bytes=67108864",
)
FAST = ("time_dilation=10",)
"""40 Gb/s per link: more than one processor sends, so that nothing waits."""
BARE = (*FAST, "namespaces.shaper=none", "namespaces.marking=none")


def main() -> int:
    """Measure and print; 1 above the times that are promised."""
    return show("Labs of network namespaces.", measure)


def measure() -> Report:
    """Both, or a remark where namespaces cannot be made."""
    report = Report(f"64 hosts, 8 leaves, 4 spines; then packets of {PAYLOAD_BYTES} B over 3 hops")
    try:
        up_s, down_s = builds()
        shaped, bare = rates()
    except InputError as error:
        report.remarks.append(f"left out: {error}")
        return report
    report.figures = [
        Figure("up: 76 namespaces, 96 links", "s", up_s),
        Figure("down", "s", down_s),
        Figure("with HTB and marking on every port", "packets/s", shaped),
        Figure("with neither", "packets/s", bare),
    ]
    limits = [MOST_UP_S] * BUILDS, [MOST_DOWN_S] * BUILDS
    report.ratios = [
        Ratio("up", f"{MOST_UP_S:g} s", ratios(up_s, limits[0]), below=1),
        Ratio("down", f"{MOST_DOWN_S:g} s", ratios(down_s, limits[1]), below=1),
        Ratio("shaped and marked, end to end", "the same path without", ratios(shaped, bare)),
    ]
    return report


def builds() -> tuple[list[float], list[float]]:
    """Seconds of each time up and each time down."""
    layout = lay_out(load("netns-clos", [f"name=bench-{os.getpid()}", *LARGE]))
    up_s, down_s = [], []
    for _ in range(BUILDS):
        began_s = time.perf_counter()
        bring_up(layout)
        up_s.append(time.perf_counter() - began_s)
        began_s = time.perf_counter()
        take_down(layout.lab)
        down_s.append(time.perf_counter() - began_s)
    return up_s, down_s


def rates() -> tuple[list[float], list[float]]:
    """Packets per second that arrive, shaped and bare, in turns."""
    shaped, bare = [], []
    with lab_up("shaped", FAST) as with_queues, lab_up("bare", BARE) as without:
        for _ in range(ROUNDS):
            shaped.append(arrivals_per_s(with_queues))
            bare.append(arrivals_per_s(without))
    return shaped, bare


@contextmanager
def lab_up(kind: str, overrides: tuple[str, ...]) -> Iterator[Layout]:
    """A lab for as long as the block lasts."""
    layout = lay_out(load("netns-clos", [f"name=bench-{os.getpid()}-{kind}", *overrides]))
    bring_up(layout)
    try:
        yield layout
    finally:
        take_down(layout.lab)


def arrivals_per_s(layout: Layout) -> float:
    """Send from the first host to the last for a second; its interface counts what arrives."""
    source, target = layout.hosts["host0"], layout.hosts["host7"]
    with udp_socket(source.namespace) as sender, udp_socket(target.namespace) as receiver:
        receiver.bind((target.address, 4791))
        sender.connect((target.address, 4791))
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, PAYLOAD_BYTES)
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 106)
        data = bytes(PAYLOAD_BYTES * PACKETS_PER_CALL)
        before, began_s = counters(layout), time.perf_counter()
        while time.perf_counter() - began_s < SECONDS:
            sender.send(data)
        passed_s = time.perf_counter() - began_s
        counted = difference(before, counters(layout))
    return next(port for port in counted if port.node == target.name).rx_packets / passed_s


def udp_socket(namespace: str) -> socket.socket:
    """A UDP socket inside a namespace."""
    with inside(namespace):
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


if __name__ == "__main__":
    raise SystemExit(main())
