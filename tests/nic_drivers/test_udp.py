"""What only the driver `udp` promises."""

import dataclasses
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

import dataplane
from nic_drivers import DriverError
from nic_drivers.port import AfPacketDriver, PortOptions, UdpDriver
from tests.namespaces import Host, hosts

Pair = tuple[Host, Host]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Two hosts with a cable between them."""
    with hosts(2) as (left, right):
        yield left, right


def options(host: Host, *destinations: str, **others: object) -> PortOptions:
    base = PortOptions(host.address, namespace=host.namespace, destinations=destinations)
    return dataclasses.replace(base, **others)  # type: ignore[arg-type]


def frames(pair: Pair, count: int, payload_bytes: int = 1024) -> list[bytes]:
    return [
        dataplane.encode_roce(
            source_address=pair[0].address,
            destination_address=pair[1].address,
            psn=number,
            identification=4711,
            payload=bytes(payload_bytes),
        )
        for number in range(count)
    ]


def receive(driver: UdpDriver | AfPacketDriver, count: int) -> list[bytes]:
    taken: list[bytes] = []
    deadline = time.monotonic() + 5.0
    while len(taken) < count and time.monotonic() < deadline:
        taken += driver.receive_batch(count - len(taken))
    return taken


def test_it_needs_no_privilege_on_loopback() -> None:
    """Any user may open it, where addresses and port 4791 are free."""
    left, right = "127.77.0.1", "127.77.0.2"
    with UdpDriver(PortOptions(left)) as a, UdpDriver(PortOptions(right)) as b:
        sent = dataplane.encode_roce(
            source_address=left, destination_address=right, payload=b"1234"
        )
        assert a.send_batch([sent]) == 1
        assert dataplane.decode_roce(receive(b, 1)[0])["payload"] == b"1234"


def test_frames_of_a_flow_are_given_to_the_kernel_as_one(pair: Pair) -> None:
    """Segmentation offload: one call for many frames, at most as many as asked for."""
    for most, calls in ((64, 1), (5, 6), (1, 30)):
        with (
            UdpDriver(options(pair[0], max_burst_packets=most)) as a,
            UdpDriver(options(pair[1])) as b,
        ):
            assert a.send_batch(frames(pair, 30)) == 30
            assert a.native_counters()["bursts_sent"] == calls
            assert len(receive(b, 30)) == 30


SWITCH_SUMS_OFF = """
import array, fcntl, socket, struct, sys
ETHTOOL_STXCSUM, SIOCETHTOOL = 0x17, 0x8946
value = array.array("I", [ETHTOOL_STXCSUM, 0])
request = struct.pack("16sP16x", sys.argv[1].encode(), value.buffer_info()[0])
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), SIOCETHTOOL, request)
"""


def test_frames_are_right_on_an_interface_without_checksums() -> None:
    """A kernel before Linux 6.11 refuses bursts there: they go one by one, all numbered 0."""
    with hosts(2) as (left, right):
        command = [sys.executable, "-c", SWITCH_SUMS_OFF, left.interface]
        subprocess.run(["ip", "netns", "exec", left.namespace, *command], check=True)
        seeing = options(right, left.address, interface=right.interface)
        with UdpDriver(options(left)) as a, AfPacketDriver(seeing) as b:
            assert a.send_batch(frames((left, right), 30)) == 30
            assert a.native_counters()["send_errors"] == 0
            taken = [dataplane.decode_roce(frame) for frame in receive(b, 30)]
            assert [fields["psn"] for fields in taken] == list(range(30))


def test_the_invariant_crc_is_that_of_the_identification_on_the_wire(pair: Pair) -> None:
    """The kernel counts from 0 in each burst; the caller's identification does not matter."""
    with UdpDriver(options(pair[0])) as a, UdpDriver(options(pair[1])) as b:
        a.send_batch(frames(pair, 3))
        taken = [dataplane.decode_roce(frame) for frame in receive(b, 3)]
        assert [fields["identification"] for fields in taken] == [0, 1, 2]


def test_a_source_port_is_one_that_was_named(pair: Pair) -> None:
    """Each is a socket; others are refused before anything is sent."""
    with (
        UdpDriver(options(pair[0], source_ports=(0xC001, 0xD000))) as a,
        UdpDriver(options(pair[1])) as b,
    ):
        ends = {"source_address": pair[0].address, "destination_address": pair[1].address}
        sent = [dataplane.encode_roce(**ends, source_port=port) for port in (0xC001, 0xD000)]
        other = dataplane.encode_roce(**ends, source_port=0xC002)
        with pytest.raises(ValueError, match="source port 49154"):
            a.send_batch([*sent, other])
        assert a.send_batch(sent) == 2
        taken = [dataplane.decode_roce(frame)["source_port"] for frame in receive(b, 2)]
        assert sorted(taken) == [0xC001, 0xD000]


def test_what_is_not_rocev2_or_of_another_host_is_refused(pair: Pair) -> None:
    """The kernel would make something else of it."""
    spoofed = dataplane.encode_roce(
        source_address="198.18.0.9", destination_address=pair[1].address
    )
    with UdpDriver(options(pair[0])) as a:
        with pytest.raises(ValueError, match="not RoCEv2"):
            a.send_batch([bytes(100)])
        with pytest.raises(ValueError, match=r"from 198\.18\.0\.9"):
            a.send_batch([spoofed])


def test_a_taken_port_is_named_with_its_remedy(pair: Pair) -> None:
    """Two programs cannot both be the RoCEv2 endpoint of an address."""
    with (
        UdpDriver(options(pair[0])),
        pytest.raises(DriverError, match=r"UDP port 4791.*end the other program"),
    ):
        UdpDriver(options(pair[0]))


def test_a_destination_without_a_route_is_named(pair: Pair) -> None:
    """Found when the port is opened, not when nothing arrives."""
    with pytest.raises(DriverError, match=r"route to 198\.19\.0\.1.*add a route"):
        UdpDriver(options(pair[0], "198.19.0.1"))


def test_a_path_that_is_too_narrow_is_named(pair: Pair) -> None:
    """With both sizes."""
    what = r"to 198\.18\.200\.2 carries IP packets of 9000 bytes, 9001 are needed.*mtu_bytes"
    with pytest.raises(DriverError, match=what):
        UdpDriver(options(pair[0], pair[1].address, ip_packet_bytes=9001))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"interface": "eth7"}, "interface eth7"),
        ({"namespace": "rankwire-none"}, "namespace rankwire-none"),
        ({"namespace": "../../proc/1/ns/net"}, "no name of a namespace"),
        ({"address": "198.18.200.77"}, "give the interface this address"),
    ],
)
def test_what_is_not_there_is_named(pair: Pair, change: dict[str, str], what: str) -> None:
    """Interface, namespace and address."""
    with pytest.raises(DriverError, match=what):
        UdpDriver(options(pair[0], **change))
