//! NICs of a world whose messages an adapter carries.

use super::error::ConfigError;
use super::medium::Medium;
use super::nic::DeviceEvent;
use super::world::{Event, World};
use crate::roce::RemoteMemory;

impl<M: Medium> World<M> {
    /// From now on an adapter carries the messages of a NIC; to be called before the start.
    pub fn offload(&mut self, nic: u32) {
        if let Some(host) = self.hosts.get_mut(nic as usize).and_then(Option::as_mut) {
            host.nic_mut().offload();
        }
    }

    /// The queue pairs of `peer` towards `nic` are an adapter's: their numbers in the order of the
    /// plan, and its memory. Without effect if `nic` is not here, or an adapter's itself.
    pub fn set_peer_device(
        &mut self,
        nic: u32,
        peer: u32,
        numbers: &[u32],
        memory: RemoteMemory,
    ) -> Result<(), ConfigError> {
        let rank = self.config.nics[peer as usize].rank;
        let Some(host) = &mut self.hosts[nic as usize] else { return Ok(()) };
        let nic = host.nic_mut();
        if nic.is_offloaded() || nic.set_peer_device(rank, numbers, memory) {
            return Ok(());
        }
        let name = &self.config.nics[peer as usize].name;
        Err(ConfigError::new(format!(
            "{name}: {} queue pairs are not those planned",
            numbers.len()
        )))
    }

    /// An adapter has reported something of a NIC's queue pair, which is an event of this moment.
    pub fn inject_device_event(&mut self, now_ps: u64, nic: u32, pair: u32, event: DeviceEvent) {
        self.device_events.push_back((nic, pair, event));
        self.events.push(now_ps.max(self.now_ps), Event::Device);
    }

    /// Handle the oldest report.
    #[cold]
    pub(super) fn handle_device_event(&mut self) {
        let Some((nic, pair, event)) = self.device_events.pop_front() else { return };
        if let Some(host) = &mut self.hosts[nic as usize] {
            host.handle_device_event(self.now_ps, pair, event, &mut self.host_outputs);
            self.after_host(nic);
        }
    }
}
