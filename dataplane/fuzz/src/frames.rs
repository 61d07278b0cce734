//! Frames from bytes: decoded or refused, and the same again when encoded.

use _native::roce::layout::{ETHERNET_BYTES, ICRC_BYTES, IPV4_BYTES};
use _native::roce::{Frame, Payload, decode, decode_forwarding, encode, icrc};

const IP_TOTAL: usize = ETHERNET_BYTES + 2;
const IP_CHECKSUM: usize = ETHERNET_BYTES + 10;
const UDP_CHECKSUM: usize = ETHERNET_BYTES + IPV4_BYTES + 6;
/// Ethernet header, opcode, class-enable vector and eight times.
const PAUSE_BYTES: usize = 34;

/// An endpoint decodes `bytes` as they are, and once more with right checksums, which a fuzzer
/// cannot guess.
pub fn decode_all(bytes: &[u8]) {
    check_decoded(bytes);
    let mut repaired = bytes.to_vec();
    repair(&mut repaired);
    check_decoded(&repaired);
}

/// A switch decodes `bytes` likewise.
pub fn forward_all(bytes: &[u8]) {
    check_forwarded(bytes);
    let mut repaired = bytes.to_vec();
    repair(&mut repaired);
    check_forwarded(&repaired);
}

/// What an endpoint accepts comes back when it is encoded, has the length that it claims, and is
/// accepted by a switch with the same headers.
fn check_decoded(bytes: &[u8]) {
    let Ok(frame) = decode(bytes) else { return };
    let again = encoded(&frame, bytes);
    assert_eq!(decode(&again).as_ref(), Ok(&frame));
    let forwarded = decode_forwarding(bytes).expect("what an endpoint accepts can be forwarded");
    assert_eq!(forwarded.wire_bytes(), frame.wire_bytes());
    match (frame, forwarded) {
        (Frame::Roce(own), Frame::Roce(mut passed)) => {
            assert_eq!(own.payload.length_bytes(), passed.payload.length_bytes());
            passed.payload = own.payload.clone();
            assert_eq!(own, passed);
        }
        (own, passed) => assert_eq!(own, passed),
    }
}

/// What a switch accepts leaves it byte for byte, apart from what is not the packet's: the UDP
/// checksum, Ethernet padding, and the destination and padding of a pause frame.
fn check_forwarded(bytes: &[u8]) {
    let Ok(frame) = decode_forwarding(bytes) else { return };
    let again = encoded(&frame, bytes);
    assert_eq!(decode_forwarding(&again).as_ref(), Ok(&frame));
    let Frame::Roce(packet) = &frame else {
        assert_eq!(again[6..PAUSE_BYTES], bytes[6..PAUSE_BYTES]);
        return;
    };
    assert!(matches!(packet.payload, Payload::Forwarded { .. }));
    let mut expected = bytes[..again.len()].to_vec();
    expected[UDP_CHECKSUM..UDP_CHECKSUM + 2].fill(0);
    if expected[IP_CHECKSUM..IP_CHECKSUM + 2] == [0xFF, 0xFF] {
        // The other zero of ones' complement.
        expected[IP_CHECKSUM..IP_CHECKSUM + 2].fill(0);
    }
    assert_eq!(again, expected);
}

fn encoded(frame: &Frame, original: &[u8]) -> Vec<u8> {
    let (destination, source) = (&original[..6], &original[6..12]);
    let address = |bytes: &[u8]| std::array::from_fn(|n| bytes[n]);
    let mut out = Vec::new();
    encode(frame, address(source), address(destination), &mut out);
    assert_eq!(out.len() + 4, frame.wire_bytes() as usize);
    out
}

/// Gives an IPv4 frame a right header checksum and a right ICRC, where there is room for both.
pub fn repair(frame: &mut [u8]) {
    if frame.len() < ETHERNET_BYTES + IPV4_BYTES {
        return;
    }
    let ip_bytes = usize::from(u16::from_be_bytes([frame[IP_TOTAL], frame[IP_TOTAL + 1]]));
    frame[IP_CHECKSUM..IP_CHECKSUM + 2].fill(0);
    let header = &frame[ETHERNET_BYTES..ETHERNET_BYTES + IPV4_BYTES];
    let sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    let checksum = !((folded & 0xFFFF) + (folded >> 16)) as u16;
    frame[IP_CHECKSUM..IP_CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
    let Some(packet) = frame[ETHERNET_BYTES..].get_mut(..ip_bytes) else { return };
    let Some(covered) = ip_bytes.checked_sub(ICRC_BYTES) else { return };
    if let Some(crc) = icrc(&packet[..covered]) {
        packet[covered..].copy_from_slice(&crc.to_le_bytes());
    }
}
