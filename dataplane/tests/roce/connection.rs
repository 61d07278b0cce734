//! A reliable connection between two ends: delivery, acknowledgement, loss and recovery.

use super::pair::*;
use super::refusals::{acknowledge, request};
use _native::config::TransportConfig;
use _native::roce::opcode::Opcode;
use _native::roce::packet::{Aeth, Packet};
use _native::roce::{FailureReason, MAX_REQUEST_BYTES, Message, QpEvent};
use proptest::prelude::*;

const MTU: u64 = 1024;

fn data_opcodes(pair: &Pair, end: usize) -> Vec<Opcode> {
    let data = pair.sent_packets[end].iter().filter(|packet| packet.is_data());
    data.map(|packet| packet.bth.opcode).collect()
}

#[test]
fn messages_of_any_size_arrive_in_order_and_complete_in_order() {
    let sizes = [0, 1, 3, MTU - 1, MTU, MTU + 1, 2500, 0, 100_000];
    let mut pair = Pair::new(transport());
    pair.post(0, &sizes);
    pair.finish();
    pair.expect_delivered(0, 0, &sizes);
    assert_eq!(pair.counters(0).retransmitted_packets, 0);
    assert_eq!(pair.counters(1).naks_sent, 0);
}

#[test]
fn both_directions_work_at_once() {
    let sizes = [70_000; 5];
    let mut pair = Pair::new(transport());
    pair.post(0, &sizes);
    pair.post(1, &sizes);
    pair.finish();
    pair.expect_delivered(0, 0, &sizes);
    pair.expect_delivered(1, 5, &sizes);
}

#[test]
fn a_message_is_one_write_whose_last_packet_has_the_immediate() {
    let mut pair = Pair::new(transport());
    pair.post(0, &[2500, 0, 7]);
    pair.finish();
    assert_eq!(
        data_opcodes(&pair, 0),
        [
            Opcode::WRITE_FIRST,
            Opcode::WRITE_MIDDLE,
            Opcode::WRITE_LAST_IMMEDIATE,
            Opcode::WRITE_ONLY_IMMEDIATE,
            Opcode::WRITE_ONLY_IMMEDIATE,
        ]
    );
    let first = &pair.sent_packets[0][0];
    assert_eq!(first.reth.length_bytes, 2500);
    assert_eq!((first.dscp, first.bth.psn), (26, FIRST_PSN[0]));
}

#[test]
fn t3_the_sequence_number_wraps_inside_a_message() {
    // End 1 starts 16 before the wrap.
    let sizes = [100 * MTU, 20 * MTU];
    let mut pair = Pair::over(transport(), |from, index, _| match (from, index) {
        (1, 12..20) => Fate::Lost,
        _ => Fate::Arrive,
    });
    pair.post(1, &sizes);
    pair.finish();
    pair.expect_delivered(1, 0, &sizes);
    assert!(pair.counters(1).retransmitted_packets > 0);
    assert!(pair.sent_packets[1].iter().any(|packet| packet.bth.psn == 0));
}

#[test]
fn a_message_beyond_two_gibibytes_is_split_and_only_its_end_has_the_immediate() {
    let transport = TransportConfig { mtu_bytes: 4096, window_packets: 1 << 23, ..transport() };
    let (mut a, mut b) = (queue_pair(&transport, 0), queue_pair(&transport, 1));
    let size_bytes = 2 * MAX_REQUEST_BYTES + 5;
    a.post_write(Message { id: 9, size_bytes, immediate: 77 });
    let mut ends = vec![];
    let mut writes = vec![];
    while let Some(packet) = a.poll_data(0) {
        b.handle_packet(0, &packet);
        if packet.bth.opcode != Opcode::WRITE_MIDDLE {
            ends.push((packet.bth.opcode, packet.bth.ack_request));
        }
        if packet.bth.opcode.row().unwrap().has_reth {
            writes.push((packet.reth.virtual_address, u64::from(packet.reth.length_bytes)));
        }
    }
    let (first, last) = ((Opcode::WRITE_FIRST, false), (Opcode::WRITE_LAST, true));
    assert_eq!(ends, [first, last, first, last, (Opcode::WRITE_ONLY_IMMEDIATE, true)]);
    let half = MAX_REQUEST_BYTES;
    assert_eq!(writes, [(0, half), (half, half), (2 * half, 5)]);
    let received = QpEvent::MessageReceived { immediate: 77, size_bytes, marked_packets: 0 };
    assert_eq!(b.poll_event(), Some(received));
    let reply = b.poll_control(0).unwrap();
    assert_eq!(reply.aeth.msn, 3);
    a.handle_packet(0, &reply);
    assert_eq!(a.poll_event(), Some(QpEvent::SendCompleted { id: 9, retransmitted_packets: 0 }));
    assert_eq!(b.counters().payload_mismatches, 0);
}

