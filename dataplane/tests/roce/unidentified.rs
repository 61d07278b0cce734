//! Frames whose IP identification the kernel kept for itself.

use _native::roce::icrc::IdentificationEffect;
use _native::roce::layout::{ETHERNET_BYTES, HEADERS_BYTES};
use _native::roce::packet::Bth;
use _native::roce::{
    DecodeError, Frame, Headers, Packet, Payload, decode, decode_unidentified, encode,
    opcode::Opcode,
};

/// A frame that was sent with one identification and is handed out with another.
fn frame(sent: u16, guessed: u16, length_bytes: u16) -> Vec<u8> {
    let packet = Packet {
        source_address: 0xC612_0001,
        destination_address: 0xC612_0002,
        identification: sent,
        bth: Bth { opcode: Opcode::WRITE_MIDDLE, ..Bth::default() },
        payload: Payload::Pattern { offset_bytes: 0, length_bytes },
        ..Packet::default()
    };
    let mut bytes = Vec::new();
    encode(&Frame::Roce(Box::new(packet.clone())), [0; 6], [0; 6], &mut bytes);
    let behind_udp = (bytes.len() - HEADERS_BYTES) as u16;
    bytes[..HEADERS_BYTES].copy_from_slice(&Headers::new(&packet, behind_udp).with(guessed));
    bytes
}

#[test]
fn the_identification_that_fits_the_icrc_is_found() {
    let mut effect = IdentificationEffect::new(0);
    for (sent, guessed) in [(0, 0), (0, 3), (14, 0), (0x1234, 0), (0xFFFF, 63)] {
        for length_bytes in [4, 1024, 4096] {
            let mut bytes = frame(sent, guessed, length_bytes);
            assert_eq!(decode(&bytes).is_ok(), sent == guessed);
            let decoded = decode_unidentified(&mut bytes, &mut effect);
            let Ok(Frame::Roce(packet)) = decoded else { panic!("{decoded:?}") };
            assert_eq!(packet.identification, sent);
            // The frame itself is put right, header checksum included.
            assert!(decode(&bytes).is_ok());
        }
    }
}

#[test]
fn damage_is_no_identification() {
    let mut effect = IdentificationEffect::new(0);
    for bit in 0..8 * 64 {
        let mut bytes = frame(7, 0, 64);
        bytes[ETHERNET_BYTES + 40 + bit / 8] ^= 1 << (bit % 8);
        let decoded = decode_unidentified(&mut bytes, &mut effect);
        assert!(matches!(decoded, Err(DecodeError::Icrc { .. })), "bit {bit}: {decoded:?}");
    }
}

#[test]
fn what_is_no_packet_is_refused_as_ever() {
    let mut effect = IdentificationEffect::new(0);
    for length in 0..60 {
        let whole = frame(7, 0, 64);
        assert!(decode_unidentified(&mut whole[..length].to_vec(), &mut effect).is_err());
    }
}
