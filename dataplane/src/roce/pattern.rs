//! The payload of every message that an endpoint makes up: a fixed cyclic sequence of bytes.
//!
//! Byte `o` of a message is byte `o % PATTERN_BYTES` of the sequence. Every pair of neighbouring
//! bytes occurs once in it, so that a received slice tells from its first two bytes where it
//! belongs; and the length is a prime, so that a packet in the wrong place differs from the right
//! one whatever the MTU.

use super::packet::Payload;
use crate::random::Random;
use std::sync::LazyLock;

/// Length of the sequence: the largest prime below 2^16.
pub const PATTERN_BYTES: usize = 65_521;

/// A cyclic byte sequence with its index.
struct Pattern {
    /// The sequence, continued so that any slice of `u16::MAX` bytes is contiguous.
    bytes: Vec<u8>,
    /// Position of each pair of bytes; `ABSENT` for the pairs that do not occur.
    positions: Vec<u16>,
}

const ABSENT: u16 = u16::MAX;

/// Pairs left out so that the length becomes the prime: the edges of one cycle.
const LEFT_OUT: usize = (1 << 16) - PATTERN_BYTES;

static PATTERN: LazyLock<Pattern> = LazyLock::new(Pattern::new);

impl Pattern {
    fn new() -> Self {
        let cycle = eulerian_circuit(shuffled_successors());
        debug_assert_eq!(cycle.len(), PATTERN_BYTES);
        let mut positions = vec![ABSENT; 1 << 16];
        for (position, &byte) in cycle.iter().enumerate() {
            let next = cycle[(position + 1) % PATTERN_BYTES];
            positions[pair(byte, next)] = position as u16;
        }
        let length = PATTERN_BYTES + usize::from(u16::MAX);
        let bytes = cycle.iter().copied().cycle().take(length).collect();
        Self { bytes, positions }
    }

    #[inline]
    fn slice(&self, position: usize, length: usize) -> &[u8] {
        &self.bytes[position..position + length]
    }
}

#[inline]
fn pair(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

/// For every byte the bytes that may follow it, in a fixed pseudo-random order: all of them apart
/// from the cycle 0, 1, .., `LEFT_OUT` - 1, 0.
fn shuffled_successors() -> Vec<Vec<u8>> {
    let mut random = Random::new(0x5EED, 0);
    let left_out = |byte: u8, next: u8| {
        usize::from(byte) < LEFT_OUT && usize::from(next) == (usize::from(byte) + 1) % LEFT_OUT
    };
    (0..=255u8)
        .map(|byte| {
            let mut next: Vec<u8> = (0..=255u8).filter(|&next| !left_out(byte, next)).collect();
            for last in (1..next.len()).rev() {
                next.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
            }
            next
        })
        .collect()
}

/// A closed walk that takes every edge once. Source: Hierholzer, Mathematische Annalen 6, 1873.
fn eulerian_circuit(mut successors: Vec<Vec<u8>>) -> Vec<u8> {
    let mut walk = vec![0u8];
    let mut circuit = Vec::with_capacity(PATTERN_BYTES + 1);
    while let Some(&byte) = walk.last() {
        match successors[usize::from(byte)].pop() {
            Some(next) => walk.push(next),
            None => {
                circuit.push(byte);
                walk.pop();
            }
        }
    }
    // The walk ends where it began; the cycle names that byte once.
    circuit.pop();
    circuit.reverse();
    circuit
}

#[inline]
fn phase(offset_bytes: u64) -> usize {
    (offset_bytes % PATTERN_BYTES as u64) as usize
}

/// The bytes of a message from `offset_bytes` on.
#[inline]
pub fn slice(offset_bytes: u64, length_bytes: u16) -> &'static [u8] {
    PATTERN.slice(phase(offset_bytes), usize::from(length_bytes))
}

/// Where in the sequence `bytes` stand, or `None` if they are no slice of it.
///
/// A single byte stands in many places; the result is one of them. No bytes stand at 0.
pub fn locate(bytes: &[u8]) -> Option<u64> {
    let position = match *bytes {
        [] => 0,
        [only] => (0..=255).map(|next| PATTERN.positions[pair(only, next)]).find(known)?,
        [first, second, ..] => Some(PATTERN.positions[pair(first, second)]).filter(known)?,
    };
    let found = bytes.len() <= usize::from(u16::MAX)
        && PATTERN.slice(usize::from(position), bytes.len()) == bytes;
    found.then_some(u64::from(position))
}

fn known(position: &u16) -> bool {
    *position != ABSENT
}

/// Whether `payload` is what a message holds from `offset_bytes` on.
#[inline]
pub fn matches(offset_bytes: u64, payload: &Payload) -> bool {
    match payload {
        Payload::Pattern { offset_bytes: found, length_bytes } => {
            *found == offset_bytes
                || phase(*found) == phase(offset_bytes)
                || *length_bytes < 2
                    && slice(*found, *length_bytes) == slice(offset_bytes, *length_bytes)
        }
        Payload::Bytes(bytes) => {
            u16::try_from(bytes.len()).is_ok_and(|length| slice(offset_bytes, length) == &**bytes)
        }
        Payload::Forwarded { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_bytes_occurs_at_most_once() {
        let known = PATTERN.positions.iter().filter(|position| known(position)).count();
        assert_eq!(known, PATTERN_BYTES);
    }

    #[test]
    fn a_slice_is_found_where_it_was_taken() {
        for (offset, length) in [(0, 2), (65_520, 2), (65_519, 4096), (1 << 40, 1500), (7, 65_535)]
        {
            let found = locate(slice(offset, length)).unwrap();
            assert_eq!(found, offset % PATTERN_BYTES as u64);
        }
    }

    #[test]
    fn a_changed_byte_is_no_slice() {
        let mut bytes = slice(4096, 256).to_vec();
        bytes[255] ^= 1;
        assert_eq!(locate(&bytes), None);
        assert_eq!(locate(&[0, 1]), None);
    }

    #[test]
    fn a_payload_matches_only_at_its_own_offset() {
        let payload = Payload::Pattern { offset_bytes: 4096, length_bytes: 4096 };
        assert!(matches(4096, &payload));
        assert!(matches(4096 + PATTERN_BYTES as u64, &payload));
        assert!(!matches(8192, &payload));
        let bytes = Payload::Bytes(slice(4096, 100).into());
        assert!(matches(4096, &bytes) && !matches(4097, &bytes));
    }

    #[test]
    fn a_single_byte_matches_by_value() {
        let byte = slice(9000, 1);
        let offset_bytes = locate(byte).unwrap();
        assert!(matches(9000, &Payload::Pattern { offset_bytes, length_bytes: 1 }));
    }
}
