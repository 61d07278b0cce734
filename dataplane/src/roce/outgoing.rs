//! A posted request and its division into packets.

use super::event::QpEvent;
use super::opcode::Opcode;
use super::packet::{Payload, Reth};

/// Longest request; longer WRITEs and READs are split. Source: IBTA volume 1, section 9.7.8.
pub const MAX_REQUEST_BYTES: u64 = 1 << 31;

/// Something to do for a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkRequest {
    /// Write to the peer's memory; with immediate data the peer learns of it.
    Write {
        /// Size; above 2^31 bytes it becomes several WRITEs, the last of which has the immediate.
        size_bytes: u64,
        /// Immediate data.
        immediate: Option<u32>,
    },
    /// Send a message into a receive that the peer has posted.
    Send {
        /// Size, at most 2^31.
        size_bytes: u64,
        /// Immediate data.
        immediate: Option<u32>,
    },
    /// Read from the peer's memory.
    Read {
        /// Size; above 2^31 bytes it becomes several READs.
        size_bytes: u64,
        /// Where to start in the peer's memory.
        offset_bytes: u64,
    },
}

impl WorkRequest {
    /// Size in bytes.
    pub fn size_bytes(&self) -> u64 {
        match *self {
            Self::Write { size_bytes, .. }
            | Self::Send { size_bytes, .. }
            | Self::Read { size_bytes, .. } => size_bytes,
        }
    }
}

/// A request from its posting to its completion. Its packets (of a READ: the responses to it) are
/// numbered on from those of the request before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub id: u64,
    pub request: WorkRequest,
    /// Number of its first packet.
    pub first: u64,
    /// How many packets it has, at least 1.
    packets: u64,
    /// Packets sent again.
    pub retransmitted_packets: u32,
    /// Responses of a READ that arrived with congestion experienced.
    pub marked_packets: u32,
}

/// The peer's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteMemory {
    /// Address of the first byte.
    pub virtual_address: u64,
    /// Key of the memory region.
    pub remote_key: u32,
    /// Its size where that is less than messages may have, a multiple of the path MTU: WRITEs are no
    /// longer, and each goes to its start. `None` if any message fits.
    pub size_bytes: Option<u64>,
}

impl RemoteMemory {
    /// Longest request.
    fn request_bytes(&self) -> u64 {
        self.size_bytes.map_or(MAX_REQUEST_BYTES, |size_bytes| size_bytes.min(MAX_REQUEST_BYTES))
    }

    /// Where in it the byte at an offset of a message goes, and where in the pattern that byte is.
    fn place_bytes(&self, offset_bytes: u64) -> u64 {
        self.size_bytes.map_or(offset_bytes, |size_bytes| offset_bytes % size_bytes)
    }
}

/// A packet to send, without address and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub opcode: Opcode,
    /// Payload of the packet.
    pub length_bytes: u16,
    /// Numbers that it takes: more than one for a READ.
    pub numbers: u64,
}

impl Outgoing {
    pub fn new(id: u64, request: WorkRequest, first: u64, mtu_bytes: u64) -> Self {
        let packets = request.size_bytes().div_ceil(mtu_bytes).max(1);
        Self { id, request, first, packets, retransmitted_packets: 0, marked_packets: 0 }
    }

    pub fn is_read(&self) -> bool {
        matches!(self.request, WorkRequest::Read { .. })
    }

    /// Number of the packet behind its last.
    pub fn end(&self) -> u64 {
        self.first + self.packets
    }

    /// Offset in the message at which packet `number` starts.
    #[inline]
    pub fn offset_bytes(&self, number: u64, mtu_bytes: u64) -> u64 {
        ((number - self.first) * mtu_bytes).min(self.request.size_bytes())
    }

    /// Bytes that packet `number`, or the response with that number, carries.
    #[inline]
    pub fn length_bytes(&self, number: u64, mtu_bytes: u64) -> u16 {
        (self.offset_bytes(number + 1, mtu_bytes) - self.offset_bytes(number, mtu_bytes)) as u16
    }

    /// Bytes in front of packet `number` that this end sends: none of a READ.
    pub fn sent_bytes(&self, number: u64, mtu_bytes: u64) -> u64 {
        if self.is_read() { 0 } else { self.offset_bytes(number, mtu_bytes) }
    }

