//! SEND and READ beside WRITE, and receives that are not posted.

use super::pair::*;
use _native::config::TransportConfig;
use _native::roce::opcode::Opcode;
use _native::roce::packet::{Bth, Packet, Payload};
use _native::roce::syndrome::receiver_not_ready_ps;
use _native::roce::{FailureReason, MAX_REQUEST_BYTES, QpEvent, RemoteMemory, WorkRequest};
use proptest::prelude::*;

const MTU: u64 = 1024;

fn write(size_bytes: u64) -> WorkRequest {
    WorkRequest::Write { size_bytes, immediate: Some(0) }
}

fn send(size_bytes: u64) -> WorkRequest {
    WorkRequest::Send { size_bytes, immediate: None }
}

fn read(size_bytes: u64) -> WorkRequest {
    WorkRequest::Read { size_bytes, offset_bytes: 5000 }
}

fn opcodes(pair: &Pair, end: usize) -> Vec<u8> {
    pair.sent_packets[end].iter().map(|packet| packet.bth.opcode.0).collect()
}

fn completed(event: &QpEvent) -> Option<u64> {
    match *event {
        QpEvent::SendCompleted { id, .. } | QpEvent::ReadCompleted { id, .. } => Some(id),
        _ => None,
    }
}

/// All requests of end 0 have completed in order, and the bytes were the right ones.
fn expect_completed(pair: &Pair, requests: usize) {
    let ids: Vec<u64> = pair.events(0).iter().filter_map(completed).collect();
    assert_eq!(ids, (0..requests as u64).collect::<Vec<_>>(), "{:?}", pair.events(0));
    assert!(!pair.ends[0].has_unacknowledged());
    for end in 0..2 {
        assert_eq!(pair.counters(end).payload_mismatches, 0);
    }
}

#[test]
fn a_send_has_no_address_and_arrives_with_or_without_immediate_data() {
    let mut pair = Pair::new(transport());
    pair.ends[0].post(0, send(2500));
    pair.ends[0].post(1, WorkRequest::Send { size_bytes: 0, immediate: Some(7) });
    pair.finish();
    expect_completed(&pair, 2);
    assert_eq!(opcodes(&pair, 0), [0x00, 0x01, 0x02, 0x05]);
    let received =
        |immediate, size_bytes| QpEvent::SendReceived { immediate, size_bytes, marked_packets: 0 };
    assert_eq!(pair.events(1), [received(None, 2500), received(Some(7), 0)]);
}

#[test]
fn a_send_is_a_message_of_its_own_whatever_was_written_before() {
    let mut pair = Pair::over(transport(), |from, index, _| match (from, index) {
        (0, 0) => Fate::Marked,
        _ => Fate::Arrive,
    });
    pair.ends[0].post(0, WorkRequest::Write { size_bytes: 100, immediate: None });
    pair.ends[0].post(1, send(10));
    pair.finish();
    expect_completed(&pair, 2);
    let sent = QpEvent::SendReceived { immediate: None, size_bytes: 10, marked_packets: 0 };
    assert_eq!(pair.events(1), [sent]);
}

#[test]
fn a_read_takes_the_numbers_of_its_responses() {
    let mut pair = Pair::new(transport());
    pair.ends[0].post(0, read(2500));
    pair.ends[0].post(1, send(1));
    pair.finish();
    expect_completed(&pair, 2);
    let psns = |end: usize| -> Vec<u32> {
        pair.sent_packets[end].iter().map(|packet| packet.bth.psn - FIRST_PSN[0]).collect()
    };
    assert_eq!((opcodes(&pair, 0), psns(0)), (vec![0x0C, 0x04], vec![0, 3]));
    assert_eq!((opcodes(&pair, 1), psns(1)), (vec![0x0D, 0x0E, 0x0F, 0x11], vec![0, 1, 2, 3]));
    assert_eq!(pair.sent_packets[1][3].aeth.msn, 2);
    let read = QpEvent::ReadCompleted {
        id: 0,
        size_bytes: 2500,
        retransmitted_packets: 0,
        marked_packets: 0,
    };
    assert!(pair.events(0).contains(&read));
    assert_eq!(pair.counters(0).data_payload_bytes_received, 2500);
}

