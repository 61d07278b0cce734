//! Packets that arrived ahead of their turn and wait for it. For selective repeat.

use super::packet::Packet;
use super::psn;
use std::collections::VecDeque;

/// A window of places, most of them empty.
#[derive(Clone, Debug)]
pub(super) struct Held {
    window_packets: u32,
    /// Number that belongs in the first place.
    first_psn: u32,
    places: VecDeque<Option<Packet>>,
    packets: u32,
}

impl Held {
    pub fn new(window_packets: u32) -> Self {
        Self { window_packets, first_psn: 0, places: VecDeque::new(), packets: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Keeps a packet that lies `ahead` of the expected one, if it lies in the window and is new.
    pub fn keep(&mut self, packet: &Packet, ahead: u32) -> bool {
        if ahead >= self.window_packets {
            return false;
        }
        let expected_psn = packet.bth.psn.wrapping_sub(ahead) & psn::MASK_24;
        self.move_to(expected_psn);
        let place = ahead as usize;
        if place >= self.places.len() {
            self.places.resize(place + 1, None);
        }
        let is_new = self.places[place].is_none();
        if is_new {
            self.places[place] = Some(packet.clone());
            self.packets += 1;
        }
        is_new
    }

    /// Takes the packet with that number, which is the expected one.
    pub fn take(&mut self, expected_psn: u32) -> Option<Packet> {
        self.move_to(expected_psn);
        let packet = self.places.front_mut()?.take();
        self.packets -= u32::from(packet.is_some());
        packet
    }

    /// Empties the places in front of `expected_psn`.
    fn move_to(&mut self, expected_psn: u32) {
        // What is expected only advances, by up to 2^23 for a READ.
        let passed = (expected_psn.wrapping_sub(self.first_psn) & psn::MASK_24) as usize;
        for place in self.places.drain(..passed.min(self.places.len())) {
            self.packets -= u32::from(place.is_some());
        }
        self.first_psn = expected_psn;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roce::packet::Bth;

    fn packet(psn: u32) -> Packet {
        Packet { bth: Bth { psn, ..Bth::default() }, ..Packet::default() }
    }

    #[test]
    fn packets_come_out_at_their_turn_across_the_wrap() {
        let mut held = Held::new(64);
        // 0xFFFFFF is expected.
        for (psn, ahead) in [(2, 3), (0, 1), (5, 6)] {
            assert!(held.keep(&packet(psn), ahead));
        }
        assert_eq!(held.take(0xFF_FFFF), None);
        assert_eq!(held.take(0), Some(packet(0)));
        assert_eq!(held.take(1), None);
        assert_eq!(held.take(2), Some(packet(2)));
        assert!(!held.is_empty());
        assert_eq!(held.take(5), Some(packet(5)));
        assert!(held.is_empty());
    }

    #[test]
    fn a_jump_over_half_the_numbers_empties_the_places_in_front() {
        let mut held = Held::new(64);
        assert!(held.keep(&packet(10), 9));
        assert_eq!(held.take(1 + (1 << 23)), None);
        assert!(held.is_empty());
    }

    #[test]
    fn a_packet_is_kept_once_and_only_in_the_window() {
        let mut held = Held::new(8);
        assert!(held.keep(&packet(7), 7));
        assert!(!held.keep(&packet(7), 7));
        assert!(!held.keep(&packet(8), 8));
        assert_eq!(held.take(7), Some(packet(7)));
    }
}
