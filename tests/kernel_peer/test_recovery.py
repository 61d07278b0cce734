"""One fault on the wire: what our endpoint and the Linux kernel's software RNIC make of it.

Messages have eight packets of 1024 bytes, of which the third suffers. Timers are too long to matter
unless a test says so.
"""

from __future__ import annotations

from typing import Any

import pytest

import dataplane
from tests.kernel_peer.machine import GUEST_ADDRESS, GUEST_MAC, HOST_ADDRESS, HOST_MAC
from tests.kernel_peer.session import OUR_ADDRESS, Bench, Session, impatient, pattern_sha256
from tests.kernel_peer.wire import Direction, Fault

pytestmark = [pytest.mark.slow, pytest.mark.kernel_peer]

MTU_BYTES = 1024
PACKETS = 8
SIZE_BYTES = PACKETS * MTU_BYTES
THIRD = 2
OUR_PSN = 0x100
GUEST_PSN = 0x900
CNP = 0x81
# Of the guest's retransmission timer: 67 ms.
QUICK_TIMEOUT = 14


def to_guest(bench: Bench, fault: Fault, number: int = THIRD, **more: Any) -> Session:
    """Open a connection on whose way to the guest one data frame suffers."""
    return bench.open(to_guest=Direction(chosen={number: fault}), **more)


def to_us(bench: Bench, fault: Fault, number: int = THIRD, **more: Any) -> Session:
    """Open a connection on whose way to us one data frame suffers."""
    return bench.open(to_us=Direction(chosen={number: fault}), **more)


def write(session: Session, size_bytes: int = SIZE_BYTES) -> dict[str, int]:
    """Let our WRITE arrive whole in the guest; return the kernel's counters."""
    session.guest("clear", offset=0, length=size_bytes)
    session.endpoint.post_write(1, size_bytes)
    session.expect("send_completed")
    assert session.guest_digest(size_bytes) == pattern_sha256(0, size_bytes)
    return session.kernel()


def take_write(session: Session, size_bytes: int = SIZE_BYTES) -> dict[str, int]:
    """Let the guest's WRITE arrive whole here; return the kernel's counters."""
    session.guest("fill", offset=0, length=size_bytes, start=OUR_ADDRESS)
    session.post_in_guest("write", size_bytes)
    session.expect_completion(size_bytes)
    expect_received(session, size_bytes)
    return session.kernel()


def read(session: Session) -> dict[str, int]:
    """Read the guest's memory; return the kernel's counters."""
    session.guest("fill", offset=0, length=SIZE_BYTES, start=0)
    session.endpoint.post_read(1, SIZE_BYTES)
    session.expect("read_completed")
    expect_received(session, SIZE_BYTES)
    return session.kernel()


def answer_read(session: Session) -> dict[str, int]:
    """Let the guest read our memory; return the kernel's counters."""
    session.guest("clear", offset=0, length=SIZE_BYTES)
    session.post_in_guest("read", SIZE_BYTES)
    session.expect_completion(SIZE_BYTES)
    assert session.guest_digest(SIZE_BYTES) == pattern_sha256(OUR_ADDRESS, SIZE_BYTES)
    return session.kernel()


def expect_received(session: Session, size_bytes: int) -> None:
    """Every byte has been accepted once, and was right."""
    ours = session.ours()
    assert ours["data_payload_bytes_received"] == size_bytes
    assert ours["payload_mismatches"] == 0


def numbers(first: int, start: int = 0, end: int = PACKETS) -> list[int]:
    """Packet sequence numbers of packets `start` to `end` of a message that begins at `first`."""
    return [(first + index) & 0xFF_FFFF for index in range(start, end)]