#[test]
fn a_read_of_nothing_is_answered_by_one_empty_response() {
    let mut pair = Pair::new(transport());
    pair.ends[0].post(0, read(0));
    pair.finish();
    expect_completed(&pair, 1);
    assert_eq!(opcodes(&pair, 1), [0x10]);
}

#[test]
fn a_read_response_acknowledges_the_writes_before_it() {
    let transport = TransportConfig { ack_every_packets: 1000, ..transport() };
    let mut pair = Pair::over(transport, |from, _, packet| {
        if from == 1 && !packet.is_data() { Fate::Lost } else { Fate::Arrive }
    });
    pair.ends[0].post(0, write(3 * MTU));
    pair.ends[0].post(1, read(MTU));
    pair.finish();
    expect_completed(&pair, 2);
    assert_eq!(pair.counters(0).local_ack_timeout_err, 0);
}

#[test]
fn an_acknowledgement_behind_a_read_waits_for_its_responses() {
    let mut pair = Pair::new(transport());
    pair.ends[0].post(0, read(20 * MTU));
    pair.ends[0].post(1, write(MTU));
    pair.finish();
    expect_completed(&pair, 2);
    assert_eq!(opcodes(&pair, 1).last(), Some(&0x11));
    assert_eq!(pair.counters(0).implied_nak_seq_err, 0);
}

#[test]
fn a_lost_response_is_asked_for_again_from_its_place() {
    let mut pair = Pair::over(transport(), |from, index, _| match (from, index) {
        (1, 4) => Fate::Lost,
        _ => Fate::Arrive,
    });
    pair.ends[0].post(0, read(10 * MTU + 5));
    pair.finish();
    expect_completed(&pair, 1);
    assert_eq!(pair.counters(0).implied_nak_seq_err, 1);
    let again = &pair.sent_packets[0][1];
    assert_eq!((again.bth.opcode, again.bth.psn), (Opcode::READ_REQUEST, FIRST_PSN[0] + 4));
    assert_eq!(again.reth.virtual_address, 5000 + 4 * MTU);
    assert_eq!(u64::from(again.reth.length_bytes), 6 * MTU + 5);
    assert_eq!(pair.counters(0).data_payload_bytes_received, 10 * MTU + 5);
}

#[test]
fn a_response_lost_again_waits_for_the_timer_and_may_be_missed_once_more() {
    let mut lost = 0;
    let mut pair = Pair::over(transport(), move |from, _, packet| {
        let hit = from == 1 && packet.bth.psn == FIRST_PSN[0] + 4 && lost < 3;
        lost += u32::from(hit);
        if hit { Fate::Lost } else { Fate::Arrive }
    });
    pair.ends[0].post(0, read(10 * MTU));
    pair.finish();
    expect_completed(&pair, 1);
    let counters = pair.counters(0);
    assert_eq!((counters.implied_nak_seq_err, counters.local_ack_timeout_err), (2, 1));
}

#[test]
fn the_last_response_lost_is_found_by_the_timer() {
    let mut pair = Pair::over(transport(), |from, index, _| match (from, index) {
        (1, 2) => Fate::Lost,
        _ => Fate::Arrive,
    });
    pair.ends[0].post(0, read(3 * MTU));
    pair.finish();
    expect_completed(&pair, 1);
    assert_eq!(pair.counters(0).local_ack_timeout_err, 1);
    assert_eq!(opcodes(&pair, 1), [0x0D, 0x0E, 0x0F, 0x10]);
}

#[test]
fn marked_responses_are_counted_for_the_read() {
    let mut pair = Pair::over(transport(), |from, index, _| match (from, index) {
        (1, 1 | 2) => Fate::Marked,
        _ => Fate::Arrive,
    });
    pair.ends[0].post(0, read(5 * MTU));
    pair.finish();
    let marked = pair.events(0).iter().find_map(|event| match event {
        QpEvent::ReadCompleted { marked_packets, .. } => Some(*marked_packets),
        _ => None,
    });
    assert_eq!(marked, Some(2));
    assert_eq!(pair.counters(0).ecn_marked_packets, 2);
}

