//! The invariant CRC of RoCEv2.
//!
//! It covers the packet from the IP header on, with the fields that a network may change taken as
//! ones: DSCP, ECN, TTL, both checksums, FECN and BECN. Source: IBTA volume 1, section 7.8.1 and
//! annex A17.3.3.

use super::layout::{BTH_BYTES, IPV4_BYTES, IPV6_BYTES, UDP_BYTES};
use crc32fast::Hasher;

/// Where RoCEv1 has the local route header there are ones.
const LEADING_ONES_BYTES: usize = 8;

/// Longest header that has masked fields.
const MAX_MASKED_BYTES: usize = LEADING_ONES_BYTES + IPV6_BYTES + UDP_BYTES + BTH_BYTES;

/// ICRC of an IP packet given without its ICRC, to be appended least significant byte first.
///
/// `None` if the packet is neither IPv4 without options nor IPv6, or is too short.
pub fn icrc(ip_packet: &[u8]) -> Option<u32> {
    let ip_bytes = match ip_packet.first()? {
        0x45 => IPV4_BYTES,
        first if first >> 4 == 6 => IPV6_BYTES,
        _ => return None,
    };
    let header_bytes = ip_bytes + UDP_BYTES + BTH_BYTES;
    let (header, rest) = ip_packet.split_at_checked(header_bytes)?;
    let mut masked = [0xFF; MAX_MASKED_BYTES];
    let masked = &mut masked[..LEADING_ONES_BYTES + header_bytes];
    masked[LEADING_ONES_BYTES..].copy_from_slice(header);
    mask(&mut masked[LEADING_ONES_BYTES..], ip_bytes);
    let mut hasher = Hasher::new();
    hasher.update(masked);
    hasher.update(rest);
    Some(hasher.finalize())
}

/// Sets the fields that may change to ones.
fn mask(header: &mut [u8], ip_bytes: usize) {
    if ip_bytes == IPV4_BYTES {
        header[1] = 0xFF; // DSCP and ECN
        header[8] = 0xFF; // time to live
        header[10..12].fill(0xFF); // header checksum
    } else {
        header[0] |= 0x0F; // traffic class and flow label
        header[1..4].fill(0xFF);
        header[7] = 0xFF; // hop limit
    }
    header[ip_bytes + 6..ip_bytes + 8].fill(0xFF); // UDP checksum
    header[ip_bytes + UDP_BYTES + 4] = 0xFF; // FECN, BECN, reserved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leading_ones_have_the_published_state() {
        let mut hasher = Hasher::new();
        hasher.update(&[0xFF; LEADING_ONES_BYTES]);
        assert_eq!(!hasher.finalize(), 0xDEBB_20E3);
    }

    #[test]
    fn what_is_no_ip_packet_has_no_icrc() {
        assert_eq!(icrc(&[]), None);
        assert_eq!(icrc(&[0x45; 39]), None);
        assert_eq!(icrc(&[0x46; 100]), None);
        assert_eq!(icrc(&[0x60; 59]), None);
    }
}
