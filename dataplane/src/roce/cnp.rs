//! The congestion notification packet.

use super::opcode::Opcode;
use super::packet::{Bth, Ecn, Packet};
use super::queue_pair::QueuePairAddress;

/// The notification that the receiver at `address` sends to the sender of marked packets.
///
/// It is ECN-capable, as real NICs send it, and is neither acknowledged nor retransmitted. Source:
/// IBTA annex A17.9.3.
pub fn cnp(address: &QueuePairAddress, dscp: u8) -> Packet {
    let bth = Bth {
        opcode: Opcode::CNP,
        becn: true,
        destination_qp: address.remote_qp,
        ..Bth::default()
    };
    Packet { bth, dscp, ecn: Ecn::Ect0, ..address.packet() }
}
