"""Headers that the Linux kernel's software RNIC writes, beside ours for the same messages."""

from __future__ import annotations

import pytest

from tests.kernel_peer.session import OUR_ADDRESS, Bench, Session
from tests.kernel_peer.wire import (
    ACKNOWLEDGE,
    BTH_ACK_REQUEST,
    BTH_OPCODE,
    IP_TRAFFIC_CLASS,
    UDP_CHECKSUM,
    UDP_SOURCE_PORT,
    Direction,
)

pytestmark = [pytest.mark.slow, pytest.mark.kernel_peer]

SIZE_BYTES = 5000
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST = 0x06, 0x07, 0x08


@pytest.fixture
def session(bench: Bench) -> Session:
    """Yield a connection that has carried a WRITE each way."""
    session = bench.open()
    session.guest("fill", offset=0, length=SIZE_BYTES, start=OUR_ADDRESS)
    session.post_in_guest("write", SIZE_BYTES)
    session.expect_completion(SIZE_BYTES)
    session.endpoint.post_write(1, SIZE_BYTES)
    session.expect("send_completed")
    return session


def directions(session: Session) -> tuple[Direction, Direction]:
    """Return both directions: what we wrote, and what the kernel wrote."""
    return session.wire.to_guest, session.wire.to_us


def test_both_ends_send_from_the_same_port(session: Session) -> None:
    """The source port follows from the two queue pair numbers in the same way."""
    ours, kernels = (
        {head[UDP_SOURCE_PORT] for head in direction.heads} for direction in directions(session)
    )
    assert len(ours) == 1
    assert ours == kernels


def test_both_ends_cut_a_message_into_the_same_packets(session: Session) -> None:
    """A WRITE of five packets is first, middles and last, and only the last asks for an answer."""
    for direction in directions(session):
        data = [head for head in direction.heads if head[BTH_OPCODE] != ACKNOWLEDGE]
        opcodes = [head[BTH_OPCODE] for head in data]
        assert opcodes == [WRITE_FIRST, *[WRITE_MIDDLE] * 3, WRITE_LAST]
        assert [head[BTH_ACK_REQUEST] >> 7 for head in data] == [0, 0, 0, 0, 1]


def test_both_ends_tag_data_for_the_same_class(session: Session) -> None:
    """Data has DSCP 26 and ECT(0) on both ends; the UDP checksum is left out."""
    for direction in directions(session):
        data = [head for head in direction.heads if head[BTH_OPCODE] != ACKNOWLEDGE]
        assert {head[IP_TRAFFIC_CLASS] for head in data} == {26 << 2 | 0b10}
        assert {head[UDP_CHECKSUM] for head in direction.heads} == {b"\0\0"}
