//! One burst of frames as one call of `sendmsg` on a packet socket.
//!
//! What is given is one long frame with one header, and before it a `virtio_net_hdr` that says how it
//! is to be cut. The kernel then counts up the identification and completes the checksums.
#![allow(unsafe_code)]

use super::burst::{Burst, Flow};
use super::netlink::Mac;
use crate::roce::layout::{ETHERNET_BYTES, HEADERS_BYTES, IPV4_BYTES, PROTOCOL_UDP, UDP_BYTES};
use crate::roce::packet::Ecn;
use crate::roce::{Headers, Packet};
use std::io::{self, IoSlice};
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct virtio_net_hdr`. Source: Linux `include/uapi/linux/virtio_net.h`.
pub const VNET_BYTES: usize = 10;
/// The checksum is that of the pseudo-header only.
const NEEDS_CHECKSUM: u8 = 1;
/// UDP datagrams, each with the header.
pub const GSO_UDP_L4: u8 = 5;

/// Both ends of a link.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Address of the port.
    pub address: Ipv4Addr,
    /// MAC address of its interface.
    pub mac: Mac,
    /// MAC address of the next hop.
    pub next_hop: Mac,
}

/// Give one burst to the kernel.
pub fn send(
    socket: BorrowedFd<'_>,
    ends: &Ends,
    burst: &Burst,
    slices: &[IoSlice<'_>],
) -> io::Result<()> {
    let is_cut = burst.segments > 1;
    let mut head = [0; VNET_BYTES + HEADERS_BYTES];
    let (vnet, header) = head.split_at_mut(VNET_BYTES);
    put_header(header, ends, burst.flow, 0, burst.bytes);
    if is_cut {
        let sum = pseudo_header_sum(ends, burst);
        header[HEADERS_BYTES - 2..].copy_from_slice(&sum.to_be_bytes());
        (vnet[0], vnet[1]) = (NEEDS_CHECKSUM, GSO_UDP_L4);
        let checksum_start = (ETHERNET_BYTES + IPV4_BYTES) as u16;
        for (place, value) in [
            (2, HEADERS_BYTES as u16),
            (4, burst.segment_bytes as u16),
            (6, checksum_start),
            (8, 6),
        ] {
            vnet[place..place + 2].copy_from_slice(&value.to_ne_bytes());
        }
    }
    send_behind(socket, &head, slices)
}

/// Give the frames of a burst to the kernel one by one, with the identifications that they have.
pub fn send_singly(
    socket: BorrowedFd<'_>,
    ends: &Ends,
    burst: &Burst,
    slices: &[IoSlice<'_>],
) -> io::Result<()> {
    let all: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
    for (place, datagram) in all.chunks(burst.segment_bytes).enumerate() {
        let mut head = [0; VNET_BYTES + HEADERS_BYTES];
        put_header(&mut head[VNET_BYTES..], ends, burst.flow, place as u16, datagram.len());
        send_behind(socket, &head, &[IoSlice::new(datagram)])?;
    }
    Ok(())
}

/// Ethernet, IPv4 and UDP header of what is as long as `bytes` behind them.
pub fn put_header(header: &mut [u8], ends: &Ends, flow: Flow, identification: u16, bytes: usize) {
    let packet = Packet {
        source_address: ends.address.into(),
        destination_address: flow.destination.into(),
        source_port: flow.source_port,
        dscp: flow.traffic_class >> 2,
        ecn: Ecn::from_bits(flow.traffic_class),
        ..Packet::default()
    };
    let mut headers = Headers::new(&packet, bytes as u16);
    headers.set_macs(ends.next_hop, ends.mac);
    header.copy_from_slice(&headers.with(identification));
}

/// Sum of the pseudo-header, which the kernel completes. Source: RFC 768.
fn pseudo_header_sum(ends: &Ends, burst: &Burst) -> u16 {
    let [source, destination] = [ends.address, burst.flow.destination].map(u32::from);
    let words = [source >> 16, source & 0xFFFF, destination >> 16, destination & 0xFFFF];
    let udp_bytes = (burst.bytes + UDP_BYTES) as u32;
    let sum = words.iter().sum::<u32>() + u32::from(PROTOCOL_UDP) + udp_bytes;
    let folded = (sum & 0xFFFF) + (sum >> 16);
    ((folded & 0xFFFF) + (folded >> 16)) as u16
}

/// Send a head and what stands behind it.
fn send_behind(socket: BorrowedFd<'_>, head: &[u8], slices: &[IoSlice<'_>]) -> io::Result<()> {
    let mut all = Vec::with_capacity(1 + slices.len());
    all.push(IoSlice::new(head));
    all.extend_from_slice(slices);
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut header: libc::msghdr = unsafe { zeroed() };
    // An `IoSlice` is an `iovec`; the kernel only reads what a sender's list leads to.
    header.msg_iov = all.as_ptr().cast_mut().cast();
    header.msg_iovlen = all.len();
    // SAFETY: `header` leads to live buffers of the lengths it names, which the kernel only reads
    // and does not keep.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &header, libc::MSG_DONTWAIT) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
