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

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Routes {
    nic_of_address: HashMap<u32, u32, BuildHasherDefault<AddressHasher>>,
    /// Ports of all NICs, one after the other.
    ports: Vec<u16>,
    /// `offsets[nic]..offsets[nic + 1]` of `ports` lead to a NIC.
    offsets: Vec<u32>,
}

impl Routes {
    /// `routes[nic]`: the ports that lead to it.
    pub fn new(nics: &[NicConfig], routes: &[Vec<u16>]) -> Self {
        let mut offsets = vec![0];
        let mut ports = Vec::new();
        for route in routes {
            ports.extend_from_slice(route);
            offsets.push(ports.len() as u32);
        }
        let nics = nics.iter().take(routes.len()).enumerate();
        let nic_of_address = nics.map(|(nic, c)| (u32::from(c.address), nic as u32)).collect();
        Self { nic_of_address, ports, offsets }
    }

    /// The ports that lead to the address; none if it is unknown or cut off.
    #[inline]
    pub fn towards(&self, address: u32) -> &[u16] {
        let Some(nic) = self.nic_of_address.get(&address) else {
            return &[];
        };
        let nic = *nic as usize;
        &self.ports[self.offsets[nic] as usize..self.offsets[nic + 1] as usize]
    }
}
