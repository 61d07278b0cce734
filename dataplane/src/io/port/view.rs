//! The fields of a raw frame that drivers look at. Nothing else is checked.

use crate::roce::layout::{
    BTH_BYTES, ETHER_TYPE, ETHER_TYPE_IPV4, ETHERNET_BYTES, HEADERS_BYTES, ICRC_BYTES, IPV4_BYTES,
    IPV4_VERSION_AND_LENGTH, PROTOCOL_UDP, ROCE_PORT, UDP_BYTES,
};
use std::net::Ipv4Addr;

/// Why a frame cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// It is longer than the port's longest.
    #[error("a frame of {bytes} bytes is longer than {max_bytes} bytes")]
    Longer {
        /// The frame.
        bytes: usize,
        /// The longest.
        max_bytes: u32,
    },
    /// It is no RoCEv2 packet in a whole frame.
    #[error("a frame is not RoCEv2: IPv4 without options, UDP to port 4791, with an ICRC")]
    NotRoce,
    /// No socket has its source port.
    #[error("UDP source port {0} was not named when the port was opened")]
    SourcePort(u16),
    /// Nobody has said how it is reached.
    #[error("destination {0} was not named when the port was opened")]
    Destination(Ipv4Addr),
    /// It says that another host sends it.
    #[error("a frame from {0}, which is not the address of the port")]
    Source(Ipv4Addr),
}

/// A frame's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<'a> {
    /// Traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// IP identification.
    pub identification: u16,
    /// Who sends it.
    pub source: Ipv4Addr,
    /// Where it goes.
    pub destination: Ipv4Addr,
    /// UDP source port.
    pub source_port: u16,
    /// What stands behind the UDP header, ICRC included.
    pub datagram: &'a [u8],
}

/// The fields of a RoCEv2 frame.
pub fn view(frame: &[u8]) -> Option<View<'_>> {
    if frame.len() < HEADERS_BYTES + BTH_BYTES + ICRC_BYTES {
        return None;
    }
    let (ethernet, ip) = frame.split_at(ETHERNET_BYTES);
    let total_bytes = usize::from(u16_at(ip, 2));
    let udp = &ip[IPV4_BYTES..];
    let is_roce = u16_at(ethernet, ETHER_TYPE) == ETHER_TYPE_IPV4
        && ip[0] == IPV4_VERSION_AND_LENGTH
        && ip[9] == PROTOCOL_UDP
        && u16_at(udp, 2) == ROCE_PORT
        && total_bytes <= ip.len()
        && usize::from(u16_at(udp, 4)) + IPV4_BYTES == total_bytes
        && total_bytes >= IPV4_BYTES + UDP_BYTES + BTH_BYTES + ICRC_BYTES;
    is_roce.then(|| View {
        traffic_class: ip[1],
        identification: u16_at(ip, 4),
        source: address_at(ip, 12),
        destination: address_at(ip, 16),
        source_port: u16_at(udp, 0),
        datagram: &ip[IPV4_BYTES + UDP_BYTES..total_bytes],
    })
}

/// The fields of a frame that a port at `address` may send.
pub fn view_own(frame: &[u8], address: Ipv4Addr, max_bytes: u32) -> Result<View<'_>, ViewError> {
    if frame.len() > max_bytes as usize {
        return Err(ViewError::Longer { bytes: frame.len(), max_bytes });
    }
    let view = view(frame).ok_or(ViewError::NotRoce)?;
    if view.source != address {
        return Err(ViewError::Source(view.source));
    }
    Ok(view)
}

fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes([bytes[offset], bytes[offset + 1]])
}

fn address_at(bytes: &[u8], offset: usize) -> Ipv4Addr {
    Ipv4Addr::new(bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roce::{Frame, Packet, encode};

    fn frame(packet: Packet) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&Frame::Roce(Box::new(packet)), [1; 6], [2; 6], &mut bytes);
        bytes
    }

    #[test]
    fn fields_are_those_of_the_packet() {
        let packet = Packet {
            source_address: 0xC612_0001,
            destination_address: 0xC612_0002,
            dscp: 26,
            identification: 7,
            ..Packet::default()
        };
        let bytes = frame(packet);
        let view = view(&bytes).expect("it is RoCEv2");
        assert_eq!(view.source, Ipv4Addr::new(198, 18, 0, 1));
        assert_eq!(view.destination, Ipv4Addr::new(198, 18, 0, 2));
        assert_eq!((view.traffic_class, view.identification), (26 << 2, 7));
        assert_eq!(view.datagram.len(), BTH_BYTES + ICRC_BYTES);
    }

    #[test]
    fn what_is_cut_or_not_roce_has_no_fields() {
        let whole = frame(Packet::default());
        assert!(view(&whole).is_some());
        assert_eq!(view(&whole[..whole.len() - 1]), None);
        for offset in [ETHER_TYPE, ETHERNET_BYTES, ETHERNET_BYTES + 9, HEADERS_BYTES - 5] {
            let mut other = whole.clone();
            other[offset] ^= 0x40;
            assert_eq!(view(&other), None, "{offset}");
        }
    }
}
