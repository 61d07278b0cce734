//! All NICs of a process that are RDMA devices, and what their peers must know of them.

use super::error::VerbsError;
use super::flow::Target;
use super::nic::{DeviceNic, WriteCounters};
use super::sampler::{Sample, Sampler};
use crate::config::{JobConfig, TransportConfig};
use crate::engine::nic::{DeviceEvent, DeviceRequest, PairPlan};
use crate::io::clock::DilatedClock;
use crate::io::port::{InvariantCrc, PortCapabilities, PortError, PortSpec};
use crate::roce::RemoteMemory;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

/// What peers must know of a NIC whose numbers and memory are the adapter's choice.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceEnd {
    /// Where WRITEs begin.
    pub memory_address: u64,
    /// Key of that memory.
    pub remote_key: u32,
    /// Longest WRITE.
    pub memory_bytes: u64,
    /// By NIC of the other end: numbers of the queue pairs towards it, in the order of the plan.
    pub queue_pairs: BTreeMap<String, Vec<u32>>,
}

impl DeviceEnd {
    /// Its memory as soft endpoints see it.
    pub fn memory(&self) -> RemoteMemory {
        RemoteMemory {
            virtual_address: self.memory_address,
            remote_key: self.remote_key,
            size_bytes: Some(self.memory_bytes.max(1)),
        }
    }

    fn target(&self) -> Target {
        let Self { memory_address: address, remote_key, memory_bytes: write_bytes, .. } = *self;
        Target { address, remote_key, write_bytes }
    }
}

/// Ends by name of the NIC.
pub type DeviceEnds = BTreeMap<String, DeviceEnd>;

struct Entry {
    nic: u32,
    name: String,
    spec: PortSpec,
    device: Option<DeviceNic>,
}

impl Entry {
    fn wrong(&self) -> impl Fn(VerbsError) -> PortError + '_ {
        |error| PortError::Device { address: self.spec.address, error }
    }
}

fn no_namespace() -> VerbsError {
    VerbsError::new(
        "an RDMA device is opened where the agent is, in no other namespace",
        "leave the namespace out, and start the agent inside of it: ip netns exec",
    )
}

/// See the module documentation.
#[derive(Default)]
pub struct Devices {
    entries: Vec<Entry>,
    names: BTreeMap<u32, String>,
    is_connected: bool,
    sampler: Option<Sampler>,
    samples: Vec<Sample>,
}

impl Devices {
    /// Those of the local NICs that `specs` says, by index; none is open yet.
    pub fn new(config: &JobConfig, specs: Vec<(u32, PortSpec)>) -> Self {
        let named = |(nic, spec): (u32, PortSpec)| Entry {
            name: config.nics[nic as usize].name.clone(),
            nic,
            spec,
            device: None,
        };
        let is_connected = specs.is_empty();
        let names = config.nics.iter().map(|nic| (nic.rank, nic.name.clone())).collect();
        let entries = specs.into_iter().map(named).collect();
        Self { entries, names, is_connected, sampler: None, samples: Vec::new() }
    }

    /// Indices of the NICs.
    pub fn nics(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries.iter().map(|entry| entry.nic)
    }

    /// Open every device with the queue pairs of its NIC.
    pub fn open(
        &mut self,
        mtu_bytes: u32,
        mut plans: impl FnMut(u32) -> Vec<PairPlan>,
    ) -> Result<(), PortError> {
        for entry in &mut self.entries {
            if entry.spec.namespace.is_some() {
                return Err(entry.wrong()(no_namespace()));
            }
            let (address, interface) = (entry.spec.address, entry.spec.interface.as_deref());
            let opened = DeviceNic::open(address, interface, mtu_bytes, plans(entry.nic));
            entry.device = Some(opened.map_err(entry.wrong())?);
        }
        Ok(())
    }