    /// What to send so that packet `number` is sent, or the response with that number comes.
    #[inline]
    pub fn step(&self, number: u64, mtu_bytes: u64, memory: &RemoteMemory) -> Step {
        let packets_per_request = memory.request_bytes() / mtu_bytes;
        let index = number - self.first;
        let ends_message = index + 1 == self.packets;
        let starts = index % packets_per_request == 0;
        let ends = ends_message || (index + 1) % packets_per_request == 0;
        let length_bytes = self.length_bytes(number, mtu_bytes);
        let opcode = match self.request {
            WorkRequest::Write { immediate, .. } => {
                write_opcode(starts, ends, ends_message && immediate.is_some())
            }
            WorkRequest::Send { immediate, .. } => {
                send_opcode(starts, ends, ends_message && immediate.is_some())
            }
            WorkRequest::Read { .. } => {
                let to_request_end = packets_per_request - index % packets_per_request;
                let numbers = to_request_end.min(self.packets - index);
                return Step { opcode: Opcode::READ_REQUEST, length_bytes: 0, numbers };
            }
        };
        Step { opcode, length_bytes, numbers: 1 }
    }

    /// Header of the WRITE or READ that starts with packet `number`.
    pub fn reth(&self, number: u64, mtu_bytes: u64, memory: &RemoteMemory) -> Reth {
        let offset_bytes = self.offset_bytes(number, mtu_bytes);
        let left_bytes = self.request.size_bytes() - offset_bytes;
        // A READ that is asked for again ends where it would have ended the first time.
        let request_bytes = memory.request_bytes();
        let to_request_end = request_bytes - offset_bytes % request_bytes;
        let place_bytes = match self.request {
            WorkRequest::Read { offset_bytes: start_bytes, .. } => start_bytes + offset_bytes,
            WorkRequest::Write { .. } | WorkRequest::Send { .. } => {
                memory.place_bytes(offset_bytes)
            }
        };
        Reth {
            virtual_address: memory.virtual_address.wrapping_add(place_bytes),
            remote_key: memory.remote_key,
            length_bytes: left_bytes.min(to_request_end) as u32,
        }
    }

    /// Immediate data, where there is any.
    pub fn immediate(&self) -> u32 {
        match self.request {
            WorkRequest::Write { immediate, .. } | WorkRequest::Send { immediate, .. } => {
                immediate.unwrap_or(0)
            }
            WorkRequest::Read { .. } => 0,
        }
    }

    /// What happened once all its packets are acknowledged or answered.
    pub fn completion(&self) -> QpEvent {
        let Self { id, retransmitted_packets, marked_packets, .. } = *self;
        match self.request {
            WorkRequest::Read { size_bytes, .. } => {
                QpEvent::ReadCompleted { id, size_bytes, retransmitted_packets, marked_packets }
            }
            WorkRequest::Write { .. } | WorkRequest::Send { .. } => {
                QpEvent::SendCompleted { id, retransmitted_packets }
            }
        }
    }

    /// The payload that packet `number` carries.
    pub fn payload(
        &self,
        number: u64,
        length_bytes: u16,
        mtu_bytes: u64,
        memory: &RemoteMemory,
    ) -> Payload {
        let offset_bytes = memory.place_bytes(self.offset_bytes(number, mtu_bytes));
        Payload::Pattern { offset_bytes, length_bytes }
    }
}

fn write_opcode(starts: bool, ends: bool, has_immediate: bool) -> Opcode {
    match (starts, ends, has_immediate) {
        (true, true, true) => Opcode::WRITE_ONLY_IMMEDIATE,
        (true, true, false) => Opcode::WRITE_ONLY,
        (true, false, _) => Opcode::WRITE_FIRST,
        (false, false, _) => Opcode::WRITE_MIDDLE,
        (false, true, true) => Opcode::WRITE_LAST_IMMEDIATE,
        (false, true, false) => Opcode::WRITE_LAST,
    }
}

fn send_opcode(starts: bool, ends: bool, has_immediate: bool) -> Opcode {
    match (starts, ends, has_immediate) {
        (true, true, true) => Opcode::SEND_ONLY_IMMEDIATE,
        (true, true, false) => Opcode::SEND_ONLY,
        (true, false, _) => Opcode::SEND_FIRST,
        (false, false, _) => Opcode::SEND_MIDDLE,
        (false, true, true) => Opcode::SEND_LAST_IMMEDIATE,
        (false, true, false) => Opcode::SEND_LAST,
    }
}
