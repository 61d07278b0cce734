//! Bytes to frames.
//!
//! [`decode`] is for the endpoint that a frame is addressed to: everything is checked, the ICRC
//! included. [`decode_forwarding`] is for a switch: headers only, the rest is carried on unread.
//! Neither panics on any input.

use super::encode::ones_complement_sum;
use super::icrc::{IdentificationEffect, icrc};
use super::layout::*;
use super::opcode::{CNP_RESERVED_BYTES, Opcode, OpcodeRow};
use super::packet::{Aeth, Bth, Ecn, Frame, Packet, PauseFrame, Payload, Reth};
use super::{pattern, pattern_crc};

/// Why bytes are not a frame that is spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The frame ends within a header.
    #[error("truncated: {needed} bytes needed, {available} there")]
    Truncated {
        /// Bytes that the header asks for.
        needed: usize,
        /// Bytes that are left.
        available: usize,
    },
    /// Neither IPv4 nor MAC control.
    #[error("Ethernet type {0:#06x} is neither IPv4 nor MAC control")]
    EtherType(u16),
    /// Not version 4, or with options.
    #[error("first IP byte {0:#04x}: only IPv4 without options is spoken")]
    IpHeader(u8),
    /// The IPv4 header checksum is wrong.
    #[error("wrong IPv4 header checksum")]
    IpChecksum,
    /// A fragment, or a packet that may become one.
    #[error("IPv4 flags and fragment offset {0:#06x}, not DF alone")]
    Fragment(u16),
    /// Not UDP.
    #[error("IP protocol {0} is not UDP")]
    Protocol(u8),
    /// Not the port of RoCEv2.
    #[error("UDP destination port {0} is not 4791")]
    Port(u16),
    /// IP and UDP disagree about the length.
    #[error("IP carries {ip} bytes, UDP says {udp}")]
    Length {
        /// Bytes behind the IP header.
        ip: usize,
        /// The length in the UDP header.
        udp: usize,
    },
    /// An unknown version of the base transport header.
    #[error("transport header version {0}, not 0")]
    HeaderVersion(u8),
    /// Reserved bits are set, which a forwarded frame would lose.
    #[error("reserved bits are set")]
    Reserved,
    /// An operation that endpoints do not speak.
    #[error("opcode {0:#04x} is not spoken")]
    UnsupportedOpcode(u8),
    /// A payload where the opcode allows none, or pad without payload.
    #[error("opcode {opcode:#04x} with {length_bytes} bytes of payload and pad")]
    UnexpectedPayload {
        /// The opcode.
        opcode: u8,
        /// Bytes between headers and ICRC.
        length_bytes: usize,
    },
    /// Payload and pad do not fill whole words.
    #[error("{length_bytes} bytes of payload and pad are no multiple of 4")]
    Pad {
        /// Bytes between headers and ICRC.
        length_bytes: usize,
    },
    /// The invariant CRC is wrong: the frame was damaged.
    #[error("ICRC {found:#010x}, computed {computed:#010x}")]
    Icrc {
        /// In the frame.
        found: u32,
        /// Over the frame.
        computed: u32,
    },
    /// A MAC control frame that is no priority-based pause.
    #[error("MAC control opcode {0:#06x} is not priority-based flow control")]
    MacControl(u16),
}

/// Decodes the Ethernet frame (without FCS) that an endpoint received, and verifies its ICRC.
///
/// A payload that is a slice of the pattern becomes [`Payload::Pattern`] at its place in the
/// sequence; anything else is kept as [`Payload::Bytes`].
pub fn decode(bytes: &[u8]) -> Result<Frame, DecodeError> {
    decode_frame(bytes, own_body)
}

