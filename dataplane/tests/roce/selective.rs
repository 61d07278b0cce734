//! Selective repeat: only what is missing is sent again, and what came early waits for its turn.

use super::pair::*;
use _native::config::{AdaptiveRetransmissionConfig, LossRecovery, TransportConfig};
use _native::roce::{FailureReason, Message, Packet, QpEvent, WorkRequest};
use proptest::prelude::*;

const MTU: u64 = 1024;

fn selective() -> TransportConfig {
    TransportConfig { loss_recovery: LossRecovery::SelectiveRepeat, ..transport() }
}

/// Numbers of the packets that end 0 sent, in order.
fn numbers_sent(pair: &Pair) -> Vec<u32> {
    pair.sent_packets[0].iter().map(|packet| packet.bth.psn - FIRST_PSN[0]).collect()
}

#[test]
fn only_the_lost_packet_is_sent_again() {
    let mut pair = Pair::over(selective(), losing(&[5]));
    pair.post(0, &[20 * MTU]);
    pair.finish();
    pair.expect_delivered(0, 0, &[20 * MTU]);
    assert_eq!(pair.counters(0).retransmitted_packets, 1);
    assert_eq!(numbers_sent(&pair).iter().filter(|number| **number == 5).count(), 2);
    assert_eq!(pair.counters(0).local_ack_timeout_err, 0);
}

#[test]
fn several_lost_packets_are_sent_again_within_one_round_trip() {
    let mut pair = Pair::over(selective(), losing(&[2, 3, 7, 11]));
    pair.post(0, &[60 * MTU]);
    pair.finish();
    pair.expect_delivered(0, 0, &[60 * MTU]);
    let numbers = numbers_sent(&pair);
    let again: Vec<u32> = numbers
        .iter()
        .enumerate()
        .filter(|(place, number)| numbers[..*place].contains(number))
        .map(|(_, number)| *number)
        .collect();
    assert_eq!(again, [2, 3, 7, 11]);
    assert_eq!(pair.counters(0).local_ack_timeout_err, 0);
    let last_ps = 60 * PACKET_GAP_PS + 4 * LATENCY_PS;
    assert!(pair.now_ps < last_ps + 10 * US, "took {} ps", pair.now_ps);
}

#[test]
fn a_nak_names_the_missing_packet_and_the_one_that_came_instead() {
    let (mut a, mut b) = (queue_pair(&selective(), 0), queue_pair(&selective(), 1));
    a.post_write(Message { id: 0, size_bytes: 5 * MTU, immediate: 0 });
    let packets: Vec<Packet> = std::iter::from_fn(|| a.poll_data(0)).collect();
    b.handle_packet(0, &packets[0]);
    b.handle_packet(0, &packets[3]);
    let nak = b.poll_control(0).unwrap();
    assert_eq!((nak.aeth.syndrome, nak.bth.psn), (0x60, FIRST_PSN[0] + 1));
    assert_eq!(nak.aeth.msn, FIRST_PSN[0] + 3);
    a.handle_packet(0, &nak);
    let again: Vec<u32> =
        std::iter::from_fn(|| a.poll_data(0)).map(|packet| packet.bth.psn).collect();
    assert_eq!(again, [FIRST_PSN[0] + 1, FIRST_PSN[0] + 2]);
}

#[test]
fn a_closed_gap_is_acknowledged_at_once_with_all_that_waited() {
    let transport = TransportConfig { ack_every_packets: 1000, ..selective() };
    let (mut a, mut b) = (queue_pair(&transport, 0), queue_pair(&transport, 1));
    a.post_write(Message { id: 0, size_bytes: 9 * MTU, immediate: 0 });
    let packets: Vec<Packet> = (0..3).map(|_| a.poll_data(0).unwrap()).collect();
    b.handle_packet(0, &packets[1]);
    b.handle_packet(0, &packets[2]);
    b.poll_control(0).unwrap();
    b.handle_packet(0, &packets[0]);
    let acknowledge = b.poll_control(0).unwrap();
    assert_eq!((acknowledge.aeth.syndrome, acknowledge.bth.psn), (0x1F, FIRST_PSN[0] + 2));
}

