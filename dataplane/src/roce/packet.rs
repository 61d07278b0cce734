//! RoCEv2 packets and pause frames as values.
//!
//! A value here is always legal: what cannot be encoded cannot be built. Bytes belong to
//! `encode` and `decode` beside this file.

use super::opcode::Opcode;
use crate::units::FCS_BYTES;
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

impl Ecn {
    /// The codepoint in the two low bits of a traffic class.
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The sender understands congestion marks.
    #[inline]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}

/// Base transport header without the fields that follow from the rest of the packet (pad count,
/// header version). Source: IBTA volume 1, section 9.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth {
    /// Operation.
    pub opcode: Opcode,
    /// Solicited event.
    pub solicited: bool,
    /// Migration state is "migrated".
    pub migration_request: bool,
    /// Forward explicit congestion notification.
    pub fecn: bool,
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

/// The default partition, which every port belongs to. Source: IBTA volume 1, section 10.9.1.
pub const DEFAULT_PARTITION_KEY: u16 = 0xFFFF;

impl Default for Bth {
    fn default() -> Self {
        Self {
            opcode: Opcode::SEND_ONLY,
            solicited: false,
            migration_request: false,
            fecn: false,
            becn: false,
            partition_key: DEFAULT_PARTITION_KEY,
            destination_qp: 0,
            ack_request: false,
            psn: 0,
        }
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
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

/// Time to live of packets that an endpoint makes.
pub const DEFAULT_TTL: u8 = 64;

impl Default for Packet {
    /// An empty SEND between unspecified addresses, not ECN-capable.
    fn default() -> Self {
        Self {
            source_address: 0,
            destination_address: 0,
            source_port: 0xC000,
            dscp: 0,
            ecn: Ecn::NotEct,
            ttl: DEFAULT_TTL,
            identification: 0,
            bth: Bth::default(),
            reth: Reth::default(),
            immediate: 0,
            aeth: Aeth::default(),
            payload: Payload::EMPTY,
        }
    }
}

/// Ethernet, IPv4, UDP and base transport header.
const FIXED_HEADER_BYTES: u32 = 14 + 20 + 8 + 12;
/// Invariant CRC at the end of every RoCEv2 packet.
const ICRC_BYTES: u32 = 4;
/// The smallest Ethernet frame with its FCS, which a pause frame fills. Source: IEEE 802.3.
pub const MIN_FRAME_BYTES: u32 = 64;

/// Length of the Ethernet frame of a packet with that opcode and payload, with pad, ICRC and FCS,
/// without preamble and gap.
#[inline]
pub fn wire_bytes(opcode: Opcode, payload_bytes: u32) -> u32 {
    let behind = payload_bytes.next_multiple_of(4) + ICRC_BYTES + FCS_BYTES as u32;
    FIXED_HEADER_BYTES + opcode.extension_bytes() + behind
}

impl Packet {
    /// Length of the Ethernet frame with pad, ICRC and FCS, without preamble and gap.
    #[inline]
    pub fn wire_bytes(&self) -> u32 {
        match &self.payload {
            Payload::Forwarded { bytes, .. } => {
                let extension_bytes = self.bth.opcode.extension_bytes();
                FIXED_HEADER_BYTES + extension_bytes + bytes.len() as u32 + FCS_BYTES as u32
            }
            own => wire_bytes(self.bth.opcode, own.length_bytes()),
        }
    }

    /// The packet carries the data of a request or response: what congestion control paces,
    /// switches mark and a notification point answers.
    #[inline]
    pub fn is_data(&self) -> bool {
        self.bth.opcode.has_payload()
    }

    /// The packet notifies of congestion.
    #[inline]
    pub fn is_cnp(&self) -> bool {
        self.bth.opcode == Opcode::CNP
    }

    /// Fields that ECMP hashes: source and destination address, UDP source port. (Protocol and
    /// destination port are the same for all RoCEv2 packets.)
    #[inline]
    pub fn flow(&self) -> (u32, u32, u16) {
        (self.source_address, self.destination_address, self.source_port)
    }
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

impl Frame {
    /// Length of the Ethernet frame with FCS, without preamble and gap.
    #[inline]
    pub fn wire_bytes(&self) -> u32 {
        match self {
            Frame::Roce(packet) => packet.wire_bytes(),
            Frame::Pause(_) => MIN_FRAME_BYTES,
        }
    }

    /// Something of the frame that takes a look into each cache line that it lies in, and depends on
    /// nothing else: for having it fetched before it is needed.
    #[inline]
    pub fn glance(&self) -> u64 {
        match self {
            // A packet lies in up to three: Rust puts its payload first and its bytes last.
            Frame::Roce(packet) => {
                let first = u64::from(packet.payload.length_bytes());
                first ^ packet.reth.virtual_address ^ packet.ecn as u64
            }
            Frame::Pause(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(opcode: Opcode, length_bytes: u16) -> Packet {
        let payload = Payload::Pattern { offset_bytes: 0, length_bytes };
        Packet { bth: Bth { opcode, ..Bth::default() }, payload, ..Packet::default() }
    }

    #[test]
    fn frames_have_the_lengths_of_the_specification() {
        assert_eq!(with(Opcode::WRITE_MIDDLE, 4096).wire_bytes(), 62 + 4096);
        assert_eq!(with(Opcode::WRITE_FIRST, 4096).wire_bytes(), 78 + 4096);
        assert_eq!(with(Opcode::WRITE_ONLY_IMMEDIATE, 0).wire_bytes(), 82);
        assert_eq!(with(Opcode::ACKNOWLEDGE, 0).wire_bytes(), 66);
        assert_eq!(with(Opcode::CNP, 0).wire_bytes(), 78);
    }

    #[test]
    fn a_payload_is_padded_to_four_bytes() {
        assert_eq!(with(Opcode::WRITE_LAST, 1).wire_bytes(), 62 + 4);
        assert_eq!(with(Opcode::WRITE_LAST, 4).wire_bytes(), 62 + 4);
    }
}
