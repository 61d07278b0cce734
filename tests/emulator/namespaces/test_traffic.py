"""What crosses a lab: every path, spread by flows, at the links' rates, marked by the profile.

Real packets in real time, in the namespaces alone; a few seconds each.
"""

import socket
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from emulator.lab import load
from emulator.namespaces import (
    Layout,
    PortCounters,
    bring_up,
    counters,
    difference,
    lay_out,
    take_down,
)
from emulator.namespaces.shaping import burst_bytes
from tests.emulator.namespaces.labs import lab_name, lab_up, needs_root, udp_socket
from tests.emulator.namespaces.traffic import (
    CE,
    HEADERS_BYTES,
    Arrivals,
    Receiver,
    line_bytes,
    sawtooth,
    send,
)

pytestmark = [pytest.mark.privileged, needs_root]

SO_SNDBUFFORCE = 32
RATE_BPS = 100_000_000
KMIN_BYTES, KMAX_BYTES, PMAX = 60_000, 180_000, 0.8
PAYLOAD_BYTES = 958  # 1 kB with headers: many packets in little time
BOTTLENECK = """\
name: {name}
namespaces: {{shaper: {shaper}}}
topology:
  kind: explicit
  nics: [{{name: fast}}, {{name: slow}}]
  switches: [{{name: switch, ports: 2}}]
  links:
    - {{ends: [fast, "switch:0"], rate_gbps: 10}}
    - {{ends: [slow, "switch:1"], rate_gbps: 0.1}}
switches:
  buffer_bytes: 8_000_000
  ecn: {{kmin_bytes: {kmin}, kmax_bytes: {kmax}, pmax_ratio: {pmax}}}
  pfc: {{enabled: false}}
congestion_control: {{algorithm: fixed_rate}}
"""


@pytest.fixture(scope="module")
def clos() -> Iterator[Layout]:
    """Eight hosts, two leaves, two spines."""
    with lab_up() as layout:
        yield layout


@pytest.fixture(params=["htb", "tbf"], scope="module")
def bottleneck(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Layout]:
    """A host with 10 Gb/s and one with 100 Mb/s on a switch: the queue is at the switch."""
    values = {"kmin": KMIN_BYTES, "kmax": KMAX_BYTES, "pmax": PMAX, "shaper": request.param}
    path = tmp_path_factory.mktemp("bottleneck") / "lab.yaml"
    path.write_text(BOTTLENECK.format(name=lab_name(), **values))
    layout = lay_out(load(path))
    bring_up(layout)
    yield layout
    take_down(layout.lab)


def of_port(ports: tuple[PortCounters, ...], node: str, number: int) -> PortCounters:
    return next(port for port in ports if (port.node, port.port) == (node, number))


def test_flows_spread_evenly_over_every_path_and_none_is_lost(clos: Layout) -> None:
    """2048 flows over four uplinks: a quarter each, 4 standard deviations are 0.038."""
    before = counters(clos)
    address = clos.hosts["host7"].address
    with Receiver(clos, "host7") as receiver:
        for flow in range(2048):
            with udp_socket(clos, "host0", 20_000 + flow) as sender:
                send(sender, address, 64)
    counted = difference(before, counters(clos))
    assert len(receiver.arrivals.type_of_service) == 2048
    shares = [of_port(counted, "leaf0", port).tx_packets / 2048 for port in range(4, 8)]
    assert sum(shares) == pytest.approx(1)
    assert all(0.2 < share < 0.3 for share in shares), shares
    down = [
        port.tx_packets
        for port in counted
        if port.node.startswith("spine") and "leaf1" in port.link
    ]
    assert len(down) == 4
    assert all(down), "a link from a spine to the leaf carried nothing"


def test_a_flow_keeps_to_one_path(clos: Layout) -> None:
    before = counters(clos)
    sender = udp_socket(clos, "host0", 20_000)
    with Receiver(clos, "host7") as receiver:
        for _ in range(50):
            send(sender, clos.hosts["host7"].address, 64)
    sender.close()
    counted = difference(before, counters(clos))
    uplinks = [of_port(counted, "leaf0", port).tx_packets for port in range(4, 8)]
    assert sorted(uplinks) == [0, 0, 0, 50]
    assert len(receiver.arrivals.sent_ns) == 50


def test_a_link_has_its_rate(bottleneck: Layout) -> None:
    """Frames with preamble and gap, between the kernel's time stamps of the arrivals.

    The median gap is a packet's time on the line. All together are never faster; on a machine that
    has more to do the shaper's timer is late now and then, and they are slower.
    """
    address = bottleneck.hosts["slow"].address
    sender = udp_socket(bottleneck, "fast")
    with Receiver(bottleneck, "slow") as receiver:
        for _ in range(200):
            send(sender, address, 4096)
    sender.close()
    # The first packets leave at once, the burst that the shaper allows; and the kernel takes a
    # moment to begin with stamping arrivals before it hands them to the socket.
    arrivals = receiver.arrivals
    del arrivals.arrived_ns[:30]
    packet_ns = line_bytes(4096) * 8e9 / RATE_BPS
    assert np.median(np.diff(arrivals.arrived_ns)) == pytest.approx(packet_ns, rel=0.03)
    assert 0.8 * RATE_BPS < arrivals.rate_bps(4096) < 1.03 * RATE_BPS


def test_marks_follow_the_profile(bottleneck: Layout) -> None:
    """By the program's own histogram, and by how long each packet waited: the same curve.

    A packet that arrives has a valid IP checksum: the kernel drops it else.
    """
    assert error_by_waiting(sent_with_sawtooth(bottleneck)) < 0.05


