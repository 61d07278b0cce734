"""Wires that lose, repeat, damage and reorder in both directions: every message arrives intact.

The counters of both ends are held against what the wire carried.
"""

from __future__ import annotations

import pytest

from tests.kernel_peer.session import OUR_ADDRESS, Bench, Session, impatient, pattern_sha256
from tests.kernel_peer.wire import Direction, Fault

pytestmark = [pytest.mark.slow, pytest.mark.kernel_peer]

SIZE_BYTES = 1 << 20
# The kernel ends an answer before it begins the one that was asked for instead: each loss costs all
# that is left of a READ.
READ_BYTES = 256 << 10
FAULTS = {Fault.LOSE: 0.01, Fault.DUPLICATE: 0.01, Fault.OVERTAKE: 0.01, Fault.CORRUPT: 0.005}
# The numbers wrap within every message.
FIRST_PSN = 0xFF_FFF0
QUICK_TIMEOUT = 14
SEEDS = (1, 2)
HALF_BYTES = 1 << 20


@pytest.fixture(params=SEEDS, ids=lambda seed: f"seed-{seed}")
def session(bench: Bench, request: pytest.FixtureRequest) -> Session:
    """Yield a connection over a bad wire."""
    return bench.open(
        send_psn=FIRST_PSN,
        receive_psn=FIRST_PSN,
        transport=impatient(),
        guest_timeout=QUICK_TIMEOUT,
        to_guest=Direction(seed=request.param, probabilities=FAULTS),
        to_us=Direction(seed=request.param + 1000, probabilities=FAULTS),
    )


def expect_counters_agree(session: Session) -> None:
    """Both ends have counted what the wire carried."""
    session.settle()
    ours, kernel, wire = session.ours(), session.kernel(), session.wire
    dropped_to_guest, dropped_to_us = wire.drops()
    assert sum((wire.to_guest.faults + wire.to_us.faults).values()) > 5
    assert wire.to_guest.naks == ours["naks_sent"]
    assert wire.to_us.naks <= kernel["out_of_seq_request"] <= wire.to_us.naks + dropped_to_us
    assert ours["rx_icrc_errors"] == wire.to_us.faults[Fault.CORRUPT]
    intact = wire.to_guest.delivered - wire.to_guest.faults[Fault.CORRUPT]
    assert intact - dropped_to_guest <= kernel["rcvd_pkts"] <= intact
    assert ours["packet_seq_err"] <= wire.to_us.naks + wire.to_us.faults[Fault.DUPLICATE]
    assert kernel["rcvd_seq_err"] <= wire.to_guest.naks + wire.to_guest.faults[Fault.DUPLICATE]
    assert ours["payload_mismatches"] == 0


def expect_received(session: Session, size_bytes: int) -> None:
    """We have accepted that many bytes in all."""
    assert session.ours()["data_payload_bytes_received"] == size_bytes


@pytest.mark.parametrize("kind", ["send", "write"])
def test_t15_our_messages_arrive_intact(session: Session, kind: str) -> None:
    """The kernel's memory holds our message."""
    session.guest("clear", offset=0, length=SIZE_BYTES)
    session.guest("post_receive", offset=0, length=SIZE_BYTES, identity=1)
    getattr(session.endpoint, f"post_{kind}")(1, SIZE_BYTES, 7)
    assert session.expect_completion(1)["length"] == SIZE_BYTES
    assert session.expect("send_completed")["retransmitted_packets"] > 0
    assert session.guest_digest(SIZE_BYTES) == pattern_sha256(0, SIZE_BYTES)
    expect_counters_agree(session)


@pytest.mark.parametrize("kind", ["send", "write_with_immediate"])
def test_t15_the_kernels_messages_arrive_intact(session: Session, kind: str) -> None:
    """We accept every byte of the kernel's message once."""
    start = 0 if kind == "send" else OUR_ADDRESS
    session.guest("fill", offset=0, length=SIZE_BYTES, start=start)
    session.post_in_guest(kind, SIZE_BYTES)
    session.expect_completion(SIZE_BYTES)
    event = session.expect("send_received" if kind == "send" else "write_received")
    assert event["size_bytes"] == SIZE_BYTES
    expect_received(session, SIZE_BYTES)
    expect_counters_agree(session)


def test_t15_our_read_is_intact(session: Session) -> None:
    """We get every byte of the kernel's memory once."""
    session.guest("fill", offset=0, length=READ_BYTES, start=0)
    session.endpoint.post_read(1, READ_BYTES)
    assert session.expect("read_completed")["size_bytes"] == READ_BYTES
    expect_received(session, READ_BYTES)
    expect_counters_agree(session)


def test_t15_the_kernels_read_is_intact(session: Session) -> None:
    """The kernel gets every byte of ours."""
    session.guest("clear", offset=0, length=READ_BYTES)
    session.post_in_guest("read", READ_BYTES)
    session.expect_completion(READ_BYTES)
    assert session.guest_digest(READ_BYTES) == pattern_sha256(OUR_ADDRESS, READ_BYTES)
    expect_counters_agree(session)


def test_t15_messages_both_ways_at_once_arrive_intact(session: Session) -> None:
    """Several messages cross each other; each end takes its own in order."""
    session.guest("clear", offset=HALF_BYTES, length=SIZE_BYTES)
    session.guest("fill", offset=0, length=SIZE_BYTES, start=0)
    session.guest("post_receive", offset=HALF_BYTES, length=SIZE_BYTES, identity=1)
    for identity in range(4):
        size_bytes = SIZE_BYTES >> identity
        session.guest("post", kind="send", offset=0, length=size_bytes, identity=10 + identity)
    session.endpoint.post_send(1, SIZE_BYTES)
    taken = [session.expect("send_received")["size_bytes"] for _ in range(4)]
    assert taken == [SIZE_BYTES >> identity for identity in range(4)]
    completions = session.guest("poll", count=5, timeout_s=30)["completions"]
    assert [entry["status"] for entry in completions] == [0] * 5
    found = session.guest_digest(SIZE_BYTES, offset=HALF_BYTES)
    assert found == pattern_sha256(0, SIZE_BYTES)
    expect_received(session, sum(taken))
    expect_counters_agree(session)
