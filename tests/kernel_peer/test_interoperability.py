"""Our endpoint against the Linux kernel's software RNIC, over a clean wire."""

from __future__ import annotations

import pytest

from tests.kernel_peer.session import OUR_ADDRESS, Bench, Session, pattern_sha256

pytestmark = [pytest.mark.slow, pytest.mark.kernel_peer]

MTUS = (1024, 4096)
IMMEDIATE = 0x0102_0304
# Bytes behind a message that must stay as they were.
GUARD_BYTES = 64


def sizes(mtu_bytes: int) -> list[int]:
    """Sizes of messages that differ in packets and pad."""
    return [0, 1, 5, mtu_bytes, mtu_bytes + 1, 3 * mtu_bytes + 7, 1 << 20]


@pytest.fixture(params=MTUS, ids=lambda mtu: f"mtu-{mtu}")
def mtu_bytes(request: pytest.FixtureRequest) -> int:
    """Path MTU of the connection."""
    mtu: int = request.param
    return mtu


@pytest.fixture
def session(bench: Bench, mtu_bytes: int) -> Session:
    """Yield a connection over a clean wire."""
    return bench.open(mtu_bytes=mtu_bytes)


def expect_in_guest(session: Session, size_bytes: int) -> None:
    """The guest's memory holds the message and nothing behind it has changed."""
    found = session.guest_digest(size_bytes + GUARD_BYTES)
    assert found == pattern_sha256(0, size_bytes, zeros=GUARD_BYTES)


def expect_received(session: Session, size_bytes: int) -> None:
    """We have accepted that many bytes in all, and every one was right."""
    ours = session.ours()
    assert ours["data_payload_bytes_received"] == size_bytes
    assert ours["payload_mismatches"] == 0


@pytest.mark.parametrize("immediate", [None, IMMEDIATE], ids=["plain", "immediate"])
def test_t15_the_kernel_receives_our_sends(
    session: Session, mtu_bytes: int, immediate: int | None
) -> None:
    """SENDs of every shape land in the receives that the kernel's user posted."""
    for size_bytes in sizes(mtu_bytes):
        session.guest("clear", offset=0, length=size_bytes + GUARD_BYTES)
        session.guest("post_receive", offset=0, length=1 << 20, identity=7)
        session.endpoint.post_send(size_bytes, size_bytes, immediate)
        completion = session.expect_completion(7)
        assert completion["length"] == size_bytes
        assert immediate is None or completion["immediate"] == immediate
        assert session.expect("send_completed")["id"] == size_bytes
        expect_in_guest(session, size_bytes)


def test_t15_the_kernel_receives_our_writes(session: Session, mtu_bytes: int) -> None:
    """WRITEs land where they were addressed to."""
    for size_bytes in sizes(mtu_bytes):
        session.guest("clear", offset=0, length=size_bytes + GUARD_BYTES)
        session.endpoint.post_write(size_bytes, size_bytes)
        assert session.expect("send_completed")["retransmitted_packets"] == 0
        expect_in_guest(session, size_bytes)


def test_t15_the_kernel_learns_of_our_writes_with_immediate(
    session: Session, mtu_bytes: int
) -> None:
    """A WRITE with immediate data completes a receive and tells its length."""
    for size_bytes in sizes(mtu_bytes):
        session.guest("clear", offset=0, length=size_bytes + GUARD_BYTES)
        session.guest("post_receive", offset=0, length=0, identity=8)
        session.endpoint.post_write(1, size_bytes, IMMEDIATE + size_bytes)
        completion = session.expect_completion(8)
        assert completion["length"] == size_bytes
        assert completion["immediate"] == IMMEDIATE + size_bytes
        expect_in_guest(session, size_bytes)


def test_t15_we_read_the_kernels_memory(session: Session, mtu_bytes: int) -> None:
    """READs bring every byte of the kernel's memory."""
    total_bytes = 0
    session.guest("fill", offset=0, length=1 << 20, start=0)
    for size_bytes in sizes(mtu_bytes):
        session.endpoint.post_read(3, size_bytes)
        assert session.expect("read_completed")["size_bytes"] == size_bytes
        total_bytes += size_bytes
        expect_received(session, total_bytes)


