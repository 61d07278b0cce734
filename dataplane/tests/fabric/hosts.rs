//! What stands at the ports of a switch under test.

use crate::world::Host;
use _native::fabric::{PortScheduler, QueueDiscipline, Queued};
use _native::roce::packet::{Frame, Packet};
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
        let (packet, priority) = &self.classes[class];
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
