//! What carries the frames of a process under the wall clock: wires of an emulated fabric, or the
//! ports of a real network.

use super::clock::DilatedClock;
use super::ports::Ports;
use super::wire::{Arrival, Wires};
use crate::engine::nic::{DeviceEvent, DeviceRequest};
use crate::engine::world::Medium;
use crate::roce::Frame;

/// See the module documentation.
pub enum Carrier {
    /// Every link is a wire.
    Wires(Wires),
    /// Every NIC has a port.
    Ports(Ports),
}

impl Carrier {
    /// Everything is open that is needed for the start.
    pub fn is_ready(&self) -> bool {
        match self {
            Carrier::Wires(wires) => wires.is_connected(),
            Carrier::Ports(ports) => ports.is_open(),
        }
    }

    /// Send what is queued; see [`Wires::flush`].
    pub fn flush(&mut self) -> bool {
        match self {
            Carrier::Wires(wires) => wires.flush(),
            Carrier::Ports(ports) => ports.flush(),
        }
    }

    /// Take what has arrived; see [`Wires::receive`].
    pub fn receive(&mut self, take: impl FnMut(Arrival)) -> usize {
        match self {
            Carrier::Wires(wires) => wires.receive(take),
            Carrier::Ports(ports) => ports.receive(take),
        }
    }

    /// Take what adapters report: NIC, queue pair, event.
    pub fn poll_devices(&mut self, take: impl FnMut(u32, u32, DeviceEvent)) {
        if let Carrier::Ports(ports) = self {
            ports.devices_mut().poll(take);
        }
    }

    /// The loop begins.
    pub fn begin(&mut self, clock: DilatedClock) {
        if let Carrier::Ports(ports) = self {
            ports.devices_mut().begin(clock);
        }
    }

    /// The loop has ended: adapters send nothing any more either.
    pub fn stop(&mut self) {
        if let Carrier::Ports(ports) = self {
            ports.devices_mut().stop();
        }
    }

    /// Sleep until something arrives, at most `limit_ns`.
    pub fn wait(&self, limit_ns: u64) {
        match self {
            Carrier::Wires(wires) => wires.wait(limit_ns),
            Carrier::Ports(ports) => ports.wait(limit_ns),
        }
    }
}

impl Medium for Carrier {
    #[inline]
    fn takes_ahead(&self) -> bool {
        matches!(self, Carrier::Wires(_))
    }

    #[inline]
    fn carry(&mut self, at_ps: u64, direction: u32, frame: Frame) -> Option<Frame> {
        match self {
            Carrier::Wires(wires) => wires.push(at_ps, direction, &frame),
            Carrier::Ports(ports) => ports.push(direction, frame),
        }
        None
    }

    fn post(&mut self, nic: u32, request: DeviceRequest) {
        if let Carrier::Ports(ports) = self {
            ports.devices_mut().post(nic, request);
        }
    }

    fn icrc_errors(&self, direction: u32) -> u64 {
        match self {
            Carrier::Wires(wires) => wires.counters_of_arrivals(direction).icrc_errors,
            Carrier::Ports(ports) => ports.icrc_errors(direction),
        }
    }
}