#[test]
fn acknowledgements_are_coalesced_to_every_fourth_packet_and_the_last() {
    let mut pair = Pair::new(transport());
    pair.post(0, &[10 * MTU]);
    pair.finish();
    let acknowledged: Vec<u32> =
        pair.sent_packets[1].iter().map(|packet| packet.bth.psn - FIRST_PSN[0]).collect();
    assert_eq!(acknowledged, [3, 7, 9]);
    assert_eq!(pair.sent_packets[1][2].aeth, Aeth { syndrome: 0x1F, msn: 1 });
    assert_eq!((pair.counters(1).acks_sent, pair.counters(0).acks_received), (3, 3));
}

#[test]
fn an_acknowledgement_is_held_back_no_longer_than_the_delay() {
    let transport = TransportConfig { ack_every_packets: 1000, ..transport() };
    let (mut a, mut b) = (queue_pair(&transport, 0), queue_pair(&transport, 1));
    a.post_write(Message { id: 0, size_bytes: 10 * MTU, immediate: 0 });
    b.handle_packet(3 * US, &a.poll_data(0).unwrap());
    assert_eq!(b.poll_control(3 * US), None);
    assert_eq!(b.poll_timeout(), Some(8 * US));
    b.handle_timeout(8 * US - 1);
    assert_eq!(b.poll_control(8 * US - 1), None);
    b.handle_timeout(8 * US);
    assert_eq!(b.poll_control(8 * US).unwrap().bth.psn, FIRST_PSN[0]);
    assert_eq!(b.poll_timeout(), None);
}

#[test]
fn the_window_bounds_what_is_in_flight_and_its_last_packet_asks_for_an_answer() {
    let transport = TransportConfig { window_packets: 8, ack_every_packets: 1000, ..transport() };
    let mut a = queue_pair(&transport, 0);
    a.post_write(Message { id: 0, size_bytes: 100 * MTU, immediate: 0 });
    let burst: Vec<Packet> = std::iter::from_fn(|| a.poll_data(0)).collect();
    let asks: Vec<bool> = burst.iter().map(|packet| packet.bth.ack_request).collect();
    assert_eq!(asks, [false, false, false, false, false, false, false, true]);
    assert_eq!(a.in_flight_bytes(), 8 * MTU);
    assert_eq!(a.next_data_bytes(), None);
    let mut pair = Pair::new(transport);
    pair.post(0, &[100 * MTU]);
    pair.finish();
    pair.expect_delivered(0, 0, &[100 * MTU]);
    assert_eq!(pair.counters(0).local_ack_timeout_err, 0);
}

#[test]
fn a_lost_packet_is_sent_again_after_one_nak_with_all_that_followed() {
    let mut pair = Pair::over(transport(), losing(&[5]));
    pair.post(0, &[20 * MTU, MTU]);
    pair.finish();
    pair.expect_delivered(0, 0, &[20 * MTU, MTU]);
    let (sender, receiver) = (pair.counters(0), pair.counters(1));
    assert_eq!((receiver.naks_sent, sender.packet_seq_err), (1, 1));
    assert_eq!(receiver.out_of_sequence, 15);
    assert_eq!(sender.retransmitted_packets, 16);
    assert_eq!(sender.data_payload_bytes_retransmitted, 16 * MTU);
    assert_eq!(sender.local_ack_timeout_err, 0);
    let nak = pair.sent_packets[1].iter().find(|packet| packet.aeth.syndrome == 0x60).unwrap();
    assert_eq!(nak.bth.psn, FIRST_PSN[0] + 5);
    // Each message knows its own share.
    assert!(pair.events(0).contains(&QpEvent::SendCompleted { id: 0, retransmitted_packets: 15 }));
    assert!(pair.events(0).contains(&QpEvent::SendCompleted { id: 1, retransmitted_packets: 1 }));
}

