//! Swift in steady state, packet by packet: the round trip is at the target, the line is full.

use crate::profiles::swift;
use crate::world::{CONTROL, DATA, GBPS, Host, US, World, job, lossy, packet};
use _native::congestion::{CongestionControl, Swift};
use _native::fabric::{PortLink, PortScheduler, QueueDiscipline, Queued};
use _native::roce::opcode::Opcode;
use _native::roce::packet::{Bth, Frame, Packet};
use _native::units::{PREAMBLE_AND_GAP_BYTES, transfer_ps};
use std::any::Any;
use std::collections::VecDeque;

const RATE_BPS: u64 = 100 * GBPS;
const WIRE_BYTES: u32 = 1062;

/// A flow that always has data, limited by its window and pacing.
struct Windowed {
    control: Swift,
    packet: Packet,
    sent_ps: VecDeque<u64>,
    next_ps: u64,
    acked_packets: u64,
    rtt_sum_ps: u64,
}

impl Windowed {
    fn new(port: u16, receiver: u16) -> Self {
        Self {
            control: Swift::new(&swift(), RATE_BPS),
            packet: packet(port, receiver, DATA.0, WIRE_BYTES),
            sent_ps: VecDeque::new(),
            next_ps: 0,
            acked_packets: 0,
            rtt_sum_ps: 0,
        }
    }

    fn has_room(&self) -> bool {
        let in_flight_bytes = self.sent_ps.len() as u64 * 1_000;
        self.control.window_bytes().is_none_or(|window_bytes| in_flight_bytes < window_bytes)
    }
}

impl Host for Windowed {
    fn handle_frame(&mut self, now_ps: u64, _frame: Frame) {
        let sent_ps = self.sent_ps.pop_front().expect("it acknowledges what was sent");
        self.acked_packets += 1;
        self.rtt_sum_ps += now_ps - sent_ps;
        self.control.handle_ack(now_ps, 1_000, Some(now_ps - sent_ps));
    }

    fn poll(&mut self, now_ps: u64) -> Option<(Frame, u64)> {
        if !self.has_room() || now_ps < self.next_ps {
            return None;
        }
        let line_bytes = u64::from(WIRE_BYTES) + PREAMBLE_AND_GAP_BYTES;
        self.next_ps = now_ps + transfer_ps(line_bytes, self.control.rate_bps());
        self.sent_ps.push_back(now_ps);
        let end_ps = now_ps + transfer_ps(u64::from(WIRE_BYTES), RATE_BPS);
        self.packet.bth.psn = (self.packet.bth.psn + 1) & 0xFF_FFFF;
        Some((Frame::Roce(Box::new(self.packet.clone())), end_ps))
    }

    fn next_ps(&self) -> Option<u64> {
        self.has_room().then_some(self.next_ps)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Acknowledges every packet.
struct Acknowledger {
    port: u16,
    scheduler: PortScheduler,
}

impl Host for Acknowledger {
    fn handle_frame(&mut self, now_ps: u64, frame: Frame) {
        let Frame::Roce(data) = frame else { return };
        let sender = (data.source_address - crate::world::address(0)) as u16;
        let acknowledgement = Packet {
            bth: Bth { opcode: Opcode::ACKNOWLEDGE, ..Bth::default() },
            ..packet(self.port, sender, CONTROL.0, 62)
        };
        let frame = Frame::Roce(Box::new(acknowledgement));
        let wire_bytes = frame.wire_bytes();
        self.scheduler.push(6, Queued { frame, wire_bytes, ingress_port: 0, enqueued_ps: now_ps });
    }

    fn poll(&mut self, now_ps: u64) -> Option<(Frame, u64)> {
        let departure = self.scheduler.poll(now_ps)?;
        Some((departure.queued.frame, departure.end_ps))
    }

    fn next_ps(&self) -> Option<u64> {
        self.scheduler.next_ps()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn incast(senders: u16) -> World {
    let sender = |port| -> Box<dyn Host> { Box::new(Windowed::new(port, senders)) };
    let mut hosts: Vec<Box<dyn Host>> = (0..senders).map(sender).collect();
    let scheduler = PortScheduler::new(RATE_BPS, &[QueueDiscipline::Strict; 8]);
    hosts.push(Box::new(Acknowledger { port: senders, scheduler }));
    let link = PortLink { rate_bps: RATE_BPS, delay_ps: US };
    World::new(&job(senders + 1, 64_000_000, lossy()), link, hosts)
}

/// Acknowledged packets and sum of round trips of each sender.
fn progress(world: &World, senders: usize) -> Vec<(u64, u64)> {
    let flow = |port| world.host::<Windowed>(port);
    (0..senders).map(|port| (flow(port).acked_packets, flow(port).rtt_sum_ps)).collect()
}

/// Round trip in picoseconds, share of the line, and Jain's index between two times.
fn measure(world: &mut World, senders: usize, from_ps: u64, to_ps: u64) -> (f64, f64, f64) {
    world.run_until(from_ps);
    let before = progress(world, senders);
    world.run_until(to_ps);
    let after = progress(world, senders);
    let flows = || after.iter().zip(&before);
    let packets: Vec<f64> = flows().map(|(after, before)| (after.0 - before.0) as f64).collect();
    let total: f64 = packets.iter().sum();
    let squares: f64 = packets.iter().map(|packets| packets * packets).sum();
    let rtt_sum_ps: u64 = flows().map(|(after, before)| after.1 - before.1).sum();
    let line_packets = (to_ps - from_ps) as f64 / (1082.0 * 80.0);
    let jain = total * total / (senders as f64 * squares);
    (rtt_sum_ps as f64 / total, total / line_packets, jain)
}

#[test]
fn round_trips_are_at_the_target_and_the_line_is_full() {
    for senders in [2, 8, 32] {
        let mut world = incast(senders as u16);
        let (rtt_ps, share, jain) = measure(&mut world, senders, 20_000 * US, 40_000 * US);
        let target = |port| world.host::<Windowed>(port).control.target_delay_ps();
        let target_ps = (0..senders).map(target).sum::<f64>() / senders as f64;
        println!("N={senders}: {rtt_ps} of {target_ps} ps, {share} of the line, Jain {jain}");
        assert!((rtt_ps / target_ps - 1.0).abs() < 0.1, "{rtt_ps} of {target_ps} ps");
        assert!(share > 0.98 && jain > 0.95, "{share} of the line, Jain {jain}");
    }
}

/// A packet of each of 1000 senders alone fills the line for 87 us.
#[test]
fn more_senders_than_packets_in_a_round_trip_keep_less_than_a_packet_each_in_flight() {
    let mut world = incast(1000);
    let (rtt_ps, share, _) = measure(&mut world, 1000, 10_000 * US, 30_000 * US);
    assert!(rtt_ps < 80e6, "{rtt_ps}");
    assert!(share > 0.97, "{share}");
}
