//! The transmitter of a NIC: control packets by priority, pause state, and when the line is free.
//!
//! Data packets are not queued here: the NIC asks which may go when the line is free, so a rate
//! or a pause takes effect on the very next packet.

use crate::roce::Packet;
use crate::roce::packet::PauseFrame;
use crate::units::{PREAMBLE_AND_GAP_BYTES, transfer_ps};
use std::collections::VecDeque;

/// Priorities of IEEE 802.1Q.
pub const PRIORITIES: usize = 8;
/// One pause quantum in bytes: 512 bit times. Source: IEEE 802.3 annex 31B.
const PAUSE_QUANTUM_BYTES: u64 = 64;

/// What a port counted for one priority since the last sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlQueueSample {
    /// Frame bytes that wait now.
    pub depth_bytes: u64,
    /// Most frame bytes that waited at once.
    pub max_depth_bytes: u64,
    /// Pause frames that arrived.
    pub pause_frames_received: u32,
}

#[derive(Debug, Default)]
struct Priority {
    control: VecDeque<Packet>,
    sample: ControlQueueSample,
    paused_until_ps: u64,
    /// Up to when `paused_ps` has been counted.
    counted_until_ps: u64,
    paused_ps: u64,
}

impl Priority {
    fn is_paused(&self, now_ps: u64) -> bool {
        now_ps < self.paused_until_ps
    }

    /// Count the pause so far.
    fn count_pause(&mut self, now_ps: u64) {
        let end_ps = now_ps.min(self.paused_until_ps);
        self.paused_ps += end_ps.saturating_sub(self.counted_until_ps);
        self.counted_until_ps = self.counted_until_ps.max(end_ps);
    }
}

/// The transmitter of one port.
#[derive(Debug)]
pub struct NicPort {
    rate_bps: u64,
    busy_until_ps: u64,
    priorities: [Priority; PRIORITIES],
    /// Bit n: control packets of priority n wait.
    waiting: u8,
    pause_frames_received: u64,
}

impl NicPort {
    /// An idle port.
    pub fn new(rate_bps: u64) -> Self {
        Self {
            rate_bps,
            busy_until_ps: 0,
            priorities: Default::default(),
            waiting: 0,
            pause_frames_received: 0,
        }
    }

    /// Line rate.
    pub fn rate_bps(&self) -> u64 {
        self.rate_bps
    }

    /// When the line is free.
    #[inline]
    pub fn busy_until_ps(&self) -> u64 {
        self.busy_until_ps
    }

    /// Pause frames that arrived.
    pub fn pause_frames_received(&self) -> u64 {
        self.pause_frames_received
    }

    /// Queue an acknowledgement or notification.
    pub fn push_control(&mut self, priority: u8, packet: Packet) {
        let queue = &mut self.priorities[usize::from(priority)];
        queue.sample.depth_bytes += u64::from(packet.wire_bytes());
        queue.sample.max_depth_bytes = queue.sample.max_depth_bytes.max(queue.sample.depth_bytes);
        queue.control.push_back(packet);
        self.waiting |= 1 << priority;
    }

    /// Take the oldest control packet of the highest priority that is not paused.
    #[inline]
    pub fn pop_control(&mut self, now_ps: u64) -> Option<Packet> {
        let mut candidates = self.waiting;
        while candidates != 0 {
            let priority = 7 - candidates.leading_zeros();
            let queue = &mut self.priorities[priority as usize];
            if queue.is_paused(now_ps) {
                candidates &= !(1 << priority);
                continue;
            }
            let packet = queue.control.pop_front()?;
            queue.sample.depth_bytes -= u64::from(packet.wire_bytes());
            if queue.control.is_empty() {
                self.waiting &= !(1 << priority);
            }
            return Some(packet);
        }
        None
    }

    /// Occupy the line with a frame from `now_ps` on; when its last bit leaves.
    #[inline]
    pub fn occupy(&mut self, now_ps: u64, wire_bytes: u32) -> u64 {
        debug_assert!(now_ps >= self.busy_until_ps);
        let bytes = u64::from(wire_bytes);
        self.busy_until_ps = now_ps + transfer_ps(bytes + PREAMBLE_AND_GAP_BYTES, self.rate_bps);
        now_ps + transfer_ps(bytes, self.rate_bps)
    }