#[test]
fn a_read_beyond_two_gibibytes_is_split() {
    let transport = TransportConfig { mtu_bytes: 4096, window_packets: 1 << 23, ..transport() };
    let mut a = queue_pair(&transport, 0);
    let memory = RemoteMemory { virtual_address: 1 << 40, remote_key: 9, size_bytes: None };
    a.set_remote_memory(memory);
    let size_bytes = MAX_REQUEST_BYTES + 3;
    a.post(0, WorkRequest::Read { size_bytes, offset_bytes: 1 });
    let requests: Vec<Packet> = std::iter::from_fn(|| a.poll_data(0)).collect();
    let read: Vec<_> = requests
        .iter()
        .map(|packet| (packet.bth.psn - FIRST_PSN[0], packet.reth.length_bytes))
        .collect();
    assert_eq!(read, [(0, 1 << 31), (1 << 19, 3)]);
    let second = requests[1].reth;
    assert_eq!(second.virtual_address, (1 << 40) + 1 + MAX_REQUEST_BYTES);
    assert_eq!(second.remote_key, 9);
    // The second response of the first READ is missing: the rest of that READ is asked for.
    for number in [0, 2] {
        let bth = Bth { opcode: Opcode::READ_RESPONSE_MIDDLE, ..Bth::default() };
        let mut response = Packet { bth, ..Packet::default() };
        response.bth.psn = FIRST_PSN[0] + number;
        response.payload = Payload::Pattern { offset_bytes: 1, length_bytes: 4096 };
        a.handle_packet(0, &response);
    }
    let again = a.poll_data(0).unwrap();
    assert_eq!(again.reth.virtual_address, (1 << 40) + 1 + 4096);
    assert_eq!(u64::from(again.reth.length_bytes), MAX_REQUEST_BYTES - 4096);
}

#[test]
fn writes_to_a_small_memory_all_start_at_its_beginning() {
    let memory = RemoteMemory { virtual_address: 0, remote_key: 9, size_bytes: Some(4 * MTU) };
    let mut pair = Pair::over(transport(), |from, index, _| match (from, index) {
        (0, 6) => Fate::Lost,
        _ => Fate::Arrive,
    });
    pair.ends[0].set_remote_memory(memory);
    let request = WorkRequest::Write { size_bytes: 9 * MTU + 3, immediate: Some(77) };
    pair.ends[0].post(0, request);
    pair.finish();
    let mut first_packets: Vec<_> = pair.sent_packets[0]
        .iter()
        .filter(|packet| packet.bth.opcode == Opcode::WRITE_FIRST)
        .map(|packet| (packet.bth.psn, packet.reth.virtual_address, packet.reth.length_bytes))
        .collect();
    first_packets.dedup();
    let write_bytes = 4 * MTU as u32;
    let first = FIRST_PSN[0];
    let expected =
        [(first, 0, write_bytes), (first + 4, 0, write_bytes), (first + 8, 0, MTU as u32 + 3)];
    assert_eq!(first_packets, expected);
    let received =
        QpEvent::MessageReceived { immediate: 77, size_bytes: 9 * MTU + 3, marked_packets: 0 };
    assert!(pair.events(1).contains(&received), "{:?}", pair.events(1));
    assert_eq!(pair.counters(1).payload_mismatches, 0);
}

#[test]
fn a_response_of_the_wrong_length_fails_the_queue_pair() {
    let (mut a, mut b) = (queue_pair(&transport(), 0), queue_pair(&transport(), 1));
    a.post(0, read(2 * MTU));
    b.handle_packet(0, &a.poll_data(0).unwrap());
    let mut response = b.poll_data(0).unwrap();
    response.payload = Payload::EMPTY;
    a.handle_packet(0, &response);
    let failed = QpEvent::Failed { reason: FailureReason::InvalidResponse };
    assert_eq!(a.poll_event(), Some(failed));
}

