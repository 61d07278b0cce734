//! The CRC-32 of data that end with a slice of the pattern, without reading the slice.
//!
//! A CRC is linear: that of a slice follows from those of the pattern up to its start and up to its
//! end, the first carried on over the slice's length. Carrying on is a product modulo CRC-32's
//! polynomial, of which a table is kept for each payload of a full packet.

use super::icrc::{multiply, power_of_x, times_x};
use super::pattern::{self, PATTERN_BYTES};
use crc32fast::Hasher;
use std::sync::LazyLock;

/// Lengths that have a table: the path MTUs. Source: IBTA volume 1, section 9.4.5.
const LENGTHS_BYTES: [u16; 5] = [256, 512, 1024, 2048, 4096];

/// The register after each number of bytes of the pattern, as far as a slice with a table goes.
static PREFIXES: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let step = |register: &mut u32, &byte: &u8| {
        let before = *register;
        *register = (0..8).fold(before ^ u32::from(byte), |register, _| times_x(register));
        Some(before)
    };
    let longest = usize::from(LENGTHS_BYTES[LENGTHS_BYTES.len() - 1]);
    let cycle = pattern::slice(0, PATTERN_BYTES as u16);
    cycle.iter().cycle().take(PATTERN_BYTES + longest + 1).scan(0, step).collect()
});

static CARRIES: LazyLock<[Carry; LENGTHS_BYTES.len()]> =
    LazyLock::new(|| std::array::from_fn(|index| Carry::new(LENGTHS_BYTES[index].into())));

/// Products with x to the power of a length in bits, by each byte of the other factor.
struct Carry([[u32; 256]; 4]);

impl Carry {
    fn new(length_bytes: u64) -> Self {
        let factor = power_of_x(8 * length_bytes);
        let product = |byte: usize, value: usize| multiply((value as u32) << (8 * byte), factor);
        Self(std::array::from_fn(|byte| std::array::from_fn(|value| product(byte, value))))
    }

    #[inline]
    fn over(&self, register: u32) -> u32 {
        let bytes = register.to_le_bytes();
        (0..4).fold(0, |sum, byte| sum ^ self.0[byte][usize::from(bytes[byte])])
    }
}

/// Whether the CRC over a slice of this length costs less than reading it.
#[inline]
pub fn is_quick(length_bytes: usize) -> bool {
    LENGTHS_BYTES.iter().any(|&length| usize::from(length) == length_bytes)
}

/// CRC-32 of data that have the CRC `crc`, followed by a slice of the pattern.
#[inline]
pub fn append(crc: u32, offset_bytes: u64, length_bytes: u16) -> u32 {
    let Some(index) = LENGTHS_BYTES.iter().position(|&length| length == length_bytes) else {
        return append_bytes(crc, pattern::slice(offset_bytes, length_bytes));
    };
    let start = (offset_bytes % PATTERN_BYTES as u64) as usize;
    let (before, after) = (PREFIXES[start], PREFIXES[start + usize::from(length_bytes)]);
    !(CARRIES[index].over(!crc ^ before) ^ after)
}

/// CRC-32 of data that have the CRC `crc`, followed by these bytes.
#[inline]
pub fn append_bytes(crc: u32, bytes: &[u8]) -> u32 {
    if bytes.is_empty() {
        return crc;
    }
    let mut hasher = Hasher::new_with_initial(crc);
    hasher.update(bytes);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_crc_of_the_slice_read() {
        let crc = crc32fast::hash(b"header");
        for length in [0, 1, 3, 255, 256, 512, 1000, 1024, 2048, 4096, 9000] {
            for offset in [0, 1, 4096, 61_440, 65_519, 65_520, 65_521, 1 << 40] {
                let read = append_bytes(crc, pattern::slice(offset, length));
                assert_eq!(append(crc, offset, length), read, "{length} from {offset}");
            }
        }
    }
}