    /// Stop or resume the priorities that a pause frame names.
    pub fn handle_pause(&mut self, now_ps: u64, pause: &PauseFrame) {
        self.pause_frames_received += 1;
        for (index, priority) in self.priorities.iter_mut().enumerate() {
            if pause.class_enable & 1 << index == 0 {
                continue;
            }
            priority.sample.pause_frames_received += 1;
            priority.count_pause(now_ps);
            priority.counted_until_ps = now_ps;
            let bytes = u64::from(pause.quanta[index]) * PAUSE_QUANTUM_BYTES;
            priority.paused_until_ps = now_ps + transfer_ps(bytes, self.rate_bps);
        }
    }

    /// The priority may not send now.
    #[inline]
    pub fn is_paused(&self, now_ps: u64, priority: u8) -> bool {
        self.priorities[usize::from(priority)].is_paused(now_ps)
    }

    /// When the pause of the priority ends; in the past if there is none.
    #[inline]
    pub fn paused_until_ps(&self, priority: u8) -> u64 {
        self.priorities[usize::from(priority)].paused_until_ps
    }

    /// When the first waiting control packet may be sent; `None` if none waits.
    pub fn next_control_ps(&self) -> Option<u64> {
        if self.waiting == 0 {
            return None;
        }
        (0..PRIORITIES)
            .filter(|priority| self.waiting & 1 << priority != 0)
            .map(|priority| self.priorities[priority].paused_until_ps.max(self.busy_until_ps))
            .min()
    }

    /// Time that the priority has been paused, up to `now_ps`.
    pub fn paused_ps(&mut self, now_ps: u64, priority: u8) -> u64 {
        let priority = &mut self.priorities[usize::from(priority)];
        priority.count_pause(now_ps);
        priority.paused_ps
    }

    /// Counts of one priority since the last call.
    pub fn take_sample(&mut self, priority: u8) -> ControlQueueSample {
        let sample = &mut self.priorities[usize::from(priority)].sample;
        let taken = *sample;
        let depth_bytes = taken.depth_bytes;
        *sample =
            ControlQueueSample { depth_bytes, max_depth_bytes: depth_bytes, ..Default::default() };
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(quanta: u16) -> PauseFrame {
        PauseFrame { source_mac: [0; 6], class_enable: 1 << 3, quanta: [quanta; 8] }
    }

    #[test]
    fn a_pause_stops_its_priority_only_and_expires() {
        let mut port = NicPort::new(400_000_000_000);
        port.handle_pause(1000, &pause(100));
        assert!(port.is_paused(1000, 3) && !port.is_paused(1000, 2));
        assert_eq!(port.paused_until_ps(3), 1000 + 100 * 64 * 20);
        assert!(!port.is_paused(1000 + 128_000, 3));
    }

    #[test]
    fn a_pause_of_no_time_resumes_and_paused_time_is_counted() {
        let mut port = NicPort::new(400_000_000_000);
        port.handle_pause(0, &pause(100));
        port.handle_pause(5_000, &pause(0));
        assert!(!port.is_paused(5_000, 3));
        assert_eq!(port.paused_ps(9_000, 3), 5_000);
    }

    #[test]
    fn a_refreshed_pause_counts_time_once() {
        let mut port = NicPort::new(400_000_000_000);
        port.handle_pause(0, &pause(100));
        port.handle_pause(64_000, &pause(100));
        assert_eq!(port.paused_ps(1_000_000, 3), 64_000 + 128_000);
    }

    #[test]
    fn the_higher_priority_of_control_packets_goes_first() {
        let mut port = NicPort::new(1);
        port.push_control(1, Packet { identification: 1, ..Packet::default() });
        port.push_control(6, Packet { identification: 6, ..Packet::default() });
        let order: Vec<u16> =
            std::iter::from_fn(|| port.pop_control(0)).map(|p| p.identification).collect();
        assert_eq!(order, [6, 1]);
    }
}