class TestOurRequests:
    """A WRITE of ours, and the kernel as responder."""

    @pytest.mark.parametrize("fault", [Fault.LOSE, Fault.CORRUPT])
    def test_a_missing_packet_brings_one_nak_and_go_back_n(
        self, bench: Bench, fault: Fault
    ) -> None:
        """The kernel says nothing of a damaged packet; the next one makes it ask, once."""
        session = to_guest(bench, fault)
        kernel = write(session)
        ours = session.ours()
        assert session.wire.to_us.naks == 1
        assert kernel["out_of_seq_request"] == 1
        assert ours["packet_seq_err"] == 1
        assert session.wire.to_guest.psns == numbers(OUR_PSN) + numbers(OUR_PSN, THIRD)
        assert ours["retransmitted_packets"] == PACKETS - THIRD
        assert kernel["rcvd_pkts"] == 2 * PACKETS - THIRD - 1
        assert ours["local_ack_timeout_err"] == 0

    def test_a_packet_that_comes_twice_is_executed_once(self, bench: Bench) -> None:
        """The kernel acknowledges a duplicate and counts it; we send nothing again."""
        session = to_guest(bench, Fault.DUPLICATE)
        kernel = write(session)
        assert kernel["duplicate_request"] == 1
        assert session.ours()["acks_received"] == 2
        assert session.ours()["retransmitted_packets"] == 0

    def test_an_overtaken_packet_is_sent_again(self, bench: Bench) -> None:
        """The kernel drops what overtakes, and asks again for what it then lacks."""
        session = to_guest(bench, Fault.OVERTAKE)
        kernel = write(session)
        assert kernel["out_of_seq_request"] == session.wire.to_us.naks == 2
        assert session.ours()["local_ack_timeout_err"] == 0

    def test_a_lone_damaged_packet_is_met_with_silence(self, bench: Bench) -> None:
        """Only our timer helps: nothing comes back for a packet with a wrong ICRC."""
        session = to_guest(bench, Fault.CORRUPT, 0, transport=impatient())
        kernel = write(session, 100)
        ours = session.ours()
        assert ours["local_ack_timeout_err"] >= 1
        assert kernel["rcvd_pkts"] == session.wire.to_guest.delivered - 1
        assert sum(session.wire.to_us.opcodes.values()) == kernel["rcvd_pkts"]

    def test_a_lost_acknowledgement_makes_us_send_duplicates(self, bench: Bench) -> None:
        """Our timer sends again; the kernel counts duplicates and acknowledges them."""
        lost = Direction(chosen_replies={0: Fault.LOSE})
        session = bench.open(to_us=lost, transport=impatient())
        kernel = write(session)
        ours = session.ours()
        assert ours["local_ack_timeout_err"] >= 1
        assert kernel["duplicate_request"] == ours["retransmitted_packets"] >= PACKETS

    def test_a_send_waits_for_a_receive(self, bench: Bench) -> None:
        """The kernel's RNR NAKs hold us back until its user posts a receive."""
        session = bench.open()
        session.guest("clear", offset=0, length=SIZE_BYTES)
        session.endpoint.post_send(1, SIZE_BYTES)
        session.pass_time(0.02)
        assert session.ours()["rnr_naks_received"] >= 1
        session.guest("post_receive", offset=0, length=SIZE_BYTES, identity=1)
        assert session.expect_completion(1)["length"] == SIZE_BYTES
        session.expect("send_completed")
        assert session.guest_digest(SIZE_BYTES) == pattern_sha256(0, SIZE_BYTES)
        assert session.kernel()["send_rnr_err"] == session.ours()["rnr_naks_received"]

    def test_a_loss_where_the_numbers_wrap(self, bench: Bench) -> None:
        """Packet 0 behind packet 0xFFFFFF is lost and sent again."""
        first = 0xFF_FFFE
        session = to_guest(bench, Fault.LOSE, send_psn=first)
        kernel = write(session)
        assert session.wire.to_guest.psns == numbers(first) + numbers(first, THIRD)
        assert kernel["out_of_seq_request"] == session.ours()["packet_seq_err"] == 1


