//! What is told of links while a job runs: how many flows crossed each direction, and what the routes and
//! the switches' hash lead over it of what the NICs here have sent.
//!
//! The second is the sum over flows of bytes times the part that takes the direction. It is brought up
//! to date a few flows at a time, for the loop has no time to look at all of them.

use crate::config::JobConfig;
use crate::engine::flow_links::Flow;
use crate::engine::records::{Column, Table};
use crate::engine::topology::Topology;
use crate::engine::world::{Medium, World};
use crate::fluid::route::{Hop, Router};
use std::collections::HashMap;

/// Flows that are looked at in one go.
const FLOWS_PER_LOOK: usize = 300;
/// More NICs than these have more flows than there is time for.
const MOST_NICS: usize = 256;

/// A flow that a NIC here sends.
struct Expected {
    hops: Vec<Hop>,
    /// Bytes that have been added to the directions.
    added_bytes: u64,
}

/// See the module documentation.
pub struct LiveLinks {
    topology: Topology,
    router: Router,
    nic_of_address: HashMap<u32, u32>,
    /// NICs here.
    nics: Vec<u32>,
    /// The next of them to be looked at.
    next: usize,
    expected: HashMap<Flow, Expected>,
    /// By direction.
    bytes: Vec<f64>,
}

impl LiveLinks {
    /// Of a job whose flows are counted and not too many; `None` for others.
    pub fn new<M: Medium>(world: &World<M>) -> Option<Self> {
        let config = world.config();
        if !config.telemetry.flow_paths || config.nics.len() > MOST_NICS {
            return None;
        }
        let addresses = config.nics.iter().zip(0..);
        Some(Self {
            topology: Topology::new(config).ok()?,
            router: Router::new(config),
            nic_of_address: addresses.map(|(nic, i)| (u32::from(nic.address), i)).collect(),
            nics: world.hosts().map(|(nic, _)| nic).collect(),
            next: 0,
            expected: HashMap::new(),
            bytes: vec![0.0; 2 * config.links.len()],
        })
    }

    /// Look at some of the flows, or at all.
    pub fn look<M: Medium>(&mut self, world: &World<M>, at_all: bool) {
        let mut looked = 0;
        for _ in 0..self.nics.len() {
            if looked >= FLOWS_PER_LOOK && !at_all {
                return;
            }
            let nic = self.nics[self.next];
            self.next = (self.next + 1) % self.nics.len();
            if let Some(egress) = self.topology.nic_egress[nic as usize] {
                for (flow, bytes) in world.flow_links().bytes(egress) {
                    looked += 1;
                    self.add(world.config(), nic, flow, bytes);
                }
            }
        }
    }

    fn add(&mut self, config: &JobConfig, nic: u32, flow: Flow, bytes: u64) {
        let Self { topology, router, nic_of_address, .. } = self;
        let expected = self.expected.entry(flow).or_insert_with(|| {
            let destination = nic_of_address.get(&flow.1);
            let route = destination.and_then(|to| router.route(config, topology, (nic, *to), flow));
            Expected { hops: route.unwrap_or_default().hops, added_bytes: 0 }
        });
        let new_bytes = bytes - expected.added_bytes;
        expected.added_bytes = bytes;
        for hop in &expected.hops {
            self.bytes[hop.direction as usize] += hop.fraction * new_bytes as f64;
        }
    }

    /// Columns beside the totals of links.
    pub fn columns<M: Medium>(&self, world: &World<M>) -> Table {
        let directions = 0..self.bytes.len() as u32;
        let flows = directions.map(|direction| world.flow_links().flows(direction)).collect();
        let bytes = self.bytes.iter().map(|bytes| bytes.round() as u64).collect();
        vec![("flows", Column::U64(flows)), ("expected_bytes", Column::U64(bytes))]
    }
}
