"""What only the driver `af_packet` promises, and that it and `udp` are the same on the wire."""

import subprocess
import time
from collections.abc import Iterator

import pytest

import dataplane
from nic_drivers import DriverError
from nic_drivers.port import AfPacketDriver, PortDriver, PortOptions, UdpDriver
from tests.namespaces import Host, hosts, ip

Pair = tuple[Host, Host]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Two hosts with a cable on which bursts are cut, as on the way to a real network."""
    with hosts(2) as (left, right):
        for host in (left, right):
            ip("-n", host.namespace, "link", "set", host.interface, "gso_max_size", "3000")
        yield left, right


def options(host: Host, *destinations: str) -> PortOptions:
    return PortOptions(host.address, namespace=host.namespace, destinations=destinations)


def frames(pair: Pair, count: int) -> list[bytes]:
    return [
        dataplane.encode_roce(
            source_address=pair[0].address,
            destination_address=pair[1].address,
            psn=number,
            payload=bytes(1024),
        )
        for number in range(count)
    ]


def receive(driver: PortDriver, count: int) -> list[dict[str, object]]:
    """Decode what comes; that verifies header checksum and ICRC."""
    taken: list[bytes] = []
    deadline = time.monotonic() + 5.0
    while len(taken) < count and time.monotonic() < deadline:
        taken += driver.receive_batch(count - len(taken))
    assert len(taken) == count
    return [dataplane.decode_roce(frame) for frame in taken]


def icmp_unreachable(host: Host) -> int:
    """How often a host's kernel has said that nobody is there."""
    command = ["ip", "netns", "exec", host.namespace, "cat", "/proc/net/snmp"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names, values = (line.split() for line in shown.splitlines() if line.startswith("Icmp:"))
    return int(values[names.index("OutDestUnreachs")])


@pytest.mark.parametrize("sender", [UdpDriver, AfPacketDriver])
def test_frames_have_the_icrc_of_the_identification_on_the_wire(
    pair: Pair, sender: type[PortDriver]
) -> None:
    """Read from whole frames behind the place where bursts are cut."""
    left, right = pair
    with (
        sender(options(left, right.address)) as a,
        AfPacketDriver(options(right, left.address)) as b,
    ):
        assert a.send_batch(frames(pair, 30)) == 30
        taken = receive(b, 30)
        assert a.native_counters()["bursts_sent"] == 1
        assert b.native_counters()["bursts_received"] == 30
    assert [fields["identification"] for fields in taken] == list(range(30))
    assert [fields["psn"] for fields in taken] == list(range(30))


def test_bursts_are_no_larger_than_the_interface_allows() -> None:
    """A lab that sets `gso_max_segs` to 1 wants each packet for itself."""
    with hosts(2) as (left, right):
        ip("-n", left.namespace, "link", "set", left.interface, "gso_max_segs", "1")
        with AfPacketDriver(options(left, right.address)) as a:
            a.send_batch(frames((left, right), 10))
            assert a.native_counters()["bursts_sent"] == 10


def test_udp_takes_what_af_packet_sends(pair: Pair) -> None:
    """Also bursts: their UDP checksum is right, or the kernel would drop them."""
    left, right = pair
    with AfPacketDriver(options(left, right.address)) as a, UdpDriver(options(right)) as b:
        a.send_batch(frames(pair, 1))
        assert [fields["psn"] for fields in receive(b, 1)] == [0]
        a.send_batch(frames(pair, 20))
        time.sleep(0.05)
        assert len(b.receive_batch(20)) == 20


def test_the_kernel_does_not_answer_for_the_endpoint(pair: Pair) -> None:
    """It would say that nobody has UDP port 4791."""
    left, right = pair
    before = icmp_unreachable(right)
    with (
        AfPacketDriver(options(left, right.address)) as a,
        AfPacketDriver(options(right, left.address)) as b,
    ):
        a.send_batch(frames(pair, 5))
        receive(b, 5)
        with pytest.raises(DriverError, match=r"UDP port 4791.*end the other program"):
            AfPacketDriver(options(right, left.address))
    assert icmp_unreachable(right) == before


def test_a_destination_is_one_that_was_named(pair: Pair) -> None:
    """Its next hop was looked up then."""
    with AfPacketDriver(options(pair[0])) as a, pytest.raises(ValueError, match="not named"):
        a.send_batch(frames(pair, 1))


def test_a_next_hop_that_does_not_answer_is_named(pair: Pair) -> None:
    """With the destination that it leads to."""
    what = r"MAC address of 198\.18\.200\.9, the next hop to 198\.18\.200\.9"
    with pytest.raises(DriverError, match=what):
        AfPacketDriver(options(pair[0], "198.18.200.9"))
