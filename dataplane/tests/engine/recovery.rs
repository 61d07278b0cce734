//! Loss and failure: what is dropped arrives in the end, and what cannot arrive is told.

use _native::config::{CongestionControlConfig, QpDistribution};
use _native::engine::nic::CLEAR_TO_SEND_BYTES;
use _native::engine::program::Program;
use _native::engine::testing::{DELAY_PS, FabricBuilder, star, workloads};
use _native::engine::{Emulation, Progress};
use std::sync::Arc;

const SIZE_BYTES: u64 = 4 << 20;

/// A star whose switch drops instead of pausing, with senders that do not slow down.
fn lossy(nics: u32, buffer_bytes: u64) -> FabricBuilder {
    let mut fabric = star(nics);
    for priority in &mut fabric.0.switches[0].priorities {
        priority.lossless = false;
        priority.headroom_bytes = 0;
        priority.ecn = None;
    }
    fabric.0.switches[0].buffer_bytes = buffer_bytes;
    fabric.0.congestion_control = CongestionControlConfig::FixedRate { rate_bps: None };
    fabric
}

fn total(emulation: &Emulation, of: impl Fn(&_native::engine::nic::NicCounters) -> u64) -> u64 {
    emulation.world().hosts().map(|(_, host)| of(&host.nic().counters())).sum()
}

#[test]
fn an_incast_over_a_lossy_switch_delivers_every_byte_once() {
    let programs = workloads::incast(8, SIZE_BYTES);
    let mut emulation = Emulation::new(lossy(8, 200_000).0, &programs).expect("a valid job");
    assert_eq!(emulation.advance(None, 100_000_000), Progress::Done);
    emulation.world_mut().finish_telemetry();
    let dropped: u64 =
        emulation.world().telemetry().queue_totals().iter().map(|q| q.dropped_packets).sum();
    assert!(dropped > 100, "{dropped} dropped");
    let again = total(&emulation, |c| c.transport.data_payload_bytes_retransmitted);
    let sent = total(&emulation, |c| c.transport.data_payload_bytes_sent);
    assert!(again > 0);
    assert_eq!(sent - again, 7 * SIZE_BYTES);
    assert_eq!(total(&emulation, |c| c.transport.data_payload_bytes_received), 7 * SIZE_BYTES);
    assert!(total(&emulation, |c| c.transport.packet_seq_err) > 0);
    assert_eq!(total(&emulation, |c| c.transport.payload_mismatches), 0);
}

#[test]
fn retransmissions_are_told_per_message() {
    let programs = workloads::incast(8, SIZE_BYTES);
    let mut emulation = Emulation::new(lossy(8, 200_000).0, &programs).expect("a valid job");
    emulation.advance(None, 100_000_000);
    let per_message: u64 = emulation
        .world()
        .hosts()
        .flat_map(|(_, host)| host.messages())
        .map(|message| u64::from(message.retransmitted_packets))
        .sum();
    assert_eq!(per_message, total(&emulation, |c| c.transport.retransmitted_packets));
}

#[test]
fn a_peer_that_cannot_be_reached_ends_the_job_and_is_named() {
    let mut fabric = star(3);
    fabric.0.switches[0].routes[1].clear();
    let programs = workloads::one_message(SIZE_BYTES);
    let mut emulation = Emulation::new(fabric.0, &programs).expect("a valid job");
    assert_eq!(emulation.advance(None, 100_000_000), Progress::Stalled);
    let blocked = emulation.world().blocked(10);
    let send = blocked.iter().find(|op| op.rank == 0).expect("rank 0 waits");
    assert_eq!(send.peer, 1);
    assert!(send.waiting_for.contains("no acknowledgement after all retries"), "{send:?}");
    assert!(blocked.iter().any(|op| op.rank == 1 && op.peer == 0));
    assert!(emulation.world().snapshot().totals.contains(&("failed_qps", 1)));
    let (_, host) = emulation.world().hosts().next().expect("rank 0");
    let failure = host.failures()[0];
    assert_eq!((failure.rank, failure.peer_rank, failure.op), (0, 1, Some(0)));
}

#[test]
fn an_incast_over_a_lossless_switch_pauses_and_drops_nothing() {
    let mut fabric = star(8);
    fabric.0.congestion_control = CongestionControlConfig::FixedRate { rate_bps: None };
    fabric.0.switches[0].buffer_bytes = 2 << 20;
    let programs = workloads::incast(8, SIZE_BYTES);
    let mut emulation = Emulation::new(fabric.0, &programs).expect("a valid job");
    assert_eq!(emulation.advance(None, 100_000_000), Progress::Done);
    emulation.world_mut().finish_telemetry();
    assert!(total(&emulation, |c| c.pause_frames_received) > 0);
    assert_eq!(total(&emulation, |c| c.transport.retransmitted_packets), 0);
    let queues = emulation.world().telemetry().queue_totals();
    assert_eq!(queues.iter().map(|queue| queue.dropped_packets).sum::<u64>(), 0);
    let paused_ps: u64 =
        emulation.world().telemetry().links().iter().map(|(_, row)| row.paused_ps).sum();
    assert!(paused_ps > 0);
    let ideal_ps = 7 * SIZE_BYTES * 20 * 4178 / 4096;
    let now_ps = emulation.world().now_ps();
    assert!(now_ps < ideal_ps * 102 / 100 + 5_000_000, "{now_ps} of {ideal_ps}");
}

