"""One suite for every driver: what `nic_drivers.interface` promises holds for each of them."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

import dataplane
from nic_drivers import Driver, driver_names, find_driver
from nic_drivers.port import PortOptions
from nic_drivers.verbs import VerbsDriver, VerbsOptions
from nic_drivers.wire import WireDriver, WireOptions
from tests.namespaces import Host, hosts

TIMEOUT_S = 5.0
WRITE_ONLY_IMMEDIATE = 0x0B


@dataclass(frozen=True)
class End:
    """An open driver and the address of its host."""

    driver: Driver
    address: str
    mac: bytes = bytes(6)


Pair = tuple[End, End]


@contextmanager
def wire_pair() -> Iterator[Pair]:
    """Open both ends of a wire."""
    options = WireOptions(("127.0.0.1", 0))
    with WireDriver(options) as left, WireDriver(options) as right:
        left.connect(right.local)
        right.connect(left.local)
        yield End(left, "198.18.0.1"), End(right, "198.18.0.2")


def port_pair(name: str) -> Callable[[], AbstractContextManager[Pair]]:
    """Open a driver at both ends of a cable between two namespaces."""

    @contextmanager
    def pair() -> Iterator[Pair]:
        with (
            hosts(2) as (left, right),
            open_port(name, left, right) as a,
            open_port(name, right, left) as b,
        ):
            yield End(a, left.address), End(b, right.address)

    return pair


def open_port(name: str, host: Host, peer: Host) -> Driver:
    return find_driver(name).open(
        PortOptions(
            host.address,
            namespace=host.namespace,
            destinations=(peer.address,),
            ip_packet_bytes=4160,
        )
    )


@contextmanager
def verbs_pair() -> Iterator[Pair]:
    """Connect two RDMA devices, or one with itself, as a virtual machine has them."""
    addresses = os.environ.get("RANKWIRE_RDMA_ADDRESSES", "").split(",")
    if len(addresses) < 2:
        pytest.skip("no RDMA devices in RANKWIRE_RDMA_ADDRESSES")
    left, right = (VerbsOptions(address, mtu_bytes=4096) for address in addresses[:2])
    with VerbsDriver(left) as a, VerbsDriver(right) as b:
        a.connect(b.local)
        b.connect(a.local)
        yield End(a, left.address), End(b, right.address)


PAIRS: dict[str, Callable[[], AbstractContextManager[Pair]]] = {
    "wire": wire_pair,
    "udp": port_pair("udp"),
    "af_packet": port_pair("af_packet"),
    "af_xdp": port_pair("af_xdp"),
    "verbs": verbs_pair,
}


@pytest.fixture(params=driver_names())
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with PAIRS[request.param]() as ends:
        yield ends


def expect(driver: Driver, count: int) -> list[bytes]:
    """Receive a number of frames."""
    frames: list[bytes] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(frames) < count and time.monotonic() < deadline:
        frames += driver.receive_batch(count - len(frames))
    assert len(frames) == count
    return frames


def expect_frames(driver: Driver, sent: list[bytes]) -> None:
    """Receive what was sent: whole frames, packets without headers of hosts, or what they carry.

    Decoding verifies the ICRC.
    """
    received = expect(driver, len(sent))
    can = driver.capabilities()
    if can.carries_ethernet_header:
        assert received == sent
    elif can.carries_transport_header:
        assert [packet(frame) for frame in received] == [packet(frame) for frame in sent]
    else:
        assert [message(frame) for frame in received] == [message(frame) for frame in sent]


def packet(frame: bytes) -> dict[str, Any]:
    """Return what of a packet concerns its endpoints."""
    fields = dataplane.decode_roce(frame)
    return {name: fields[name] for name in fields if name not in ("identification", "ttl")}


def message(frame: bytes) -> tuple[bytes, int]:
    """Return what of a packet concerns the user of a connection."""
    fields = dataplane.decode_roce(frame)
    return fields["payload"], fields["immediate"]


def frame(pair: Pair, number: int, payload_bytes: int = 4, *, ecn: int = 2) -> bytes:
    """Return a frame from the first end to the second that can be told from others."""
    source, destination = pair
    return dataplane.encode_roce(
        source_mac=source.mac,
        destination_mac=destination.mac,
        source_address=source.address,
        destination_address=destination.address,
        dscp=26,
        ecn=ecn,
        opcode=WRITE_ONLY_IMMEDIATE,
        psn=number,
        immediate=number,
        length_bytes=payload_bytes,
        payload=number.to_bytes(4, "big") + bytes(payload_bytes - 4),
    )


def stretched(frame: bytes, size: int) -> bytes:
    """Return a frame with so much more payload, more than any RoCEv2 endpoint sends."""
    ip = bytearray(frame[14:-4] + bytes(size - len(frame)))
    ip[2:4] = (len(ip) + 4).to_bytes(2, "big")
    ip[24:26] = (len(ip) + 4 - 20).to_bytes(2, "big")
    ip[10:12] = bytes(2)
    words = sum(int.from_bytes(ip[n : n + 2], "big") for n in range(0, 20, 2))
    ip[10:12] = (0xFFFF - (words % 0xFFFF)).to_bytes(2, "big")
    return frame[:14] + bytes(ip) + dataplane.icrc(bytes(ip)).to_bytes(4, "little")


def test_frames_arrive_unchanged_and_in_order(pair: Pair) -> None:
    """On one wire nothing overtakes."""
    sent = [frame(pair, number, 4 + 3 * number) for number in range(20)]
    assert pair[0].driver.send_batch(sent) == len(sent)
    expect_frames(pair[1].driver, sent)


def test_equally_long_frames_arrive_unchanged(pair: Pair) -> None:
    """A driver may give them to the kernel as one; nobody sees that."""
    sent = [frame(pair, number, 4096) for number in range(40)]
    sent.append(frame(pair, 40, 100))
    assert pair[0].driver.send_batch(sent) == len(sent)
    expect_frames(pair[1].driver, sent)


def test_both_directions_are_open_at_once(pair: Pair) -> None:
    """A wire is full duplex."""
    there, back = frame(pair, 1), frame(pair[::-1], 2)
    pair[0].driver.send_batch([there])
    pair[1].driver.send_batch([back])
    expect_frames(pair[0].driver, [back])
    expect_frames(pair[1].driver, [there])


def test_every_ecn_codepoint_arrives(pair: Pair) -> None:
    """Also when frames of several follow each other."""
    if not pair[0].driver.capabilities().carries_transport_header:
        pytest.skip("an adapter makes its own packets")
    assert pair[0].driver.capabilities().carries_ecn
    sent = [frame(pair, number, ecn=number % 4) for number in range(12)]
    pair[0].driver.send_batch(sent)
    arrived = [packet(received) for received in expect(pair[1].driver, 12)]
    assert sorted((p["psn"], p["ecn"], p["dscp"]) for p in arrived) == [
        (number, number % 4, 26) for number in range(12)
    ]


def test_an_empty_batch_is_legal(pair: Pair) -> None:
    """Nothing is sent and nothing is received."""
    assert pair[0].driver.send_batch([]) == 0
    assert pair[0].driver.receive_batch(0) == []


def test_receiving_never_waits(pair: Pair) -> None:
    """An idle wire gives an empty batch at once."""
    since = time.monotonic()
    assert pair[0].driver.receive_batch(8) == []
    assert time.monotonic() - since < 1.0


def test_the_limit_of_a_batch_is_kept(pair: Pair) -> None:
    """The rest stays for the next call."""
    sent = [frame(pair, number) for number in range(5)]
    pair[0].driver.send_batch(sent)
    expect_frames(pair[1].driver, sent[:2])
    expect_frames(pair[1].driver, sent[2:])


def test_the_largest_frame_passes_and_a_larger_one_is_refused(pair: Pair) -> None:
    """`max_frame_bytes` means what it says; a refused batch sends nothing."""
    largest = pair[0].driver.capabilities().max_frame_bytes
    whole = stretched(frame(pair, 3), largest)
    with pytest.raises(ValueError, match="longer"):
        pair[0].driver.send_batch([frame(pair, 1), stretched(frame(pair, 2), largest + 1)])
    assert pair[0].driver.send_batch([whole]) == 1
    expect_frames(pair[1].driver, [whole])


def test_a_full_queue_accepts_a_prefix(pair: Pair) -> None:
    """What was accepted is counted, what was not is rejected, and nobody waits."""
    batch = [frame(pair, number, 4096) for number in range(64)]
    accepted = sum(pair[0].driver.send_batch(batch) for _ in range(100))
    counters = pair[0].driver.counters()
    assert counters.sent_frames == accepted
    assert counters.sent_frames + counters.rejected_frames == 6400
    assert counters.sent_bytes == len(batch[0]) * accepted


def test_both_ends_count_the_same(pair: Pair) -> None:
    """Frames and bytes."""
    sent = [frame(pair, 0, 100), frame(pair, 1, 200)]
    pair[0].driver.send_batch(sent)
    expect(pair[1].driver, 2)
    left, right = pair[0].driver.counters(), pair[1].driver.counters()
    assert (left.sent_frames, left.sent_bytes) == (2, sum(map(len, sent)))
    assert (right.received_frames, right.received_bytes) == (2, sum(map(len, sent)))


def test_closing_twice_is_legal(pair: Pair) -> None:
    """A context manager may close what was closed already."""
    pair[0].driver.close()
    pair[0].driver.close()


def test_every_driver_is_described() -> None:
    """Names are unique and found again."""
    for name in driver_names():
        assert find_driver(name).name == name
