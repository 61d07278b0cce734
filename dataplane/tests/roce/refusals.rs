//! What an end does with packets that a correct peer never sends.

use super::pair::*;
use _native::roce::opcode::Opcode;
use _native::roce::packet::{Aeth, Bth, Packet, Payload, Reth};
use _native::roce::{FailureReason, Message, QpEvent, QueuePair};

/// An acknowledgement of the given kind.
pub fn acknowledge(psn: u32, syndrome: u8) -> Packet {
    let bth = Bth { opcode: Opcode::ACKNOWLEDGE, psn: psn & 0xFF_FFFF, ..Bth::default() };
    Packet { bth, aeth: Aeth { syndrome, msn: 0 }, ..Packet::default() }
}

/// A request to end 1 with the next packet sequence number.
pub fn request(opcode: Opcode, length_bytes: u16, declared_bytes: u32) -> Packet {
    Packet {
        bth: Bth { opcode, psn: FIRST_PSN[0], ..Bth::default() },
        reth: Reth { length_bytes: declared_bytes, ..Reth::default() },
        payload: Payload::Pattern { offset_bytes: 0, length_bytes },
        ..Packet::default()
    }
}

fn expect_refused(mut b: QueuePair, packet: &Packet) -> Packet {
    b.handle_packet(0, packet);
    let failed = QpEvent::Failed { reason: FailureReason::InvalidRequest };
    assert_eq!(b.poll_event(), Some(failed), "{packet:?}");
    let nak = b.poll_control(0).unwrap();
    assert_eq!((nak.aeth.syndrome, nak.bth.psn), (0x61, packet.bth.psn));
    assert_eq!(b.counters().invalid_requests, 1);
    nak
}

#[test]
fn requests_that_break_the_protocol_are_refused_for_good() {
    let refused = [
        request(Opcode::WRITE_MIDDLE, 1024, 0),
        request(Opcode::WRITE_LAST_IMMEDIATE, 10, 0),
        request(Opcode::WRITE_FIRST, 1000, 3000),
        request(Opcode::WRITE_FIRST, 1024, 1024),
        request(Opcode::WRITE_ONLY, 10, 11),
        request(Opcode::WRITE_ONLY, 2048, 2048),
    ];
    for packet in refused {
        expect_refused(queue_pair(&transport(), 1), &packet);
    }
}

#[test]
fn a_write_must_not_start_inside_another() {
    let mut b = queue_pair(&transport(), 1);
    b.handle_packet(0, &request(Opcode::WRITE_FIRST, 1024, 3000));
    let mut second = request(Opcode::WRITE_ONLY, 10, 10);
    second.bth.psn += 1;
    expect_refused(b, &second);
}

#[test]
fn the_last_packet_of_a_write_is_no_longer_than_the_mtu() {
    let mut b = queue_pair(&transport(), 1);
    b.handle_packet(0, &request(Opcode::WRITE_FIRST, 1024, 1024 + 1025));
    let mut last = request(Opcode::WRITE_LAST, 1025, 0);
    last.bth.psn += 1;
    expect_refused(b, &last);
}

#[test]
fn a_repeated_read_is_answered_only_as_far_as_requests_have_come() {
    let mut b = queue_pair(&transport(), 1);
    b.handle_packet(0, &request(Opcode::READ_REQUEST, 0, 2048));
    while b.poll_data(0).is_some() {}
    b.handle_packet(0, &request(Opcode::READ_REQUEST, 0, 4096));
    assert_eq!(b.next_data_bytes(), None);
    b.handle_packet(0, &request(Opcode::READ_REQUEST, 0, 2048));
    assert!(b.next_data_bytes().is_some());
    assert_eq!(b.counters().duplicate_requests, 2);
}

#[test]
fn a_refused_request_fails_the_sender() {
    let mut a = queue_pair(&transport(), 0);
    a.post_write(Message { id: 0, size_bytes: 10, immediate: 0 });
    a.poll_data(0).unwrap();
    a.handle_packet(0, &acknowledge(FIRST_PSN[0], 0x62));
    let failed = QpEvent::Failed { reason: FailureReason::RefusedAccess };
    assert_eq!(a.poll_event(), Some(failed));
    assert_eq!((a.poll_timeout(), a.next_data_bytes()), (None, None));
}

#[test]
fn a_queue_pair_that_refused_a_request_sends_none_of_its_own() {
    let mut b = queue_pair(&transport(), 1);
    b.post_write(Message { id: 0, size_bytes: 4096, immediate: 0 });
    b.poll_data(0).unwrap();
    b.handle_packet(0, &request(Opcode::WRITE_MIDDLE, 1024, 0));
    assert_eq!(b.poll_control(0).unwrap().aeth.syndrome, 0x61);
    assert_eq!((b.next_data_bytes(), b.poll_timeout()), (None, None));
}

#[test]
fn a_queue_pair_whose_request_was_refused_takes_none_of_the_peers() {
    let mut a = queue_pair(&transport(), 1);
    a.post_write(Message { id: 0, size_bytes: 10, immediate: 0 });
    let psn = a.poll_data(0).unwrap().bth.psn;
    a.handle_packet(0, &acknowledge(psn, 0x62));
    a.handle_packet(0, &request(Opcode::WRITE_ONLY_IMMEDIATE, 10, 10));
    assert_eq!(a.poll_control(0), None);
    assert_eq!(a.counters().data_payload_bytes_received, 0);
}

#[test]
fn a_payload_that_is_not_the_patterns_is_counted() {
    let mut b = queue_pair(&transport(), 1);
    let payload = Payload::Bytes(b"not the pattern"[..].into());
    b.handle_packet(0, &Packet { payload, ..request(Opcode::WRITE_ONLY, 0, 15) });
    assert_eq!(b.counters().payload_mismatches, 1);
    assert_eq!(b.counters().invalid_requests, 0);
}
