//! One direction of a link: frames under way in their order, and what passed.

use super::event_queue::EventKey;
use crate::roce::{Frame, Packet};
use crate::units::{LineRate, PREAMBLE_AND_GAP_BYTES};
use std::collections::VecDeque;

/// What a direction carried since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineTotals {
    /// Frames whose transmission began.
    pub tx_packets: u64,
    /// Bytes of them, FCS included.
    pub tx_bytes: u64,
    /// RoCE payload of them.
    pub data_bytes: u64,
    /// Time that they occupy the line, preamble and gap included.
    pub busy_ps: u64,
}

/// Frames of a direction since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Frames.
    pub packets: u64,
    /// Bytes of them, FCS included.
    pub bytes: u64,
}

/// How long a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSize {
    /// With FCS, without preamble and gap.
    pub wire_bytes: u64,
    /// RoCE payload.
    pub data_bytes: u64,
}

impl FrameSize {
    /// The size of a frame.
    #[inline]
    pub fn of(frame: &Frame) -> Self {
        let data_bytes = match frame {
            Frame::Roce(packet) => u64::from(packet.payload.length_bytes()),
            Frame::Pause(_) => 0,
        };
        Self { wire_bytes: u64::from(frame.wire_bytes()), data_bytes }
    }
}

#[derive(Debug)]
struct Flight {
    arrival: EventKey,
    frame: Frame,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Line {
    rate: LineRate,
    delay_ps: u64,
    in_flight: VecDeque<Flight>,
    totals: LineTotals,
    delivered: Delivered,
    lost: Delivered,
    busy_until_ps: u64,
    /// When everything under way was lost last; 0 if it never was.
    cut_ps: u64,
}

impl Line {
    /// An empty line.
    pub fn new(rate_bps: u64, delay_ps: u64) -> Self {
        Self {
            rate: LineRate::new(rate_bps),
            delay_ps,
            in_flight: VecDeque::new(),
            totals: LineTotals::default(),
            delivered: Delivered::default(),
            lost: Delivered::default(),
            busy_until_ps: 0,
            cut_ps: 0,
        }
    }

    /// When the last bit of a frame arrives whose last bit left at `end_ps`.
    #[inline]
    pub fn arrival_ps(&self, end_ps: u64) -> u64 {
        end_ps + self.delay_ps
    }

    /// Put a frame on the line; `arrival` is the key of its arrival. True if no other is under
    /// way, so that its arrival is the line's next event.
    #[inline]
    pub fn push(&mut self, end_ps: u64, arrival: EventKey, frame: Frame, size: FrameSize) -> bool {
        self.count(end_ps, size);
        debug_assert!(self.in_flight.back().is_none_or(|last| last.arrival < arrival));
        self.in_flight.push_back(Flight { arrival, frame });
        self.in_flight.len() == 1
    }

    /// Count a frame whose last bit leaves at `end_ps`, and which is put on no line here.
    #[inline]
    pub fn count(&mut self, end_ps: u64, size: FrameSize) {
        self.totals.tx_packets += 1;
        self.totals.tx_bytes += size.wire_bytes;
        self.totals.data_bytes += size.data_bytes;
        self.totals.busy_ps += self.rate.transfer_ps(size.wire_bytes + PREAMBLE_AND_GAP_BYTES);
        self.busy_until_ps = end_ps + self.rate.transfer_ps(PREAMBLE_AND_GAP_BYTES);
    }

    /// Take the frame that arrives first, if it has by `now_ps`, and the key of the arrival behind
    /// it. The arrival of a frame that was lost on the way finds none, or one that comes later.
    #[inline]
    pub fn pop(&mut self, now_ps: u64) -> Option<(Frame, Option<EventKey>)> {
        if self.in_flight.front()?.arrival.time_ps() > now_ps {
            return None;
        }
        let flight = self.in_flight.pop_front()?;
        Some((flight.frame, self.in_flight.front().map(|next| next.arrival)))
    }

    /// The packet that arrives first.
    #[inline]
    pub fn first_packet(&self) -> Option<&Packet> {
        match &self.in_flight.front()?.frame {
            Frame::Roce(packet) => Some(packet),
            Frame::Pause(_) => None,
        }
    }

    /// A glance at what the next arrival needs.
    #[inline]
    pub(super) fn glance_first(&self) -> u64 {
        let frame = self.in_flight.front().map_or(0, |flight| flight.frame.glance());
        frame ^ self.delivered.packets
    }

