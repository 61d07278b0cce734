//! Which of several equal-cost ports a flow takes.
//!
//! The hash covers source and destination address, UDP source and destination port and protocol, or
//! those of them that the switch is told to, with a seed per switch, so that switches of one tier spread differently from those of the next
//! (no polarisation). A port is chosen by the hash's high bits; any number of ports is spread over
//! evenly.

use crate::config::{HashField, SwitchConfig};
use crate::random::mix;

/// Destination port of RoCEv2. Source: IBTA annex A17.
const ROCE_PORT: u64 = 4791;
/// IPv4 protocol number of UDP.
const UDP: u64 = 17;

/// The hash of one switch.
#[derive(Clone, Copy, Debug)]
pub struct EcmpHash {
    seed: u64,
    /// Bits of the addresses, and of ports and protocol, that count.
    masks: (u64, u64),
}

/// Bits of a field among the addresses, and among ports and protocol.
fn bits_of(field: HashField) -> (u64, u64) {
    match field {
        HashField::SourceAddress => (0xFFFF_FFFF << 32, 0),
        HashField::DestinationAddress => (0xFFFF_FFFF, 0),
        HashField::SourcePort => (0, 0xFFFF << 48),
        HashField::DestinationPort => (0, 0xFFFF << 32),
        HashField::Protocol => (0, 0xFFFF_FFFF),
    }
}

impl EcmpHash {
    /// The hash with that seed, of all fields.
    pub fn new(seed: u64) -> Self {
        Self { seed, masks: (u64::MAX, u64::MAX) }
    }

    /// The hash of a switch.
    pub fn of_switch(config: &SwitchConfig) -> Self {
        let bits = config.hash_fields.iter().copied().map(bits_of);
        let masks = bits.fold((0, 0), |masks, bits| (masks.0 | bits.0, masks.1 | bits.1));
        Self { seed: config.ecmp_seed, masks }
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
        mix(mix(self.seed ^ (addresses & self.masks.0)) ^ (ports & self.masks.1))
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
            let squared =
                |count: &u32| (f64::from(*count) - expected) * (f64::from(*count) - expected);
            let chi_square: f64 = counts.iter().map(|count| squared(count) / expected).sum();
            let bound = choices as f64 + 4.0 * (2.0 * choices as f64).sqrt();
            assert!(chi_square < bound, "{choices} paths: {chi_square}");
        }
    }

    /// The hash of some fields.
    fn hash_of(fields: &[HashField]) -> EcmpHash {
        let mut switch = crate::engine::testing::star(2).0.switches.remove(0);
        switch.hash_fields = fields.to_vec();
        EcmpHash::of_switch(&switch)
    }

    #[test]
    fn a_field_that_the_hash_does_not_cover_makes_no_difference() {
        use HashField::{DestinationAddress, SourceAddress, SourcePort};
        let [flow, port, source, destination] =
            [(1, 2, 3), (1, 2, 4), (5, 2, 3), (1, 6, 3)].map(|flow| move |h: &EcmpHash| h.of(flow));
        let hash = hash_of(&[SourceAddress, DestinationAddress]);
        assert_eq!(flow(&hash), port(&hash));
        assert!(flow(&hash) != source(&hash) && flow(&hash) != destination(&hash));
        let hash = hash_of(&[SourcePort, DestinationAddress]);
        assert_eq!(flow(&hash), source(&hash));
        assert!(flow(&hash) != port(&hash) && flow(&hash) != destination(&hash));
    }

    #[test]
    fn all_fields_are_the_hash_of_a_switch_that_names_none() {
        let seed = hash_of(&[]).seed();
        assert_eq!(hash_of(&HashField::all()).of((7, 8, 9)), EcmpHash::new(seed).of((7, 8, 9)));
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