class TestTheKernelsRequests:
    """A WRITE of the kernel's, and we as responder."""

    @pytest.mark.parametrize("fault", [Fault.LOSE, Fault.CORRUPT])
    def test_a_missing_packet_brings_one_nak_and_go_back_n(
        self, bench: Bench, fault: Fault
    ) -> None:
        """We say nothing of a damaged packet; the next one makes us ask, once."""
        session = to_us(bench, fault)
        kernel = take_write(session)
        ours = session.ours()
        assert ours["naks_sent"] == session.wire.to_guest.naks == 1
        assert ours["rx_icrc_errors"] == session.wire.to_us.faults[Fault.CORRUPT]
        assert kernel["rcvd_seq_err"] == 1
        psns = session.wire.to_us.psns
        assert psns[-(PACKETS - THIRD) :] == numbers(GUEST_PSN, THIRD)
        assert psns[: -(PACKETS - THIRD)] == numbers(GUEST_PSN, 0, len(psns) - PACKETS + THIRD)

    def test_a_packet_that_comes_twice_is_taken_once(self, bench: Bench) -> None:
        """We acknowledge a duplicate and count it; the kernel sends nothing again."""
        session = to_us(bench, Fault.DUPLICATE)
        kernel = take_write(session)
        assert session.ours()["duplicate_requests"] == 1
        assert kernel["completer_retry_err"] == 0

    def test_an_overtaken_packet_is_sent_again(self, bench: Bench) -> None:
        """With go-back-N we drop what overtakes."""
        session = to_us(bench, Fault.OVERTAKE)
        take_write(session)
        assert session.ours()["out_of_sequence"] >= 1
        assert session.ours()["naks_sent"] == session.wire.to_guest.naks

    def test_a_lone_damaged_packet_is_met_with_silence(self, bench: Bench) -> None:
        """Only the kernel's timer helps."""
        session = to_us(bench, Fault.CORRUPT, 0, guest_timeout=QUICK_TIMEOUT)
        kernel = take_write(session, 100)
        assert session.ours()["rx_icrc_errors"] == 1
        assert kernel["completer_retry_err"] >= 1
        assert session.ours()["naks_sent"] == 0

    def test_a_lost_acknowledgement_makes_the_kernel_send_duplicates(self, bench: Bench) -> None:
        """The kernel's timer sends again; we count duplicates and acknowledge them."""
        every_reply = dict.fromkeys(range(2), Fault.LOSE)
        lost = Direction(chosen_replies=every_reply)
        session = bench.open(to_guest=lost, guest_timeout=QUICK_TIMEOUT)
        kernel = take_write(session)
        assert kernel["completer_retry_err"] >= 1
        assert session.ours()["duplicate_requests"] >= 1

    def test_a_send_waits_for_a_receive(self, bench: Bench) -> None:
        """Our RNR NAKs hold the kernel back until we post a receive."""
        session = bench.open()
        session.endpoint.limit_receives(0, 12)
        session.guest("fill", offset=0, length=SIZE_BYTES, start=0)
        session.post_in_guest("send", SIZE_BYTES)
        session.pass_time(0.02)
        assert session.ours()["rnr_naks_sent"] >= 1
        session.endpoint.post_receive()
        session.expect_completion(SIZE_BYTES)
        expect_received(session, SIZE_BYTES)
        assert session.kernel()["rcvd_rnr_err"] == session.ours()["rnr_naks_sent"]

    def test_a_loss_where_the_numbers_wrap(self, bench: Bench) -> None:
        """Packet 0 behind packet 0xFFFFFF is lost and asked for."""
        session = to_us(bench, Fault.LOSE, receive_psn=0xFF_FFFE)
        kernel = take_write(session)
        assert kernel["rcvd_seq_err"] == session.ours()["naks_sent"] == 1


