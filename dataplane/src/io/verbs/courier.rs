//! Payloads over one connection of an RDMA device, for tools and tests: each is an RDMA WRITE of at
//! most one packet with immediate data.
//!
//! The payload lies in a slot of the memory, the next one for each; a slot is free again when the
//! WRITE is acknowledged, and at the peer when the payload has been copied out and its receive is
//! posted again.

use super::abi::{WorkCompletion, status};
use super::device::{BATCH, Device};
use super::error::VerbsError;
use super::limits::{DEPTH, Needs};
use super::nic::reason;
use super::queue_pair::{Connect, QueuePair, Write, timeout_code};
use crate::roce::queue_pair::FailureReason;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Payloads under way.
const SLOTS: u32 = DEPTH;
/// Longest payload: one packet, so that it is not written while no receive is posted.
pub const MAX_PAYLOAD_BYTES: usize = 4096;
/// Payloads that may wait for the caller.
const MAX_WAITING: usize = 256;
const IS_RECEIVE: u64 = 1 << 63;
const TIMEOUT_NS: u64 = 500_000_000;
/// DSCP 26 with ECT(0), as data have it by default.
const TRAFFIC_CLASS: u8 = 26 << 2 | 2;

/// What the other end must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CourierEnd {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its queue pair.
    pub qp: u32,
    /// Where its slots begin.
    pub memory_address: u64,
    /// Their key.
    pub remote_key: u32,
}

/// See the module documentation.
pub struct Courier {
    queue_pair: QueuePair,
    device: Device,
    address: Ipv4Addr,
    mtu_bytes: u32,
    peer: Option<CourierEnd>,
    sent: u64,
    completed: u64,
    received: u64,
    waiting: VecDeque<(Vec<u8>, u32)>,
    /// Status of the completion that ended the connection.
    failure: Option<u32>,
}

impl Courier {
    /// Open the device that has an address.
    pub fn open(
        address: Ipv4Addr,
        interface: Option<&str>,
        mtu_bytes: u32,
    ) -> Result<Self, VerbsError> {
        let device = Device::open(address, interface, Needs { queue_pairs: 1, mtu_bytes })?;
        let queue_pair = QueuePair::new(&device, device.depth(), device.depth())?;
        for _ in 0..device.depth() {
            let refused = |error| VerbsError::refused(&device.place().device, "receive", &error);
            queue_pair.post_receive(IS_RECEIVE).map_err(refused)?;
        }
        Ok(Self {
            queue_pair,
            device,
            address,
            mtu_bytes,
            peer: None,
            sent: 0,
            completed: 0,
            received: 0,
            waiting: VecDeque::new(),
            failure: None,
        })
    }

    /// What the other end must know.
    pub fn local(&self) -> CourierEnd {
        CourierEnd {
            address: self.address,
            qp: self.queue_pair.number(),
            memory_address: self.device.memory().target(),
            remote_key: self.device.keys().1,
        }
    }

    /// Connect with the other end.
    pub fn connect(&mut self, peer: CourierEnd) -> Result<(), VerbsError> {
        let connect = Connect {
            remote_address: peer.address,
            remote_qp: peer.qp,
            send_psn: 0,
            receive_psn: 0,
            mtu_bytes: self.mtu_bytes,
            traffic_class: TRAFFIC_CLASS,
            source_port: 0xC000,
            timeout: timeout_code(TIMEOUT_NS),
            retries: 7,
            not_ready_retries: 7,
        };
        self.queue_pair.connect(&self.device, &connect)?;
        self.peer = Some(peer);
        Ok(())
    }

    /// Send a payload of at most [`MAX_PAYLOAD_BYTES`] and of a packet; false if no slot is free, or the
    /// connection has ended.
    pub fn send(&mut self, payload: &[u8], immediate: u32) -> bool {
        self.poll();
        let Some(peer) = self.peer.filter(|_| payload.len() <= self.max_payload_bytes()) else {
            return false;
        };
        let are_all_taken = self.sent - self.completed >= u64::from(self.device.depth());
        if self.failure.is_some() || are_all_taken {
            return false;
        }
        let offset = offset(self.sent);
        self.device.memory().put(offset, payload);
        let write = Write {
            id: 0,
            source: self.device.memory().source() + offset as u64,
            local_key: self.device.keys().0,
            length_bytes: payload.len() as u32,
            target: peer.memory_address.wrapping_add(offset as u64),
            remote_key: peer.remote_key,
            immediate: Some(immediate),
        };
        let posted = self.queue_pair.post_write(&write).is_ok();
        self.sent += u64::from(posted);
        posted
    }

    /// Longest payload.
    pub fn max_payload_bytes(&self) -> usize {
        MAX_PAYLOAD_BYTES.min(self.mtu_bytes as usize)
    }

    /// The oldest payload that has arrived, with its immediate data.
    pub fn receive(&mut self) -> Option<(Vec<u8>, u32)> {
        self.poll();
        self.waiting.pop_front()
    }

    /// Why the connection ended; `None` while it lives.
    pub fn failure(&self) -> Option<FailureReason> {
        self.failure.map(reason)
    }

    fn poll(&mut self) {
        let mut completions = [WorkCompletion::default(); BATCH];
        while self.waiting.len() < MAX_WAITING {
            let count = self.device.poll(&mut completions);
            completions[..count].iter().for_each(|completion| self.complete(completion));
            if count < BATCH {
                return;
            }
        }
    }

    fn complete(&mut self, completion: &WorkCompletion) {
        if completion.status != status::SUCCESS {
            self.failure.get_or_insert(completion.status);
        } else if completion.id == IS_RECEIVE {
            let length = (completion.length as usize).min(MAX_PAYLOAD_BYTES);
            let payload = self.device.memory().arrived(offset(self.received), length);
            self.waiting.push_back((payload, u32::from_be(completion.immediate)));
            self.received += 1;
            if self.queue_pair.post_receive(IS_RECEIVE).is_err() {
                self.failure.get_or_insert(status::GENERAL_ERROR);
            }
        } else {
            self.completed += 1;
        }
    }
}

/// Where the slot of a payload begins in either half of the memory.
fn offset(number: u64) -> usize {
    (number % u64::from(SLOTS)) as usize * MAX_PAYLOAD_BYTES
}
