"""What only the driver `af_xdp` promises."""

import dataclasses
import json
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest

import dataplane
from emulator.namespaces.kernel import inside
from nic_drivers import DriverError
from nic_drivers.port import AfPacketDriver, AfXdpDriver, PortDriver, PortOptions, UdpDriver
from tests.namespaces import Host, hosts, ip

Pair = tuple[Host, Host]
DRIVERS: list[type[PortDriver]] = [UdpDriver, AfPacketDriver, AfXdpDriver]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Two hosts with a cable between them."""
    with hosts(2) as (left, right):
        yield left, right


def options(host: Host, *destinations: str, **others: object) -> PortOptions:
    base = PortOptions(host.address, namespace=host.namespace, destinations=destinations)
    return dataclasses.replace(base, **others)  # type: ignore[arg-type]


def frames(
    pair: Pair, count: int, payload_bytes: int, *, source_ports: tuple[int, ...] = (0xC000,)
) -> list[bytes]:
    return [
        dataplane.encode_roce(
            source_address=pair[0].address,
            destination_address=pair[1].address,
            source_port=source_ports[number % len(source_ports)],
            psn=number,
            payload=bytes(payload_bytes),
        )
        for number in range(count)
    ]


def take(driver: PortDriver, count: int) -> list[bytes]:
    """What comes."""
    taken: list[bytes] = []
    deadline = time.monotonic() + 5.0
    while len(taken) < count and time.monotonic() < deadline:
        taken += driver.receive_batch(count - len(taken))
    return taken


def receive(driver: PortDriver, count: int) -> list[int]:
    """Packet sequence numbers of what comes, verified."""
    return [dataplane.decode_roce(frame)["psn"] for frame in take(driver, count)]


def program_on(host: Host) -> bool:
    """Whether an XDP program is on the interface of a host."""
    command = ["ip", "-n", host.namespace, "-j", "link", "show", host.interface]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return "xdp" in json.loads(shown)[0]


@pytest.mark.parametrize("mode", ["native", "generic"])
@pytest.mark.parametrize("payload_bytes", [0, 1024, 4096])
def test_frames_of_one_and_of_two_chunks_pass_in_both_modes(
    pair: Pair, mode: str, payload_bytes: int
) -> None:
    """A packet with 4096 bytes of payload does not fit a chunk of the shared memory."""
    left, right = pair
    with (
        AfXdpDriver(options(left, right.address, xdp_mode=mode)) as a,
        AfXdpDriver(options(right, left.address, xdp_mode=mode)) as b,
    ):
        assert a.send_batch(frames(pair, 40, payload_bytes)) == 40
        assert receive(b, 40) == list(range(40))


@pytest.mark.parametrize("sender", DRIVERS)
@pytest.mark.parametrize("receiver", DRIVERS)
def test_every_driver_understands_every_other(
    pair: Pair, sender: type[PortDriver], receiver: type[PortDriver]
) -> None:
    """On the wire they are the same."""
    left, right = pair
    with sender(options(left, right.address)) as a, receiver(options(right, left.address)) as b:
        a.send_batch(frames(pair, 30, 4096))
        assert sorted(receive(b, 30)) == list(range(30))


def test_many_more_frames_than_the_rings_hold_pass(pair: Pair) -> None:
    """Chunks and places are used again and again."""
    left, right = pair
    batch = frames(pair, 60, 4096)
    with (
        AfXdpDriver(options(left, right.address)) as a,
        AfXdpDriver(options(right, left.address)) as b,
    ):
        for _ in range(100):
            assert a.send_batch(batch) == 60
            assert receive(b, 60) == list(range(60))


def test_other_traffic_goes_on_its_way(pair: Pair) -> None:
    """The program picks RoCEv2 for its address and nothing else."""
    left, right = pair
    with AfXdpDriver(options(right, left.address)):
        with inside(right.namespace):
            there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        there.bind((right.address, 9000))
        there.settimeout(5)
        with inside(left.namespace), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
            here.sendto(b"hello", (right.address, 9000))
        assert there.recv(16) == b"hello"
        there.close()


def test_nothing_is_left_on_the_interface(pair: Pair) -> None:
    """The program is attached by a descriptor, which goes with its process too."""
    left, right = pair
    with AfXdpDriver(options(right, left.address)):
        assert program_on(right)
        with pytest.raises(DriverError, match="UDP port 4791"):
            AfXdpDriver(options(right, left.address))
    assert not program_on(right)


def test_another_program_on_the_interface_is_named(pair: Pair) -> None:
    """With how to take it off."""
    left, right = pair
    with AfXdpDriver(options(right, left.address)):
        ip("-n", right.namespace, "addr", "add", "198.18.200.200/24", "dev", "eth0")
        with pytest.raises(DriverError, match=r"XDP program on eth0.*take the other"):
            AfXdpDriver(options(right, address="198.18.200.200"))


@pytest.fixture(scope="module")
def wide_pair() -> Iterator[Pair]:
    """Two hosts whose interfaces have four queues each."""
    with hosts(2, queues=4) as (left, right):
        yield left, right


@pytest.mark.parametrize("mode", ["native", "generic"])
@pytest.mark.parametrize("payload_bytes", [64, 4096])
def test_every_queue_of_an_interface_is_served(
    wide_pair: Pair, mode: str, payload_bytes: int
) -> None:
    """A flow is sent by one queue, and veth delivers it to the queue of the same number.

    Before a generic program the kernel takes the first two queues of veth for one.
    """
    left, right = wide_pair
    ports = tuple(range(0xC000, 0xC008))
    with (
        AfXdpDriver(options(left, right.address, xdp_mode=mode, source_ports=ports)) as a,
        AfXdpDriver(options(right, left.address, xdp_mode=mode)) as b,
    ):
        assert a.offloads()["queues"] == b.offloads()["queues"] == 4
        sent = frames(wide_pair, 56, payload_bytes, source_ports=ports)
        assert a.send_batch(sent) == 56
        taken = [dataplane.decode_roce(frame) for frame in take(b, 56)]
        assert b.native_counters()["queues_used"] == (4 if mode == "native" else 3)
    for port in ports:
        of_flow = [packet["psn"] for packet in taken if packet["source_port"] == port]
        assert of_flow == list(range(port - 0xC000, 56, len(ports)))


def test_what_the_kernel_spreads_over_queues_arrives(wide_pair: Pair) -> None:
    """Packets of the kernel's UDP leave by queues of its own choice."""
    left, right = wide_pair
    ports = tuple(range(0xC000, 0xC020))
    with (
        UdpDriver(options(left, source_ports=ports)) as a,
        AfXdpDriver(options(right, left.address)) as b,
    ):
        assert a.send_batch(frames(wide_pair, 64, 256, source_ports=ports)) == 64
        assert sorted(receive(b, 64)) == list(range(64))


