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

/// How the ICRC of IPv4 packets of one length depends on their identification.
///
/// A CRC is linear: another identification changes it by something that depends on the length alone,
/// so that a packet can be given another one, or one be found, without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentificationEffect {
    covered_bytes: usize,
    /// What each bit of a changed identification, in the order of its bytes, does to the ICRC.
    images: [u32; 16],
    /// What the changes do that the packets of a burst need.
    small: [u32; SMALL],
    /// Inverse of x to the power of the bits from the identification to the end.
    backward: u32,
}

/// Differences of identifications that are looked up: those within a burst.
const SMALL: usize = 64;
/// Offset of the identification in an IPv4 header.
const IDENTIFICATION_BYTES: usize = 4;
/// CRC-32's polynomial without its highest power, least significant bit first.
const POLYNOMIAL: u32 = 0xEDB8_8320;
/// x^0 and x^1 in that order of bits.
const ONE: u32 = 1 << 31;
const X: u32 = 1 << 30;
/// x to this power is 1, because the polynomial is primitive.
const ORDER: u64 = u32::MAX as u64;

impl IdentificationEffect {
    /// For IPv4 packets of which the ICRC covers so many bytes: all of them but the ICRC itself.
    pub fn new(covered_bytes: usize) -> Self {
        let bits = 8 * (covered_bytes.saturating_sub(IDENTIFICATION_BYTES)) as u64 % ORDER;
        let mut images = [multiply(1 << 15, power_of_x(bits)); 16];
        for bit in (0..15).rev() {
            images[bit] = times_x(images[bit + 1]);
        }
        let small = std::array::from_fn(|difference| image(&images, difference as u16));
        Self { covered_bytes, images, small, backward: power_of_x(ORDER - bits) }
    }

    /// The length that it is for.
    #[inline]
    pub fn covered_bytes(&self) -> usize {
        self.covered_bytes
    }

    /// The ICRC that a packet has with the identification `to`, from that with `from`.
    #[inline]
    pub fn replace(&self, icrc: u32, from: u16, to: u16) -> u32 {
        let difference = from ^ to;
        let small = self.small.get(usize::from(difference));
        icrc ^ small.copied().unwrap_or_else(|| image(&self.images, difference))
    }

    /// The identification with which a packet has the ICRC `found`, if there is one: `computed` is
    /// the ICRC with the identification `assumed`. A damaged packet seems to have one in one of
    /// 65,536 cases.
    pub fn solve(&self, found: u32, computed: u32, assumed: u16) -> Option<u16> {
        let difference = multiply(found ^ computed, self.backward);
        let difference = u16::try_from(difference).ok()?;
        Some(assumed ^ difference.swap_bytes())
    }
}

/// What a changed identification does to the ICRC, from what each of its bits does.
fn image(images: &[u32; 16], difference: u16) -> u32 {
    let difference = difference.swap_bytes();
    let bits = (0..16).filter(|bit| difference >> bit & 1 != 0);
    bits.fold(0, |sum, bit| sum ^ images[bit])
}

/// Product of two polynomials modulo CRC-32's.
pub(super) fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    for bit in (0..32).rev() {
        if a >> bit & 1 != 0 {
            product ^= b;
        }
        b = times_x(b);
    }
    product
}

/// Product with x.
#[inline]
pub(super) fn times_x(a: u32) -> u32 {
    a >> 1 ^ if a & 1 != 0 { POLYNOMIAL } else { 0 }
}

/// x to a power, modulo CRC-32's polynomial.
pub(super) fn power_of_x(mut exponent: u64) -> u32 {
    let (mut power, mut square) = (ONE, X);
    while exponent != 0 {
        if exponent & 1 != 0 {
            power = multiply(power, square);
        }
        square = multiply(square, square);
        exponent >>= 1;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of that length with an identification.
    fn packet(bytes: usize, identification: u16) -> Vec<u8> {
        let mut packet: Vec<u8> = (0..bytes).map(|n| (n * 37) as u8).collect();
        packet[0] = 0x45;
        packet[4..6].copy_from_slice(&identification.to_be_bytes());
        packet
    }

    #[test]
    fn another_identification_changes_the_icrc_by_what_the_length_says() {
        for bytes in [40, 41, 60, 1052, 4136] {
            let effect = IdentificationEffect::new(bytes);
            for (from, to) in [(0, 1), (0, 14), (7, 0x8001), (0xFFFF, 0x1234)] {
                let [before, after] = [from, to].map(|id| icrc(&packet(bytes, id)).unwrap());
                assert_eq!(effect.replace(before, from, to), after, "{bytes} {from} {to}");
                assert_eq!(effect.solve(after, before, from), Some(to));
            }
        }
    }

    #[test]
    fn a_damaged_packet_has_no_identification() {
        let effect = IdentificationEffect::new(1052);
        let right = icrc(&packet(1052, 0)).unwrap();
        for bit in 0..32 {
            // No flipped bit of an ICRC looks like another identification at this length.
            assert_eq!(effect.solve(right ^ 1 << bit, right, 0), None, "{bit}");
        }
    }

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
