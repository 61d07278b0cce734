//! The scheduler of one transmitter.

use crate::world::{GBPS, packet};
use _native::fabric::{PortScheduler, QueueDiscipline, Queued};
use _native::roce::packet::{Frame, PauseFrame};

use QueueDiscipline::{Strict, Weighted};

/// 400 Gb/s: 20 ps per byte.
const RATE_BPS: u64 = 400 * GBPS;

fn with_weights(weights: [u32; 8]) -> PortScheduler {
    PortScheduler::new(RATE_BPS, &weights.map(Weighted))
}

fn push(port: &mut PortScheduler, priority: u8, wire_bytes: u32, enqueued_ps: u64) {
    let frame = Frame::Roce(Box::new(packet(0, 1, 0, wire_bytes)));
    assert_eq!(frame.wire_bytes(), wire_bytes);
    port.push(priority, Queued { frame, wire_bytes, ingress_port: 0, enqueued_ps });
}

/// Priorities in the order in which `count` frames leave.
fn order(port: &mut PortScheduler, count: usize) -> Vec<u8> {
    let next = |port: &mut PortScheduler| {
        let at_ps = port.next_ps().expect("frames wait");
        port.poll(at_ps).expect("the line is free then").priority
    };
    (0..count).map(|_| next(port)).collect()
}

fn pause(priority: u8, quanta: u16) -> PauseFrame {
    let mut all = [0xFFFF; 8];
    all[usize::from(priority)] = quanta;
    PauseFrame { source_mac: [0; 6], class_enable: 1 << priority, quanta: all }
}

#[test]
fn strict_priorities_go_before_weighted_ones_the_higher_first() {
    let mut disciplines = [Weighted(100); 8];
    disciplines[2] = Strict;
    disciplines[6] = Strict;
    let mut port = PortScheduler::new(RATE_BPS, &disciplines);
    for priority in [0, 7, 2, 6, 2, 6] {
        push(&mut port, priority, 1086, 0);
    }
    assert_eq!(order(&mut port, 6)[..4], [6, 6, 2, 2]);
}

/// Bytes sent per priority while all of them always wait.
fn shares(mut port: PortScheduler, wire_bytes: [u32; 8], rounds: usize) -> [u64; 8] {
    let mut sent_bytes = [0; 8];
    for priority in 0..8 {
        (0..32).for_each(|_| push(&mut port, priority, wire_bytes[usize::from(priority)], 0));
    }
    for _ in 0..rounds {
        let departure = port.poll(port.next_ps().expect("all wait")).expect("the line is free");
        let bytes = departure.queued.wire_bytes;
        sent_bytes[usize::from(departure.priority)] += u64::from(bytes);
        push(&mut port, departure.priority, bytes, departure.start_ps);
    }
    sent_bytes
}

#[test]
fn weighted_priorities_share_bytes_by_weight_whatever_their_packet_sizes() {
    let weights = [1, 2, 3, 4, 5, 10, 25, 50];
    let wire_bytes = [4158, 126, 1086, 4158, 2110, 318, 4158, 1086];
    let sent_bytes = shares(with_weights(weights), wire_bytes, 200_000);
    let total: u64 = sent_bytes.iter().sum();
    for (sent, weight) in sent_bytes.iter().zip(weights) {
        let share = *sent as f64 / total as f64;
        let expected = f64::from(weight) / 100.0;
        assert!((share / expected - 1.0).abs() < 0.02, "weight {weight}: {share}");
    }
}

#[test]
fn a_lone_priority_has_the_whole_line() {
    let mut port = with_weights([1; 8]);
    (0..10).for_each(|_| push(&mut port, 3, 4158, 0));
    assert_eq!(order(&mut port, 10), [3; 10]);
    assert_eq!(port.free_ps(), 10 * (4158 + 20) * 20);
}

#[test]
fn a_pause_stops_its_priority_and_no_other_and_expires() {
    let mut port = with_weights([1; 8]);
    port.handle_pause(0, &pause(3, 100));
    push(&mut port, 3, 1086, 0);
    push(&mut port, 4, 1086, 0);
    assert_eq!(order(&mut port, 1), [4]);
    let end_ps = 100 * 64 * 20;
    assert_eq!(port.next_ps(), Some(end_ps));
    assert!(port.poll(end_ps - 1).is_none());
    assert_eq!(port.poll(end_ps).map(|d| (d.priority, d.start_ps)), Some((3, end_ps)));
    assert_eq!(port.paused_ps(2 * end_ps, 3), end_ps);
}

#[test]
fn t12_a_pause_of_no_time_resumes_at_once() {
    let mut port = with_weights([1; 8]);
    port.handle_pause(0, &pause(3, 0xFFFF));
    push(&mut port, 3, 1086, 5);
    assert!(port.poll(1_000).is_none());
    port.handle_pause(1_000, &pause(3, 0));
    assert_eq!(port.poll(1_000).map(|d| d.start_ps), Some(1_000));
    assert_eq!(port.paused_ps(9_999, 3), 1_000);
}

#[test]
fn a_refreshed_pause_counts_its_time_once() {
    let mut port = with_weights([1; 8]);
    port.handle_pause(0, &pause(3, 100));
    port.handle_pause(64_000, &pause(3, 100));
    assert_eq!(port.paused_ps(1_000_000, 3), 64_000 + 128_000);
}

#[test]
fn asked_late_frames_begin_as_if_asked_in_time() {
    let mut port = with_weights([1; 8]);
    (0..3).for_each(|k| push(&mut port, 3, 1086, 1_000 * k));
    let frame_ps = (1086 + 20) * 20;
    let starts: Vec<u64> =
        std::iter::from_fn(|| port.poll(1_000_000)).map(|d| d.start_ps).collect();
    assert_eq!(starts, [0, frame_ps, 2 * frame_ps]);
}

#[test]
fn asked_late_a_frame_that_came_later_does_not_overtake() {
    let mut disciplines = [Weighted(1); 8];
    disciplines[6] = Strict;
    let mut port = PortScheduler::new(RATE_BPS, &disciplines);
    push(&mut port, 3, 1086, 0);
    push(&mut port, 6, 1086, 5_000);
    let departures: Vec<(u8, u64)> =
        std::iter::from_fn(|| port.poll(1_000_000)).map(|d| (d.priority, d.start_ps)).collect();
    assert_eq!(departures, [(3, 0), (6, (1086 + 20) * 20)]);
}

#[test]
fn nothing_begins_before_the_line_is_free() {
    let mut port = with_weights([1; 8]);
    push(&mut port, 3, 1086, 0);
    push(&mut port, 3, 1086, 0);
    assert!(port.poll(0).is_some());
    let free_ps = (1086 + 20) * 20;
    assert_eq!(port.next_ps(), Some(free_ps));
    assert!(port.poll(free_ps - 1).is_none());
    let last = port.poll(free_ps).expect("the line is free");
    assert_eq!(last.end_ps, free_ps + 1086 * 20);
}
