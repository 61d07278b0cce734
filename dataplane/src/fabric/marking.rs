//! ECN marking of the congestion point.
//!
//! Source: Zhu et al., SIGCOMM 2015, section 3.1 (RED on the instantaneous queue), RFC 3168 (only
//! ECN-capable packets are marked). The queue is looked at when a packet leaves it, and what counts
//! is what stays behind: marking at arrival would add the queue's own delay to the control loop.

use crate::config::EcnConfig;
use crate::random::Random;
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

/// Mark the packet that leaves `queue_bytes` behind it, by chance. Returns whether it was marked
/// here; packets that are not ECN-capable, or marked before, are left alone.
#[inline]
pub fn mark(
    profile: &EcnConfig,
    queue_bytes: u64,
    random: &mut Random,
    packet: &mut Packet,
) -> bool {
    if queue_bytes <= profile.kmin_bytes || !packet.ecn.is_capable() || packet.ecn == Ecn::Ce {
        return false;
    }
    let is_marked = random.next_ratio() < mark_probability(profile, queue_bytes);
    if is_marked {
        packet.ecn = Ecn::Ce;
    }
    is_marked
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: EcnConfig =
        EcnConfig { kmin_bytes: 5_000, kmax_bytes: 200_000, pmax_ratio: 0.01 };

    fn packet(ecn: Ecn) -> Packet {
        Packet { ecn, ..Packet::default() }
    }

    #[test]
    fn the_probability_follows_the_profile() {
        let p = |queue_bytes| mark_probability(&PROFILE, queue_bytes);
        assert_eq!((p(0), p(5_000), p(200_000), p(200_001)), (0.0, 0.0, 0.01, 1.0));
        assert!((p(102_500) - 0.005).abs() < 1e-12);
    }

    #[test]
    fn equal_thresholds_are_a_step() {
        let step = EcnConfig { kmin_bytes: 100, kmax_bytes: 100, pmax_ratio: 1.0 };
        assert_eq!((mark_probability(&step, 100), mark_probability(&step, 101)), (0.0, 1.0));
    }

    #[test]
    fn marks_come_as_often_as_the_profile_says() {
        let mut random = Random::new(1, 0);
        let count = (0..1_000_000)
            .filter(|_| mark(&PROFILE, 102_500, &mut random, &mut packet(Ecn::Ect0)))
            .count();
        assert!((4_700..5_300).contains(&count), "{count} of 5000");
    }

    #[test]
    fn only_capable_packets_are_marked_and_only_once() {
        let mut random = Random::new(1, 0);
        let mut marked = |ecn| {
            let mut packet = packet(ecn);
            (mark(&PROFILE, 300_000, &mut random, &mut packet), packet.ecn)
        };
        assert_eq!(marked(Ecn::NotEct), (false, Ecn::NotEct));
        assert_eq!(marked(Ecn::Ect0), (true, Ecn::Ce));
        assert_eq!(marked(Ecn::Ect1), (true, Ecn::Ce));
        assert_eq!(marked(Ecn::Ce), (false, Ecn::Ce));
    }
}
