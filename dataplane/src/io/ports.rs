//! The ports of all NICs of a process: the ends of a real network.
//!
//! What leaves a NIC leaves through its port, and what its port receives arrives at the NIC. The
//! switches of the job stand for devices outside, and are nobody's here.

use super::poll::Poll;
use super::port::{
    self, DriverName, Port, PortCapabilities, PortCounters, PortError, PortSpec, Received,
};
use super::verbs::Devices;
use super::wire::{Arrival, WireError};
use crate::config::{JobConfig, NodeId};
use crate::engine::ConfigError;
use crate::engine::nic::PairPlan;
use crate::roce::icrc::IdentificationEffect;
use crate::roce::layout::{BTH_BYTES, HEADERS_BYTES, ICRC_BYTES};
use crate::roce::{DecodeError, Frame, decode, decode_unidentified};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

const NONE: u32 = u32::MAX;
/// Headers behind the base transport header at most: RETH and immediate data.
const MAX_EXTENSION_BYTES: u32 = 16 + 4;
/// IP header to ICRC, without payload, at most.
const MAX_OVERHEAD_BYTES: u32 =
    (HEADERS_BYTES - 14 + BTH_BYTES + ICRC_BYTES) as u32 + MAX_EXTENSION_BYTES;

/// What the port of one NIC counted, beside what its driver did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NicPortCounters {
    /// By the driver.
    pub port: PortCounters,
    /// Frames from elsewhere than a NIC of the job, or for another address.
    pub unexpected_sources: u64,
    /// Frames that were none of RoCEv2.
    pub decode_errors: u64,
    /// Those whose invariant CRC did not fit.
    pub icrc_errors: u64,
}

struct NicPort {
    nic: u32,
    address: u32,
    /// Direction in which frames arrive at the NIC.
    arrives: u32,
    spec: PortSpec,
    port: Option<Box<dyn Port>>,
    is_dirty: bool,
    effect: IdentificationEffect,
    counters: NicPortCounters,
}

/// See the module documentation.
pub struct Ports {
    ports: Vec<NicPort>,
    /// Index of the port that sends each direction; `NONE` for what leaves other processes.
    port_of_direction: Vec<u32>,
    addresses: BTreeSet<u32>,
    /// NICs that are adapters' have no port.
    devices: Devices,
    dirty: Vec<u32>,
    poll: Poll,
    ready: Vec<u32>,
}

impl Ports {
    /// The ports of the NICs that `is_local` accepts, as `specs` says by name; none is open yet.
    pub fn new(
        config: &JobConfig,
        specs: &BTreeMap<String, PortSpec>,
        is_local: impl Fn(NodeId) -> bool,
    ) -> Result<Self, ConfigError> {
        let mut ports = Vec::new();
        let mut devices = Vec::new();
        let mut port_of_direction = vec![NONE; 2 * config.links.len()];
        for (nic, description) in config.nics.iter().enumerate() {
            let nic = nic as u32;
            if !is_local(NodeId::Nic(nic)) {
                continue;
            }
            let wrong = |what: &str| ConfigError::new(format!("{}: {what}", description.name));
            let spec = specs.get(&description.name).ok_or_else(|| wrong("has no port"))?;
            if spec.address != description.address {
                return Err(wrong("its port has another address"));
            }
            if spec.driver == DriverName::Verbs {
                devices.push((nic, spec.clone()));
                continue;
            }
            let sends = departures(config, nic).ok_or_else(|| wrong("has no link"))?;
            port_of_direction[sends as usize] = ports.len() as u32;
            ports.push(NicPort {
                nic,
                address: description.address.into(),
                arrives: sends ^ 1,
                spec: spec.clone(),
                port: None,
                is_dirty: false,
                effect: IdentificationEffect::new(0),
                counters: NicPortCounters::default(),
            });
        }
        let poll = Poll::new().map_err(|error| ConfigError::new(error.to_string()))?;
        let addresses = config.nics.iter().map(|nic| nic.address.into()).collect();
        let (dirty, ready) = (Vec::new(), Vec::new());
        let devices = Devices::new(config, devices);
        Ok(Self { ports, port_of_direction, addresses, devices, dirty, poll, ready })
    }

    /// Open every port for the flows that `flows` names by NIC: source ports and destinations.
    pub fn open(
        &mut self,
        mtu_bytes: u32,
        flows: impl Fn(u32) -> BTreeSet<(u16, u32)>,
    ) -> Result<(), WireError> {
        for (index, nic) in self.ports.iter_mut().enumerate() {
            let flows = flows(nic.nic);
            let ports: BTreeSet<u16> = flows.iter().map(|flow| flow.0).collect();
            let destinations: BTreeSet<u32> = flows.iter().map(|flow| flow.1).collect();
            nic.spec.source_ports = ports.into_iter().collect();
            nic.spec.destinations = destinations.into_iter().map(Into::into).collect();
            nic.spec.ip_packet_bytes = mtu_bytes + MAX_OVERHEAD_BYTES;
            let port = port::open(&nic.spec)?;
            self.poll.add(port.descriptor(), index as u32)?;
            nic.port = Some(port);
        }
        Ok(())
    }

