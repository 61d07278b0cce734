//! Frames of other implementations, byte for byte.

use super::frames::*;
use _native::roce::opcode::Opcode;
use _native::roce::packet::{Aeth, Bth, Ecn, PauseFrame, Reth};
use _native::roce::{
    DecodeError, Frame, Packet, Payload, QueuePairAddress, cnp, decode, decode_forwarding, encode,
    icrc,
};

const REQUESTER: u32 = 0x0A00_0001;
const RESPONDER: u32 = 0x0A00_0002;
const MAC_1: [u8; 6] = [2, 0, 0, 0, 0, 1];
const MAC_2: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A packet as the software RNIC's peer sent it: DSCP 26, ECT(0), identification 1.
fn request(opcode: Opcode, psn: u32) -> Packet {
    let bth = Bth { opcode, destination_qp: 0x12, ack_request: true, psn, ..Bth::default() };
    Packet {
        source_address: REQUESTER,
        destination_address: RESPONDER,
        source_port: 0xC001,
        dscp: 26,
        ecn: Ecn::Ect0,
        identification: 1,
        bth,
        ..Packet::default()
    }
}

fn acknowledge(psn: u32, syndrome: u8) -> Packet {
    let bth = Bth { opcode: Opcode::ACKNOWLEDGE, destination_qp: 0x11, psn, ..Bth::default() };
    Packet {
        source_address: RESPONDER,
        destination_address: REQUESTER,
        bth,
        aeth: Aeth { syndrome, msn: 1 },
        ..request(Opcode::ACKNOWLEDGE, psn)
    }
}

fn bytes_of(packet: &Packet) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&Frame::Roce(Box::new(packet.clone())), MAC_1, MAC_2, &mut out);
    assert_eq!(out.len() + 4, packet.wire_bytes() as usize);
    out
}

fn packet_of(bytes: &[u8]) -> Packet {
    match decode(bytes).unwrap() {
        Frame::Roce(packet) => *packet,
        Frame::Pause(_) => panic!("a RoCEv2 packet was expected"),
    }
}

/// Both directions agree with the vector.
fn expect(packet: &Packet, vector: &str) {
    assert_eq!(bytes_of(packet), hex(vector));
    assert_eq!(packet_of(&hex(vector)), *packet);
}

fn expect_icrc(ip_packet: &[u8]) {
    let (covered, found) = ip_packet.split_at(ip_packet.len() - 4);
    assert_eq!(icrc(covered).unwrap().to_le_bytes(), found);
}

#[test]
fn t1_v1_a_hardware_cnp_is_decoded_and_encoded() {
    let packet = packet_of(&hex(V1));
    assert!(packet.is_cnp() && packet.bth.becn && !packet.bth.fecn);
    assert_eq!((packet.bth.destination_qp, packet.source_port), (0x118, 0));
    assert_eq!((packet.dscp, packet.ecn), (48, Ecn::Ect0));
    let mut out = Vec::new();
    let macs = ([0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32], [0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2]);
    encode(&Frame::Roce(Box::new(packet)), macs.0, macs.1, &mut out);
    assert_eq!(out, hex(V1));
}

#[test]
fn t1_v2_and_v3_have_the_icrc_of_the_vectors_over_ipv4_and_ipv6() {
    expect_icrc(&hex(V2));
    expect_icrc(&hex(V3));
}

#[test]
fn t1_v2_is_forwarded_although_endpoints_do_not_speak_its_opcode() {
    let mut frame = [MAC_2, MAC_1].concat();
    frame.extend([8, 0]);
    frame.extend(hex(V2));
    assert_eq!(decode(&frame), Err(DecodeError::UnsupportedOpcode(0x24)));
    let Ok(Frame::Roce(packet)) = decode_forwarding(&frame) else { panic!("a RoCEv2 packet") };
    assert!(packet.bth.migration_request);
    assert_eq!(packet.payload.length_bytes(), 18);
    // A zero UDP checksum is as good over IPv4 and outside the ICRC.
    frame[14 + 26..14 + 28].fill(0);
    assert_eq!(bytes_of(&packet), frame);
}

#[test]
fn t1_f1_a_write_with_three_bytes_of_pad() {
    let reth = Reth { virtual_address: 0x7f00_0000_1000, remote_key: 0x1234, length_bytes: 5 };
    let payload = Payload::Bytes(b"hello"[..].into());
    expect(&Packet { reth, payload, ..request(Opcode::WRITE_ONLY, 0x100) }, F1);
}

#[test]
fn t1_f2_an_acknowledgement() {
    expect(&acknowledge(0x100, 0x1F), F2);
}

#[test]
fn t1_f3_a_sequence_error() {
    expect(&acknowledge(0x103, 0x60), F3);
}

