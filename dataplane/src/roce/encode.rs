//! Frames to bytes.

use super::icrc::icrc;
use super::layout::*;
use super::opcode::CNP_RESERVED_BYTES;
use super::packet::{Bth, Frame, Packet, PauseFrame, Payload};
use super::{pattern, pattern_crc};
use crate::units::FCS_BYTES;

/// Appends `frame` to `out` as an Ethernet frame without FCS.
///
/// The MAC addresses belong to the link that the frame is about to cross; a pause frame brings its
/// own. The UDP checksum is zero, which IPv4 permits and RoCEv2 endpoints send; the ICRC covers the
/// same bytes. A [`Payload::Forwarded`] is written as it came, ICRC included.
pub fn encode(frame: &Frame, source_mac: [u8; 6], destination_mac: [u8; 6], out: &mut Vec<u8>) {
    match frame {
        Frame::Roce(packet) => {
            put_ethernet(out, destination_mac, source_mac, ETHER_TYPE_IPV4);
            put_packet(out, packet);
        }
        Frame::Pause(pause) => put_pause(out, pause),
    }
}

/// Appends what stands behind the UDP header of a packet. The ICRC is that of the whole packet.
pub fn encode_datagram(packet: &Packet, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&bth(&packet.bth, pad_bytes(&packet.payload)));
    put_extension_headers(out, packet);
    let mut headers = [0; HEADERS_BYTES - ETHERNET_BYTES + BTH_BYTES + MAX_EXTENSION_BYTES];
    let (ip, rest) = headers.split_at_mut(IPV4_BYTES);
    let (udp, rest) = rest.split_at_mut(UDP_BYTES);
    let length = behind_ip_bytes(packet);
    ip.copy_from_slice(&ipv4_header(packet, length));
    udp.copy_from_slice(&udp_header(packet.source_port, length));
    let transport_bytes = out.len() - start;
    rest[..transport_bytes].copy_from_slice(&out[start..]);
    let crc = crc_before(&packet.payload, &headers[..IPV4_BYTES + UDP_BYTES + transport_bytes]);
    put_payload(out, &packet.payload, crc);
}

/// Ethernet, IPv4 and UDP headers of equally long packets that differ in their identification, for a
/// node that is given only what stands behind. The MAC addresses are zero.
#[derive(Clone, Copy, Debug)]
pub struct Headers {
    /// Of identification 0.
    bytes: [u8; HEADERS_BYTES],
}

impl Headers {
    /// Those of a packet with so many bytes behind them; its identification is ignored.
    pub fn new(packet: &Packet, behind_udp_bytes: u16) -> Self {
        let behind_ip = behind_udp_bytes + UDP_BYTES as u16;
        let mut bytes = [0; HEADERS_BYTES];
        let (ethernet, rest) = bytes.split_at_mut(ETHERNET_BYTES);
        let (ip, udp) = rest.split_at_mut(IPV4_BYTES);
        ethernet[ETHER_TYPE..].copy_from_slice(&ETHER_TYPE_IPV4.to_be_bytes());
        ip.copy_from_slice(&ipv4_header(packet, behind_ip));
        ip[4..6].fill(0);
        ip[10..12].fill(0);
        let checksum = !ones_complement_sum(ip);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        udp.copy_from_slice(&udp_header(packet.source_port, behind_ip));
        Self { bytes }
    }

    /// Set the MAC addresses.
    pub fn set_macs(&mut self, destination: [u8; 6], source: [u8; 6]) {
        self.bytes[..6].copy_from_slice(&destination);
        self.bytes[6..12].copy_from_slice(&source);
    }

    /// Those with an identification. The checksum follows by RFC 1624.
    #[inline]
    pub fn with(&self, identification: u16) -> [u8; HEADERS_BYTES] {
        let mut bytes = self.bytes;
        self.write(identification, &mut bytes);
        bytes
    }

    /// Write those with an identification where a frame begins.
    #[inline]
    pub fn write(&self, identification: u16, frame: &mut [u8; HEADERS_BYTES]) {
        *frame = self.bytes;
        let checksum =
            u16::from_be_bytes([self.bytes[ETHERNET_BYTES + 10], self.bytes[ETHERNET_BYTES + 11]]);
        let (sum, carry) = (!checksum).overflowing_add(identification);
        let checksum = !(sum + u16::from(carry));
        frame[ETHERNET_BYTES + 4..ETHERNET_BYTES + 6]
            .copy_from_slice(&identification.to_be_bytes());
        frame[ETHERNET_BYTES + 10..ETHERNET_BYTES + 12].copy_from_slice(&checksum.to_be_bytes());
    }
}