class TestReads:
    """Losses of READ responses and requests."""

    @pytest.mark.parametrize("fault", [Fault.LOSE, Fault.CORRUPT])
    def test_we_ask_again_for_a_missing_response(self, bench: Bench, fault: Fault) -> None:
        """A response behind the missing one is an implied NAK: no timer is needed."""
        session = to_us(bench, fault)
        kernel = read(session)
        ours = session.ours()
        assert ours["implied_nak_seq_err"] == kernel["duplicate_request"] == 1
        assert session.wire.to_guest.psns == [OUR_PSN, OUR_PSN + THIRD]
        assert ours["local_ack_timeout_err"] == 0

    def test_we_ask_again_for_an_overtaken_response(self, bench: Bench) -> None:
        """The late one may come before we have asked; the content is right, and no timer helps."""
        session = to_us(bench, Fault.OVERTAKE)
        kernel = read(session)
        ours = session.ours()
        assert ours["implied_nak_seq_err"] >= kernel["duplicate_request"] >= 1
        assert ours["local_ack_timeout_err"] == 0

    def test_the_kernel_asks_again_for_a_missing_response(self, bench: Bench) -> None:
        """The kernel waits for its timer, and we answer from where it asks."""
        session = to_guest(bench, Fault.LOSE, guest_timeout=QUICK_TIMEOUT)
        kernel = answer_read(session)
        asked = session.wire.to_us.psns
        assert asked[:2] == [GUEST_PSN, GUEST_PSN + THIRD]
        assert session.ours()["duplicate_requests"] == kernel["completer_retry_err"] >= 1

    def test_a_lost_request_is_sent_again(self, bench: Bench) -> None:
        """Our timer asks again; to the kernel it is the first request."""
        session = to_guest(bench, Fault.LOSE, 0, transport=impatient())
        read(session)
        assert session.ours()["local_ack_timeout_err"] >= 1

    def test_a_lost_request_of_the_kernels_is_sent_again(self, bench: Bench) -> None:
        """The kernel's timer asks again; to us it is the first request."""
        session = to_us(bench, Fault.LOSE, 0, guest_timeout=QUICK_TIMEOUT)
        kernel = answer_read(session)
        assert kernel["completer_retry_err"] >= 1


class TestRefusals:
    """Requests that the kernel must not execute."""

    @pytest.mark.parametrize("kind", ["write", "read"])
    def test_a_wrong_key_ends_the_connection(self, bench: Bench, kind: str) -> None:
        """The kernel refuses access, and our queue pair fails with that reason."""
        session = bench.open()
        session.guest("clear", offset=0, length=SIZE_BYTES)
        session.endpoint.set_remote_memory(session.memory_address, 0xBAD)
        getattr(session.endpoint, f"post_{kind}")(1, SIZE_BYTES)
        reason = session.expect("failed")["reason"]
        assert reason == "the peer refused access to its memory"
        session.settle()
        assert session.guest_digest(SIZE_BYTES) == pattern_sha256(0, 0, zeros=SIZE_BYTES)


class TestCongestion:
    """What the kernel makes of marks and notifications: nothing, and so it must stay whole."""

    def test_the_kernel_takes_marked_packets_and_does_not_notify(self, bench: Bench) -> None:
        """A mark leaves the ICRC valid, and brings no CNP."""
        session = to_guest(bench, Fault.MARK)
        write(session)
        assert session.ours()["retransmitted_packets"] == 0
        assert CNP not in session.wire.to_us.opcodes

    def test_we_count_marked_packets(self, bench: Bench) -> None:
        """A marked packet of the kernel's is accepted and counted."""
        session = to_us(bench, Fault.MARK)
        take_write(session)
        assert session.ours()["ecn_marked_packets"] == 1

    def test_the_kernel_ignores_notifications(self, bench: Bench) -> None:
        """A CNP in the middle changes nothing."""
        session = bench.open()
        notification = dataplane.encode_roce(
            opcode=CNP,
            becn=True,
            source_mac=bytes.fromhex(HOST_MAC.replace(":", "")),
            destination_mac=bytes.fromhex(GUEST_MAC.replace(":", "")),
            source_address=HOST_ADDRESS,
            destination_address=GUEST_ADDRESS,
            destination_qp=session.guest_qp,
        )
        session.wire.socket.sendto(notification, ("127.0.0.1", session.wire.guest_port))
        take_write(session)
        write(session)
        assert session.ours()["retransmitted_packets"] == 0
