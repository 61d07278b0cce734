//! What stands at the ports of a switch under test.

use crate::world::{Host, packet};
use _native::config::NotificationPointConfig;
use _native::congestion::{CongestionControl, Controller, FlowKey, NotificationPoint};
use _native::fabric::{PortScheduler, QueueDiscipline, Queued};
use _native::random::Random;
use _native::roce::opcode::Opcode;
use _native::roce::packet::{Bth, Ecn, Frame, Packet};
use _native::units::{PREAMBLE_AND_GAP_BYTES, transfer_ps};
use std::any::Any;

/// Takes frames and counts them.
#[derive(Default)]
pub struct Sink {
    pub packets: u64,
    pub bytes: u64,
}

impl Host for Sink {
    fn handle_frame(&mut self, _now_ps: u64, frame: Frame) {
        self.packets += 1;
        self.bytes += u64::from(frame.wire_bytes());
    }

    fn poll(&mut self, _now_ps: u64) -> Option<(Frame, u64)> {
        None
    }

    fn next_ps(&self) -> Option<u64> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Sends some classes of packets as fast as its line and pauses allow, up to a time.
pub struct Greedy {
    pub scheduler: PortScheduler,
    /// What to send in each class: a packet and its priority.
    classes: Vec<(Packet, u8)>,
    until_ps: u64,
    pub sent_packets: Vec<u64>,
    pub pauses: u64,
    pub received_packets: u64,
    last_ps: u64,
}

impl Greedy {
    pub fn new(rate_bps: u64, classes: Vec<(Packet, u8)>, until_ps: u64) -> Self {
        let scheduler = PortScheduler::new(rate_bps, &[QueueDiscipline::Weighted(1); 8]);
        let sent_packets = vec![0; classes.len()];
        let mut greedy = Self {
            scheduler,
            classes,
            until_ps,
            sent_packets,
            pauses: 0,
            received_packets: 0,
            last_ps: 0,
        };
        (0..greedy.classes.len()).for_each(|class| greedy.refill(class, 0));
        greedy
    }

    fn refill(&mut self, class: usize, now_ps: u64) {
        let (packet, priority) = &mut self.classes[class];
        packet.bth.psn = (packet.bth.psn + 1) & 0xFF_FFFF;
        let frame = Frame::Roce(Box::new(packet.clone()));
        let wire_bytes = frame.wire_bytes();
        let queued = Queued { frame, wire_bytes, ingress_port: 0, enqueued_ps: now_ps };
        self.scheduler.push(*priority, queued);
    }
}

impl Host for Greedy {
    fn handle_frame(&mut self, now_ps: u64, frame: Frame) {
        match frame {
            Frame::Pause(pause) => {
                self.pauses += 1;
                self.scheduler.handle_pause(now_ps, &pause);
            }
            Frame::Roce(_) => self.received_packets += 1,
        }
    }

    fn poll(&mut self, now_ps: u64) -> Option<(Frame, u64)> {
        self.last_ps = now_ps;
        if now_ps >= self.until_ps {
            return None;
        }
        let departure = self.scheduler.poll(now_ps)?;
        let has_priority = |class: &(Packet, u8)| class.1 == departure.priority;
        let class = self.classes.iter().position(has_priority).expect("it sent of a class");
        self.sent_packets[class] += 1;
        self.refill(class, departure.start_ps);
        Some((departure.queued.frame, departure.end_ps))
    }