#[test]
fn a_send_without_a_posted_receive_waits_as_long_as_it_is_told() {
    let mut pair = Pair::new(transport());
    pair.ends[1].limit_receives(1, 14);
    pair.ends[0].post(0, send(2 * MTU));
    pair.ends[0].post(1, send(3 * MTU));
    while pair.counters(1).rnr_naks_sent == 0 {
        assert!(pair.step());
    }
    let told_ps = pair.now_ps;
    pair.ends[1].post_receive();
    pair.finish();
    expect_completed(&pair, 2);
    // The three packets of the second SEND go again, and none before the time.
    assert_eq!(pair.counters(0).retransmitted_packets, 3);
    assert_eq!((pair.counters(1).rnr_naks_sent, pair.counters(1).naks_sent), (1, 0));
    assert_eq!(pair.counters(0).rnr_naks_received, 1);
    assert!(pair.now_ps >= told_ps + LATENCY_PS + receiver_not_ready_ps(14));
    assert_eq!(pair.counters(0).local_ack_timeout_err, 0);
}

#[test]
fn a_receiver_that_stays_not_ready_is_asked_again_and_again() {
    let mut pair = Pair::new(transport());
    pair.ends[1].limit_receives(0, 1);
    pair.ends[0].post(0, WorkRequest::Write { size_bytes: MTU, immediate: Some(1) });
    while pair.counters(1).rnr_naks_sent < 20 {
        assert!(pair.step());
    }
    pair.ends[1].post_receive();
    pair.finish();
    expect_completed(&pair, 1);
}

/// End 0 asks a receiver that is never ready, with that many retries; the wire's seconds do not matter.
fn never_ready(rnr_retry_count: u32) -> Pair {
    let mut pair = Pair::new(TransportConfig { rnr_retry_count, ..transport() });
    pair.ends[1].limit_receives(0, 1);
    pair.ends[0].post(41, send(3 * MTU));
    pair.ends[0].post(42, send(MTU));
    pair
}

#[test]
fn a_receiver_that_stays_not_ready_fails_the_queue_pair_after_its_retries() {
    let mut pair = never_ready(3);
    pair.finish();
    assert_eq!(pair.counters(0).rnr_naks_received, 4);
    assert_eq!(pair.counters(0).rnr_nak_retry_err, 1);
    let failed = QpEvent::Failed { reason: FailureReason::ReceiverNotReady };
    assert_eq!(pair.events(0), [failed]);
    assert_eq!(pair.ends[0].oldest_request(), Some(41));
    assert_eq!(pair.ends[0].next_data_bytes(), None);
}

#[test]
fn seven_retries_for_a_receiver_that_is_not_ready_have_no_end() {
    let mut pair = never_ready(7);
    while pair.counters(1).rnr_naks_sent < 100 {
        assert!(pair.step());
    }
    assert_eq!(pair.counters(0).rnr_nak_retry_err, 0);
}

#[test]
fn progress_resets_the_retries_for_a_receiver_that_is_not_ready() {
    let mut pair = never_ready(3);
    for naks in [3, 6] {
        while pair.counters(1).rnr_naks_sent < naks {
            assert!(pair.step());
        }
        pair.ends[1].post_receive();
    }
    pair.finish();
    let ids: Vec<u64> = pair.events(0).iter().filter_map(completed).collect();
    assert_eq!(ids, [41, 42]);
}

/// READs that end 1 has not yet answered whole when end 0 sends no more.
fn reads_sent_at_once(max_outstanding_reads: u32) -> usize {
    let transport = TransportConfig { max_outstanding_reads, ..transport() };
    let mut end = queue_pair(&transport, 0);
    (0..40).for_each(|id| end.post(id, read(3 * MTU)));
    std::iter::from_fn(|| end.poll_data(0)).count()
}