/// Decodes a frame like [`decode`] whose IP identification the kernel kept for itself: the one that
/// stands there is assumed, and put right if another fits the ICRC.
///
/// One in 65,536 damaged frames passes so; the UDP checksum and the payload's pattern are left to
/// find those. `effect` is kept from frame to frame, since most have the same length.
pub fn decode_unidentified(
    bytes: &mut [u8],
    effect: &mut IdentificationEffect,
) -> Result<Frame, DecodeError> {
    let (found, computed) = match decode(bytes) {
        Err(DecodeError::Icrc { found, computed }) => (found, computed),
        decoded => return decoded,
    };
    let (_, ip_packet) = bytes.split_at_mut(ETHERNET_BYTES);
    let covered_bytes = usize::from(u16_at(ip_packet, 2)).saturating_sub(ICRC_BYTES);
    if effect.covered_bytes() != covered_bytes {
        *effect = IdentificationEffect::new(covered_bytes);
    }
    let assumed = u16_at(ip_packet, 4);
    let Some(identification) = effect.solve(found, computed, assumed) else {
        return Err(DecodeError::Icrc { found, computed });
    };
    ip_packet[4..6].copy_from_slice(&identification.to_be_bytes());
    ip_packet[10..12].fill(0);
    let checksum = !ones_complement_sum(&ip_packet[..IPV4_BYTES]);
    ip_packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    decode(bytes)
}

/// Decodes the headers of an Ethernet frame (without FCS) that a switch passes on; payload, pad and
/// ICRC are kept as they are, unverified.
pub fn decode_forwarding(bytes: &[u8]) -> Result<Frame, DecodeError> {
    decode_frame(bytes, forwarded_body)
}

/// The part of a packet behind the base transport header, as the caller wants it read: from the
/// whole IP packet and the offset at which it starts.
type ReadBody = fn(&mut Packet, &[u8], usize, u8) -> Result<(), DecodeError>;

fn decode_frame(bytes: &[u8], read_body: ReadBody) -> Result<Frame, DecodeError> {
    let (ethernet, rest) = split(bytes, ETHERNET_BYTES)?;
    match u16_at(ethernet, ETHER_TYPE) {
        ETHER_TYPE_IPV4 => Ok(Frame::Roce(Box::new(packet(rest, read_body)?))),
        ETHER_TYPE_MAC_CONTROL => Ok(Frame::Pause(Box::new(pause(ethernet, rest)?))),
        other => Err(DecodeError::EtherType(other)),
    }
}

fn packet(bytes: &[u8], read_body: ReadBody) -> Result<Packet, DecodeError> {
    let mut packet = Packet::default();
    let ip_packet = ipv4(&mut packet, bytes)?;
    let udp_bytes = udp(&mut packet, &ip_packet[IPV4_BYTES..])?;
    let (header, _) = split(&udp_bytes[UDP_BYTES..], BTH_BYTES)?;
    let pad_bytes = bth(&mut packet.bth, header)?;
    read_body(&mut packet, ip_packet, IPV4_BYTES + UDP_BYTES + BTH_BYTES, pad_bytes)?;
    Ok(packet)
}

/// Reads the IPv4 header and returns the IP packet without Ethernet padding.
fn ipv4<'a>(packet: &mut Packet, bytes: &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let (header, _) = split(bytes, IPV4_BYTES)?;
    if header[0] != IPV4_VERSION_AND_LENGTH {
        return Err(DecodeError::IpHeader(header[0]));
    }
    if ones_complement_sum(header) != 0xFFFF {
        return Err(DecodeError::IpChecksum);
    }
    if header[9] != PROTOCOL_UDP {
        return Err(DecodeError::Protocol(header[9]));
    }
    match u16_at(header, 6) {
        DONT_FRAGMENT => {}
        other => return Err(DecodeError::Fragment(other)),
    }
    packet.dscp = header[1] >> 2;
    packet.ecn = Ecn::from_bits(header[1]);
    packet.identification = u16_at(header, 4);
    packet.ttl = header[8];
    packet.source_address = u32_at(header, 12);
    packet.destination_address = u32_at(header, 16);
    let total = usize::from(u16_at(header, 2)).max(IPV4_BYTES);
    Ok(split(bytes, total)?.0)
}

