//! Which flows crossed which directions of links, with packets and bytes: the paths that were taken.
//!
//! A flow is what ECMP tells apart: source address, destination address and UDP source port. One
//! entry for each flow in each direction that it crosses; nothing is kept of single packets.

use super::line::FrameSize;
use crate::roce::Frame;

/// Source address, destination address, UDP source port; zeros for frames of no flow (pauses).
pub type Flow = (u32, u32, u16);

/// What a flow sent over a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTotals {
    /// Frames whose transmission began.
    pub tx_packets: u64,
    /// Bytes of them, FCS included.
    pub tx_bytes: u64,
    /// RoCE payload of them; 0 for a flow of acknowledgements and notifications.
    pub data_bytes: u64,
}

/// An empty slot.
const NONE: u32 = u32::MAX;

/// A hash of a flow; cheap, and the same in every run.
#[inline]
fn hash((source, destination, port): Flow) -> usize {
    let mixed = u64::from(source) << 32 ^ u64::from(destination) ^ u64::from(port) << 16;
    // A product's high bits depend on all of its factors' bits.
    (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize
}

/// The flows of one direction. What each frame needs of it is one cache line.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct DirectionFlows {
    /// In the order of their first frames.
    flows: Vec<(Flow, FlowTotals)>,
    /// Places in `flows`, each in the first slot from its flow's hash on that was free; a power of two
    /// of which no more than half are taken.
    slots: Vec<u32>,
    /// Place of the last frame's flow: frames of one flow come in trains.
    last: u32,
}

impl DirectionFlows {
    #[inline]
    fn count(&mut self, frame: &Frame, size: FrameSize) {
        let flow = match frame {
            Frame::Roce(packet) => packet.flow(),
            Frame::Pause(_) => Flow::default(),
        };
        if self.flows.get(self.last as usize).is_none_or(|(last, _)| *last != flow) {
            self.last = self.place(flow);
        }
        let totals = &mut self.flows[self.last as usize].1;
        totals.tx_packets += 1;
        totals.tx_bytes += size.wire_bytes;
        totals.data_bytes += size.data_bytes;
    }

    #[inline]
    fn place(&mut self, flow: Flow) -> u32 {
        let mask = self.slots.len().wrapping_sub(1);
        let mut slot = hash(flow) & mask;
        while let Some(&place) = self.slots.get(slot) {
            match self.flows.get(place as usize) {
                None => break,
                Some((known, _)) if *known == flow => return place,
                Some(_) => slot = (slot + 1) & mask,
            }
        }
        self.add(flow)
    }

    #[cold]
    fn add(&mut self, flow: Flow) -> u32 {
        let place = self.flows.len() as u32;
        self.flows.push((flow, FlowTotals::default()));
        if 2 * self.flows.len() > self.slots.len() {
            self.slots = vec![NONE; 4 * self.flows.len().next_power_of_two()];
            (0..place).for_each(|place| self.take_slot(place));
        }
        self.take_slot(place);
        place
    }