    /// What can be waited for.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.entries.iter().filter_map(|entry| entry.device.as_ref()).map(DeviceNic::descriptor)
    }

    /// What peers must know of the devices that are open.
    pub fn ends(&self) -> DeviceEnds {
        let open = self.entries.iter().filter_map(|entry| Some((entry, entry.device.as_ref()?)));
        open.map(|(entry, device)| (entry.name.clone(), self.end(device))).collect()
    }

    fn end(&self, device: &DeviceNic) -> DeviceEnd {
        let target = device.target();
        let numbers = |rank| Some((self.names.get(&rank)?.clone(), device.numbers(rank).collect()));
        DeviceEnd {
            memory_address: target.address,
            remote_key: target.remote_key,
            memory_bytes: target.write_bytes,
            queue_pairs: device.peer_ranks().filter_map(numbers).collect(),
        }
    }

    /// Connect every device, to adapters where `ends` names the peer, else to soft endpoints.
    pub fn connect(
        &mut self,
        transport: &TransportConfig,
        ends: &DeviceEnds,
    ) -> Result<(), PortError> {
        let names = &self.names;
        for entry in &mut self.entries {
            let own = &entry.name;
            let peer = |rank| {
                let end = ends.get(names.get(&rank)?)?;
                let numbers = end.queue_pairs.get(own).map_or(&[][..], Vec::as_slice);
                Some((numbers, end.target()))
            };
            let Some(device) = &mut entry.device else { continue };
            let connected = device.connect(transport, peer);
            connected.map_err(entry.wrong())?;
        }
        self.is_connected = true;
        Ok(())
    }

    /// Every device is open and connected.
    pub fn is_ready(&self) -> bool {
        self.is_connected
    }

    /// Send a message of a NIC.
    pub fn post(&mut self, nic: u32, request: DeviceRequest) {
        let own = self.entries.iter_mut().find(|entry| entry.nic == nic);
        if let Some(device) = own.and_then(|entry| entry.device.as_mut()) {
            device.post(request);
        }
    }

    /// Take what the adapters report: NIC, queue pair, event.
    pub fn poll(&mut self, mut take: impl FnMut(u32, u32, DeviceEvent)) {
        for entry in &mut self.entries {
            if let Some(device) = &mut entry.device {
                device.poll(|pair, event| take(entry.nic, pair, event));
            }
        }
    }

    /// NIC, how its device was opened, and what every device does: it cuts messages into packets,
    /// computes the ICRC, and reads and writes the memory itself. Frames are its own affair.
    pub fn open_devices(&self) -> impl Iterator<Item = (u32, &PortSpec, PortCapabilities)> {
        let open = self.entries.iter().filter_map(|entry| Some((entry, entry.device.as_ref()?)));
        open.map(|(entry, device)| {
            let can = PortCapabilities {
                has_segmentation: true,
                has_zero_copy: true,
                invariant_crc: InvariantCrc::Hardware,
                device: device.place().device.clone(),
                port_rate_bps: device.port_rate_bps(),
                ..PortCapabilities::default()
            };
            (entry.nic, &entry.spec, can)
        })
    }

    /// The run begins: look at the devices' counters from now on.
    pub fn begin(&mut self, clock: DilatedClock) {
        let open = self.entries.iter().filter_map(|e| Some((e.nic, e.device.as_ref()?)));
        let watched = open
            .map(|(nic, device)| (nic, device.place().clone(), device.counters_before().clone()));
        let watched: Vec<_> = watched.collect();
        self.sampler = if watched.is_empty() { None } else { Sampler::start(clock, watched) };
    }

    /// The run is over: send nothing any more, whatever is posted.
    pub fn stop(&mut self) {
        self.entries.iter().filter_map(|entry| entry.device.as_ref()).for_each(DeviceNic::stop);
        self.samples = self.sampler.take().map(Sampler::finish).unwrap_or_default();
    }

    /// What was seen of the devices' counters during the run.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// NIC and what went through it.
    pub fn write_counters(&self) -> Vec<(u32, WriteCounters)> {
        let open = self.entries.iter().filter_map(|e| Some((e.nic, e.device.as_ref()?)));
        open.map(|(nic, device)| (nic, device.write_counters())).collect()
    }

    /// NIC, name of a counter of its device and port, and how much it grew.
    pub fn device_counters(&self) -> Vec<(u32, String, u64)> {
        let open = self.entries.iter().filter_map(|e| Some((e.nic, e.device.as_ref()?)));
        open.flat_map(|(nic, device)| {
            device.device_counters().into_iter().map(move |(name, grown)| (nic, name, grown))
        })
        .collect()
    }
}