#[test]
fn t4_several_gaps_cause_a_single_nak_until_the_first_is_filled() {
    let mut pair = Pair::over(transport(), losing(&[2, 3, 7, 11]));
    pair.post(0, &[30 * MTU]);
    pair.finish();
    pair.expect_delivered(0, 0, &[30 * MTU]);
    assert_eq!(pair.counters(1).naks_sent, 1);
    let errors = pair.events(1).iter().filter(|event| **event == QpEvent::SequenceError);
    assert_eq!(errors.count(), 1);
}

#[test]
fn a_gap_behind_a_filled_one_causes_a_nak_of_its_own() {
    // Packet 2 is lost; of the packets sent again from there on, the one six later is lost as well.
    let mut pair = Pair::over(transport(), |from, index, packet| match (from, index) {
        (0, 2) => Fate::Lost,
        (0, 20..) if packet.bth.psn == FIRST_PSN[0] + 8 && index < 50 => Fate::Lost,
        _ => Fate::Arrive,
    });
    pair.post(0, &[30 * MTU]);
    pair.finish();
    pair.expect_delivered(0, 0, &[30 * MTU]);
    assert_eq!(pair.counters(1).naks_sent, 2);
    assert_eq!(pair.counters(0).local_ack_timeout_err, 0);
}

#[test]
fn a_nak_that_was_not_sent_in_time_asks_for_what_was_dropped_meanwhile() {
    // As seen on a busy host: the receiver reads a batch in which the third packet comes last.
    let [mut sender, mut receiver] = [queue_pair(&transport(), 0), queue_pair(&transport(), 1)];
    sender.post_write(Message { id: 0, size_bytes: 8 * 1024, immediate: 0 });
    let mut packets: Vec<Packet> = std::iter::from_fn(|| sender.poll_data(0)).collect();
    let third = packets.remove(2);
    packets.push(third);
    for packet in &packets {
        receiver.handle_packet(0, packet);
    }
    let nak = receiver.poll_control(0).unwrap();
    assert_eq!((nak.aeth.syndrome, nak.bth.psn), (0x60, FIRST_PSN[0] + 3));
    assert_eq!(receiver.poll_control(0), None);
    sender.handle_packet(0, &nak);
    std::iter::from_fn(|| sender.poll_data(0))
        .for_each(|packet| receiver.handle_packet(0, &packet));
    assert_eq!(sender.counters().retransmitted_packets, 5);
    assert_eq!(receiver.counters().data_payload_bytes_received, 8 * 1024);
    assert_eq!(receiver.counters().naks_sent, 1);
}

#[test]
fn a_packet_lost_twice_waits_for_the_timer() {
    // Packet 5 goes first as the sixth, then right after the NAK.
    let mut seen = 0;
    let mut pair = Pair::over(transport(), move |from, _, packet| {
        let hit = from == 0 && packet.bth.psn == FIRST_PSN[0] + 5;
        seen += u32::from(hit);
        if hit && seen <= 2 { Fate::Lost } else { Fate::Arrive }
    });
    pair.post(0, &[20 * MTU]);
    pair.finish();
    pair.expect_delivered(0, 0, &[20 * MTU]);
    assert_eq!(pair.counters(1).naks_sent, 1);
    assert_eq!(pair.counters(0).local_ack_timeout_err, 1);
    assert!(pair.events(0).contains(&QpEvent::TimedOut));
}

