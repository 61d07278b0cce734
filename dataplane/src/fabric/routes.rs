//! Equal-cost egress ports by destination address.

use crate::config::NicConfig;
use crate::random::mix;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hash of one integer; cheap, and the same in every run.
#[derive(Clone, Copy, Debug, Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = mix(self.0 ^ u64::from(*byte)));
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.0 = mix(u64::from(value));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Ports by NIC.
#[derive(Clone, Debug)]
struct Ways {
    /// Ports of all NICs, one after the other.
    ports: Vec<u16>,
    /// `offsets[nic]..offsets[nic + 1]` of `ports` lead to a NIC.
    offsets: Vec<u32>,
}

impl Ways {
    fn new<'a>(routes: impl Iterator<Item = &'a [u16]>) -> Self {
        let mut ways = Self { ports: Vec::new(), offsets: vec![0] };
        for route in routes {
            ways.ports.extend_from_slice(route);
            ways.offsets.push(ways.ports.len() as u32);
        }
        ways
    }

    #[inline]
    fn of(&self, nic: usize) -> &[u16] {
        &self.ports[self.offsets[nic] as usize..self.offsets[nic + 1] as usize]
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
    nic_of_address: HashMap<u32, u32, BuildHasherDefault<AddressHasher>>,
    all: Ways,
    /// While some of them lead nowhere.
    left: Option<Ways>,
}

impl Routes {
    /// `routes[nic]`: the ports that lead to it.
    pub fn new(nics: &[NicConfig], routes: &[Vec<u16>]) -> Self {
        let all = Ways::new(routes.iter().map(Vec::as_slice));
        let nics = nics.iter().take(routes.len()).enumerate();
        let nic_of_address = nics.map(|(nic, c)| (u32::from(c.address), nic as u32)).collect();
        Self { nic_of_address, all, left: None }
    }

    /// The ports that lead to the address.
    #[inline]
    pub fn towards(&self, address: u32) -> Choices<'_> {
        let Some(nic) = self.nic_of_address.get(&address) else {
            return Choices::from(&[][..]);
        };
        let nic = *nic as usize;
        match &self.left {
            None => Choices::from(self.all.of(nic)),
            Some(left) => Choices { ports: left.of(nic), before_failures: Some(self.all.of(nic)) },
        }
    }

    /// Use only the ports that `is_usable` says of a NIC and a port; where none is left, all.
    pub fn restrict(&mut self, mut is_usable: impl FnMut(usize, u16) -> bool) {
        let nics = 0..self.all.offsets.len() - 1;
        let left: Vec<Vec<u16>> = nics
            .map(|nic| {
                let all = self.all.of(nic);
                let left: Vec<u16> =
                    all.iter().copied().filter(|port| is_usable(nic, *port)).collect();
                if left.is_empty() { all.to_vec() } else { left }
            })
            .collect();
        let left = Ways::new(left.iter().map(Vec::as_slice));
        self.left = (left.ports.len() < self.all.ports.len()).then_some(left);
    }
}
