//! The links that a flow takes: one path, or a share of every path where its packets are spread.

use crate::config::{JobConfig, NodeId, PathSelection};
use crate::engine::link_events::LinkEvents;
use crate::engine::rerouting::{Ways, is_usable};
use crate::engine::topology::Topology;
use crate::fabric::{Addresses, Choices, EcmpHash, Routes, port_of_flow};
use crate::units::PS_PER_S;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One direction of a link, and the part of the flow that takes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// The direction.
    pub direction: u32,
    /// Part of the flow, above 0 and at most 1.
    pub fraction: f64,
}

/// How long a packet takes from the last bit at the first port to the last bit at the last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// Propagation.
    pub delay_ps: f64,
    /// Store-and-forward at every hop behind the first.
    pub ps_per_byte: f64,
    /// Transmission at the first hop.
    pub first_ps_per_byte: f64,
}

impl Latency {
    /// Of a packet of that size on the line, beyond its transmission at the first hop.
    pub fn beyond_first_ps(&self, line_bytes: u64) -> u64 {
        (self.delay_ps + self.ps_per_byte * line_bytes as f64).round() as u64
    }

    /// Of a packet of that size on the line, from its first bit.
    pub fn whole_ps(&self, line_bytes: u64) -> u64 {
        let per_byte = self.ps_per_byte + self.first_ps_per_byte;
        (self.delay_ps + per_byte * line_bytes as f64).round() as u64
    }
}

/// The links of a flow, and its latency.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Route {
    /// Every direction that a part of it takes.
    pub hops: Vec<Hop>,
    /// Mean over its parts.
    pub latency: Latency,
}

/// Chooses as the job's switches do.
#[derive(Clone, Debug)]
pub struct Router {
    hashes: Vec<EcmpHash>,
    /// What is left of each switch's routes; none before the first link is avoided.
    left: Vec<Routes>,
}

impl Router {
    /// The switches of a job.
    pub fn new(config: &JobConfig) -> Self {
        let hashes = config.switches.iter().map(EcmpHash::of_switch).collect();
        Self { hashes, left: Vec::new() }
    }

    /// Use the ways that the switches use, as far as each of them knows of the links' state.
    pub(super) fn reroute(&mut self, config: &JobConfig, topology: &Topology, events: &LinkEvents) {
        if self.left.is_empty() {
            let addresses = Arc::new(Addresses::new(&config.nics));
            let routes = config.switches.iter().map(|s| Routes::new(addresses.clone(), &s.routes));
            self.left = routes.collect();
        }
        let ways = Ways::new(config, topology, &events.withdrawn);
        for (switch, routes) in self.left.iter_mut().enumerate() {
            routes.restrict(|nic, port| is_usable(topology, events, &ways, (switch, port), nic));
        }
    }

    /// The links from a NIC to another of a flow (source address, destination address, source port).
    /// `None` if they do not lead there.
    pub fn route(
        &self,
        config: &JobConfig,
        topology: &Topology,
        (source, destination): (u32, u32),
        flow: (u32, u32, u16),
    ) -> Option<Route> {
        let first = topology.nic_egress[source as usize]?;
        let mut route = Route::default();
        let mut wave = BTreeMap::from([(first, 1.0)]);
        for _ in 0..=config.switches.len() {
            let mut next = BTreeMap::new();
            for (direction, fraction) in wave {
                route.push(topology, direction, fraction);
                match topology.directions[direction as usize].to.node {
                    NodeId::Nic(nic) if nic == destination => {}
                    NodeId::Nic(_) => return None,
                    NodeId::Switch(switch) => {
                        let ports = self.choose(config, switch, destination, flow);
                        for &port in ports.iter() {
                            let egress = &topology.switch_egress[switch as usize];
                            let out = egress.get(usize::from(port)).copied().flatten()?;
                            *next.entry(out).or_insert(0.0) += fraction / ports.len() as f64;
                        }
                        if ports.is_empty() {
                            return None;
                        }
                    }
                }
            }
            if next.is_empty() {
                return Some(route);
            }
            wave = next;
        }
        None
    }

    /// The port that the flow takes, or all that its packets are spread over.
    fn choose<'a>(
        &'a self,
        config: &'a JobConfig,
        switch: u32,
        destination: u32,
        flow: (u32, u32, u16),
    ) -> Cow<'a, [u16]> {
        let switch_config = &config.switches[switch as usize];
        let Choices { ports, before_failures } = match self.left.get(switch as usize) {
            Some(routes) => routes.towards(u32::from(config.nics[destination as usize].address)),
            None => Choices::from(&switch_config.routes[destination as usize][..]),
        };
        let hash = &self.hashes[switch as usize];
        match (switch_config.path_selection, before_failures) {
            (PathSelection::Flow, Some(all)) if !all.is_empty() => {
                let hashing = switch_config.failure_hashing;
                vec![port_of_flow(hash, hashing, flow, (ports, all))].into()
            }
            (PathSelection::Flow, _) if ports.len() > 1 => {
                vec![ports[hash.choose(flow, ports.len())]].into()
            }
            _ => ports.into(),
        }
    }
}

impl Route {
    fn push(&mut self, topology: &Topology, direction: u32, fraction: f64) {
        let link = &topology.directions[direction as usize];
        let ps_per_byte = fraction * (8 * PS_PER_S) as f64 / link.rate_bps as f64;
        self.latency.delay_ps += fraction * link.delay_ps as f64;
        if self.hops.is_empty() {
            self.latency.first_ps_per_byte = ps_per_byte;
        } else {
            self.latency.ps_per_byte += ps_per_byte;
        }
        self.hops.push(Hop { direction, fraction });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{DELAY_PS, clos, star};

    const FLOW: (u32, u32, u16) = (1, 2, 0xC000);

    fn routed(config: &JobConfig, ends: (u32, u32)) -> Option<Route> {
        let topology = Topology::new(config).expect("the fabric is sound");
        Router::new(config).route(config, &topology, ends, FLOW)
    }

    #[test]
    fn a_flow_takes_one_path_with_the_latency_of_its_links() {
        let route = routed(&clos(2, 4, 2).0, (0, 3)).expect("they are connected");
        assert_eq!(route.hops.len(), 4);
        assert!(route.hops.iter().all(|hop| hop.fraction == 1.0));
        assert_eq!(route.latency.beyond_first_ps(100), 4 * DELAY_PS + 3 * 2000);
        assert_eq!(route.latency.whole_ps(100), 4 * DELAY_PS + 4 * 2000);
    }

    #[test]
    fn packets_that_are_spread_take_an_equal_share_of_every_path() {
        let mut config = clos(2, 4, 2).0;
        for switch in &mut config.switches {
            switch.path_selection = PathSelection::Packet;
        }
        let route = routed(&config, (0, 3)).expect("they are connected");
        assert_eq!(route.hops.len(), 1 + 4 + 4 + 1);
        assert_eq!(route.hops.iter().filter(|hop| hop.fraction == 0.25).count(), 8);
        assert_eq!(route.latency.beyond_first_ps(100), 4 * DELAY_PS + 3 * 2000);
    }

    #[test]
    fn a_destination_without_a_route_is_not_reached() {
        let mut config = star(2).0;
        config.switches[0].routes[1].clear();
        assert_eq!(routed(&config, (0, 1)), None);
    }

    #[test]
    fn a_loop_ends() {
        let mut config = clos(2, 1, 1).0;
        config.switches[2].routes[1] = vec![0];
        assert_eq!(routed(&config, (0, 1)), None);
    }
}
