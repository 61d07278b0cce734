//! The pauses that a switch asked its neighbours for, each with what filled the buffer of its
//! ingress: which egress queues held the bytes, and since when.
//!
//! Who paused whom follows from that, over all switches of a job: an egress queue that was paused
//! itself while it filled passes the congestion of the next switch on.

use super::PRIORITIES;
use super::buffer::Passage;
use super::port::PortScheduler;

/// Egress queues that are kept of each pause, those that held most.
const MOST_CAUSES: usize = 4;

/// A pause of one ingress, from the decision to pause until the one to resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseEvent {
    /// When the ingress reached its threshold.
    pub begin_ps: u64,
    /// When it was told to resume; `u64::MAX` while it is paused.
    pub end_ps: u64,
    /// Port that the bytes came in at, and whose neighbour is paused.
    pub port: u16,
    /// Priority.
    pub priority: u8,
    /// Bytes of the ingress that were stored at the beginning.
    pub held_bytes: u64,
    /// Most bytes of it that were stored until the end, headroom included.
    pub max_held_bytes: u64,
}

/// An egress queue that held bytes of a paused ingress when the pause began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseCause {
    /// Number of the pause in the log.
    pub pause: u32,
    /// Port of the queue.
    pub egress_port: u16,
    /// Bytes of the ingress in the queue.
    pub ingress_bytes: u64,
    /// Bytes of all ingresses in the queue.
    pub depth_bytes: u64,
    /// When the first frame of the queue was queued.
    pub oldest_ps: u64,
}

/// No pause is open.
const NONE: u32 = u32::MAX;

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct PauseLog {
    max_events: usize,
    events: Vec<PauseEvent>,
    causes: Vec<PauseCause>,
    /// By port and priority: the pause that is open.
    open: Vec<[u32; PRIORITIES]>,
    /// By priority, egress and ingress port: bytes of the ingress in the queue. Empty for a priority
    /// of which nothing was ever stored.
    shares: [Vec<u64>; PRIORITIES],
    /// Pauses by port and priority of the ingress.
    begun: Vec<[u64; PRIORITIES]>,
    left_out: u64,
}

impl PauseLog {
    /// An empty log of a switch with so many ports; pauses past the first `max_events` are counted.
    pub fn new(ports: usize, max_events: u32) -> Self {
        Self {
            max_events: max_events as usize,
            events: Vec::new(),
            causes: Vec::new(),
            open: vec![[NONE; PRIORITIES]; ports],
            shares: Default::default(),
            begun: vec![[0; PRIORITIES]; ports],
            left_out: 0,
        }
    }

