//! What a device and its port can do, and whether that is enough.
#![allow(unsafe_code)]

use super::abi::{Context, DeviceAttributes, PORT_ACTIVE, PortAttributes, mtu_bytes_of};
use super::discovery::Place;
use super::error::VerbsError;
use super::library::Library;
use std::ffi::c_int;
use std::io;
use std::mem::zeroed;

/// Longest WRITE; longer messages are several. A power of two, so that it holds whole packets of any
/// path MTU; small enough for the usual limit of locked memory (8 MiB), large enough that a WRITE
/// takes 40 us at 400 Gb/s.
pub const MAX_WRITE_BYTES: u64 = 2 << 20;
/// Requests that one queue of a queue pair holds, unless the device holds fewer.
pub const DEPTH: u32 = 64;
/// What a device and its port can do, as they said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Queue pairs.
    pub queue_pairs: u32,
    /// Requests that wait in one queue of a queue pair.
    pub requests: u32,
    /// Completions that wait in one queue.
    pub completions: u32,
    /// Path MTU of the port.
    pub mtu_bytes: u32,
    /// Longest message.
    pub message_bytes: u32,
}

/// What a device is opened for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// Queue pairs.
    pub queue_pairs: u32,
    /// Payload of a packet.
    pub mtu_bytes: u32,
}

/// Requests per queue, so many that the completions of all find room.
pub fn depth(limits: &Limits, needs: Needs) -> u32 {
    let share = limits.completions / (2 * needs.queue_pairs.max(1));
    DEPTH.min(share).min(limits.requests).max(1)
}

/// Longest WRITE of a device.
pub fn write_bytes(limits: &Limits) -> u64 {
    let message_bytes = u64::from(limits.message_bytes.max(1));
    MAX_WRITE_BYTES.min(1 << message_bytes.ilog2())
}

/// Ask an open device.
pub fn probe(
    library: &Library,
    context: *mut Context,
    place: &Place,
) -> Result<Limits, VerbsError> {
    // SAFETY: the context is open, zeros are legal values of both structures, and the calls fill them.
    let (device, port, failures) = unsafe {
        let (mut device, mut port): (DeviceAttributes, PortAttributes) = (zeroed(), zeroed());
        let failures = [
            (library.query_device)(context, &mut device),
            (library.query_port)(context, place.port, &mut port),
        ];
        (device, port, failures)
    };
    if let Some(&error) = failures.iter().find(|&&error| error != 0) {
        let error = io::Error::from_raw_os_error(error);
        return Err(VerbsError::refused(&place.device, "its limits", &error));
    }
    if port.state != PORT_ACTIVE {
        return Err(VerbsError::new(
            format!("{}: port {} is not active", place.device, place.port),
            format!("bring its link up: ip link set {} up", place.interface),
        ));
    }
    let positive = |value: c_int| u32::try_from(value).unwrap_or(0);
    Ok(Limits {
        queue_pairs: positive(device.max_qp),
        requests: positive(device.max_qp_wr),
        completions: positive(device.max_cqe),
        mtu_bytes: mtu_bytes_of(port.active_mtu),
        message_bytes: port.max_message_bytes,
    })
}

/// Whether a job may use it.
pub fn check(place: &Place, limits: &Limits, needs: Needs) -> Result<(), VerbsError> {
    let Place { device, interface, .. } = place;
    if limits.mtu_bytes < needs.mtu_bytes {
        let (active, needed) = (limits.mtu_bytes, needs.mtu_bytes);
        return Err(VerbsError::new(
            format!("{device}: the path MTU of its port is {active} bytes, {needed} are needed"),
            format!(
                "raise the MTU of the interface (ip link set {interface} mtu {}), or choose a smaller \
                 transport.mtu_bytes",
                needed + 104
            ),
        ));
    }
    if limits.queue_pairs < needs.queue_pairs {
        return Err(VerbsError::new(
            format!(
                "{device}: has {} queue pairs, {} are needed",
                limits.queue_pairs, needs.queue_pairs
            ),
            "lower transport.qps_per_peer",
        ));
    }
    if limits.completions / 2 < needs.queue_pairs {
        return Err(VerbsError::new(
            format!(
                "{device}: a completion queue holds {}, too few for {} queue pairs",
                limits.completions, needs.queue_pairs
            ),
            "lower transport.qps_per_peer",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        queue_pairs: 100,
        requests: 64,
        completions: 4096,
        mtu_bytes: 1024,
        message_bytes: 1 << 30,
    };

    fn refusal(needs: Needs) -> String {
        let place =
            Place { device: "rxe0".into(), port: 1, gid_index: 1, interface: "eth0".into() };
        check(&place, &LIMITS, needs).expect_err("too much").to_string()
    }

    #[test]
    fn what_a_device_lacks_is_named_with_a_remedy() {
        let mtu = refusal(Needs { queue_pairs: 1, mtu_bytes: 4096 });
        assert!(mtu.contains("is 1024 bytes, 4096 are needed"), "{mtu}");
        assert!(mtu.contains("ip link set eth0 mtu 4200"), "{mtu}");
        let pairs = refusal(Needs { queue_pairs: 101, mtu_bytes: 1024 });
        assert!(pairs.contains("has 100 queue pairs, 101 are needed"), "{pairs}");
    }

    #[test]
    fn queues_are_as_deep_as_their_completions_find_room() {
        let of = |queue_pairs| depth(&LIMITS, Needs { queue_pairs, mtu_bytes: 1024 });
        assert_eq!([1, 32, 33, 100].map(of), [64, 64, 62, 20]);
        let few = Limits { requests: 16, ..LIMITS };
        assert_eq!(depth(&few, Needs { queue_pairs: 1, mtu_bytes: 1024 }), 16);
    }

    #[test]
    fn writes_are_as_long_as_the_device_allows() {
        assert_eq!(write_bytes(&LIMITS), MAX_WRITE_BYTES);
        assert_eq!(write_bytes(&Limits { message_bytes: 0x10_0001, ..LIMITS }), 1 << 20);
    }
}