#[test]
fn reordering_alone_costs_no_second_gap_event_and_no_timeout() {
    let mut pair = Pair::over(selective(), |from, index, _| match (from, index) {
        (0, 4) => Fate::LateBy(LATENCY_PS),
        _ => Fate::Arrive,
    });
    pair.post(0, &[30 * MTU]);
    pair.finish();
    pair.expect_delivered(0, 0, &[30 * MTU]);
    let gaps = pair.events(1).iter().filter(|event| **event == QpEvent::SequenceError).count();
    assert_eq!((gaps, pair.counters(0).local_ack_timeout_err), (1, 0));
    assert!(pair.counters(0).retransmitted_packets <= 1);
}

#[test]
fn reordering_within_the_tolerance_sends_nothing_again() {
    let late = |from: usize, index: u64, _: &Packet| match (from, index) {
        (0, 4) => Fate::LateBy(20 * PACKET_GAP_PS + 1),
        _ => Fate::Arrive,
    };
    let mut pair = Pair::over(TransportConfig { reordering_packets: 21, ..selective() }, late);
    pair.post(0, &[60 * MTU]);
    pair.finish();
    pair.expect_delivered(0, 0, &[60 * MTU]);
    assert_eq!(pair.counters(0).retransmitted_packets, 0);
    let mut pair = Pair::over(TransportConfig { reordering_packets: 19, ..selective() }, late);
    pair.post(0, &[60 * MTU]);
    pair.finish();
    pair.expect_delivered(0, 0, &[60 * MTU]);
    assert!(pair.counters(0).retransmitted_packets > 0);
}

#[test]
fn a_lost_tail_is_sent_again_by_the_timer_without_what_has_arrived() {
    // 8 and 9 never come the first time, 7 does; 5 is lost twice.
    let mut fives = 0;
    let mut pair = Pair::over(selective(), move |from, index, packet| {
        let is_five = from == 0 && packet.bth.psn == FIRST_PSN[0] + 5;
        fives += u32::from(is_five);
        match (from, index) {
            (0, 8 | 9) => Fate::Lost,
            _ if is_five && fives <= 2 => Fate::Lost,
            _ => Fate::Arrive,
        }
    });
    pair.post(0, &[10 * MTU]);
    pair.finish();
    pair.expect_delivered(0, 0, &[10 * MTU]);
    assert_eq!(pair.counters(0).local_ack_timeout_err, 1);
    assert_eq!(numbers_sent(&pair)[10..], [5, 5, 8, 9]);
}

#[test]
fn a_packet_that_waited_for_its_turn_and_then_lacks_a_receive_is_sent_again() {
    let (mut a, mut b) = (queue_pair(&selective(), 0), queue_pair(&selective(), 1));
    b.limit_receives(0, 1);
    a.post(0, WorkRequest::Write { size_bytes: 10, immediate: None });
    a.post_write(Message { id: 1, size_bytes: 10, immediate: 7 });
    let _lost = a.poll_data(0).unwrap();
    b.handle_packet(0, &a.poll_data(0).unwrap());
    a.handle_packet(0, &b.poll_control(0).unwrap());
    // The second packet has waited for the first; now it is its turn, and there is no receive.
    b.handle_packet(0, &a.poll_data(0).unwrap());
    let reply = b.poll_control(0).unwrap();
    assert_eq!((reply.aeth.syndrome, reply.bth.psn), (0x21, FIRST_PSN[0] + 1));
    a.handle_packet(0, &reply);
    b.post_receive();
    let resume_ps = a.poll_timeout().unwrap();
    a.handle_timeout(resume_ps);
    b.handle_packet(resume_ps, &a.poll_data(resume_ps).unwrap());
    let arrived = std::iter::from_fn(|| b.poll_event()).last();
    assert!(matches!(arrived, Some(QpEvent::MessageReceived { immediate: 7, .. })), "{arrived:?}");
}

