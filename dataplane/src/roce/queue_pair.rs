//! One end of a reliable connection.

use super::packet::Packet;
use super::psn::MASK_24;

/// Where a queue pair and its peer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePairAddress {
    /// Own IPv4 address, host byte order.
    pub local_address: u32,
    /// The peer's IPv4 address, host byte order.
    pub remote_address: u32,
    /// Own queue pair number, 24 bits.
    pub local_qp: u32,
    /// The peer's queue pair number, 24 bits.
    pub remote_qp: u32,
    /// UDP source port of packets sent.
    pub source_port: u16,
}

impl QueuePairAddress {
    /// A packet from here to the peer, otherwise empty.
    #[inline]
    pub fn packet(&self) -> Packet {
        let mut packet = Packet {
            source_address: self.local_address,
            destination_address: self.remote_address,
            source_port: self.source_port,
            ..Packet::default()
        };
        packet.bth.destination_qp = self.remote_qp;
        packet
    }
}

/// The UDP source port that drivers give a connection whose flow label is not set, the same at both
/// ends. Source: Linux `include/rdma/ib_verbs.h` (`rdma_calc_flow_label`,
/// `rdma_flow_label_to_udp_sport`) and rdma-core's `ibv_flow_label_to_udp_sport`: a 20-bit label
/// folded from the product of the queue pair numbers, then folded to 14 bits.
pub fn udp_source_port(local_qp: u32, remote_qp: u32) -> u16 {
    let product = u64::from(local_qp & MASK_24) * u64::from(remote_qp & MASK_24);
    let folded = product ^ product >> 20;
    let flow_label = (folded ^ folded >> 40) & 0xF_FFFF;
    0xC000 | (flow_label & 0x3FFF) as u16 ^ (flow_label >> 14) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_port_is_in_the_dynamic_range_and_the_same_at_both_ends() {
        for (a, b) in [(0, 0), (17, 17), (0xFF_FFFF, 0xFF_FFFF), (0x11, 0xABCDEF)] {
            assert!(udp_source_port(a, b) >= 0xC000);
            assert_eq!(udp_source_port(a, b), udp_source_port(b, a));
        }
    }

    #[test]
    fn the_source_port_follows_the_published_folding() {
        // The Linux software RNIC was seen to send from this port between queue pairs 17 and 17.
        assert_eq!(udp_source_port(17, 17), 49_441);
        // 0x123456 * 0x654321 folds to the label 0xA77AE.
        assert_eq!(udp_source_port(0x12_3456, 0x65_4321), 0xC000 | (0x37AE ^ 0x29));
    }
}
