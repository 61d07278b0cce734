//! Hosts and switches from a job's configuration and programs.

use super::connections::{Connection, Numbering, plan_connections};
use super::error::ConfigError;
use super::executor::Executor;
use super::host::Host;
use super::nic::Nic;
use super::program::Program;
use super::topology::Topology;
use crate::config::JobConfig;
use crate::fabric::{Addresses, PortLink, Switch};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What all hosts of a job have in common.
pub(super) struct HostBuilder<'a> {
    config: &'a JobConfig,
    topology: &'a Topology,
    addresses: BTreeMap<u32, u32>,
    /// By rank, in the order of the plan.
    connections: BTreeMap<u32, Vec<Connection>>,
}

impl<'a> HostBuilder<'a> {
    pub fn new(
        config: &'a JobConfig,
        topology: &'a Topology,
        programs: &[Arc<Program>],
    ) -> Result<Self, ConfigError> {
        let addresses = config.nics.iter().map(|nic| (nic.rank, u32::from(nic.address))).collect();
        let numbering = Numbering {
            seed: config.seed,
            qps_per_peer: config.transport.qps_per_peer,
            classes: config.data_classes() as u32,
            nic_of_rank: &topology.nic_of_rank,
        };
        let mut connections: BTreeMap<u32, Vec<Connection>> = BTreeMap::new();
        for connection in plan_connections(&numbering, programs)? {
            connections.entry(connection.source_rank).or_default().push(connection);
            connections.entry(connection.destination_rank).or_default().push(connection);
        }
        Ok(Self { config, topology, addresses, connections })
    }

    pub fn nic_of(&self, rank: u32) -> Result<u32, ConfigError> {
        let nic = self.topology.nic_of_rank.get(&rank).copied();
        nic.ok_or_else(|| ConfigError::new(format!("rank {rank} has a program and no NIC")))
    }

    pub fn build(&self, program: &Arc<Program>) -> Result<Host, ConfigError> {
        let rank = program.rank;
        let nic = self.nic_of(rank)? as usize;
        let Some(egress) = self.topology.nic_egress[nic] else {
            let name = &self.config.nics[nic].name;
            return Err(ConfigError::new(format!("{name}: the NIC has no link")));
        };
        let rate_bps = self.topology.directions[egress as usize].rate_bps;
        let connections = self.connections.get(&rank).map_or(&[][..], Vec::as_slice);
        let nic = Nic::new(self.config, &self.addresses, rank, rate_bps, connections);
        let clear_to_send = self.config.transport.clear_to_send;
        let executor = Executor::new(program.clone()).with_clear_to_send(clear_to_send);
        Ok(Host::new(executor, nic))
    }
}

pub(super) fn build_switch(
    config: &JobConfig,
    topology: &Topology,
    index: usize,
    addresses: &Arc<Addresses>,
) -> Switch {
    let links: Vec<PortLink> = topology.switch_egress[index]
        .iter()
        .map(|direction| match direction {
            Some(direction) => {
                let direction = topology.directions[*direction as usize];
                PortLink { rate_bps: direction.rate_bps, delay_ps: direction.delay_ps }
            }
            None => PortLink { rate_bps: 0, delay_ps: 0 },
        })
        .collect();
    Switch::with_addresses(config, index, &links, addresses.clone())
}