#[test]
fn t4_a_lost_acknowledgement_leads_to_a_duplicate_that_is_acknowledged_again() {
    let mut pair = Pair::over(transport(), |from, index, _| match (from, index) {
        (1, 0) => Fate::Lost,
        _ => Fate::Arrive,
    });
    pair.post(0, &[10]);
    pair.finish();
    pair.expect_delivered(0, 0, &[10]);
    assert_eq!(pair.counters(0).local_ack_timeout_err, 1);
    assert_eq!(pair.counters(1).duplicate_requests, 1);
    let acks = &pair.sent_packets[1];
    assert_eq!(acks.len(), 2);
    assert_eq!((acks[0].bth, acks[0].aeth), (acks[1].bth, acks[1].aeth));
}

#[test]
fn the_first_duplicate_of_a_run_is_answered_at_once() {
    let transport = TransportConfig { ack_every_packets: 1000, ..transport() };
    let (mut a, mut b) = (queue_pair(&transport, 0), queue_pair(&transport, 1));
    a.post_write(Message { id: 0, size_bytes: 10 * MTU, immediate: 0 });
    let packets: Vec<Packet> = (0..4).map(|_| a.poll_data(0).unwrap()).collect();
    packets.iter().for_each(|packet| b.handle_packet(0, packet));
    assert_eq!(b.poll_control(0), None);
    b.handle_packet(0, &packets[0]);
    assert_eq!(b.poll_control(0).unwrap().bth.psn, FIRST_PSN[0] + 3);
    b.handle_packet(0, &packets[1]);
    assert_eq!(b.poll_control(0), None);
    assert_eq!(b.counters().duplicate_requests, 2);
    b.handle_packet(0, &a.poll_data(0).unwrap());
    b.handle_packet(0, &packets[2]);
    assert_eq!(b.poll_control(0).unwrap().bth.psn, FIRST_PSN[0] + 4);
}

#[test]
fn a_dead_wire_fails_the_queue_pair_after_all_retries() {
    let transport = TransportConfig { retry_count: 3, ..transport() };
    let mut pair = Pair::over(transport, |_, _, _| Fate::Lost);
    pair.post(0, &[3 * MTU]);
    pair.finish();
    assert_eq!(pair.counters(0).local_ack_timeout_err, 4);
    let failed = QpEvent::Failed { reason: FailureReason::RetriesExhausted };
    assert_eq!(pair.events(0).last(), Some(&failed));
    assert_eq!(pair.now_ps, 4 * transport.retransmission_timeout_ps);
    assert_eq!(pair.ends[0].next_data_bytes(), None);
    assert!(pair.ends[0].has_unacknowledged());
}

#[test]
fn progress_resets_the_retries() {
    // Only one data packet in eight arrives, so that every message needs several timeouts.
    let transport = TransportConfig { retry_count: 10, window_packets: 1, ..transport() };
    let mut pair = Pair::over(transport, |from, index, _| match (from, index % 8) {
        (0, 0..7) => Fate::Lost,
        _ => Fate::Arrive,
    });
    pair.post(0, &[4 * MTU]);
    pair.finish();
    pair.expect_delivered(0, 0, &[4 * MTU]);
    assert_eq!(pair.counters(0).local_ack_timeout_err, 28);
}

#[test]
fn the_timer_runs_from_the_oldest_packet_and_stops_when_all_is_acknowledged() {
    let transport = transport();
    let (mut a, mut b) = (queue_pair(&transport, 0), queue_pair(&transport, 1));
    a.post_write(Message { id: 0, size_bytes: 2 * MTU, immediate: 0 });
    assert_eq!(a.poll_timeout(), None);
    let first = a.poll_data(10 * US).unwrap();
    let second = a.poll_data(20 * US).unwrap();
    assert_eq!(a.poll_timeout(), Some(110 * US));
    b.handle_packet(30 * US, &first);
    b.handle_timeout(35 * US);
    a.handle_packet(40 * US, &b.poll_control(35 * US).unwrap());
    assert_eq!(a.poll_timeout(), Some(140 * US));
    b.handle_packet(50 * US, &second);
    a.handle_packet(60 * US, &b.poll_control(50 * US).unwrap());
    assert_eq!(a.poll_timeout(), None);
}