#[test]
fn no_more_reads_are_outstanding_than_allowed() {
    assert_eq!([1, 4, 16].map(reads_sent_at_once), [1, 4, 16]);
}

#[test]
fn a_read_that_had_to_wait_goes_out_when_another_is_complete() {
    for max_outstanding_reads in [1, 2, 5] {
        let transport = TransportConfig { max_outstanding_reads, ..transport() };
        let mut pair = Pair::over(transport, unreliable(3, 0.01));
        for id in 0..30 {
            let request = if id % 3 == 0 { write(2 * MTU) } else { read(3 * MTU + 1) };
            pair.ends[0].post(id, request);
        }
        pair.finish();
        expect_completed(&pair, 30);
    }
}

#[test]
fn a_write_behind_a_read_that_waits_does_not_overtake_it() {
    let transport = TransportConfig { max_outstanding_reads: 1, ..transport() };
    let mut end = queue_pair(&transport, 0);
    (0..2).for_each(|id| end.post(id, read(MTU)));
    end.post(2, write(MTU));
    assert_eq!(end.poll_data(0).expect("the first READ").bth.opcode, Opcode::READ_REQUEST);
    assert_eq!(end.poll_data(0), None);
}

#[test]
fn a_write_without_immediate_data_needs_no_receive() {
    let mut pair = Pair::new(transport());
    pair.ends[1].limit_receives(0, 1);
    pair.ends[0].post(0, WorkRequest::Write { size_bytes: 3 * MTU, immediate: None });
    pair.finish();
    expect_completed(&pair, 1);
    assert_eq!(pair.events(1), []);
}

#[test]
fn a_send_must_not_continue_a_write() {
    let (mut a, mut b) = (queue_pair(&transport(), 0), queue_pair(&transport(), 1));
    a.post(0, write(3 * MTU));
    b.handle_packet(0, &a.poll_data(0).unwrap());
    let mut packet = a.poll_data(0).unwrap();
    packet.bth.opcode = Opcode::SEND_MIDDLE;
    b.handle_packet(0, &packet);
    assert_eq!(b.poll_event(), Some(QpEvent::Failed { reason: FailureReason::InvalidRequest }));
}

fn any_request() -> impl Strategy<Value = WorkRequest> {
    let immediate = prop_oneof![Just(None), any::<u32>().prop_map(Some)];
    (0..3u8, 0..30_000u64, immediate, 0..1u64 << 40).prop_map(
        |(kind, size_bytes, immediate, offset_bytes)| match kind {
            0 => WorkRequest::Write { size_bytes, immediate },
            1 => WorkRequest::Send { size_bytes, immediate },
            _ => WorkRequest::Read { size_bytes, offset_bytes },
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_executed_once_and_in_order_over_an_unreliable_wire(
        seed in any::<u64>(),
        ratio in 0.0..0.02f64,
        window_packets in 1..100u32,
        forth in prop::collection::vec(any_request(), 1..12),
        back in prop::collection::vec(any_request(), 0..12),
    ) {
        let transport = TransportConfig { window_packets, retry_count: 1000, ..transport() };
        let mut pair = Pair::over(transport, unreliable(seed, ratio));
        for (end, requests) in [(0, &forth), (1, &back)] {
            for (id, request) in requests.iter().enumerate() {
                pair.ends[end].post(id as u64, *request);
            }
        }
        pair.finish();
        expect_completed(&pair, forth.len());
        prop_assert!(!pair.ends[1].has_unacknowledged());
        let arrives = |end: usize, request: &WorkRequest| match request {
            WorkRequest::Read { size_bytes, .. } if end == 0 => *size_bytes,
            WorkRequest::Read { .. } => 0,
            _ if end == 0 => 0,
            other => other.size_bytes(),
        };
        // End 0 receives what it reads and what end 1 writes and sends, each byte once.
        let expected: u64 = forth.iter().map(|request| arrives(0, request)).sum::<u64>()
            + back.iter().map(|request| arrives(1, request)).sum::<u64>();
        prop_assert_eq!(pair.counters(0).data_payload_bytes_received, expected);
    }
}
