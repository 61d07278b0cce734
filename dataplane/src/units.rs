//! Time, size and rate arithmetic in integers.
//!
//! Times are picoseconds of emulated time since the start of the job, in `u64` (213 days): at
//! 400 Gb/s one byte takes 20 ps, so nanoseconds would round every packet. Sizes are bytes, rates
//! bits per second. Emulated time is never scaled: time dilation exists only where the wall clock
//! is read.

/// Picoseconds per nanosecond.
pub const PS_PER_NS: u64 = 1_000;
/// Picoseconds per microsecond.
pub const PS_PER_US: u64 = 1_000_000;
/// Picoseconds per second.
pub const PS_PER_S: u64 = 1_000_000_000_000;

/// Bytes that a frame occupies on an Ethernet link beyond the frame itself and its FCS: preamble
/// and start delimiter (8) and the minimum inter-frame gap (12). Source: IEEE 802.3.
pub const PREAMBLE_AND_GAP_BYTES: u64 = 20;
/// Frame check sequence. Source: IEEE 802.3.
pub const FCS_BYTES: u64 = 4;

/// Time in which `bytes` pass at `rate_bps`, rounded down to the picosecond.
///
/// A rate of zero never sends: the result is `u64::MAX`.
#[inline]
pub fn transfer_ps(bytes: u64, rate_bps: u64) -> u64 {
    if rate_bps == 0 {
        return u64::MAX;
    }
    match bytes.checked_mul(8 * PS_PER_S) {
        Some(bit_ps) => bit_ps / rate_bps,
        None => (u128::from(bytes) * u128::from(8 * PS_PER_S) / u128::from(rate_bps))
            .min(u128::from(u64::MAX)) as u64,
    }
}

/// The rate of a line, for times that are asked for at every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRate {
    rate_bps: u64,
    /// Time of a byte where it is a whole number of picoseconds, else 0.
    byte_ps: u64,
}

impl LineRate {
    /// That rate; 0 never sends.
    pub fn new(rate_bps: u64) -> Self {
        let is_whole = rate_bps != 0 && 8 * PS_PER_S % rate_bps == 0;
        Self { rate_bps, byte_ps: if is_whole { 8 * PS_PER_S / rate_bps } else { 0 } }
    }

    /// Bits per second.
    #[inline]
    pub fn bps(self) -> u64 {
        self.rate_bps
    }

    /// As [`transfer_ps`]; without a division if a byte takes whole picoseconds.
    #[inline]
    pub fn transfer_ps(self, bytes: u64) -> u64 {
        match self.byte_ps {
            0 => transfer_ps(bytes, self.rate_bps),
            byte_ps => bytes.saturating_mul(byte_ps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_as_long_as_its_rate_says() {
        for rate_bps in [0, 1, 7_000_000_000, 25_000_000_000, 400_000_000_000, 1 << 43] {
            for bytes in [0, 1, 64, 4178, 1 << 33] {
                assert_eq!(
                    LineRate::new(rate_bps).transfer_ps(bytes),
                    transfer_ps(bytes, rate_bps)
                );
            }
        }
    }

    #[test]
    fn a_byte_at_400_gbps_takes_20_picoseconds() {
        assert_eq!(transfer_ps(1, 400_000_000_000), 20);
    }

    #[test]
    fn large_transfers_do_not_overflow() {
        assert_eq!(transfer_ps(1 << 40, 400_000_000_000), 20 << 40);
    }
}