#[test]
fn messages_to_one_peer_take_its_queue_pairs_in_turn() {
    let mut fabric = star(2);
    fabric.0.transport.qps_per_peer = 4;
    let programs = workloads::ring(2, 8, 100_000);
    let mut emulation = Emulation::new(fabric.0, &programs).expect("a valid job");
    assert_eq!(emulation.advance(None, 100_000_000), Progress::Done);
    emulation.world_mut().finish_telemetry();
    let mut seen: Vec<(u32, u32)> =
        emulation.world().telemetry().qps().iter().map(|(_, r)| (r.source_rank, r.qp)).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 2 * 4);
}

#[test]
fn a_split_message_goes_over_all_queue_pairs_and_is_complete_when_its_parts_are() {
    let mut fabric = lossy(8, 200_000);
    fabric.0.transport.qps_per_peer = 4;
    fabric.0.transport.qp_distribution = QpDistribution::Split;
    let programs = workloads::incast(8, SIZE_BYTES);
    let mut emulation = Emulation::new(fabric.0, &programs).expect("a valid job");
    assert_eq!(emulation.advance(None, 100_000_000), Progress::Done);
    assert_eq!(total(&emulation, |c| c.transport.data_payload_bytes_received), 7 * SIZE_BYTES);
    let per_message: u64 = emulation
        .world()
        .hosts()
        .flat_map(|(_, host)| host.messages())
        .map(|message| u64::from(message.retransmitted_packets))
        .sum();
    assert!(per_message > 0);
    assert_eq!(per_message, total(&emulation, |c| c.transport.retransmitted_packets));
}

#[test]
fn one_split_message_uses_every_queue_pair() {
    let mut fabric = star(2);
    fabric.0.transport.qps_per_peer = 4;
    fabric.0.transport.qp_distribution = QpDistribution::Split;
    let mut emulation =
        Emulation::new(fabric.0, &workloads::one_message(SIZE_BYTES)).expect("a valid job");
    assert_eq!(emulation.advance(None, 100_000_000), Progress::Done);
    emulation.world_mut().finish_telemetry();
    let mut seen: Vec<u32> =
        emulation.world().telemetry().qps().iter().map(|(_, row)| row.qp).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 4);
}

#[test]
fn each_message_waits_for_one_clear_to_send_message() {
    let mut fabric = star(3);
    fabric.0.transport.clear_to_send = true;
    fabric.0.transport.qps_per_peer = 2;
    fabric.0.transport.qp_distribution = QpDistribution::Split;
    let programs = workloads::ring(3, 8, 100_000);
    let without_ps = finish_ps(star(3), &programs);
    let mut emulation = Emulation::new(fabric.0, &programs).expect("a valid job");
    assert_eq!(emulation.advance(None, 100_000_000), Progress::Done);
    let sent = total(&emulation, |c| c.clear_to_send_sent);
    assert_eq!((sent, total(&emulation, |c| c.clear_to_send_received)), (3 * 8, 3 * 8));
    let payload = total(&emulation, |c| c.transport.data_payload_bytes_received);
    assert_eq!(payload, 3 * 8 * (100_000 + CLEAR_TO_SEND_BYTES));
    let delivered = ("bytes_delivered", 3 * 8 * 100_000);
    assert!(emulation.world().snapshot().totals.contains(&delivered));
    let later_ps = emulation.world().now_ps() - without_ps;
    let one_way_ps = 2 * DELAY_PS;
    assert!(later_ps >= one_way_ps, "only the first step waits, for at least one way: {later_ps}");
}

fn finish_ps(fabric: FabricBuilder, programs: &[Arc<Program>]) -> u64 {
    let mut emulation = Emulation::new(fabric.0, programs).expect("a valid job");
    assert_eq!(emulation.advance(None, 100_000_000), Progress::Done);
    emulation.world().now_ps()
}

#[test]
fn a_send_whose_receiver_never_is_ready_says_so() {
    let mut fabric = star(2);
    fabric.0.transport.clear_to_send = true;
    fabric.0.switches[0].routes[0].clear();
    let programs = workloads::one_message(SIZE_BYTES);
    let mut emulation = Emulation::new(fabric.0, &programs).expect("a valid job");
    assert_eq!(emulation.advance(None, 100_000_000), Progress::Stalled);
    let blocked = emulation.world().blocked(10);
    let send = blocked.iter().find(|op| op.rank == 0).expect("rank 0 waits");
    assert_eq!(send.waiting_for, "the receiver's readiness");
}