    /// The NICs that are adapters'.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// The NICs that are adapters'.
    pub fn devices_mut(&mut self) -> &mut Devices {
        &mut self.devices
    }

    /// Open the devices with the queue pairs that `plans` names by NIC.
    pub fn open_devices(
        &mut self,
        mtu_bytes: u32,
        plans: impl FnMut(u32) -> Vec<PairPlan>,
    ) -> Result<(), WireError> {
        self.devices.open(mtu_bytes, plans)?;
        for descriptor in self.devices.descriptors() {
            self.poll.add(descriptor, NONE)?;
        }
        Ok(())
    }

    /// Every port is open, and every device is connected.
    pub fn is_open(&self) -> bool {
        self.ports.iter().all(|nic| nic.port.is_some()) && self.devices.is_ready()
    }

    /// Queue a frame that leaves a NIC; [`Ports::flush`] sends it.
    #[inline]
    pub fn push(&mut self, direction: u32, mut frame: Frame) {
        let index = self.port_of_direction[direction as usize];
        let Some(nic) = self.ports.get_mut(index as usize) else { return };
        let Some(port) = &mut nic.port else { return };
        port.push(&mut frame);
        if !nic.is_dirty {
            nic.is_dirty = true;
            self.dirty.push(index);
        }
    }

    /// Send what is queued. True if something is left because a queue of the kernel is full.
    pub fn flush(&mut self) -> bool {
        let ports = &mut self.ports;
        self.dirty.retain(|&index| {
            let nic = &mut ports[index as usize];
            nic.is_dirty = nic.port.as_mut().is_some_and(|port| port.flush());
            nic.is_dirty
        });
        !self.dirty.is_empty()
    }

    /// Take what has arrived, one call's worth of each port; how many frames came.
    pub fn receive(&mut self, mut take: impl FnMut(Arrival)) -> usize {
        self.poll.ready(&mut self.ready);
        let mut count = 0;
        for &index in &self.ready {
            let Some(nic) = self.ports.get_mut(index as usize) else { continue };
            let NicPort { port, counters, effect, address, arrives, .. } = nic;
            let Some(port) = port else { continue };
            let addresses = &self.addresses;
            count += port.receive(&mut |received| {
                let kernel_time = received.kernel_time;
                if let Some(frame) = decode_received(received, effect, counters) {
                    if is_expected(&frame, *address, addresses) {
                        take(Arrival { direction: *arrives, at_ps: None, kernel_time, frame });
                    } else {
                        counters.unexpected_sources += 1;
                    }
                }
            });
        }
        count
    }

    /// Sleep until something arrives, at most `limit_ns`.
    pub fn wait(&self, limit_ns: u64) {
        self.poll.wait(limit_ns);
    }

    /// Frames that arrived by a direction and whose invariant CRC did not fit.
    pub fn icrc_errors(&self, direction: u32) -> u64 {
        let index = self.port_of_direction[(direction ^ 1) as usize];
        self.ports.get(index as usize).map_or(0, |nic| nic.counters.icrc_errors)
    }

    /// Every open port and device: NIC, how it was opened, and what it can do now.
    pub fn open_ports(&self) -> Vec<(u32, &PortSpec, PortCapabilities)> {
        let of_port = |nic: &'_ NicPort| nic.port.as_ref().map(|port| port.capabilities());
        let ports = self.ports.iter().filter_map(|nic| Some((nic, of_port(nic)?)));
        let ports = ports.map(|(nic, can)| (nic.nic, &nic.spec, can));
        ports.chain(self.devices.open_devices()).collect()
    }

    /// NIC, driver and counters of every port.
    pub fn counters(&self) -> Vec<(u32, DriverName, NicPortCounters)> {
        let of_port = |nic: &NicPort| {
            let port = nic.port.as_ref().map_or_else(PortCounters::default, |p| p.counters());
            (nic.nic, nic.spec.driver, NicPortCounters { port, ..nic.counters })
        };
        self.ports.iter().map(of_port).collect()
    }
}

/// The direction that leaves a NIC.
fn departures(config: &JobConfig, nic: u32) -> Option<u32> {
    let own = NodeId::Nic(nic);
    let link = config.links.iter().position(|link| link.a.node == own || link.b.node == own)?;
    Some(2 * link as u32 + u32::from(config.links[link].a.node != own))
}

fn decode_received(
    received: Received<'_>,
    effect: &mut IdentificationEffect,
    counters: &mut NicPortCounters,
) -> Option<Frame> {
    let decoded = match received.is_identified {
        true => decode(received.bytes),
        false => decode_unidentified(received.bytes, effect),
    };
    match decoded {
        Ok(frame) => return Some(frame),
        Err(DecodeError::Icrc { .. }) => counters.icrc_errors += 1,
        Err(_) => {}
    }
    counters.decode_errors += 1;
    None
}

fn is_expected(frame: &Frame, address: u32, addresses: &BTreeSet<u32>) -> bool {
    matches!(frame, Frame::Roce(packet)
        if packet.destination_address == address && addresses.contains(&packet.source_address))
}

impl From<PortError> for WireError {
    fn from(error: PortError) -> Self {
        WireError::Port(Box::new(error))
    }
}

impl From<PortError> for io::Error {
    fn from(error: PortError) -> Self {
        io::Error::other(error)
    }
}
