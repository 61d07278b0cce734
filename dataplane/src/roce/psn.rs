//! Packet sequence numbers: 24 bits, compared modulo 2^24. Source: IBTA volume 1, section 9.7.2.

/// Number of packet sequence numbers.
pub const PSN_COUNT: u32 = 1 << 24;
/// The bits of a packet, message or queue pair number.
pub const MASK_24: u32 = PSN_COUNT - 1;
/// Packets that may be outstanding, so that old and new can be told apart.
pub const MAX_OUTSTANDING: u32 = 1 << 23;

/// The number `count` packets after `psn`.
#[inline]
pub const fn add(psn: u32, count: u64) -> u32 {
    (psn as u64).wrapping_add(count) as u32 & MASK_24
}

/// The number before `psn`.
#[inline]
pub const fn previous(psn: u32) -> u32 {
    psn.wrapping_sub(1) & MASK_24
}

/// How far `a` lies after `b`, in -2^23 to 2^23 - 1; negative when it lies before.
#[inline]
pub const fn difference(a: u32, b: u32) -> i32 {
    // Shifted to the top, the subtraction wraps at 24 bits and the sign comes out right.
    ((a.wrapping_sub(b) << 8) as i32) >> 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_after_the_last_is_zero() {
        assert_eq!(add(0xFF_FFFF, 1), 0);
        assert_eq!(previous(0), 0xFF_FFFF);
        assert_eq!(add(5, 1 << 24), 5);
    }

    #[test]
    fn t3_comparison_holds_across_the_wrap() {
        assert_eq!(difference(0, 0xFF_FFFF), 1);
        assert_eq!(difference(0xFF_FFFF, 0), -1);
        assert_eq!(difference(7, 7), 0);
    }

    #[test]
    fn t3_half_the_space_lies_before_and_half_after() {
        assert_eq!(difference(0x7F_FFFF, 0), 0x7F_FFFF);
        assert_eq!(difference(0x80_0000, 0), -0x80_0000);
    }
}
