//! Early drops: what a WRED profile does to a packet that it chose and cannot mark.
//!
//! Source: RFC 3168, section 5 (a packet that is not ECN-capable is dropped where a capable one would
//! be marked); SAI, `saiwred.h`: the enables of a profile's colours are its drops, beside its ECN mode.
//! A drop is decided when a packet comes, on the queue before it: what has been queued is sent.
//!
//! The packet's random number follows from the packet, as for marks, and from how many packets of its
//! queue pair were dropped here before: one that is sent again draws anew. With one number for ever, a
//! packet that drew a low one would never pass a standing queue.

use super::marking::{draw, mark_probability};
use crate::config::EcnConfig;
use crate::random::mix;
use crate::roce::packet::Packet;
use std::collections::HashMap;

/// Sets the numbers of drops apart from those of marks.
const DROP_SEED: u64 = 0x5745_4444_524F_5053;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct EarlyDrops {
    seed: u64,
    /// Packets dropped, by addresses and destination queue pair.
    dropped: HashMap<(u32, u32, u32), u64>,
}

impl EarlyDrops {
    /// Nothing dropped yet; `seed` is the switch's.
    pub fn new(seed: u64) -> Self {
        Self { seed: mix(seed ^ DROP_SEED), dropped: HashMap::new() }
    }

    /// Whether the packet is dropped before a queue of `queue_bytes`; if so, it is counted.
    #[inline]
    pub fn drops(&mut self, profile: &EcnConfig, queue_bytes: u64, packet: &Packet) -> bool {
        let is_spared = !profile.drops_not_ect || packet.ecn.is_capable();
        if is_spared || queue_bytes <= profile.kmin_bytes {
            return false;
        }
        self.draws_a_drop(profile, queue_bytes, packet)
    }

    #[cold]
    fn draws_a_drop(&mut self, profile: &EcnConfig, queue_bytes: u64, packet: &Packet) -> bool {
        let pair = (packet.source_address, packet.destination_address, packet.bth.destination_qp);
        let before = self.dropped.get(&pair).copied().unwrap_or(0);
        let is_dropped =
            draw(mix(self.seed ^ before), packet) < mark_probability(profile, queue_bytes);
        if is_dropped {
            self.dropped.insert(pair, before + 1);
        }
        is_dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roce::packet::Ecn;

    const PROFILE: EcnConfig =
        EcnConfig { kmin_bytes: 5_000, kmax_bytes: 200_000, pmax_ratio: 0.01, drops_not_ect: true };

    fn packet(ecn: Ecn, psn: u32) -> Packet {
        let mut packet = Packet { ecn, ..Packet::default() };
        packet.bth.psn = psn;
        packet
    }

    #[test]
    fn packets_are_dropped_as_often_as_the_profile_would_mark() {
        let mut drops = EarlyDrops::new(1);
        let mut is_dropped = |psn| drops.drops(&PROFILE, 102_500, &packet(Ecn::NotEct, psn));
        let count = (0..1_000_000).filter(|&psn| is_dropped(psn)).count();
        assert!((4_700..5_300).contains(&count), "{count} of 5000");
    }

    #[test]
    fn a_packet_that_is_sent_again_draws_anew() {
        let mut drops = EarlyDrops::new(1);
        let mut is_dropped = |psn| drops.drops(&PROFILE, 200_000, &packet(Ecn::NotEct, psn));
        let unlucky = (0..10_000).find(|&psn| is_dropped(psn)).expect("one of a hundred is");
        assert!(!is_dropped(unlucky));
    }

    #[test]
    fn capable_packets_and_profiles_that_only_mark_are_spared() {
        let mut drops = EarlyDrops::new(1);
        let only_marks = EcnConfig { drops_not_ect: false, ..PROFILE };
        for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            assert!(!drops.drops(&PROFILE, 300_000, &packet(ecn, 0)));
        }
        assert!(!drops.drops(&only_marks, 300_000, &packet(Ecn::NotEct, 0)));
        assert!(!drops.drops(&PROFILE, 5_000, &packet(Ecn::NotEct, 0)));
        assert!(drops.drops(&PROFILE, 200_001, &packet(Ecn::NotEct, 0)));
    }
}
