//! Glances at what a packet will need of a NIC: numbers of no meaning, read from where handling it will
//! read, so that the processor fetches that before it is needed.

use super::Nic;
use super::pair::Pair;
use crate::roce::Packet;

impl Nic {
    /// A glance at what the next packet needs.
    #[inline]
    pub(in crate::engine) fn glance(&self) -> u64 {
        let next = self.classes.iter().find_map(|class| class.pacer.first());
        let pair = next.and_then(|index| self.pairs.get(index as usize)).map_or(0, Pair::glance);
        let timers = [self.timers.next_ps(), self.notification_point.poll_timeout()];
        let timers = timers.into_iter().flatten().fold(0, |sum, at_ps| sum ^ at_ps);
        let own = self.counters.tx_packets ^ self.events.len() as u64 ^ self.next_class as u64;
        pair ^ timers ^ own ^ self.port.free_ps()
    }

    /// A glance at what an arriving packet needs.
    #[inline]
    pub(in crate::engine) fn glance_for(&self, packet: &Packet) -> u64 {
        self.pairs.get(self.pair_of(packet.bth.destination_qp) as usize).map_or(0, Pair::glance)
    }
}
