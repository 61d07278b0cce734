//! What a message is on the line: its packets with headers, preambles and gaps.

use crate::roce::opcode::Opcode;
use crate::roce::packet::wire_bytes;
use crate::units::PREAMBLE_AND_GAP_BYTES;

/// Longer messages are several RDMA WRITEs. Source: IBTA volume 1, section 9.7.8.
const WRITE_LIMIT_BYTES: u64 = 1 << 31;
/// RDMA extended transport header and immediate data. Source: IBTA volume 1, sections 9.2.5, 9.2.6.
const RETH_BYTES: u64 = 16;
const IMMEDIATE_BYTES: u64 = 4;

/// A message that waits or is being sent.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// The SEND.
    pub op: u32,
    /// The RECV of the peer.
    pub peer_op: u32,
    /// Payload.
    pub size_bytes: u64,
}

/// What a message puts on the line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Framing {
    /// Packets.
    pub packets: u64,
    /// Bytes on the line, preambles and gaps included.
    pub line_bytes: u64,
    /// The same of its largest packet.
    pub packet_line_bytes: u64,
}

impl Framing {
    /// A message of that size as RDMA WRITEs with packets of at most `mtu_bytes` of payload.
    pub fn new(size_bytes: u64, mtu_bytes: u32) -> Self {
        let packets = size_bytes.div_ceil(u64::from(mtu_bytes)).max(1);
        let writes = size_bytes.div_ceil(WRITE_LIMIT_BYTES).max(1);
        let around = around_payload_bytes();
        let payload_bytes = size_bytes.next_multiple_of(4);
        let line_bytes = payload_bytes + packets * around + writes * RETH_BYTES + IMMEDIATE_BYTES;
        let packet_line_bytes = size_bytes.min(u64::from(mtu_bytes)) + around;
        Self { packets, line_bytes, packet_line_bytes }
    }

    /// Bytes of its frames, without preambles and gaps.
    pub fn frame_bytes(&self) -> u64 {
        self.line_bytes - self.packets * PREAMBLE_AND_GAP_BYTES
    }
}

/// What the line carries of a middle packet beside its payload.
pub fn around_payload_bytes() -> u64 {
    u64::from(wire_bytes(Opcode::WRITE_MIDDLE, 0)) + PREAMBLE_AND_GAP_BYTES
}

/// An acknowledgement on the line.
pub fn acknowledgement_line_bytes() -> u64 {
    u64::from(wire_bytes(Opcode::ACKNOWLEDGE, 0)) + PREAMBLE_AND_GAP_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roce::packet::wire_bytes;

    #[test]
    fn a_message_takes_the_bytes_of_its_packets() {
        let packets = [
            (Opcode::WRITE_FIRST, 4096),
            (Opcode::WRITE_MIDDLE, 4096),
            (Opcode::WRITE_LAST_IMMEDIATE, 101),
        ];
        let line = packets.map(|(opcode, bytes)| u64::from(wire_bytes(opcode, bytes)) + 20);
        let framing = Framing::new(2 * 4096 + 101, 4096);
        assert_eq!(framing.packets, 3);
        assert_eq!(framing.line_bytes, line.iter().sum::<u64>());
        assert_eq!(framing.frame_bytes(), framing.line_bytes - 60);
        assert_eq!(framing.packet_line_bytes, 4096 + 82);
    }

    #[test]
    fn a_message_without_bytes_is_one_packet() {
        let only = u64::from(wire_bytes(Opcode::WRITE_ONLY_IMMEDIATE, 0)) + 20;
        assert_eq!(Framing::new(0, 4096).line_bytes, only);
    }
}
