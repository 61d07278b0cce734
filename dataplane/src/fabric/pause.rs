//! The pause frames that one port owes its neighbour.
//!
//! Source: IEEE 802.1Qbb. A pause ends by itself after its time, so it is refreshed at half of it for
//! as long as it holds. What is owed is remembered as one bit per priority and becomes a frame only
//! when the line is free: an XOFF overtaken by its XON is never sent.

use super::PRIORITIES;
use crate::roce::packet::PauseFrame;
use crate::units::transfer_ps;

/// One pause quantum in bytes: 512 bit times. Source: IEEE 802.3 annex 31B.
const QUANTUM_BYTES: u64 = 64;
/// The longest pause, which every XOFF asks for.
pub const MAX_QUANTA: u16 = 0xFFFF;
/// A time that never comes.
const NEVER_PS: u64 = u64::MAX;

/// Time of `quanta` on a line of `rate_bps`.
#[inline]
pub fn pause_ps(quanta: u16, rate_bps: u64) -> u64 {
    transfer_ps(u64::from(quanta) * QUANTUM_BYTES, rate_bps)
}

/// Bytes that may still arrive after an ingress decided to pause its neighbour: what the line
/// holds both ways, the frame that delays the pause here, the pause itself, the frame that the
/// neighbour has begun, and what it sends until it reacts.
///
/// Source: IEEE 802.1Qbb annex O; `frame_bytes` includes preamble and gap.
pub fn headroom_bytes(rate_bps: u64, delay_ps: u64, frame_bytes: u64, response_bytes: u64) -> u64 {
    let bit_ps = u128::from(rate_bps) * u128::from(2 * delay_ps);
    let line_bytes = bit_ps.div_ceil(8 * u128::from(crate::units::PS_PER_S)) as u64;
    line_bytes + 2 * frame_bytes + 84 + response_bytes
}

/// See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct PauseSender {
    half_pause_ps: u64,
    /// Bit n: priority n is being paused.
    asserted: u8,
    /// Bit n: a frame about priority n is owed.
    owed: u8,
    owed_since_ps: u64,
    refresh_ps: u64,
}

impl PauseSender {
    /// A port that pauses nobody, on a line of `rate_bps`.
    pub fn new(rate_bps: u64) -> Self {
        let half_pause_ps = pause_ps(MAX_QUANTA, rate_bps) / 2;
        Self { half_pause_ps, asserted: 0, owed: 0, owed_since_ps: 0, refresh_ps: NEVER_PS }
    }

    /// Pause a priority. Returns when a refresh must be asked for, if none has been.
    pub fn assert(&mut self, now_ps: u64, priority: u8) -> Option<u64> {
        self.asserted |= 1 << priority;
        self.owe(now_ps, 1 << priority);
        if self.refresh_ps != NEVER_PS {
            return None;
        }
        self.refresh_ps = now_ps.saturating_add(self.half_pause_ps);
        Some(self.refresh_ps)
    }

    /// Let a priority go on.
    pub fn release(&mut self, now_ps: u64, priority: u8) {
        self.asserted &= !(1 << priority);
        self.owe(now_ps, 1 << priority);
    }

    /// Forget all pauses, on a line that now has `rate_bps`: the link begins anew.
    pub fn restart(&mut self, rate_bps: u64) {
        *self = Self::new(rate_bps);
    }

    /// Refresh as a line of `rate_bps` needs it, from the next pause on.
    pub fn set_rate(&mut self, rate_bps: u64) {
        self.half_pause_ps = pause_ps(MAX_QUANTA, rate_bps) / 2;
    }

    /// Owe the pauses again that still hold, if that is due. Returns when the next refresh must be
    /// asked for.
    pub fn refresh(&mut self, now_ps: u64) -> Option<u64> {
        if now_ps < self.refresh_ps {
            return None;
        }
        if self.asserted == 0 {
            self.refresh_ps = NEVER_PS;
            return None;
        }
        self.owe(self.refresh_ps, self.asserted);
        self.refresh_ps = self.refresh_ps.saturating_add(self.half_pause_ps);
        Some(self.refresh_ps)
    }

    fn owe(&mut self, now_ps: u64, priorities: u8) {
        if self.owed == 0 {
            self.owed_since_ps = now_ps;
        }
        self.owed |= priorities;
    }

    /// A frame is owed, and since when.
    #[inline]
    pub fn owed_since_ps(&self) -> Option<u64> {
        (self.owed != 0).then_some(self.owed_since_ps)
    }

    /// The priority is being paused.
    pub fn is_asserted(&self, priority: u8) -> bool {
        self.asserted & 1 << priority != 0
    }

    /// The frame that says all that is owed, with the state as it is now.
    pub fn take_frame(&mut self, source_mac: [u8; 6]) -> PauseFrame {
        let mut quanta = [0; PRIORITIES];
        for (priority, quanta) in quanta.iter_mut().enumerate() {
            if (self.owed & self.asserted) & 1 << priority != 0 {
                *quanta = MAX_QUANTA;
            }
        }
        PauseFrame { source_mac, class_enable: std::mem::take(&mut self.owed), quanta }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GBPS: u64 = 1_000_000_000;

    #[test]
    fn the_longest_pause_takes_as_long_as_published() {
        assert_eq!(pause_ps(MAX_QUANTA, 40 * GBPS), 838_848_000);
        assert_eq!(pause_ps(MAX_QUANTA, 400 * GBPS), 83_884_800);
    }

    #[test]
    fn headroom_grows_with_rate_and_length() {
        assert_eq!(headroom_bytes(400 * GBPS, 500_000, 9_236, 3_840), 50_000 + 22_396);
    }

    #[test]
    fn a_pause_is_refreshed_at_half_its_time_while_it_holds() {
        let mut sender = PauseSender::new(40 * GBPS);
        assert_eq!(sender.assert(0, 3), Some(419_424_000));
        assert_eq!(sender.assert(5, 4), None);
        assert_eq!(sender.take_frame([0; 6]).class_enable, 0b1_1000);
        assert_eq!(sender.refresh(419_424_000), Some(2 * 419_424_000));
        let frame = sender.take_frame([0; 6]);
        assert_eq!((frame.class_enable, frame.quanta[3]), (0b1_1000, MAX_QUANTA));
        sender.release(419_424_001, 3);
        sender.release(419_424_001, 4);
        sender.take_frame([0; 6]);
        assert_eq!(sender.refresh(2 * 419_424_000), None);
        assert_eq!(sender.owed_since_ps(), None);
    }

    #[test]
    fn a_resume_overtakes_its_pause() {
        let mut sender = PauseSender::new(40 * GBPS);
        sender.assert(0, 3);
        sender.release(1, 3);
        let frame = sender.take_frame([0; 6]);
        assert_eq!((frame.class_enable, frame.quanta), (0b1000, [0; 8]));
    }
}