/// Reads the UDP header and returns the datagram with it.
fn udp<'a>(packet: &mut Packet, bytes: &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let (header, _) = split(bytes, UDP_BYTES)?;
    packet.source_port = u16_at(header, 0);
    match u16_at(header, 2) {
        ROCE_PORT => {}
        other => return Err(DecodeError::Port(other)),
    }
    match usize::from(u16_at(header, 4)) {
        udp if udp == bytes.len() => Ok(bytes),
        udp => Err(DecodeError::Length { ip: bytes.len(), udp }),
    }
}

/// Reads the base transport header and returns the pad count.
fn bth(bth: &mut Bth, header: &[u8]) -> Result<u8, DecodeError> {
    if header[1] & 0x0F != 0 {
        return Err(DecodeError::HeaderVersion(header[1] & 0x0F));
    }
    if header[4] & 0x3F != 0 || header[8] & 0x7F != 0 {
        return Err(DecodeError::Reserved);
    }
    bth.opcode = Opcode(header[0]);
    bth.solicited = header[1] & 0x80 != 0;
    bth.migration_request = header[1] & 0x40 != 0;
    bth.partition_key = u16_at(header, 2);
    bth.fecn = header[4] & 0x80 != 0;
    bth.becn = header[4] & 0x40 != 0;
    bth.destination_qp = u32_at(header, 4) & 0xFF_FFFF;
    bth.ack_request = header[8] & 0x80 != 0;
    bth.psn = u32_at(header, 8) & 0xFF_FFFF;
    Ok(header[1] >> 4 & 3)
}

/// Reads the extension headers that `row` names and returns what lies behind them.
fn extension_headers<'a>(
    packet: &mut Packet,
    row: &OpcodeRow,
    bytes: &'a [u8],
) -> Result<&'a [u8], DecodeError> {
    let (mut headers, rest) = split(bytes, usize::from(row.extension_bytes))?;
    if row.has_reth {
        packet.reth = Reth {
            virtual_address: u64::from(u32_at(headers, 0)) << 32 | u64::from(u32_at(headers, 4)),
            remote_key: u32_at(headers, 8),
            length_bytes: u32_at(headers, 12),
        };
        headers = &headers[16..];
    }
    if row.has_immediate {
        packet.immediate = u32_at(headers, 0);
    }
    if row.has_aeth {
        packet.aeth = Aeth { syndrome: headers[0], msn: u32_at(headers, 0) & 0xFF_FFFF };
    }
    if packet.is_cnp() && headers != [0; CNP_RESERVED_BYTES] {
        return Err(DecodeError::Reserved);
    }
    Ok(rest)
}

fn own_body(
    packet: &mut Packet,
    ip_packet: &[u8],
    start: usize,
    pad_bytes: u8,
) -> Result<(), DecodeError> {
    let (covered, icrc_bytes) = split_end(ip_packet, ICRC_BYTES)?;
    let found = u32_at(icrc_bytes, 0).swap_bytes();
    let opcode = packet.bth.opcode;
    let known = located(covered, start, opcode, pad_bytes);
    let computed = known
        .and_then(|known| known.icrc(covered))
        .or_else(|| icrc(covered))
        .ok_or(DecodeError::Truncated { needed: start + ICRC_BYTES, available: ip_packet.len() })?;
    if found != computed {
        return Err(DecodeError::Icrc { found, computed });
    }
    let row = opcode.row().ok_or(DecodeError::UnsupportedOpcode(opcode.0))?;
    let padded = extension_headers(packet, row, &covered[start..])?;
    let (payload, pad) = split_end(padded, usize::from(pad_bytes))?;
    let stray_pad = payload.is_empty() && !pad.is_empty();
    if stray_pad || (!row.has_payload && !padded.is_empty()) {
        let length_bytes = padded.len();
        return Err(DecodeError::UnexpectedPayload { opcode: opcode.0, length_bytes });
    }
    if padded.len() % 4 != 0 {
        return Err(DecodeError::Pad { length_bytes: padded.len() });
    }
    packet.payload = match known
        .map(|known| known.offset_bytes)
        .or_else(|| pattern::locate(payload))
    {
        Some(offset_bytes) => Payload::Pattern { offset_bytes, length_bytes: payload.len() as u16 },
        None => Payload::Bytes(payload.into()),
    };
    Ok(())
}

