//! Equal-cost egress ports by destination address.

use crate::config::NicConfig;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The NIC of every address of a job, for all of its switches: where each had its own, none would stay
/// in the processor's caches.
#[derive(Clone, Debug)]
pub struct Addresses(Arrangement);

/// A table where they lie close together, as a lab's do: a look-up should cost one access to memory.
#[derive(Clone, Debug)]
enum Arrangement {
    /// From `first` on; `NO_NIC` where there is none.
    Close {
        first: u32,
        nics: Vec<u32>,
    },
    Scattered(BTreeMap<u32, u32>),
}

const NO_NIC: u32 = u32::MAX;
/// Entries of a table that there may be for each NIC.
const ENTRIES_PER_NIC: usize = 256;

impl Addresses {
    /// Those of `nics`, by their index.
    pub fn new(nics: &[NicConfig]) -> Self {
        let nics = nics.iter().enumerate();
        let by_address: BTreeMap<u32, u32> =
            nics.map(|(nic, config)| (u32::from(config.address), nic as u32)).collect();
        let ends = by_address.first_key_value().zip(by_address.last_key_value());
        let Some(((&first, _), (&last, _))) = ends else {
            return Self(Arrangement::Scattered(by_address));
        };
        let entries = (last - first) as usize + 1;
        if entries > ENTRIES_PER_NIC * by_address.len() {
            return Self(Arrangement::Scattered(by_address));
        }
        let mut nics = vec![NO_NIC; entries];
        for (address, nic) in by_address {
            nics[(address - first) as usize] = nic;
        }
        Self(Arrangement::Close { first, nics })
    }

    #[inline]
    fn nic(&self, address: u32) -> Option<usize> {
        let nic = match &self.0 {
            Arrangement::Close { first, nics } => {
                *nics.get(address.wrapping_sub(*first) as usize)?
            }
            Arrangement::Scattered(by_address) => *by_address.get(&address)?,
        };
        (nic != NO_NIC).then_some(nic as usize)
    }
}

/// Ports by NIC. Many NICs have the same: those behind one leaf, or all that are reached upwards.
#[derive(Clone, Debug)]
struct Ways {
    /// Place in `ranges` of each NIC's ports.
    set_of_nic: Vec<u16>,
    /// Where the ports of a set stand.
    ranges: Vec<Range<u32>>,
    ports: Vec<u16>,
}

impl Ways {
    fn new<'a>(routes: impl Iterator<Item = &'a [u16]>) -> Self {
        let mut ways = Self { set_of_nic: Vec::new(), ranges: Vec::new(), ports: Vec::new() };
        let mut known: BTreeMap<&[u16], u16> = BTreeMap::new();
        for route in routes {
            let set = *known.entry(route).or_insert_with(|| ways.add(route));
            ways.set_of_nic.push(set);
        }
        ways
    }

    /// A set of its own.
    fn add(&mut self, route: &[u16]) -> u16 {
        let first = self.ports.len() as u32;
        self.ports.extend_from_slice(route);
        self.ranges.push(first..self.ports.len() as u32);
        (self.ranges.len() - 1) as u16
    }

    #[inline]
    fn of(&self, nic: usize) -> &[u16] {
        let Some(set) = self.set_of_nic.get(nic) else { return &[] };
        let range = &self.ranges[usize::from(*set)];
        &self.ports[range.start as usize..range.end as usize]
    }

    /// Ports of all NICs together.
    fn len(&self) -> usize {
        (0..self.set_of_nic.len()).map(|nic| self.of(nic).len()).sum()
    }
}

/// The ports that lead to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices<'a> {
    /// Those that are left; none if the address is unknown or cut off.
    pub ports: &'a [u16],
    /// What they would be without failures, while there are some.
    pub before_failures: Option<&'a [u16]>,
}

