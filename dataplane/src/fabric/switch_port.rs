//! One port of a switch: its transmitter, the pauses it owes, and what it counts.

use super::counters::{PortTotals, QueueSample, QueueTotals};
use super::pause::PauseSender;
use super::port::{PortScheduler, QueueDiscipline, bits};
use super::{Output, PRIORITIES};
use crate::config::PriorityConfig;
use crate::roce::Frame;
use crate::roce::packet::MIN_FRAME_BYTES;

/// A time that never comes.
const NEVER_PS: u64 = u64::MAX;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Port {
    pub scheduler: PortScheduler,
    pub pause: PauseSender,
    /// The link carries nothing.
    pub is_down: bool,
    /// The earliest wake-up that was asked for and has not come.
    wake_ps: u64,
    /// All but the frames that left.
    pub totals: PortTotals,
    /// Bit n: something may have changed about priority n since the last sample.
    pub touched: u8,
    pub queues: [QueueTotals; PRIORITIES],
    sampled: [QueueTotals; PRIORITIES],
}

impl Port {
    /// An idle port.
    pub fn new(rate_bps: u64, disciplines: &[QueueDiscipline; PRIORITIES]) -> Self {
        Self {
            scheduler: PortScheduler::new(rate_bps, disciplines),
            pause: PauseSender::new(rate_bps),
            is_down: false,
            wake_ps: NEVER_PS,
            totals: PortTotals::default(),
            touched: u8::MAX,
            queues: Default::default(),
            sampled: Default::default(),
        }
    }

    /// The line is busy, and a wake-up will come no later than it is free.
    #[inline]
    pub fn is_served_later(&self, now_ps: u64) -> bool {
        let free_ps = self.scheduler.free_ps();
        free_ps > now_ps && self.wake_ps <= free_ps
    }

    /// The pause frame that is owed, if it could begin by `now_ps`. It goes before all queues.
    #[inline]
    pub fn poll_pause(&mut self, now_ps: u64, index: u16, mac: [u8; 6]) -> Option<Output> {
        let start_ps = self.pause.owed_since_ps()?.max(self.scheduler.free_ps());
        if start_ps > now_ps {
            return None;
        }
        let pause = self.pause.take_frame(mac);
        self.touched |= pause.class_enable;
        bits(pause.class_enable).for_each(|n| self.queues[n].pause_frames_sent += 1);
        let frame = Frame::Pause(Box::new(pause));
        self.totals.pause_frames_sent += 1;
        let end_ps = self.scheduler.occupy(start_ps, frame.wire_bytes());
        Some(Output::Transmit { port: index, frame, end_ps })
    }

    /// The link has come up, with nothing on it and nobody paused.
    pub fn restart(&mut self, now_ps: u64) {
        self.is_down = false;
        self.scheduler.restart(now_ps);
        self.pause.restart(self.scheduler.rate_bps());
    }

    /// A wake-up for when something could be sent, unless one is under way that comes no later.
    #[inline]
    pub fn next_wake(&mut self, index: u16) -> Option<Output> {
        let pause_ps = self.pause.owed_since_ps().map(|ps| ps.max(self.scheduler.free_ps()));
        let frame_ps = self.scheduler.next_ps();
        let at_ps = pause_ps.unwrap_or(NEVER_PS).min(frame_ps.unwrap_or(NEVER_PS));
        if at_ps >= self.wake_ps {
            return None;
        }
        self.wake_ps = at_ps;
        Some(Output::Wake { token: u32::from(index), at_ps })
    }

    /// Totals since the start.
    pub fn totals(&self) -> PortTotals {
        let pauses = self.totals.pause_frames_sent;
        let packets: u64 = self.queues.iter().map(|queue| queue.tx_packets).sum();
        let bytes: u64 = self.queues.iter().map(|queue| queue.tx_bytes).sum();
        PortTotals {
            tx_packets: packets + pauses,
            tx_bytes: bytes + pauses * u64::from(MIN_FRAME_BYTES),
            ..self.totals
        }
    }

    /// The priorities of which something may have changed between the last call and `now_ps`.
    pub fn take_touched(&mut self, now_ps: u64) -> u8 {
        std::mem::replace(&mut self.touched, self.scheduler.unsettled(now_ps))
    }

    /// What an egress queue counted since the last call.
    pub fn take_queue_sample(&mut self, priority: u8) -> QueueSample {
        let index = usize::from(priority);
        let counted = self.queues[index].since(&self.sampled[index]);
        self.sampled[index] = self.queues[index];
        QueueSample {
            depth_bytes: self.scheduler.depth_bytes(priority),
            max_depth_bytes: self.scheduler.take_max_depth_bytes(priority),
            tx_packets: counted.tx_packets,
            tx_bytes: counted.tx_bytes,
            marked_packets: counted.marked_packets,
            dropped_packets: counted.dropped_packets,
            dropped_bytes: counted.dropped_bytes,
            wred_dropped_packets: counted.wred_dropped_packets,
            pause_frames_sent: counted.pause_frames_sent,
            pause_frames_received: counted.pause_frames_received,
        }
    }

    /// A glance at what sending the next frame needs.
    #[inline]
    pub fn glance(&self) -> u64 {
        let waiting = bits(self.scheduler.waiting()).next();
        waiting.map_or(self.wake_ps, |priority| self.glance_at(priority as u8))
    }

    /// A glance at what a frame of a priority needs.
    #[inline]
    pub fn glance_at(&self, priority: u8) -> u64 {
        let own = self.wake_ps ^ self.pause.owed_since_ps().unwrap_or(0) ^ u64::from(self.is_down);
        let totals = &self.queues[usize::from(priority)];
        own ^ self.scheduler.glance_at(priority) ^ totals.tx_packets ^ totals.marked_packets
    }

    /// A wake-up has come.
    #[inline]
    pub fn handle_wake(&mut self, now_ps: u64) {
        if self.wake_ps <= now_ps {
            self.wake_ps = NEVER_PS;
        }
    }
}

/// How the priorities of a switch share its lines.
pub(super) fn disciplines(priorities: &[PriorityConfig]) -> [QueueDiscipline; PRIORITIES] {
    let mut disciplines = [QueueDiscipline::Weighted(1); PRIORITIES];
    for (discipline, priority) in disciplines.iter_mut().zip(priorities) {
        *discipline = match priority.strict {
            true => QueueDiscipline::Strict,
            false => QueueDiscipline::Weighted(priority.weight),
        };
    }
    disciplines
}