    fn take_slot(&mut self, place: u32) {
        let mask = self.slots.len() - 1;
        let mut slot = hash(self.flows[place as usize].0) & mask;
        while self.slots[slot] != NONE {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = place;
    }

    /// All flows, in the order of their addresses and ports.
    fn rows(&self) -> Vec<(Flow, FlowTotals)> {
        let mut rows = self.flows.clone();
        rows.sort_unstable_by_key(|(flow, _)| *flow);
        rows
    }
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct FlowLinks {
    /// By direction; empty if nothing is to be counted.
    directions: Vec<DirectionFlows>,
}

impl FlowLinks {
    /// Counts of so many directions.
    pub fn new(directions: usize) -> Self {
        Self { directions: vec![DirectionFlows::default(); directions] }
    }

    /// Count a frame that begins to cross a direction.
    #[inline]
    pub fn count(&mut self, direction: u32, frame: &Frame, size: FrameSize) {
        if let Some(flows) = self.directions.get_mut(direction as usize) {
            flows.count(frame, size);
        }
    }

    /// A glance at what counting a frame of the direction needs.
    #[inline]
    pub(super) fn glance(&self, direction: u32) -> u64 {
        let Some(flows) = self.directions.get(direction as usize) else { return 0 };
        flows.flows.get(flows.last as usize).map_or(0, |(_, totals)| totals.tx_packets)
    }

    /// Flows that have crossed a direction, pauses as one.
    pub fn flows(&self, direction: u32) -> u64 {
        self.directions.get(direction as usize).map_or(0, |flows| flows.flows.len() as u64)
    }

    /// Bytes of each flow, in the order of their first frames.
    pub fn bytes(&self, direction: u32) -> impl Iterator<Item = (Flow, u64)> + '_ {
        let flows = self.directions.get(direction as usize);
        let totals = flows.into_iter().flat_map(|flows| &flows.flows);
        totals.map(|(flow, totals)| (*flow, totals.tx_bytes))
    }

    /// Direction, flow and totals, in that order.
    pub fn rows(&self) -> Vec<(u32, Flow, FlowTotals)> {
        let of_direction = |(direction, flows): (usize, &DirectionFlows)| {
            let rows = flows.rows().into_iter();
            rows.map(move |(flow, totals)| (direction as u32, flow, totals)).collect::<Vec<_>>()
        };
        self.directions.iter().enumerate().flat_map(of_direction).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roce::Packet;
    use crate::roce::packet::{PauseFrame, Payload};

    fn data(source_port: u16, length_bytes: u16) -> Frame {
        let payload = Payload::Pattern { offset_bytes: 0, length_bytes };
        let (source_address, destination_address) = (1, 2);
        let packet = Packet {
            source_address,
            destination_address,
            source_port,
            payload,
            ..Default::default()
        };
        Frame::Roce(Box::new(packet))
    }

    fn count(flows: &mut FlowLinks, direction: u32, frame: &Frame) {
        flows.count(direction, frame, FrameSize::of(frame));
    }

    #[test]
    fn interleaved_flows_are_counted_apart_and_in_order() {
        let mut flows = FlowLinks::new(2);
        for (direction, port) in [(1, 9), (1, 7), (1, 9), (1, 9), (0, 9)] {
            count(&mut flows, direction, &data(port, 100));
        }
        let rows = flows.rows();
        let packets: Vec<_> = rows.iter().map(|(d, f, t)| (*d, f.2, t.tx_packets)).collect();
        assert_eq!(packets, [(0, 9, 1), (1, 7, 1), (1, 9, 3)]);
        assert_eq!(rows[2].2.data_bytes, 300);
        assert_eq!(rows[2].2.tx_bytes, 3 * u64::from(data(9, 100).wire_bytes()));
    }

    #[test]
    fn any_number_of_flows_are_kept_apart() {
        let mut flows = FlowLinks::new(1);
        for round in 0..3 {
            (0..1000).for_each(|port| count(&mut flows, 0, &data(port * 8, 100 + round)));
        }
        let rows = flows.rows();
        assert!(rows.iter().map(|row| row.1.2).eq((0..1000).map(|port| port * 8)));
        assert!(rows.iter().all(|row| row.2.tx_packets == 3 && row.2.data_bytes == 303));
    }

    #[test]
    fn pauses_belong_to_no_flow() {
        let mut flows = FlowLinks::new(1);
        let pause = PauseFrame { source_mac: [0; 6], class_enable: 8, quanta: [1; 8] };
        count(&mut flows, 0, &Frame::Pause(Box::new(pause)));
        count(&mut flows, 0, &data(7, 100));
        assert_eq!(flows.rows()[0].1, (0, 0, 0));
        assert_eq!(flows.rows().len(), 2);
    }

    #[test]
    fn nothing_is_kept_where_nothing_is_asked_for() {
        let mut flows = FlowLinks::new(0);
        count(&mut flows, 3, &data(7, 100));
        assert!(flows.rows().is_empty());
    }
}
