//! One reliable connection of a device.
#![allow(unsafe_code)]

use super::abi::{
    AddressVector, Capacity, Element, Gid, GlobalRoute, InitialAttributes, QueuePairAttributes,
    QueuePairHandle, RELIABLE_CONNECTION, ReceiveRequest, SIGNALED, SendRequest, access, mask,
    mtu_code, opcode, state,
};
use super::device::{Device, Owned};
use super::discovery::gid_of;
use super::error::VerbsError;
use std::ffi::c_int;
use std::io;
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::ptr::null_mut;

/// Code of 0.64 ms, the wait that a peer is told when no receive is posted. Source: IBTA volume 1,
/// table 45.
const NOT_READY_TIMER: u8 = 12;
/// As the soft endpoint's packets.
const HOP_LIMIT: u8 = 64;
/// Searches for the MAC address of a peer, a second each.
const MAX_TRIES: u32 = 5;

/// How a queue pair is connected.
#[derive(Clone, Copy, Debug)]
pub struct Connect {
    /// The peer's address.
    pub remote_address: Ipv4Addr,
    /// The peer's queue pair.
    pub remote_qp: u32,
    /// First sequence number sent.
    pub send_psn: u32,
    /// First sequence number expected.
    pub receive_psn: u32,
    /// Payload of a packet.
    pub mtu_bytes: u32,
    /// DSCP and ECN codepoint.
    pub traffic_class: u8,
    /// UDP source port, 49152 to 65535.
    pub source_port: u16,
    /// Code of the retransmission timer.
    pub timeout: u8,
    /// Retries after time-outs, at most 7.
    pub retries: u8,
    /// Retries when the peer has no receive posted; 7 is without end.
    pub not_ready_retries: u8,
}

/// A WRITE to post.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// Comes back with its completion.
    pub id: u64,
    /// Where from.
    pub source: u64,
    /// Key of that memory.
    pub local_key: u32,
    /// How much.
    pub length_bytes: u32,
    /// Where to.
    pub target: u64,
    /// Key of the peer's memory.
    pub remote_key: u32,
    /// Immediate data, which takes a posted receive of the peer's.
    pub immediate: Option<u32>,
}

/// An RC queue pair. It is to be dropped before its device.
pub struct QueuePair {
    handle: Owned<QueuePairHandle>,
}

// SAFETY: as for the device.
unsafe impl Send for QueuePair {}

impl QueuePair {
    /// A queue pair that can take receives, for so many sends and receives at a time.
    pub fn new(device: &Device, sends: u32, receives: u32) -> Result<Self, VerbsError> {
        let queue = device.completion_queue();
        let mut wanted = InitialAttributes {
            qp_context: null_mut(),
            send_queue: queue,
            receive_queue: queue,
            shared_receive_queue: null_mut(),
            capacity: Capacity {
                sends,
                receives,
                send_elements: 1,
                receive_elements: 1,
                inline_bytes: 0,
            },
            kind: RELIABLE_CONNECTION,
            signals_all: 0,
        };
        let refused = |error| VerbsError::refused(&device.place().device, "queue pair", &error);
        // SAFETY: domain and queue are the device's; the attributes live during the call.
        let handle = unsafe { (device.library.create_qp)(device.domain.as_ptr(), &mut wanted) };
        let handle = Owned::new(handle, device.library.destroy_qp).map_err(refused)?;
        let own = Self { handle };
        let attributes = QueuePairAttributes {
            state: state::INIT,
            port: device.place().port,
            access: access::REMOTE_WRITE as u32,
            ..blank()
        };
        let given = mask::STATE | mask::PKEY_INDEX | mask::PORT | mask::ACCESS;
        own.modify(device, attributes, given).map_err(refused)?;
        Ok(own)
    }

    /// Its number, the device's choice.
    pub fn number(&self) -> u32 {
        // SAFETY: the queue pair lives.
        unsafe { (*self.handle.as_ptr()).number }
    }

    /// Connect it: it may receive and send from then on.
    pub fn connect(&self, device: &Device, connect: &Connect) -> Result<(), VerbsError> {
        let peer = format!("connection to {}", connect.remote_address);
        let refused = |error| VerbsError::refused(&device.place().device, &peer, &error);
        self.resolve(device, connect).map_err(refused)?;
        self.modify(device, to_send(connect), SEND_MASK).map_err(refused)
    }

    /// Let it receive. The kernel asks the network for the peer's MAC address and gives up after a
    /// second, which is short where a peer has just come up.
    fn resolve(&self, device: &Device, connect: &Connect) -> io::Result<()> {
        let mut tries = 1;
        loop {
            let done = self.modify(device, to_receive(device, connect), RECEIVE_MASK);
            match &done {
                Err(error) if error.kind() == io::ErrorKind::TimedOut && tries < MAX_TRIES => {
                    tries += 1;
                }
                _ => return done,
            }
        }
    }

    /// Send nothing any more, whatever is posted; there is no way back.
    pub fn stop(&self, device: &Device) {
        let attributes = QueuePairAttributes { state: state::ERROR, ..blank() };
        // Only a queue pair that has stopped by itself refuses.
        let _ = self.modify(device, attributes, mask::STATE);
    }

