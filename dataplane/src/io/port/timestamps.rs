//! Where the time of an arrival is taken, and times of adapters.
//!
//! The kernel takes the time of every packet that a socket asks it for. An adapter that takes times
//! of its own has a clock of its own; [`AdapterClock`] brings its times to the kernel's.
#![allow(unsafe_code)]

use super::interface::{self, Interface};
use crate::io::clock::KernelTime;
use crate::io::receive_call::Times;
use crate::io::socket;
use std::io;
use std::mem::zeroed;
use std::os::fd::AsFd;

/// Where the time of an arrival is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timestamps {
    /// Nowhere.
    #[default]
    None,
    /// In the kernel's receive path.
    Kernel,
    /// In the adapter.
    Hardware,
}

impl Timestamps {
    /// As in records.
    pub fn name(self) -> &'static str {
        match self {
            Timestamps::None => "none",
            Timestamps::Kernel => "kernel",
            Timestamps::Hardware => "hardware",
        }
    }
}

/// Source: Linux `include/uapi/linux/net_tstamp.h`.
const RX_HARDWARE: u32 = 1 << 2;
const RAW_HARDWARE: u32 = 1 << 6;
const FILTER_ALL: libc::c_int = 1;
/// Source: Linux `include/uapi/linux/ethtool.h`.
const GET_TIMESTAMP_INFO: u32 = 0x41;
/// Source: Linux `include/uapi/linux/sockios.h`.
const SIOCGHWTSTAMP: libc::Ioctl = 0x89B1;

/// Source: `struct ethtool_ts_info`.
#[repr(C)]
struct TimestampInfo {
    command: u32,
    kinds: u32,
    clock: i32,
    transmit: [u32; 4],
    receive_filters: u32,
    reserved: [u32; 3],
}

/// Source: `struct hwtstamp_config`.
#[repr(C)]
struct AdapterSetting {
    flags: libc::c_int,
    transmit: libc::c_int,
    receive_filter: libc::c_int,
}

/// The kind of times that the packets of an interface have.
///
/// An adapter counts if it can take the time of every packet and was told to: that is a setting of
/// the whole interface, which a port leaves alone.
pub fn of_interface(interface: &Interface) -> Timestamps {
    let offered = adapter_offers(interface).unwrap_or(false);
    match offered && is_switched_on(interface).unwrap_or(false) {
        true => Timestamps::Hardware,
        false => Timestamps::Kernel,
    }
}

fn adapter_offers(interface: &Interface) -> io::Result<bool> {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut info: TimestampInfo = unsafe { zeroed() };
    info.command = GET_TIMESTAMP_INFO;
    interface::request(interface, libc::SIOCETHTOOL, &mut info)?;
    let wanted = RX_HARDWARE | RAW_HARDWARE;
    Ok(info.kinds & wanted == wanted)
}

fn is_switched_on(interface: &Interface) -> io::Result<bool> {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut setting: AdapterSetting = unsafe { zeroed() };
    interface::request(interface, SIOCGHWTSTAMP, &mut setting)?;
    Ok(setting.receive_filter == FILTER_ALL)
}

/// Let a socket tell the adapter's times beside the kernel's.
pub fn tell_adapter_times(socket: impl AsFd) -> io::Result<()> {
    let kinds = (RX_HARDWARE | RAW_HARDWARE) as libc::c_int;
    socket::set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, kinds)
}

/// Length of the window of [`AdapterClock`], twice of which is looked back: at 100 ppm between the
/// clocks that makes 20 us.
const WINDOW_NS: u64 = 100_000_000;

/// Brings an adapter's times to the kernel's clock, by the packets that have both.
///
/// The kernel sees a packet after the adapter, sooner or later. The shortest lead of late is taken
/// for the difference of the clocks, so that what is left of the kernel's path is a constant: the
/// shortest time that a packet takes through it.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdapterClock {
    window_from_ns: u64,
    /// Least difference, kernel less adapter, of this window and of the one before.
    least_ns: [Option<i64>; 2],
}

impl AdapterClock {
    /// The kernel's clock when the adapter had a packet; not later than the kernel had it.
    pub fn kernel_ns(&mut self, adapter_ns: u64, kernel_ns: u64) -> u64 {
        if kernel_ns.abs_diff(self.window_from_ns) >= WINDOW_NS {
            self.window_from_ns = kernel_ns;
            self.least_ns = [None, self.least_ns[0]];
        }
        let difference_ns = kernel_ns.wrapping_sub(adapter_ns) as i64;
        let [this, last] = &mut self.least_ns;
        let least_ns = this.map_or(difference_ns, |known| known.min(difference_ns));
        *this = Some(least_ns);
        let least_ns = last.map_or(least_ns, |known| known.min(least_ns));
        adapter_ns.wrapping_add(least_ns as u64)
    }

    /// When a packet came, by the kernel's clock.
    pub fn kernel_time(&mut self, times: Times) -> Option<KernelTime> {
        let realtime_ns = times.realtime_ns?;
        let adapters = times.adapter_ns.map(|ns| self.kernel_ns(ns, realtime_ns));
        Some(KernelTime::Realtime(adapters.unwrap_or(realtime_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD_NS: u64 = 37_000_000_000;

    #[test]
    fn what_the_kernel_took_longer_for_is_taken_off() {
        let mut clock = AdapterClock::default();
        let delays_ns = [9_000, 3_000, 250_000, 4_000];
        let times: Vec<u64> = (0..4).map(|n| 1_000_000_000 + n * 50_000).collect();
        let brought: Vec<u64> = times
            .iter()
            .zip(delays_ns)
            .map(|(&ns, delay_ns)| clock.kernel_ns(ns + AHEAD_NS, ns + delay_ns))
            .collect();
        // From the second on the shortest delay is known.
        assert_eq!(brought[1..], times[1..].iter().map(|ns| ns + 3_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_clock_that_was_set_is_followed_after_two_windows() {
        let mut clock = AdapterClock::default();
        clock.kernel_ns(0, 1_000_000);
        let set_ns = 5_000_000_000;
        for adapter_ns in (1..=2).map(|n| n * WINDOW_NS) {
            clock.kernel_ns(adapter_ns, adapter_ns + set_ns);
        }
        let adapter_ns = 3 * WINDOW_NS;
        assert_eq!(clock.kernel_ns(adapter_ns, adapter_ns + set_ns), adapter_ns + set_ns);
    }

    #[test]
    fn a_time_is_never_later_than_the_kernels() {
        let mut clock = AdapterClock::default();
        for (adapter_ns, kernel_ns) in [(10, 2_000), (700, 1_990), (1_500, 3_000)] {
            assert!(clock.kernel_ns(adapter_ns, kernel_ns) <= kernel_ns);
        }
    }

    #[test]
    fn loopback_has_the_kernels_times() {
        let spec = super::super::PortSpec {
            address: std::net::Ipv4Addr::LOCALHOST,
            ..serde_json::from_str(r#"{"driver": "udp", "address": "127.0.0.1"}"#).expect("a port")
        };
        let loopback = interface::of_port(&spec).expect("loopback is up");
        assert_eq!(of_interface(&loopback), Timestamps::Kernel);
    }
}
