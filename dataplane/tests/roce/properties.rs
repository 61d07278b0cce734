//! What holds for every frame and for every string of bytes.

use _native::roce::opcode::{OPCODES, Opcode};
use _native::roce::packet::{Aeth, Bth, Ecn, PauseFrame, Reth};
use _native::roce::{Frame, Packet, Payload, decode, decode_forwarding, encode, pattern};
use proptest::collection::vec;
use proptest::prelude::*;

const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

fn bytes_of(frame: &Frame) -> Vec<u8> {
    let mut out = Vec::new();
    encode(frame, MACS[0], MACS[1], &mut out);
    out
}

prop_compose! {
    fn any_bth()(
        row in 0..OPCODES.len(),
        flags in any::<[bool; 5]>(),
        partition_key in any::<u16>(),
        destination_qp in 0..1u32 << 24,
        psn in 0..1u32 << 24,
    ) -> Bth {
        let [solicited, migration_request, fecn, becn, ack_request] = flags;
        let opcode = OPCODES[row].opcode;
        Bth {
            opcode, solicited, migration_request, fecn, becn, partition_key, destination_qp,
            ack_request, psn,
        }
    }
}

fn any_payload(opcode: Opcode) -> BoxedStrategy<Payload> {
    if !opcode.has_payload() {
        return Just(Payload::EMPTY).boxed();
    }
    let pattern = (0..pattern::PATTERN_BYTES as u64, 2..=4096u16)
        .prop_map(|(offset_bytes, length_bytes)| Payload::Pattern { offset_bytes, length_bytes });
    // Bytes that happen to be a slice of the pattern come back as such.
    let bytes = vec(any::<u8>(), 0..600).prop_map(|bytes| match pattern::locate(&bytes) {
        Some(offset_bytes) => Payload::Pattern { offset_bytes, length_bytes: bytes.len() as u16 },
        None => Payload::Bytes(bytes.into()),
    });
    prop_oneof![pattern, bytes].boxed()
}

prop_compose! {
    fn any_packet()(bth in any_bth())(
        bth in Just(bth),
        payload in any_payload(bth.opcode),
        addresses in any::<(u32, u32)>(),
        source_port in any::<u16>(),
        class in any::<u8>(),
        ttl in any::<u8>(),
        identification in any::<u16>(),
        reth in any::<(u64, u32, u32)>(),
        immediate in any::<u32>(),
        aeth in (any::<u8>(), 0..1u32 << 24),
    ) -> Packet {
        let row = bth.opcode.row().unwrap();
        let (virtual_address, remote_key, length_bytes) = reth;
        let reth = Reth { virtual_address, remote_key, length_bytes };
        Packet {
            source_address: addresses.0,
            destination_address: addresses.1,
            source_port,
            dscp: class >> 2,
            ecn: Ecn::from_bits(class),
            ttl,
            identification,
            bth,
            reth: if row.has_reth { reth } else { Reth::default() },
            immediate: if row.has_immediate { immediate } else { 0 },
            aeth: if row.has_aeth { Aeth { syndrome: aeth.0, msn: aeth.1 } } else { Aeth::default() },
            payload,
        }
    }
}

proptest! {
    #[test]
    fn a_packet_comes_back_from_its_bytes(packet in any_packet()) {
        let frame = Frame::Roce(Box::new(packet));
        let bytes = bytes_of(&frame);
        prop_assert_eq!(bytes.len() + 4, frame.wire_bytes() as usize);
        prop_assert_eq!(decode(&bytes), Ok(frame));
    }

    #[test]
    fn a_pause_frame_comes_back_from_its_bytes(
        source_mac in any::<[u8; 6]>(), class_enable in any::<u8>(), quanta in any::<[u16; 8]>()
    ) {
        let frame = Frame::Pause(Box::new(PauseFrame { source_mac, class_enable, quanta }));
        let bytes = bytes_of(&frame);
        prop_assert_eq!(bytes.len() + 4, frame.wire_bytes() as usize);
        prop_assert_eq!(decode(&bytes), Ok(frame));
    }

    #[test]
    fn a_forwarded_frame_is_unchanged(packet in any_packet()) {
        let bytes = bytes_of(&Frame::Roce(Box::new(packet.clone())));
        let forwarded = decode_forwarding(&bytes).unwrap();
        prop_assert_eq!(forwarded.wire_bytes(), packet.wire_bytes());
        let Frame::Roce(view) = &forwarded else { panic!("a packet") };
        prop_assert_eq!(view.payload.length_bytes(), packet.payload.length_bytes());
        prop_assert_eq!(bytes_of(&forwarded), bytes);
    }

    #[test]
    fn arbitrary_bytes_are_decoded_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
        let _ = decode_forwarding(&bytes);
    }

    #[test]
    fn a_damaged_frame_is_decoded_or_refused(
        packet in any_packet(), damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = bytes_of(&Frame::Roce(Box::new(packet)));
        for (place, value) in damage {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let _ = decode(&bytes);
        if let Ok(frame) = decode_forwarding(&bytes) {
            prop_assert!(bytes_of(&frame).len() <= bytes.len());
        }
        bytes.truncate(cut.index(bytes.len()));
        let _ = decode(&bytes);
        let _ = decode_forwarding(&bytes);
    }
}