def sent_with_sawtooth(bottleneck: Layout) -> Arrivals:
    """What arrives when a sawtooth is sent, whose marks are those of the profile."""
    before = counters(bottleneck)
    sender = udp_socket(bottleneck, "fast")
    address = bottleneck.hosts["slow"].address
    with Receiver(bottleneck, "slow") as receiver:
        sawtooth(sender, address, PAYLOAD_BYTES, 240_000, RATE_BPS, teeth=60)
    sender.close()
    marking = of_port(difference(before, counters(bottleneck)), "switch", 1).marking
    assert marking is not None
    ecn = np.array(receiver.arrivals.type_of_service) & 3
    assert marking.contended_packets == 0
    assert marking.capable_packets == len(ecn) == sum(marking.histogram)
    assert marking.marked_packets == np.sum(ecn == CE)

    packets, marked = np.array(marking.histogram), np.array(marking.marked_histogram)
    lower = np.arange(len(packets)) * marking.bucket_bytes
    upper = lower + marking.bucket_bytes
    assert marked[upper <= KMIN_BYTES].sum() == 0
    above = lower > KMAX_BYTES
    assert packets[above].sum() > 100
    assert np.array_equal(marked[above], packets[above])
    between = (lower >= KMIN_BYTES) & (upper <= KMAX_BYTES)
    assert rms_error(packets[between], marked[between], (lower + upper)[between] / 2) < 0.03
    return receiver.arrivals


def error_by_waiting(arrivals: Arrivals) -> float:
    """The marks' error against the profile at the depth that each packet's waiting stands for."""
    waited_bytes = arrivals.waited_ns * RATE_BPS / 8e9
    depth = waited_bytes + burst_bytes(RATE_BPS, 4200) - line_bytes(PAYLOAD_BYTES)
    is_marked = np.array(arrivals.type_of_service) & 3 == CE
    edges = np.linspace(KMIN_BYTES, KMAX_BYTES, 17)
    packets, marked = (np.histogram(of, edges)[0] for of in (depth, depth[is_marked]))
    return rms_error(packets, marked, (edges[1:] + edges[:-1]) / 2)


Counts = NDArray[np.int64]


def rms_error(packets: Counts, marked: Counts, depth_bytes: NDArray[np.float64]) -> float:
    """Of the marked share against the profile, over pairs of buckets, weighted by packets."""
    profile = PMAX * (depth_bytes - KMIN_BYTES) / (KMAX_BYTES - KMIN_BYTES)
    expected = np.add.reduceat(packets * profile, np.arange(0, len(packets), 2))
    packets, marked = (np.add.reduceat(x, np.arange(0, len(x), 2)) for x in (packets, marked))
    assert packets.min() > 300, packets
    return float(np.sqrt(np.average(((marked - expected) / packets) ** 2, weights=packets)))


def test_what_cannot_be_marked_is_left_alone_and_a_full_buffer_drops(bottleneck: Layout) -> None:
    before = counters(bottleneck)
    sender = udp_socket(bottleneck, "fast")
    with Receiver(bottleneck, "slow") as receiver:
        for _ in range(1200):
            send(sender, bottleneck.hosts["slow"].address, 4096, type_of_service=0)
    sender.close()
    marking = of_port(difference(before, counters(bottleneck)), "switch", 1).marking
    assert marking is not None
    assert (marking.capable_packets, marking.marked_packets) == (0, 0)
    assert set(receiver.arrivals.type_of_service) == {0}
    assert marking.dropped_packets > 0
    assert len(receiver.arrivals.type_of_service) == 1200 - marking.dropped_packets


def test_notifications_overtake_data() -> None:
    """The CNP's DSCP has a strict priority: it waits for a packet on the line, data for a queue."""
    with lab_up("time_dilation=40000") as layout:
        address = layout.hosts["host1"].address
        data, cnp = udp_socket(layout, "host0"), udp_socket(layout, "host0")
        data.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 4 << 20)
        with Receiver(layout, "host1") as receiver:
            for _ in range(60):
                send(data, address, 4096, type_of_service=26 << 2)
            send(cnp, address, 64, type_of_service=48 << 2)
        data.close()
        cnp.close()
    service = np.array(receiver.arrivals.type_of_service)
    (place,) = np.flatnonzero(service >> 2 == 48)
    assert len(service) == 61
    assert place < 10, "it came behind the data that was sent before it"
    assert receiver.arrivals.waited_ns[place] < receiver.arrivals.waited_ns[-1] / 2


def test_counters_agree_with_what_was_sent(bottleneck: Layout) -> None:
    before = counters(bottleneck)
    sender = udp_socket(bottleneck, "fast")
    with Receiver(bottleneck, "slow"):
        for _ in range(20):
            send(sender, bottleneck.hosts["slow"].address, 1000)
    sender.close()
    for port in difference(before, counters(bottleneck)):
        forward = (port.node, port.port) in {("fast", 0), ("switch", 1)}
        sent = (20, 20 * (1000 + HEADERS_BYTES))
        assert (port.tx_packets, port.tx_bytes) == (sent if forward else (0, 0))
        assert (port.rx_packets, port.rx_bytes) == ((0, 0) if forward else sent)
        assert (port.queued_packets, port.queued_bytes) == (port.tx_packets, port.tx_bytes)
        assert port.backlog_bytes == port.queue_dropped_packets == 0