/// A payload of a full packet that is a slice of the pattern.
#[derive(Clone, Copy)]
struct Located {
    /// Where it starts in the bytes that the ICRC covers.
    start: usize,
    /// Where it ends there.
    end: usize,
    /// Where it starts in the pattern.
    offset_bytes: u64,
}

impl Located {
    /// The ICRC, for which the payload need not be read again.
    fn icrc(&self, covered: &[u8]) -> Option<u32> {
        let (headers, pad) = (icrc(&covered[..self.start])?, &covered[self.end..]);
        let length_bytes = (self.end - self.start) as u16;
        let crc = pattern_crc::append(headers, self.offset_bytes, length_bytes);
        Some(pattern_crc::append_bytes(crc, pad))
    }
}

/// The payload, if it has the length of a full packet's and is a slice of the pattern.
fn located(covered: &[u8], start: usize, opcode: Opcode, pad_bytes: u8) -> Option<Located> {
    let row = opcode.row().filter(|row| row.has_payload)?;
    let start = start + usize::from(row.extension_bytes);
    let end = covered.len().checked_sub(pad_bytes.into())?;
    let payload = covered.get(start..end).filter(|payload| pattern_crc::is_quick(payload.len()))?;
    Some(Located { start, end, offset_bytes: pattern::locate(payload)? })
}

fn forwarded_body(
    packet: &mut Packet,
    ip_packet: &[u8],
    start: usize,
    pad_bytes: u8,
) -> Result<(), DecodeError> {
    let mut rest = &ip_packet[start..];
    if let Some(row) = packet.bth.opcode.row() {
        rest = extension_headers(packet, row, rest)?;
    }
    split(rest, ICRC_BYTES + usize::from(pad_bytes))?;
    packet.payload = Payload::Forwarded { bytes: rest.into(), pad_bytes };
    Ok(())
}

fn pause(ethernet: &[u8], bytes: &[u8]) -> Result<PauseFrame, DecodeError> {
    let (control, _) = split(bytes, 20)?;
    match u16_at(control, 0) {
        PAUSE_OPCODE => {}
        other => return Err(DecodeError::MacControl(other)),
    }
    if control[2] != 0 {
        return Err(DecodeError::Reserved);
    }
    let source_mac = std::array::from_fn(|n| ethernet[6 + n]);
    let quanta = std::array::from_fn(|n| u16_at(control, 4 + 2 * n));
    Ok(PauseFrame { source_mac, class_enable: control[3], quanta })
}

#[inline]
fn split(bytes: &[u8], needed: usize) -> Result<(&[u8], &[u8]), DecodeError> {
    let available = bytes.len();
    bytes.split_at_checked(needed).ok_or(DecodeError::Truncated { needed, available })
}

/// Splits the last `needed` bytes off.
#[inline]
fn split_end(bytes: &[u8], needed: usize) -> Result<(&[u8], &[u8]), DecodeError> {
    let available = bytes.len();
    let start = available.checked_sub(needed);
    start.map(|start| bytes.split_at(start)).ok_or(DecodeError::Truncated { needed, available })
}

#[inline]
fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes([bytes[offset], bytes[offset + 1]])
}

#[inline]
fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from(u16_at(bytes, offset)) << 16 | u32::from(u16_at(bytes, offset + 2))
}
