//! ECN marking of the congestion point.
//!
//! Source: Zhu et al., SIGCOMM 2015, section 3.1 (RED on the instantaneous queue), RFC 3168 (only
//! ECN-capable packets are marked). The queue is looked at when a packet leaves it, and what counts
//! is what stays behind: marking at arrival would add the queue's own delay to the control loop. What
//! a profile does about other packets is in `early_drop`.

use crate::config::EcnConfig;
use crate::random::{mix, ratio};
use crate::roce::packet::{Ecn, Packet};

/// Probability of a mark with `queue_bytes` behind the packet: 0 up to `kmin_bytes`, rising to
/// `pmax_ratio` at `kmax_bytes`, 1 above.
#[inline]
pub fn mark_probability(profile: &EcnConfig, queue_bytes: u64) -> f64 {
    if queue_bytes <= profile.kmin_bytes {
        0.0
    } else if queue_bytes > profile.kmax_bytes {
        1.0
    } else {
        let above_bytes = (queue_bytes - profile.kmin_bytes) as f64;
        let range_bytes = (profile.kmax_bytes - profile.kmin_bytes) as f64;
        profile.pmax_ratio * above_bytes / range_bytes
    }
}

/// Mark the packet that leaves `queue_bytes` behind it, by chance; `seed` is the switch's. Returns
/// whether it was marked here; packets that are not ECN-capable, or marked before, are left alone.
#[inline]
pub fn mark(profile: &EcnConfig, queue_bytes: u64, seed: u64, packet: &mut Packet) -> bool {
    if queue_bytes <= profile.kmin_bytes || !packet.ecn.is_capable() || packet.ecn == Ecn::Ce {
        return false;
    }
    let is_marked = draw(seed, packet) < mark_probability(profile, queue_bytes);
    if is_marked {
        packet.ecn = Ecn::Ce;
    }
    is_marked
}

/// The packet's random number in `[0, 1)` at a switch with this seed.
#[inline]
pub(super) fn draw(seed: u64, packet: &Packet) -> f64 {
    let addresses = u64::from(packet.source_address) << 32 | u64::from(packet.destination_address);
    let sequence = u64::from(packet.bth.destination_qp) << 24 | u64::from(packet.bth.psn);
    ratio(mix(mix(seed ^ addresses) ^ sequence))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: EcnConfig = EcnConfig {
        kmin_bytes: 5_000,
        kmax_bytes: 200_000,
        pmax_ratio: 0.01,
        drops_not_ect: false,
    };

    const SEED: u64 = 1;

    fn packet(ecn: Ecn, psn: u32) -> Packet {
        let mut packet = Packet { ecn, ..Packet::default() };
        packet.bth.psn = psn;
        packet
    }

    /// Which of a million packets are marked with `queue_bytes` behind each.
    fn marked(seed: u64, queue_bytes: u64) -> Vec<bool> {
        (0..1_000_000)
            .map(|psn| mark(&PROFILE, queue_bytes, seed, &mut packet(Ecn::Ect0, psn)))
            .collect()
    }

    fn count(marks: impl Iterator<Item = bool>) -> usize {
        marks.filter(|&is_marked| is_marked).count()
    }

    #[test]
    fn the_probability_follows_the_profile() {
        let p = |queue_bytes| mark_probability(&PROFILE, queue_bytes);
        assert_eq!((p(0), p(5_000), p(200_000), p(200_001)), (0.0, 0.0, 0.01, 1.0));
        assert!((p(102_500) - 0.005).abs() < 1e-12);
    }

    #[test]
    fn equal_thresholds_are_a_step() {
        let step = EcnConfig { kmin_bytes: 100, kmax_bytes: 100, ..PROFILE };
        let step = EcnConfig { pmax_ratio: 1.0, ..step };
        assert_eq!((mark_probability(&step, 100), mark_probability(&step, 101)), (0.0, 1.0));
    }

    #[test]
    fn marks_come_as_often_as_the_profile_says() {
        let marks = count(marked(SEED, 102_500).into_iter());
        assert!((4_700..5_300).contains(&marks), "{marks} of 5000");
    }

    #[test]
    fn a_packet_keeps_its_mark_when_the_queue_is_a_little_longer() {
        let (short, long) = (marked(SEED, 102_500), marked(SEED, 104_500));
        assert_eq!(count(short.iter().zip(&long).map(|(short, long)| *short && !*long)), 0);
        let more = count(long.into_iter()) - count(short.into_iter());
        assert!((60..150).contains(&more), "{more} of 103 more");
    }

    #[test]
    fn switches_mark_independently() {
        let (one, other) = (marked(SEED, 102_500), marked(SEED + 1, 102_500));
        let both = count(one.iter().zip(&other).map(|(one, other)| *one && *other));
        assert!((10..45).contains(&both), "{both} of 25");
    }

    #[test]
    fn only_capable_packets_are_marked_and_only_once() {
        let marked = |ecn| {
            let mut packet = packet(ecn, 0);
            (mark(&PROFILE, 300_000, SEED, &mut packet), packet.ecn)
        };
        assert_eq!(marked(Ecn::NotEct), (false, Ecn::NotEct));
        assert_eq!(marked(Ecn::Ect0), (true, Ecn::Ce));
        assert_eq!(marked(Ecn::Ect1), (true, Ecn::Ce));
        assert_eq!(marked(Ecn::Ce), (false, Ecn::Ce));
    }
}