impl<'a> From<&'a [u16]> for Choices<'a> {
    fn from(ports: &'a [u16]) -> Self {
        Self { ports, before_failures: None }
    }
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Routes {
    addresses: Arc<Addresses>,
    all: Ways,
    /// While some of them lead nowhere.
    left: Option<Ways>,
}

impl Routes {
    /// `routes[nic]`: the ports that lead to it.
    pub fn new(addresses: Arc<Addresses>, routes: &[Vec<u16>]) -> Self {
        let all = Ways::new(routes.iter().map(Vec::as_slice));
        Self { addresses, all, left: None }
    }

    /// The ports that lead to the address.
    #[inline]
    pub fn towards(&self, address: u32) -> Choices<'_> {
        let Some(nic) = self.addresses.nic(address) else {
            return Choices::from(&[][..]);
        };
        match &self.left {
            None => Choices::from(self.all.of(nic)),
            Some(left) => Choices { ports: left.of(nic), before_failures: Some(self.all.of(nic)) },
        }
    }

    /// Use only the ports that `is_usable` says of a NIC and a port; where none is left, all.
    pub fn restrict(&mut self, mut is_usable: impl FnMut(usize, u16) -> bool) {
        let nics = 0..self.all.set_of_nic.len();
        let left: Vec<Vec<u16>> = nics
            .map(|nic| {
                let all = self.all.of(nic);
                let left: Vec<u16> =
                    all.iter().copied().filter(|port| is_usable(nic, *port)).collect();
                if left.is_empty() { all.to_vec() } else { left }
            })
            .collect();
        let left = Ways::new(left.iter().map(Vec::as_slice));
        self.left = (left.len() < self.all.len()).then_some(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn nics(addresses: &[[u8; 4]]) -> Vec<NicConfig> {
        let nic = |(rank, address): (usize, &[u8; 4])| NicConfig {
            name: format!("host{rank}"),
            rank: rank as u32,
            address: Ipv4Addr::from(*address),
            mac: [0; 6],
        };
        addresses.iter().enumerate().map(nic).collect()
    }

    fn assert_ways(addresses: &[[u8; 4]]) {
        let ways = [vec![0], vec![4, 5], vec![], vec![4, 5]];
        let routes = Routes::new(Arc::new(Addresses::new(&nics(addresses))), &ways);
        for (address, ports) in addresses.iter().zip(&ways) {
            assert_eq!(routes.towards(u32::from_be_bytes(*address)).ports, ports);
        }
        for unknown in [[198, 18, 0, 0], [198, 18, 0, 9], [0; 4], [255; 4]] {
            assert_eq!(routes.towards(u32::from_be_bytes(unknown)).ports, [0u16; 0]);
        }
    }

    #[test]
    fn an_address_leads_to_the_ports_of_its_nic_and_an_unknown_one_nowhere() {
        assert_ways(&[[198, 18, 0, 1], [198, 18, 0, 2], [198, 18, 1, 1], [198, 18, 2, 1]]);
    }

    #[test]
    fn addresses_may_lie_far_apart() {
        assert_ways(&[[198, 18, 0, 1], [127, 0, 0, 1], [198, 19, 255, 1], [127, 9, 0, 1]]);
    }

    #[test]
    fn ports_that_fail_are_left_out_for_the_nics_that_they_can_not_reach() {
        let addresses = [[198, 18, 0, 1], [198, 18, 0, 2]];
        let table = Arc::new(Addresses::new(&nics(&addresses)));
        let mut routes = Routes::new(table, &[vec![4, 5], vec![4, 5]]);
        routes.restrict(|nic, port| !(nic == 1 && port == 4));
        let towards = |nic: usize| routes.towards(u32::from_be_bytes(addresses[nic]));
        assert_eq!((towards(0).ports, towards(1).ports), (&[4, 5][..], &[5][..]));
        assert_eq!(towards(1).before_failures, Some(&[4, 5][..]));
        routes.restrict(|_, _| true);
        assert_eq!(routes.towards(u32::from_be_bytes(addresses[1])).before_failures, None);
    }
}
