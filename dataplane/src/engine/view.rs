//! What a world tells of itself.

use super::flow_links::FlowLinks;
use super::host::Host;
use super::line::Line;
use super::link_events::LinkEvents;
use super::medium::Medium;
use super::telemetry::Telemetry;
use super::topology::Topology;
use super::world::World;
use crate::config::JobConfig;
use crate::fabric::Switch;

impl<M: Medium> World<M> {
    /// Every operation of every local rank is complete.
    pub fn is_done(&self) -> bool {
        self.ops_done == self.ops_total
    }

    /// The clock.
    pub fn now_ps(&self) -> u64 {
        self.now_ps
    }

    /// Events handled.
    pub fn events_handled(&self) -> u64 {
        self.events_handled
    }

    /// Frames handed to a node at the end of a link.
    pub fn frames_delivered(&self) -> u64 {
        self.frames_delivered
    }

    /// RoCE payload that has come to the NICs so far, repetitions included; cheap to ask for.
    pub fn bytes_arrived(&self) -> u64 {
        self.bytes_arrived
    }

    /// Operations of the local ranks that are complete.
    pub fn ops_done(&self) -> usize {
        self.ops_done
    }

    /// Operations of the local ranks.
    pub fn ops_total(&self) -> usize {
        self.ops_total
    }

    /// The job.
    pub fn config(&self) -> &JobConfig {
        &self.config
    }

    /// Links and ports.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Local hosts.
    pub fn hosts(&self) -> impl Iterator<Item = (u32, &Host)> {
        let indexed = self.hosts.iter().enumerate();
        indexed.filter_map(|(index, host)| Some((index as u32, host.as_deref()?)))
    }

    /// Local switches.
    pub fn switches(&self) -> impl Iterator<Item = (u32, &Switch)> {
        let indexed = self.switches.iter().enumerate();
        indexed.filter_map(|(index, switch)| Some((index as u32, switch.as_deref()?)))
    }

    /// The host of a NIC, if it is local.
    pub fn host(&self, nic: u32) -> Option<&Host> {
        self.hosts[nic as usize].as_deref()
    }

    /// A switch, if it is local.
    pub fn switch(&self, switch: u32) -> Option<&Switch> {
        self.switches[switch as usize].as_deref()
    }

    /// One line per direction.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// What has happened to links; `None` if nothing was to happen.
    pub fn link_events(&self) -> Option<&LinkEvents> {
        self.link_events.as_deref()
    }

    /// Time series.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// Which flows crossed which directions.
    pub fn flow_links(&self) -> &FlowLinks {
        &self.flow_links
    }

    /// The medium.
    pub fn medium_mut(&mut self) -> &mut M {
        &mut self.medium
    }

    /// The medium.
    pub fn medium(&self) -> &M {
        &self.medium
    }
}