@pytest.mark.parametrize("immediate", [None, IMMEDIATE], ids=["plain", "immediate"])
def test_t15_we_receive_the_kernels_sends(
    session: Session, mtu_bytes: int, immediate: int | None
) -> None:
    """The kernel's SENDs arrive with their size, content and immediate data."""
    total_bytes = 0
    session.guest("fill", offset=0, length=1 << 20, start=0)
    for size_bytes in sizes(mtu_bytes):
        kind = "send" if immediate is None else "send_with_immediate"
        session.post_in_guest(kind, size_bytes, immediate or 0)
        session.expect_completion(size_bytes)
        event = session.expect("send_received")
        assert (event["size_bytes"], event["immediate"]) == (size_bytes, immediate)
        total_bytes += size_bytes
        expect_received(session, total_bytes)


@pytest.mark.parametrize("kind", ["write", "write_with_immediate"])
def test_t15_we_receive_the_kernels_writes(session: Session, mtu_bytes: int, kind: str) -> None:
    """The kernel's WRITEs arrive with their address and content, and end in its completion."""
    total_bytes = 0
    session.guest("fill", offset=0, length=1 << 20, start=OUR_ADDRESS)
    for size_bytes in sizes(mtu_bytes):
        session.post_in_guest(kind, size_bytes, IMMEDIATE)
        session.expect_completion(size_bytes)
        if kind == "write_with_immediate":
            event = session.expect("write_received")
            assert (event["size_bytes"], event["immediate"]) == (size_bytes, IMMEDIATE)
        total_bytes += size_bytes
        expect_received(session, total_bytes)


def test_t15_the_kernel_reads_our_memory(session: Session, mtu_bytes: int) -> None:
    """The kernel's READs bring every byte of our memory."""
    for size_bytes in sizes(mtu_bytes):
        session.guest("clear", offset=0, length=size_bytes + GUARD_BYTES)
        session.post_in_guest("read", size_bytes)
        session.expect_completion(size_bytes)
        found = session.guest_digest(size_bytes + GUARD_BYTES)
        assert found == pattern_sha256(OUR_ADDRESS, size_bytes, zeros=GUARD_BYTES)


def test_t15_wrong_content_is_noticed(session: Session, mtu_bytes: int) -> None:
    """A byte that is not the pattern's is counted: the checks above can fail."""
    session.guest("fill", offset=0, length=2 * mtu_bytes, start=1)
    session.post_in_guest("send", 2 * mtu_bytes)
    session.expect("send_received")
    assert session.ours()["payload_mismatches"] == 2


@pytest.mark.parametrize("path_mtu_bytes", [256, 512, 2048])
def test_t15_every_other_path_mtu_carries_all_requests_both_ways(
    bench: Bench, path_mtu_bytes: int
) -> None:
    """SEND, WRITE and READ, by us and by the kernel, of one packet, one more byte, and several."""
    session = bench.open(mtu_bytes=path_mtu_bytes)
    session.guest("fill", offset=0, length=1 << 16, start=0)
    received_bytes = 0
    for size_bytes in (path_mtu_bytes, path_mtu_bytes + 1, 5 * path_mtu_bytes + 7):
        session.endpoint.post_read(1, size_bytes)
        session.expect("read_completed")
        session.post_in_guest("send", size_bytes)
        session.expect_completion(size_bytes)
        session.expect("send_received")
        received_bytes += 2 * size_bytes
        expect_received(session, received_bytes)
    for size_bytes in (path_mtu_bytes, path_mtu_bytes + 1, 5 * path_mtu_bytes + 7):
        session.guest("clear", offset=0, length=size_bytes + GUARD_BYTES)
        session.endpoint.post_write(2, size_bytes)
        session.expect("send_completed")
        expect_in_guest(session, size_bytes)
        session.guest("clear", offset=0, length=size_bytes + GUARD_BYTES)
        session.post_in_guest("read", size_bytes)
        session.expect_completion(size_bytes)
        found = session.guest_digest(size_bytes + GUARD_BYTES)
        assert found == pattern_sha256(OUR_ADDRESS, size_bytes, zeros=GUARD_BYTES)
    session.guest("fill", offset=0, length=1 << 16, start=OUR_ADDRESS)
    session.post_in_guest("write", 5 * path_mtu_bytes + 7)
    session.expect_completion(5 * path_mtu_bytes + 7)
    expect_received(session, received_bytes + 5 * path_mtu_bytes + 7)
    session.guest("post_receive", offset=0, length=1 << 16, identity=7)
    session.endpoint.post_send(3, 5 * path_mtu_bytes + 7)
    assert session.expect_completion(7)["length"] == 5 * path_mtu_bytes + 7