    fn next_ps(&self) -> Option<u64> {
        self.scheduler.next_ps().filter(|_| self.last_ps < self.until_ps)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// One queue pair that always has data, paced by its congestion control.
pub struct Paced {
    pub controller: Controller,
    packet: Packet,
    line_rate_bps: u64,
    random: Random,
    last_start_ps: Option<u64>,
    /// The gap to the next packet is this many times the rate's.
    jitter: f64,
    /// The time of the next packet by the rate at which the last one left.
    planned_ps: u64,
    free_ps: u64,
    pub cnps: u64,
}

impl Paced {
    pub fn new(controller: Controller, packet: Packet, line_rate_bps: u64, seed: u64) -> Self {
        Self {
            controller,
            packet,
            line_rate_bps,
            random: Random::new(seed, 77),
            last_start_ps: None,
            jitter: 1.0,
            planned_ps: 0,
            free_ps: 0,
            cnps: 0,
        }
    }

    fn line_bytes(&self) -> u64 {
        u64::from(self.packet.wire_bytes()) + PREAMBLE_AND_GAP_BYTES
    }

    fn paced_ps(&self, last_ps: u64) -> u64 {
        let gap_ps = transfer_ps(self.line_bytes(), self.controller.rate_bps());
        last_ps + (gap_ps as f64 * self.jitter) as u64
    }

    fn due_ps(&self) -> u64 {
        let Some(last_ps) = self.last_start_ps else { return 0 };
        if !self.controller.rearms_pacer() {
            return self.planned_ps.max(self.free_ps);
        }
        self.paced_ps(last_ps).max(self.free_ps)
    }
}

impl Host for Paced {
    fn handle_frame(&mut self, now_ps: u64, frame: Frame) {
        if matches!(frame, Frame::Roce(packet) if packet.is_cnp()) {
            self.cnps += 1;
            self.controller.handle_cnp(now_ps);
        }
    }

    fn poll(&mut self, now_ps: u64) -> Option<(Frame, u64)> {
        self.controller.handle_timeout(now_ps);
        if self.due_ps() > now_ps {
            return None;
        }
        let wire_bytes = self.packet.wire_bytes();
        self.last_start_ps = Some(now_ps);
        self.jitter = 0.95 + 0.1 * self.random.next_ratio();
        self.free_ps = now_ps + transfer_ps(self.line_bytes(), self.line_rate_bps);
        self.controller.handle_sent(now_ps, wire_bytes);
        self.planned_ps = self.paced_ps(now_ps);
        let end_ps = now_ps + transfer_ps(u64::from(wire_bytes), self.line_rate_bps);
        self.packet.bth.psn = (self.packet.bth.psn + 1) & 0xFF_FFFF;
        Some((Frame::Roce(Box::new(self.packet.clone())), end_ps))
    }

    fn next_ps(&self) -> Option<u64> {
        let timer_ps = self.controller.poll_timeout().unwrap_or(u64::MAX);
        Some(self.due_ps().min(timer_ps))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Counts bytes per sender and notifies of marks.
pub struct Notifier {
    port: u16,
    dscp: u8,
    point: NotificationPoint,
    scheduler: PortScheduler,
    last_ps: u64,
    /// By port of the sender.
    pub bytes: Vec<u64>,
    pub packets: u64,
    pub marked: u64,
}

impl Notifier {
    pub fn new(
        config: &NotificationPointConfig,
        rate_bps: u64,
        port: u16,
        senders: usize,
        dscp: u8,
    ) -> Self {
        Self {
            port,
            dscp,
            point: NotificationPoint::new(config),
            scheduler: PortScheduler::new(rate_bps, &[QueueDiscipline::Strict; 8]),
            last_ps: 0,
            bytes: vec![0; senders],
            packets: 0,
            marked: 0,
        }
    }

    fn notify(&mut self, now_ps: u64, flow: FlowKey) {
        let sender = (flow.remote_address - crate::world::address(0)) as u16;
        let packet = Packet {
            bth: Bth { opcode: Opcode::CNP, ..Bth::default() },
            ..packet(self.port, sender, self.dscp, 62)
        };
        let frame = Frame::Roce(Box::new(packet));
        let wire_bytes = frame.wire_bytes();
        let queued = Queued { frame, wire_bytes, ingress_port: 0, enqueued_ps: now_ps };
        self.scheduler.push(6, queued);
    }
}

impl Host for Notifier {
    fn handle_frame(&mut self, now_ps: u64, frame: Frame) {
        let Frame::Roce(packet) = frame else { return };
        let sender = packet.source_address - crate::world::address(0);
        self.packets += 1;
        self.bytes[sender as usize] += u64::from(packet.wire_bytes());
        if packet.ecn == Ecn::Ce {
            self.marked += 1;
            let flow = FlowKey {
                local_qp: sender,
                local_address: packet.destination_address,
                remote_address: packet.source_address,
            };
            if self.point.handle_marked(now_ps, flow) {
                self.notify(now_ps, flow);
            }
        }
    }

    fn poll(&mut self, now_ps: u64) -> Option<(Frame, u64)> {
        self.last_ps = now_ps;
        while let Some(flow) = self.point.handle_timeout(now_ps) {
            self.notify(now_ps, flow);
        }
        let departure = self.scheduler.poll(now_ps)?;
        Some((departure.queued.frame, departure.end_ps))
    }

    fn next_ps(&self) -> Option<u64> {
        [self.point.poll_timeout(), self.scheduler.next_ps()].into_iter().flatten().min()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