    fn modify(
        &self,
        device: &Device,
        mut attributes: QueuePairAttributes,
        given: c_int,
    ) -> io::Result<()> {
        // SAFETY: the queue pair lives, and so do the attributes during the call.
        let error =
            unsafe { (device.library.modify_qp)(self.handle.as_ptr(), &mut attributes, given) };
        if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
    }

    /// Post a receive without memory: immediate data take it.
    pub fn post_receive(&self, id: u64) -> io::Result<()> {
        let mut request =
            ReceiveRequest { id, next: null_mut(), elements: null_mut(), element_count: 0 };
        let mut refused = null_mut();
        // SAFETY: the queue pair's context has a complete table; the request lives during the call.
        let error = unsafe {
            let post = (*(*self.handle.as_ptr()).context).operations.post_recv;
            post.map_or(libc::EOPNOTSUPP, |post| {
                post(self.handle.as_ptr(), &mut request, &mut refused)
            })
        };
        if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
    }

    /// Post a WRITE; every one makes a completion.
    pub fn post_write(&self, write: &Write) -> io::Result<()> {
        let mut element = Element {
            address: write.source,
            length: write.length_bytes,
            local_key: write.local_key,
        };
        let kind = write.immediate.map_or(opcode::WRITE, |_| opcode::WRITE_WITH_IMMEDIATE);
        let mut request = SendRequest {
            id: write.id,
            next: null_mut(),
            elements: &mut element,
            element_count: c_int::from(write.length_bytes > 0),
            opcode: kind,
            flags: SIGNALED,
            immediate: write.immediate.unwrap_or(0).to_be(),
            remote_address: write.target,
            remote_key: write.remote_key,
            _rest: [0; 19],
        };
        let mut refused = null_mut();
        // SAFETY: the queue pair's context has a complete table; request and element live during the
        // call, and the memory that they name is registered as long as the device is open.
        let error = unsafe {
            let post = (*(*self.handle.as_ptr()).context).operations.post_send;
            post.map_or(libc::EOPNOTSUPP, |post| {
                post(self.handle.as_ptr(), &mut request, &mut refused)
            })
        };
        if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
    }
}

const RECEIVE_MASK: c_int = mask::STATE
    | mask::PATH
    | mask::PATH_MTU
    | mask::DESTINATION_QP
    | mask::RECEIVE_PSN
    | mask::MAX_ANSWERED_READS
    | mask::NOT_READY_TIMER;
const SEND_MASK: c_int = mask::STATE
    | mask::SEND_PSN
    | mask::TIMEOUT
    | mask::RETRIES
    | mask::NOT_READY_RETRIES
    | mask::MAX_READS;

fn blank() -> QueuePairAttributes {
    // SAFETY: zeros are legal values of every field.
    unsafe { zeroed() }
}

fn to_receive(device: &Device, connect: &Connect) -> QueuePairAttributes {
    let place = device.place();
    let route = GlobalRoute {
        destination_gid: Gid(gid_of(connect.remote_address)),
        flow_label: flow_label(connect.source_port),
        source_gid_index: place.gid_index,
        hop_limit: HOP_LIMIT,
        traffic_class: connect.traffic_class,
    };
    QueuePairAttributes {
        state: state::READY_TO_RECEIVE,
        path: AddressVector { route, is_global: 1, port: place.port, ..blank().path },
        path_mtu: mtu_code(connect.mtu_bytes).unwrap_or(0),
        destination_qp: connect.remote_qp,
        receive_psn: connect.receive_psn,
        not_ready_timer: NOT_READY_TIMER,
        ..blank()
    }
}

fn to_send(connect: &Connect) -> QueuePairAttributes {
    QueuePairAttributes {
        state: state::READY_TO_SEND,
        send_psn: connect.send_psn,
        timeout: connect.timeout,
        retries: connect.retries.min(7),
        not_ready_retries: connect.not_ready_retries.min(7),
        ..blank()
    }
}

/// A flow label from which drivers derive the UDP source port; 0 would leave the choice to them.
/// Source: Linux `include/rdma/ib_verbs.h` (`rdma_flow_label_to_udp_sport`): the label's upper six
/// bits are folded on its lower 14, which are those of the port.
pub fn flow_label(source_port: u16) -> u32 {
    match u32::from(source_port & 0x3FFF) {
        0 => 1 << 14 | 1,
        label => label,
    }
}

/// Code of a retransmission timer of at least `timeout_ns`: 4.096 us times two to the code. Source:
/// IBTA volume 1, section 9.9.2.1.1 (local ACK timeout).
pub fn timeout_code(timeout_ns: u64) -> u8 {
    (1..31).find(|&code| 4096u64 << code >= timeout_ns).unwrap_or(31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_port_follows_from_the_flow_label() {
        let port_of = |label: u32| 0xC000 | (label & 0x3FFF ^ label >> 14) as u16;
        for port in [0xC000, 0xC001, 0xD234, 0xFFFF] {
            assert_eq!(port_of(flow_label(port)), port);
            assert_ne!(flow_label(port), 0);
        }
    }

    #[test]
    fn timers_are_rounded_up() {
        assert_eq!(timeout_code(0), 1);
        assert_eq!(timeout_code(8192), 1);
        assert_eq!(timeout_code(8193), 2);
        assert_eq!(timeout_code(1_000_000_000), 18);
        assert_eq!(timeout_code(u64::MAX), 31);
    }
}