#[test]
fn t1_f4_a_congestion_notification() {
    let address = QueuePairAddress {
        local_address: RESPONDER,
        remote_address: REQUESTER,
        local_qp: 0x12,
        remote_qp: 0x11,
        source_port: 0xC001,
    };
    expect(&Packet { identification: 1, ..cnp(&address, 48) }, F4);
}

#[test]
fn t1_f5_the_first_packet_of_a_write() {
    let reth = Reth { virtual_address: 0x7f00_0000_2000, remote_key: 0x1234, length_bytes: 2500 };
    let bytes: Vec<u8> = (0..1024).map(|n| n as u8).collect();
    let mut packet = request(Opcode::WRITE_FIRST, 0x101);
    packet.bth.ack_request = false;
    let packet = Packet { reth, payload: Payload::Bytes(bytes.into()), ..packet };
    let frame = bytes_of(&packet);
    assert_eq!(frame[frame.len() - 4..], hex("6bf2d76b"));
    assert_eq!(packet_of(&frame), packet);
}

#[test]
fn t1_f6_a_receiver_not_ready() {
    expect(&acknowledge(0x104, 0x20 | 12), F6);
}

#[test]
fn t1_f7_a_write_of_nothing_with_immediate_data() {
    expect(&Packet { immediate: 2500, ..request(Opcode::WRITE_ONLY_IMMEDIATE, 0x104) }, F7);
}

#[test]
fn t1_f8_a_read_request() {
    let reth = Reth { virtual_address: 0x7f00_0000_2000, remote_key: 0x1234, length_bytes: 2500 };
    expect(&Packet { reth, ..request(Opcode::READ_REQUEST, 0x105) }, F8);
}

#[test]
fn t16_a_pause_frame_has_the_bytes_of_802_1qbb() {
    let mut quanta = [0; 8];
    quanta[3] = 0xFFFF;
    let pause = PauseFrame { source_mac: MAC_1, class_enable: 1 << 3, quanta };
    let frame = Frame::Pause(Box::new(pause));
    let mut out = Vec::new();
    encode(&frame, MAC_2, MAC_2, &mut out);
    assert_eq!(out, hex(XOFF_PRIORITY_3));
    assert_eq!(decode(&out).as_ref(), Ok(&frame));
    assert_eq!(decode_forwarding(&out), Ok(frame));
}

#[test]
fn a_global_pause_is_refused() {
    let mut frame = hex(XOFF_PRIORITY_3);
    frame[15] = 0x01;
    frame[14] = 0x00;
    assert_eq!(decode(&frame), Err(DecodeError::MacControl(1)));
}

#[test]
fn t2_a_switch_may_mark_and_decrement_without_touching_the_icrc() {
    let Ok(Frame::Roce(mut packet)) = decode_forwarding(&hex(F1)) else { panic!("a packet") };
    packet.ecn = Ecn::Ce;
    packet.ttl -= 1;
    let frame = bytes_of(&packet);
    assert_eq!(frame[15], 0x6B);
    assert_eq!(frame[22..26], hex("3f11273b"));
    assert_eq!(frame[frame.len() - 4..], hex("a3f4133a"));
    assert_eq!(packet_of(&frame).payload, Payload::Bytes(b"hello"[..].into()));
}

#[test]
fn t2_a_changed_identification_breaks_the_icrc() {
    let Ok(Frame::Roce(mut packet)) = decode_forwarding(&hex(F1)) else { panic!("a packet") };
    packet.identification = 2;
    assert!(matches!(decode(&bytes_of(&packet)), Err(DecodeError::Icrc { .. })));
}

#[test]
fn a_payload_without_its_pad_is_refused() {
    let payload = Payload::Forwarded { bytes: [1, 2, 3, 0, 0, 0, 0].into(), pad_bytes: 0 };
    let mut frame = bytes_of(&Packet { payload, ..request(Opcode::SEND_ONLY, 0) });
    let end = frame.len() - 4;
    let crc = icrc(&frame[14..end]).unwrap().to_le_bytes();
    frame[end..].copy_from_slice(&crc);
    assert_eq!(decode(&frame), Err(DecodeError::Pad { length_bytes: 3 }));
}

#[test]
fn any_flipped_bit_behind_the_headers_is_noticed() {
    let frame = hex(F1);
    for bit in (14 + 20) * 8..frame.len() * 8 {
        let mut damaged = frame.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        // FECN, BECN and the UDP checksum may change on the way.
        let byte = bit / 8 - 34;
        let masked = (6..8).contains(&byte) || byte == 12 && bit % 8 >= 6;
        assert_eq!(decode(&damaged).is_ok(), masked, "bit {bit}");
    }
}

#[test]
fn ethernet_padding_behind_the_packet_is_ignored() {
    let mut frame = hex(F2);
    frame.extend([0; 7]);
    assert_eq!(packet_of(&frame), acknowledge(0x100, 0x1F));
}