    /// A pause begins, unless the ingress is paused already and its neighbour is told again;
    /// `schedulers` are those of all ports in their order.
    pub fn begin<'a>(
        &mut self,
        now_ps: u64,
        (port, priority): (u16, u8),
        held_bytes: u64,
        schedulers: impl Iterator<Item = &'a PortScheduler>,
    ) {
        if self.open[usize::from(port)][usize::from(priority)] != NONE {
            return;
        }
        self.begun[usize::from(port)][usize::from(priority)] += 1;
        if self.events.len() >= self.max_events {
            self.left_out += 1;
            return;
        }
        let pause = self.events.len() as u32;
        self.open[usize::from(port)][usize::from(priority)] = pause;
        let (begin_ps, end_ps, max_held_bytes) = (now_ps, u64::MAX, held_bytes);
        let event = PauseEvent { begin_ps, end_ps, port, priority, held_bytes, max_held_bytes };
        self.events.push(event);
        let mut causes: Vec<PauseCause> = schedulers
            .enumerate()
            .filter_map(|(egress_port, scheduler)| {
                let queue = scheduler.queue(usize::from(priority));
                let ingress_bytes = self.share_bytes(egress_port, port, priority);
                debug_assert_eq!(ingress_bytes, queue.bytes_from(port));
                Some(PauseCause {
                    pause,
                    egress_port: egress_port as u16,
                    ingress_bytes,
                    depth_bytes: queue.depth_bytes(),
                    oldest_ps: queue.oldest_ps()?,
                })
            })
            .filter(|cause| cause.ingress_bytes > 0)
            .collect();
        causes.sort_by_key(|cause| (u64::MAX - cause.ingress_bytes, cause.egress_port));
        causes.truncate(MOST_CAUSES);
        self.causes.extend(causes);
    }

    /// A frame of an ingress, which now holds `held_bytes`, was put into an egress queue.
    #[inline]
    pub fn stored(&mut self, passage: Passage, wire_bytes: u32, held_bytes: u64) {
        let Passage { ingress_port, egress_port, priority } = passage;
        let ports = self.open.len();
        let shares = &mut self.shares[usize::from(priority)];
        if shares.is_empty() {
            *shares = vec![0; ports * ports];
        }
        shares[usize::from(egress_port) * ports + usize::from(ingress_port)] +=
            u64::from(wire_bytes);
        let open = self.open[usize::from(ingress_port)][usize::from(priority)];
        if let Some(event) = self.events.get_mut(open as usize) {
            event.max_held_bytes = event.max_held_bytes.max(held_bytes);
        }
    }

    /// A frame has left its egress queue.
    #[inline]
    pub fn released(&mut self, passage: Passage, wire_bytes: u32) {
        let Passage { ingress_port, egress_port, priority } = passage;
        let place = usize::from(egress_port) * self.open.len() + usize::from(ingress_port);
        self.shares[usize::from(priority)][place] -= u64::from(wire_bytes);
    }

    /// A glance at what storing a frame needs.
    #[inline]
    pub(super) fn glance(&self, passage: Passage) -> u64 {
        let Passage { ingress_port, egress_port, priority } = passage;
        let open = self.open[usize::from(ingress_port)][usize::from(priority)];
        self.share_bytes(usize::from(egress_port), ingress_port, priority) ^ u64::from(open)
    }

    /// Bytes of an ingress in an egress queue.
    fn share_bytes(&self, egress_port: usize, ingress_port: u16, priority: u8) -> u64 {
        let place = egress_port * self.open.len() + usize::from(ingress_port);
        self.shares[usize::from(priority)].get(place).copied().unwrap_or(0)
    }

    /// A pause ends.
    pub fn end(&mut self, now_ps: u64, port: u16, priority: u8) {
        let open =
            std::mem::replace(&mut self.open[usize::from(port)][usize::from(priority)], NONE);
        if let Some(event) = self.events.get_mut(open as usize) {
            event.end_ps = now_ps;
        }
    }

    /// The pauses in the order of their beginnings.
    pub fn events(&self) -> &[PauseEvent] {
        &self.events
    }

    /// What caused them, in the same order, of each the largest first.
    pub fn causes(&self) -> &[PauseCause] {
        &self.causes
    }

    /// Pauses of an ingress that have begun, those included that there was no room for.
    pub fn begun(&self, port: u16, priority: u8) -> u64 {
        self.begun[usize::from(port)][usize::from(priority)]
    }

    /// Pauses that there was no room for.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::super::port::{QueueDiscipline, Queued};
    use super::*;
    use crate::roce::Frame;

    const WIRE_BYTES: u32 = 100;

    fn passage(egress_port: u16, ingress_port: u16, priority: u8) -> Passage {
        Passage { ingress_port, egress_port, priority }
    }

    /// A port with those frames queued: where they came in, and when.
    fn port(log: &mut PauseLog, egress_port: u16, frames: &[(u16, u64)]) -> PortScheduler {
        let mut scheduler = PortScheduler::new(1, &[QueueDiscipline::Strict; PRIORITIES]);
        for &(ingress_port, enqueued_ps) in frames {
            let frame = Frame::Roce(Box::default());
            let wire_bytes = WIRE_BYTES;
            scheduler.push(3, Queued { frame, wire_bytes, ingress_port, enqueued_ps });
            log.stored(passage(egress_port, ingress_port, 3), WIRE_BYTES, 0);
        }
        scheduler
    }

    #[test]
    fn the_queues_that_hold_an_ingress_are_its_causes_the_fullest_first() {
        let mut log = PauseLog::new(10, 8);
        let frames: [&[_]; 3] = [&[(2, 5)], &[(9, 6), (2, 7), (2, 8), (2, 9)], &[(9, 9)]];
        let mut ports = [0, 1, 2].map(|egress| port(&mut log, egress, frames[usize::from(egress)]));
        ports[1].discard(9, 3);
        log.released(passage(1, 9, 3), WIRE_BYTES);
        ports[1].discard(9, 3);
        log.released(passage(1, 2, 3), WIRE_BYTES);
        log.begin(10, (2, 3), 300, ports.iter());
        let causes: Vec<_> = log
            .causes()
            .iter()
            .map(|c| (c.egress_port, c.ingress_bytes, c.depth_bytes, c.oldest_ps))
            .collect();
        assert_eq!(causes, [(1, 200, 200, 8), (0, 100, 100, 5)]);
    }

    #[test]
    fn a_pause_lasts_until_its_end_and_keeps_the_most_that_was_held() {
        let mut log = PauseLog::new(10, 8);
        log.begin(10, (2, 3), 300, [].iter());
        log.stored(passage(0, 2, 3), WIRE_BYTES, 500);
        log.stored(passage(0, 2, 4), WIRE_BYTES, 900);
        log.begin(15, (2, 3), 400, [].iter());
        log.end(20, 2, 3);
        log.stored(passage(0, 2, 3), WIRE_BYTES, 700);
        let event = log.events()[0];
        assert_eq!((event.begin_ps, event.end_ps), (10, 20));
        assert_eq!((event.held_bytes, event.max_held_bytes), (300, 500));
    }

    #[test]
    fn pauses_past_the_limit_are_counted() {
        let mut log = PauseLog::new(2, 1);
        log.begin(1, (0, 3), 1, [].iter());
        log.begin(2, (1, 3), 1, [].iter());
        log.end(3, 1, 3);
        assert_eq!((log.events().len(), log.left_out()), (1, 1));
        assert_eq!((log.begun(0, 3), log.begun(1, 3), log.begun(0, 4)), (1, 1, 0));
    }
}
