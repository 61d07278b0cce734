//! RoCEv2 packets and pause frames as values.
//!
//! A value here is always legal: what cannot be encoded cannot be built. Bytes belong to
//! `encode` and `decode` beside this file.

use super::opcode::Opcode;
use std::sync::Arc;

/// Explicit congestion notification codepoint. Source: RFC 3168 section 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct = 0b00,
    /// ECN-capable, ECT(1).
    Ect1 = 0b01,
    /// ECN-capable, ECT(0).
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

/// Base transport header without the fields that follow from the rest of the packet (pad count,
/// header version). Source: IBTA volume 1, section 9.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth {
    /// Operation.
    pub opcode: Opcode,
    /// Solicited event.
    pub solicited: bool,
    /// Backward explicit congestion notification; set on CNPs.
    pub becn: bool,
    /// Partition key.
    pub partition_key: u16,
    /// Destination queue pair, 24 bits.
    pub destination_qp: u32,
    /// The requester asks for an acknowledgement.
    pub ack_request: bool,
    /// Packet sequence number, 24 bits.
    pub psn: u32,
}

/// RDMA extended transport header. Source: IBTA volume 1, section 9.3.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Reth {
    /// Address in the responder's memory.
    pub virtual_address: u64,
    /// Key of the memory region.
    pub remote_key: u32,
    /// Bytes of the whole message.
    pub length_bytes: u32,
}

/// ACK extended transport header. Source: IBTA volume 1, section 9.3.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aeth {
    /// Kind and value of the acknowledgement.
    pub syndrome: u8,
    /// Message sequence number, 24 bits.
    pub msn: u32,
}

/// The payload of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// `length_bytes` of the job's payload pattern, starting at `offset_bytes` of the message.
    /// Nothing is stored: bytes appear when the packet is encoded and are compared when decoded.
    Pattern {
        /// Offset in the message.
        offset_bytes: u64,
        /// Payload length.
        length_bytes: u16,
    },
    /// Bytes of their own, without pad.
    Bytes(Arc<[u8]>),
    /// Payload, pad and ICRC exactly as they came from a wire, for a node that only forwards.
    Forwarded {
        /// The bytes behind the headers, ICRC included.
        bytes: Arc<[u8]>,
        /// Pad count that the headers declare.
        pad_bytes: u8,
    },
}

impl Payload {
    /// No payload.
    pub const EMPTY: Payload = Payload::Pattern { offset_bytes: 0, length_bytes: 0 };

    /// Length in bytes, without pad.
    #[inline]
    pub fn length_bytes(&self) -> u32 {
        match self {
            Payload::Pattern { length_bytes, .. } => u32::from(*length_bytes),
            Payload::Bytes(bytes) => bytes.len() as u32,
            Payload::Forwarded { bytes, pad_bytes } => {
                bytes.len() as u32 - 4 - u32::from(*pad_bytes)
            }
        }
    }
}

/// A RoCEv2 packet over IPv4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Source address, host byte order.
    pub source_address: u32,
    /// Destination address, host byte order.
    pub destination_address: u32,
    /// UDP source port: the entropy that ECMP hashes.
    pub source_port: u16,
    /// Differentiated services codepoint, 6 bits.
    pub dscp: u8,
    /// ECN codepoint.
    pub ecn: Ecn,
    /// Time to live.
    pub ttl: u8,
    /// IPv4 identification; covered by the ICRC.
    pub identification: u16,
    /// Base transport header.
    pub bth: Bth,
    /// Present as the opcode says; ignored otherwise.
    pub reth: Reth,
    /// Immediate data, present as the opcode says; ignored otherwise.
    pub immediate: u32,
    /// Present as the opcode says; ignored otherwise.
    pub aeth: Aeth,
    /// Payload.
    pub payload: Payload,
}

/// An IEEE 802.1Qbb priority-based flow control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseFrame {
    /// MAC address of the port that sends it.
    pub source_mac: [u8; 6],
    /// Bit n: `quanta[n]` applies to priority n.
    pub class_enable: u8,
    /// Pause time per priority in units of 512 bit times; 0 resumes.
    pub quanta: [u16; 8],
}

/// What a wire carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A RoCEv2 packet.
    Roce(Box<Packet>),
    /// A pause frame.
    Pause(Box<PauseFrame>),
}