    /// A glance at what the next frame needs.
    #[inline]
    pub(super) fn glance_last(&self) -> u64 {
        let last_ps = self.in_flight.back().map_or(0, |flight| flight.arrival.time_ps());
        last_ps ^ self.totals.tx_packets ^ self.busy_until_ps ^ self.rate.bps()
    }

    /// What was carried since the start; of a frame being sent at `now_ps`, only the time until now.
    pub fn totals(&self, now_ps: u64) -> LineTotals {
        let ahead_ps = self.busy_until_ps.saturating_sub(now_ps);
        LineTotals { busy_ps: self.totals.busy_ps.saturating_sub(ahead_ps), ..self.totals }
    }

    /// Count a frame that is handed to the node at the end.
    #[inline]
    pub fn count_delivered(&mut self, size: FrameSize) {
        self.delivered.packets += 1;
        self.delivered.bytes += size.wire_bytes;
    }

    /// Lose everything that is under way, also the frame that is being sent.
    pub fn cut(&mut self, now_ps: u64) {
        for flight in std::mem::take(&mut self.in_flight) {
            self.count_lost(&flight.frame);
        }
        let ahead_ps = self.busy_until_ps.saturating_sub(now_ps);
        self.totals.busy_ps = self.totals.busy_ps.saturating_sub(ahead_ps);
        self.busy_until_ps = self.busy_until_ps.min(now_ps);
        self.cut_ps = now_ps;
    }

    /// A frame whose last bit would arrive at `at_ps` was under way when everything was lost.
    #[inline]
    pub fn has_lost(&self, at_ps: u64, frame: &Frame) -> bool {
        let sent_ps = self.delay_ps + self.rate.transfer_ps(u64::from(frame.wire_bytes()));
        at_ps < self.cut_ps.saturating_add(sent_ps) && self.cut_ps > 0
    }

    /// Count a frame that was lost with the link.
    pub fn count_lost(&mut self, frame: &Frame) {
        self.lost.packets += 1;
        self.lost.bytes += u64::from(frame.wire_bytes());
    }

    /// Frames that were under way when the link went down, since the start.
    pub fn lost(&self) -> Delivered {
        self.lost
    }

    /// Send at another rate from the next frame on.
    pub fn set_rate(&mut self, rate_bps: u64) {
        self.rate = LineRate::new(rate_bps);
    }

    /// What was handed to the node at the end since the start.
    pub fn delivered(&self) -> Delivered {
        self.delivered
    }

    /// Line rate.
    pub fn rate_bps(&self) -> u64 {
        self.rate.bps()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        Frame::Roce(Box::default())
    }

    fn size() -> FrameSize {
        FrameSize::of(&frame())
    }

    #[test]
    fn frames_leave_in_order_and_only_the_first_is_the_next_event() {
        let mut line = Line::new(1_000_000_000, 500);
        assert!(line.push(100, EventKey::new(600, 0, 0), frame(), size()));
        assert!(!line.push(200, EventKey::new(700, 0, 1), frame(), size()));
        let (_, next) = line.pop(600).expect("two are under way");
        assert_eq!(next.map(EventKey::time_ps), Some(700));
        assert!(line.pop(699).is_none());
        assert_eq!(line.pop(700).expect("one is under way").1, None);
    }

    #[test]
    fn a_cut_loses_what_is_under_way_and_stops_the_frame_being_sent() {
        let rate_bps = 8_000_000_000_000;
        let mut line = Line::new(rate_bps, 500);
        let wire_bytes = u64::from(frame().wire_bytes());
        line.push(wire_bytes, EventKey::new(wire_bytes + 500, 0, 0), frame(), size());
        line.cut(10);
        assert_eq!(line.lost(), Delivered { packets: 1, bytes: wire_bytes });
        assert_eq!(line.totals(u64::MAX).busy_ps, 10);
        assert!(line.has_lost(10 + 500 + wire_bytes - 1, &frame()));
        assert!(!line.has_lost(10 + 500 + wire_bytes, &frame()));
        assert!(line.pop(u64::MAX).is_none());
    }

    #[test]
    fn busy_time_counts_only_what_has_passed() {
        let rate_bps = 8_000_000_000_000;
        let mut line = Line::new(rate_bps, 0);
        let wire_bytes = u64::from(frame().wire_bytes());
        line.push(wire_bytes, EventKey::new(wire_bytes, 0, 0), frame(), size());
        assert_eq!(line.totals(10).busy_ps, 10);
        assert_eq!(line.totals(u64::MAX).busy_ps, wire_bytes + 20);
    }
}
