//! Where the fields of a frame stand. Offsets count from the start of the header named.
//!
//! Source: IEEE 802.3 (Ethernet), RFC 791 (IPv4), RFC 768 (UDP), IBTA volume 1 section 9 and annex
//! A17 (RoCEv2), IEEE 802.1Qbb (priority-based flow control).

/// Ethernet header: destination, source, type.
pub const ETHERNET_BYTES: usize = 14;
/// Offset of the type in an Ethernet header.
pub const ETHER_TYPE: usize = 12;
/// Type of IPv4.
pub const ETHER_TYPE_IPV4: u16 = 0x0800;
/// Type of MAC control frames.
pub const ETHER_TYPE_MAC_CONTROL: u16 = 0x8808;

/// IPv4 header without options.
pub const IPV4_BYTES: usize = 20;
/// Version 4, five words: the first byte of an IPv4 header without options.
pub const IPV4_VERSION_AND_LENGTH: u8 = 0x45;
/// Flags and fragment offset of a whole packet that must not be fragmented.
pub const DONT_FRAGMENT: u16 = 0x4000;
/// Protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;
/// IPv6 header.
pub const IPV6_BYTES: usize = 40;

/// UDP header.
pub const UDP_BYTES: usize = 8;
/// Destination port of RoCEv2. Source: IANA.
pub const ROCE_PORT: u16 = 4791;

/// All that stands before the base transport header.
pub const HEADERS_BYTES: usize = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES;

/// Base transport header.
pub const BTH_BYTES: usize = 12;
/// Extension headers behind it, at most: RETH and immediate data.
pub const MAX_EXTENSION_BYTES: usize = 16 + 4;
/// Invariant CRC.
pub const ICRC_BYTES: usize = 4;

/// Destination of pause frames; never forwarded.
pub const PAUSE_DESTINATION: [u8; 6] = [0x01, 0x80, 0xC2, 0x00, 0x00, 0x01];
/// MAC control opcode of priority-based flow control.
pub const PAUSE_OPCODE: u16 = 0x0101;
/// Smallest frame without FCS, to which a pause frame is padded.
pub const MIN_FRAME_BYTES: usize = 60;
