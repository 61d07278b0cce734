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


def frames(pair: Pair, count: int, payload_bytes: int) -> list[bytes]:
    return [
        dataplane.encode_roce(
            source_address=pair[0].address,
            destination_address=pair[1].address,
            psn=number,
            payload=bytes(payload_bytes),
        )
        for number in range(count)
    ]


def receive(driver: PortDriver, count: int) -> list[int]:
    """Packet sequence numbers of what comes, verified."""
    taken: list[bytes] = []
    deadline = time.monotonic() + 5.0
    while len(taken) < count and time.monotonic() < deadline:
        taken += driver.receive_batch(count - len(taken))
    return [dataplane.decode_roce(frame)["psn"] for frame in taken]


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


def test_an_interface_with_several_queues_is_refused(pair: Pair) -> None:
    """What comes on the others would be lost unseen."""
    right = pair[1]
    ip("-n", right.namespace, "link", "add", "many", "numrxqueues", "4", "type", "veth")
    ip("-n", right.namespace, "addr", "add", "198.18.222.1/24", "dev", "many")
    with pytest.raises(DriverError, match=r"queues of many: there are 4.*ethtool -L"):
        AfXdpDriver(options(right, address="198.18.222.1"))


def test_busy_polling_carries_frames(pair: Pair) -> None:
    """Where the kernel has it."""
    left, right = pair
    with (
        AfXdpDriver(options(left, right.address, busy_poll_us=20)) as a,
        AfXdpDriver(options(right, left.address, busy_poll_us=20)) as b,
    ):
        a.send_batch(frames(pair, 10, 1024))
        assert receive(b, 10) == list(range(10))