#[test]
fn marks_are_counted_for_the_message_whose_packets_had_them() {
    let mut pair = Pair::over(transport(), |from, index, _| match (from, index) {
        (0, 1 | 2 | 5) => Fate::Marked,
        _ => Fate::Arrive,
    });
    pair.post(0, &[4 * MTU, 4 * MTU, MTU]);
    pair.finish();
    let marks: Vec<u32> = pair
        .events(1)
        .iter()
        .filter_map(|event| match event {
            QpEvent::MessageReceived { marked_packets, .. } => Some(*marked_packets),
            _ => None,
        })
        .collect();
    assert_eq!(marks, [2, 1, 0]);
    assert_eq!(pair.counters(1).ecn_marked_packets, 3);
}

#[test]
fn a_round_trip_is_measured_but_never_on_packets_sent_twice() {
    let mut pair = Pair::new(transport());
    pair.post(0, &[MTU]);
    pair.finish();
    let acknowledged = pair.ends[0].take_acknowledged();
    assert_eq!(acknowledged.payload_bytes, MTU);
    assert_eq!(acknowledged.round_trip_ps, Some(2 * LATENCY_PS));
    let mut pair = Pair::over(transport(), losing(&[0]));
    pair.post(0, &[MTU]);
    pair.finish();
    let acknowledged = pair.ends[0].take_acknowledged();
    assert_eq!((acknowledged.payload_bytes, acknowledged.round_trip_ps), (MTU, None));
}

#[test]
fn acknowledgements_of_old_and_of_unsent_packets_are_ignored() {
    let mut a = queue_pair(&transport(), 0);
    a.post_write(Message { id: 0, size_bytes: 4 * MTU, immediate: 0 });
    a.poll_data(0).unwrap();
    for psn in [FIRST_PSN[0] - 1, FIRST_PSN[0] + 1, FIRST_PSN[0] + 0x80_0000] {
        a.handle_packet(0, &acknowledge(psn, 0x1F));
        a.handle_packet(0, &acknowledge(psn, 0x60));
    }
    assert_eq!(a.in_flight_bytes(), MTU);
    assert_eq!(a.counters().packet_seq_err, 0);
    assert_eq!(a.poll_event(), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_message_is_delivered_once_and_in_order_over_an_unreliable_wire(
        seed in any::<u64>(),
        ratio in 0.0..0.02f64,
        window_packets in 1..100u32,
        ack_every_packets in 1..40u32,
        forth in prop::collection::vec(0..40_000u64, 1..12),
        back in prop::collection::vec(0..40_000u64, 0..12),
    ) {
        // Retries never run out: what is tested is the order, not the patience.
        let transport =
            TransportConfig { window_packets, ack_every_packets, retry_count: 1000, ..transport() };
        let mut pair = Pair::over(transport, unreliable(seed, ratio));
        pair.post(0, &forth);
        pair.post(1, &back);
        pair.finish();
        pair.expect_delivered(0, 0, &forth);
        pair.expect_delivered(1, forth.len() as u64, &back);
    }

    #[test]
    fn arbitrary_packets_never_panic_and_never_overrun_the_window(
        packets in prop::collection::vec(
            (0..0x13u8, -70..70i32, 0..0x80u8, 0..1200u16, 0..3000u32), 0..60),
    ) {
        let mut qp = queue_pair(&transport(), 1);
        qp.post_write(Message { id: 0, size_bytes: 1 << 20, immediate: 0 });
        for (code, distance, syndrome, length_bytes, declared_bytes) in packets {
            let mut packet = request(Opcode(code), length_bytes, declared_bytes);
            let first = if code == 0x11 { FIRST_PSN[1] } else { FIRST_PSN[0] };
            packet.bth.psn = first.wrapping_add_signed(distance) & 0xFF_FFFF;
            packet.aeth.syndrome = syndrome;
            qp.handle_packet(0, &packet);
            while qp.poll_control(0).is_some() {}
            while qp.poll_data(0).is_some() {}
            prop_assert!(qp.in_flight_bytes() <= 64 * 1024);
        }
    }
}
