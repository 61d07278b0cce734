//! Which ways are left when links are down.
//!
//! A way is left if its links are: routes only ever shrink to a part of the equal-cost ports that the
//! job gives. No switch takes a detour of more hops. Source: the usual practice of BGP in a Clos, where
//! a withdrawn prefix leaves the ECMP group and valley paths are not used (RFC 7938, sections 5 and 6).

use super::link_events::LinkEvents;
use super::topology::Topology;
use crate::config::{JobConfig, NodeId};

/// Whether a switch has a way to a NIC over links that are not `down`.
#[derive(Clone, Debug)]
pub(crate) struct Ways {
    /// By switch and NIC.
    leads: Vec<Vec<bool>>,
}

/// What is known of a switch while ways to one NIC are searched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    /// Looked at; if it is met again, the routes form a loop and lead nowhere.
    NoWay,
    Way,
}

impl Ways {
    pub fn new(config: &JobConfig, topology: &Topology, down: &[bool]) -> Self {
        let switches = config.switches.len();
        let mut leads = vec![vec![false; config.nics.len()]; switches];
        for nic in 0..config.nics.len() {
            let mut known = vec![Known::Nothing; switches];
            for (switch, leads) in leads.iter_mut().enumerate() {
                leads[nic] = search(config, topology, down, (switch, nic), &mut known);
            }
        }
        Self { leads }
    }

    /// The node at the end of a port of a switch has a way to a NIC.
    pub fn leads(&self, topology: &Topology, (switch, port): (usize, u16), nic: usize) -> bool {
        let Some(direction) = topology.switch_egress[switch][usize::from(port)] else {
            return false;
        };
        match topology.directions[direction as usize].to.node {
            NodeId::Nic(_) => true,
            NodeId::Switch(next) => self.leads[next as usize][nic],
        }
    }

    /// A switch has a way to a NIC.
    pub fn has_way(&self, switch: u32, nic: u32) -> bool {
        self.leads[switch as usize][nic as usize]
    }
}

/// Whether a switch sends packets to a NIC from a port, as far as it knows.
pub(crate) fn is_usable(
    topology: &Topology,
    events: &LinkEvents,
    ways: &Ways,
    (switch, port): (usize, u16),
    nic: usize,
) -> bool {
    let link = topology.switch_egress[switch][usize::from(port)].map(|direction| direction / 2);
    link.is_some_and(|link| !events.avoided[link as usize])
        && ways.leads(topology, (switch, port), nic)
}

fn search(
    config: &JobConfig,
    topology: &Topology,
    down: &[bool],
    (switch, nic): (usize, usize),
    known: &mut [Known],
) -> bool {
    if known[switch] != Known::Nothing {
        return known[switch] == Known::Way;
    }
    known[switch] = Known::NoWay;
    for port in &config.switches[switch].routes[nic] {
        let Some(direction) = topology.switch_egress[switch][usize::from(*port)] else { continue };
        if down[direction as usize / 2] {
            continue;
        }
        let leads = match topology.directions[direction as usize].to.node {
            NodeId::Nic(_) => true,
            NodeId::Switch(next) => search(config, topology, down, (next as usize, nic), known),
        };
        if leads {
            known[switch] = Known::Way;
            return true;
        }
    }
    false
}