#[test]
fn marks_and_messages_are_right_although_packets_waited() {
    let mut pair = Pair::over(selective(), |from, index, _| match (from, index) {
        (0, 0) => Fate::Lost,
        (0, 1 | 4) => Fate::Marked,
        _ => Fate::Arrive,
    });
    pair.post(0, &[3 * MTU, 3 * MTU]);
    pair.finish();
    let received = |immediate, marked_packets| QpEvent::MessageReceived {
        immediate,
        size_bytes: 3 * MTU,
        marked_packets,
    };
    assert_eq!(pair.events(1), [QpEvent::SequenceError, received(0, 1), received(1, 1)]);
}

#[test]
fn an_adaptive_timer_gives_up_after_the_same_time_in_all() {
    let adaptive = AdaptiveRetransmissionConfig {
        time_base_ps: US,
        initial_exponent: 4,
        initial_exponents: 1,
        min_exponent: 4,
        max_exponent: 10,
        retries_per_timeout: 1,
        progress_decrease: 32,
    };
    let transport =
        TransportConfig { adaptive_retransmission: Some(adaptive), retry_count: 3, ..selective() };
    let mut pair = Pair::over(transport, |_, _, _| Fate::Lost);
    pair.post(0, &[MTU]);
    pair.finish();
    let failed = QpEvent::Failed { reason: FailureReason::RetriesExhausted };
    assert_eq!(pair.events(0).last(), Some(&failed));
    // 16 + 32 + 64 + 100 + 100 microseconds: at least three times the constant 100.
    assert_eq!(pair.now_ps, 312 * US);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_executed_once_and_in_order_with_selective_repeat(
        seed in any::<u64>(),
        ratio in 0.0..0.03f64,
        window_packets in 1..200u32,
        ack_every_packets in 1..40u32,
        forth in prop::collection::vec((0..4u8, 0..40_000u64), 1..12),
        back in prop::collection::vec((0..4u8, 0..40_000u64), 0..12),
    ) {
        let transport = TransportConfig {
            window_packets,
            ack_every_packets,
            retry_count: 1000,
            ..selective()
        };
        let mut pair = Pair::over(transport, unreliable(seed, ratio));
        let mut expected = [vec![], vec![]];
        for (end, requests) in [(0, &forth), (1, &back)] {
            for (id, &(kind, size_bytes)) in requests.iter().enumerate() {
                let immediate = Some(id as u32);
                let request = match kind {
                    0 => WorkRequest::Read { size_bytes, offset_bytes: 77 },
                    1 => WorkRequest::Send { size_bytes, immediate },
                    _ => WorkRequest::Write { size_bytes, immediate },
                };
                pair.ends[end].post(id as u64, request);
                if kind != 0 {
                    expected[end].push((id as u32, size_bytes));
                }
            }
        }
        pair.finish();
        for (end, expected) in expected.iter().enumerate() {
            let arrived: Vec<(u32, u64)> = pair
                .events(1 - end)
                .iter()
                .filter_map(|event| match *event {
                    QpEvent::MessageReceived { immediate, size_bytes, .. }
                    | QpEvent::SendReceived { immediate: Some(immediate), size_bytes, .. } => {
                        Some((immediate, size_bytes))
                    }
                    _ => None,
                })
                .collect();
            prop_assert_eq!(&arrived, expected);
            prop_assert!(!pair.ends[end].has_unacknowledged());
            prop_assert_eq!(pair.ends[end].in_flight_bytes(), 0);
            prop_assert_eq!(pair.counters(end).payload_mismatches, 0);
            prop_assert_eq!(pair.counters(end).invalid_requests, 0);
        }
    }
}