fn put_ethernet(out: &mut Vec<u8>, destination: [u8; 6], source: [u8; 6], ether_type: u16) {
    out.extend_from_slice(&destination);
    out.extend_from_slice(&source);
    out.extend_from_slice(&ether_type.to_be_bytes());
}

fn put_packet(out: &mut Vec<u8>, packet: &Packet) {
    let start = out.len();
    let behind_ip = behind_ip_bytes(packet);
    out.extend_from_slice(&ipv4_header(packet, behind_ip));
    out.extend_from_slice(&udp_header(packet.source_port, behind_ip));
    out.extend_from_slice(&bth(&packet.bth, pad_bytes(&packet.payload)));
    put_extension_headers(out, packet);
    let crc = crc_before(&packet.payload, &out[start..]);
    put_payload(out, &packet.payload, crc);
}

fn behind_ip_bytes(packet: &Packet) -> u16 {
    (packet.wire_bytes() as usize - ETHERNET_BYTES - IPV4_BYTES - FCS_BYTES as usize) as u16
}

fn ipv4_header(packet: &Packet, payload_bytes: u16) -> [u8; IPV4_BYTES] {
    let mut header = [0; IPV4_BYTES];
    header[0] = IPV4_VERSION_AND_LENGTH;
    header[1] = packet.dscp << 2 | packet.ecn as u8;
    header[2..4].copy_from_slice(&(payload_bytes + IPV4_BYTES as u16).to_be_bytes());
    header[4..6].copy_from_slice(&packet.identification.to_be_bytes());
    header[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
    header[8] = packet.ttl;
    header[9] = PROTOCOL_UDP;
    header[12..16].copy_from_slice(&packet.source_address.to_be_bytes());
    header[16..20].copy_from_slice(&packet.destination_address.to_be_bytes());
    let checksum = !ones_complement_sum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

/// Sum of 16-bit words with end-around carry; `0xFFFF` over a header with a right checksum.
/// Source: RFC 1071.
pub(super) fn ones_complement_sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    ((folded & 0xFFFF) + (folded >> 16)) as u16
}

fn udp_header(source_port: u16, length_bytes: u16) -> [u8; UDP_BYTES] {
    let mut header = [0; UDP_BYTES];
    header[0..2].copy_from_slice(&source_port.to_be_bytes());
    header[2..4].copy_from_slice(&ROCE_PORT.to_be_bytes());
    header[4..6].copy_from_slice(&length_bytes.to_be_bytes());
    header
}

fn bth(bth: &Bth, pad_bytes: u8) -> [u8; BTH_BYTES] {
    let mut header = [0; BTH_BYTES];
    header[0] = bth.opcode.0;
    header[1] =
        u8::from(bth.solicited) << 7 | u8::from(bth.migration_request) << 6 | pad_bytes << 4;
    header[2..4].copy_from_slice(&bth.partition_key.to_be_bytes());
    header[4..8].copy_from_slice(&bth.destination_qp.to_be_bytes());
    header[4] = u8::from(bth.fecn) << 7 | u8::from(bth.becn) << 6;
    header[8..12].copy_from_slice(&bth.psn.to_be_bytes());
    header[8] = u8::from(bth.ack_request) << 7;
    header
}

fn pad_bytes(payload: &Payload) -> u8 {
    match payload {
        Payload::Forwarded { pad_bytes, .. } => *pad_bytes,
        own => (own.length_bytes().wrapping_neg() & 3) as u8,
    }
}

fn put_extension_headers(out: &mut Vec<u8>, packet: &Packet) {
    let Some(row) = packet.bth.opcode.row() else { return };
    if row.has_reth {
        out.extend_from_slice(&packet.reth.virtual_address.to_be_bytes());
        out.extend_from_slice(&packet.reth.remote_key.to_be_bytes());
        out.extend_from_slice(&packet.reth.length_bytes.to_be_bytes());
    }
    if row.has_immediate {
        out.extend_from_slice(&packet.immediate.to_be_bytes());
    }
    if row.has_aeth {
        let msn = packet.aeth.msn.to_be_bytes();
        out.extend_from_slice(&[packet.aeth.syndrome, msn[1], msn[2], msn[3]]);
    }
    if packet.is_cnp() {
        out.extend_from_slice(&[0; CNP_RESERVED_BYTES]);
    }
}

/// Appends payload, pad and the ICRC, given the CRC of the headers.
fn put_payload(out: &mut Vec<u8>, payload: &Payload, crc: u32) {
    let crc = match payload {
        Payload::Pattern { offset_bytes, length_bytes } => {
            out.extend_from_slice(pattern::slice(*offset_bytes, *length_bytes));
            pattern_crc::append(crc, *offset_bytes, *length_bytes)
        }
        Payload::Bytes(bytes) => {
            out.extend_from_slice(bytes);
            pattern_crc::append_bytes(crc, bytes)
        }
        Payload::Forwarded { bytes, .. } => return out.extend_from_slice(bytes),
    };
    put_end(out, crc, pad_bytes(payload));
}

/// The part of the ICRC that comes from the headers, from the IP header on; of no use for a payload
/// that brings its ICRC.
fn crc_before(payload: &Payload, headers: &[u8]) -> u32 {
    match payload {
        Payload::Forwarded { .. } => 0,
        _ => icrc(headers).expect("they begin with a whole IPv4 header and hold the transport's"),
    }
}

/// Appends pad and ICRC, given the CRC of all before them.
fn put_end(out: &mut Vec<u8>, crc: u32, pad_bytes: u8) {
    let pad = &[0; 3][..usize::from(pad_bytes)];
    out.extend_from_slice(pad);
    out.extend_from_slice(&pattern_crc::append_bytes(crc, pad).to_le_bytes());
}

fn put_pause(out: &mut Vec<u8>, pause: &PauseFrame) {
    let start = out.len();
    put_ethernet(out, PAUSE_DESTINATION, pause.source_mac, ETHER_TYPE_MAC_CONTROL);
    out.extend_from_slice(&PAUSE_OPCODE.to_be_bytes());
    out.extend_from_slice(&u16::from(pause.class_enable).to_be_bytes());
    for quanta in pause.quanta {
        out.extend_from_slice(&quanta.to_be_bytes());
    }
    out.resize(start + MIN_FRAME_BYTES, 0);
}

#[cfg(test)]
mod tests {
    use super::super::opcode::Opcode;
    use super::*;

    #[test]
    fn a_datagram_is_the_end_of_the_frame() {
        let lengths = [0, 1, 2, 3, 511, 512, 513, 1024, 4093, 4096, 9000];
        for (opcode, length_bytes) in
            [Opcode::WRITE_FIRST, Opcode::WRITE_MIDDLE, Opcode::WRITE_ONLY_IMMEDIATE]
                .into_iter()
                .flat_map(|opcode| lengths.map(|length| (opcode, length)))
        {
            let packet = Packet {
                bth: Bth { opcode, psn: 77, ..Bth::default() },
                identification: 9,
                immediate: 5,
                payload: Payload::Pattern { offset_bytes: 65_000, length_bytes },
                ..Packet::default()
            };
            let mut datagram = vec![0xEE];
            encode_datagram(&packet, &mut datagram);
            let mut frame = Vec::new();
            encode(&Frame::Roce(Box::new(packet)), [0; 6], [0; 6], &mut frame);
            assert_eq!(datagram[1..], frame[HEADERS_BYTES..], "{opcode:?}, {length_bytes} B");
        }
    }

    #[test]
    fn headers_are_those_of_an_encoded_packet() {
        for identification in [0, 1, 63, 0x1234, 0x8000, 0xFFFF] {
            let packet = Packet {
                source_address: 0xC612_0001,
                destination_address: 0xC613_FFFE,
                dscp: 26,
                identification,
                ..Packet::default()
            };
            let mut headers = Headers::new(&packet, 16);
            headers.set_macs([1; 6], [2; 6]);
            let mut encoded = Vec::new();
            encode(&Frame::Roce(Box::new(packet)), [2; 6], [1; 6], &mut encoded);
            assert_eq!(headers.with(identification), encoded[..HEADERS_BYTES], "{identification}");
        }
    }
}