def test_more_queues_than_can_be_served_are_refused(pair: Pair) -> None:
    """What came on the others would be lost unseen."""
    right = pair[1]
    ip("-n", right.namespace, "link", "add", "many", "numrxqueues", "65", "type", "veth")
    ip("-n", right.namespace, "addr", "add", "198.18.222.1/24", "dev", "many")
    with pytest.raises(DriverError, match=r"queues of many: there are 65.*ethtool -L"):
        AfXdpDriver(options(right, address="198.18.222.1"))


@pytest.mark.parametrize("mode", ["native", "generic"])
def test_the_mode_is_the_one_that_was_asked_for(pair: Pair, mode: str) -> None:
    """Probed, and told; veth copies."""
    with AfXdpDriver(options(pair[1], xdp_mode=mode)) as driver:
        told = driver.offloads()
    assert (told["xdp_mode"], told["has_zero_copy"], told["queues"]) == (mode, False, 1)


def test_busy_polling_carries_frames(pair: Pair) -> None:
    """Where the kernel has it."""
    left, right = pair
    with (
        AfXdpDriver(options(left, right.address, busy_poll_us=20)) as a,
        AfXdpDriver(options(right, left.address, busy_poll_us=20)) as b,
    ):
        a.send_batch(frames(pair, 10, 1024))
        assert receive(b, 10) == list(range(10))
