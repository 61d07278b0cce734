//! Which of several equal-cost ports a flow takes.
//!
//! The hash covers source and destination address, UDP source and destination port and protocol,
//! with a seed per switch, so that switches of one tier spread differently from those of the next
//! (no polarisation). A port is chosen by the hash's high bits; any number of ports is spread over
//! evenly.

use crate::random::mix;

/// Destination port of RoCEv2. Source: IBTA annex A17.
const ROCE_PORT: u64 = 4791;
/// IPv4 protocol number of UDP.
const UDP: u64 = 17;

/// The hash of one switch.
#[derive(Clone, Copy, Debug)]
pub struct EcmpHash {
    seed: u64,
}

impl EcmpHash {
    /// The hash with that seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The hash of a flow: source address, destination address, source port. Source and destination
    /// are told apart, so the way back may differ.
    #[inline]
    pub fn of(&self, (source_address, destination_address, source_port): (u32, u32, u16)) -> u64 {
        let addresses = u64::from(source_address) << 32 | u64::from(destination_address);
        let ports = u64::from(source_port) << 48 | ROCE_PORT << 32 | UDP;
        mix(mix(self.seed ^ addresses) ^ ports)
    }

    /// Which of `choices` (at least 1) the flow takes.
    #[inline]
    pub fn choose(&self, flow: (u32, u32, u16), choices: usize) -> usize {
        pick(self.of(flow), choices)
    }
}

/// The choice that a hash or random number stands for.
#[inline]
pub fn pick(hash: u64, choices: usize) -> usize {
    ((u128::from(hash) * choices as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_keeps_its_path() {
        let hash = EcmpHash::new(7);
        let first = hash.choose((1, 2, 0xC000), 16);
        assert!((0..100).all(|_| hash.choose((1, 2, 0xC000), 16) == first));
    }

    #[test]
    fn flows_spread_evenly_over_any_number_of_paths() {
        for choices in [2, 3, 7, 16] {
            let mut counts = vec![0_u32; choices];
            for flow in 0..4096_u32 {
                let key = (0x0A00_0000 | flow >> 4, 0x0A00_1000, 0xC000 | (flow & 15) as u16);
                counts[EcmpHash::new(3).choose(key, choices)] += 1;
            }
            let expected = 4096.0 / choices as f64;
            let chi_square: f64 =
                counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
            let bound = choices as f64 + 4.0 * (2.0 * choices as f64).sqrt();
            assert!(chi_square < bound, "{choices} paths: {chi_square}");
        }
    }

    #[test]
    fn seeds_spread_the_same_flows_independently() {
        let agreeing = (0..4096_u16)
            .filter(|port| {
                let key = (1, 2, *port);
                EcmpHash::new(1).choose(key, 4) == EcmpHash::new(2).choose(key, 4)
            })
            .count();
        assert!((900..1150).contains(&agreeing), "{agreeing} of 1024");
    }
}
