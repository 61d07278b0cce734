//! Hosts and switches from a job's configuration and programs.

use super::connections::{Connection, Numbering, plan_connections};
use super::error::ConfigError;
use super::executor::Executor;
use super::host::Host;
use super::nic::Nic;
use super::program::Program;
use super::topology::Topology;
use crate::config::{JobConfig, NodeId};
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

    /// By NIC: its host, if it is local and its rank has a program.
    pub fn build_local(
        &self,
        programs: &[Arc<Program>],
        is_local: impl Fn(NodeId) -> bool,
    ) -> Result<Vec<Option<Box<Host>>>, ConfigError> {
        let mut hosts: Vec<Option<Box<Host>>> = self.config.nics.iter().map(|_| None).collect();
        for program in programs {
            let nic = self.topology.nic_of(program.rank)?;
            if is_local(NodeId::Nic(nic)) {
                hosts[nic as usize] = Some(Box::new(self.build(program)?));
            }
        }
        Ok(hosts)
    }

    fn build(&self, program: &Arc<Program>) -> Result<Host, ConfigError> {
        let rank = program.rank;
        let nic = self.topology.nic_of(rank)? as usize;
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

/// The switches of a job; `None` for those that are not local.
pub(super) fn build_switches(
    config: &JobConfig,
    topology: &Topology,
    is_local: impl Fn(NodeId) -> bool,
) -> Vec<Option<Box<Switch>>> {
    let addresses = Arc::new(Addresses::new(&config.nics));
    let build = |index| Box::new(build_switch(config, topology, index, &addresses));
    (0..config.switches.len())
        .map(|index| is_local(NodeId::Switch(index as u32)).then(|| build(index)))
        .collect()
}

fn build_switch(
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
