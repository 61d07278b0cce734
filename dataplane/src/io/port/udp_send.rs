//! One burst of datagrams as one call of `sendmsg` on a UDP socket, or as one call for each.
#![allow(unsafe_code)]

use super::burst::{Burst, Flow, MAX_SEGMENTS, joined};
use crate::io::socket;
use crate::roce::icrc::IdentificationEffect;
use crate::roce::layout::{ETHERNET_BYTES, HEADERS_BYTES, ICRC_BYTES};
use std::io;
use std::mem::zeroed;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Room for the control message with the segment length. For more than 36 bytes of them the kernel
/// asks for memory in each call.
type ControlBytes = [u64; 3];

/// The socket of one source port, and the traffic class that it gives to what it sends: most bursts
/// have that of the burst before.
#[derive(Debug)]
pub struct Sender {
    socket: UdpSocket,
    traffic_class: Option<u8>,
}

impl Sender {
    /// What sends by a bound socket.
    pub fn new(socket: UdpSocket) -> Self {
        Self { socket, traffic_class: None }
    }

    /// Give one burst to the kernel, for `port` of its destination.
    pub fn send(&mut self, port: u16, burst: &Burst, bytes: &[u8]) -> io::Result<()> {
        self.choose_class(burst.flow.traffic_class)?;
        let cut = (burst.segments.len() > 1).then_some(burst.segment_bytes as u16);
        send_segments(&self.socket, port, burst.flow, &burst.segments, cut, bytes)
    }

    /// Give the datagrams of a burst to the kernel one by one. Each then has the identification 0,
    /// and its ICRC is put right for that.
    pub fn send_singly(&mut self, port: u16, burst: &Burst, bytes: &[u8]) -> io::Result<()> {
        self.choose_class(burst.flow.traffic_class)?;
        for (place, &(start, end)) in burst.segments.iter().enumerate() {
            let mut datagram = bytes[start..end].to_vec();
            let (covered, icrc) = datagram.split_at_mut(end - start - ICRC_BYTES);
            let effect = IdentificationEffect::new(covered.len() + HEADERS_BYTES - ETHERNET_BYTES);
            let found = u32::from_le_bytes([icrc[0], icrc[1], icrc[2], icrc[3]]);
            icrc.copy_from_slice(&effect.replace(found, place as u16, 0).to_le_bytes());
            let whole = [(0, datagram.len())];
            send_segments(&self.socket, port, burst.flow, &whole, None, &datagram)?;
        }
        Ok(())
    }

    fn choose_class(&mut self, traffic_class: u8) -> io::Result<()> {
        if self.traffic_class != Some(traffic_class) {
            let value = traffic_class.into();
            socket::set_option(&self.socket, libc::SOL_IP, libc::IP_TOS, value)?;
            self.traffic_class = Some(traffic_class);
        }
        Ok(())
    }
}

impl AsFd for Sender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Send the bytes of some segments, which the kernel shall cut after every `cut` bytes.
fn send_segments(
    socket: &UdpSocket,
    port: u16,
    flow: Flow,
    segments: &[(usize, usize)],
    cut: Option<u16>,
    bytes: &[u8],
) -> io::Result<()> {
    // SAFETY: all-zero is a valid value of these plain C structures.
    let (mut name, mut slices, mut header): (
        libc::sockaddr_in,
        [libc::iovec; MAX_SEGMENTS],
        libc::msghdr,
    ) = unsafe { (zeroed(), zeroed(), zeroed()) };
    name.sin_family = libc::AF_INET as libc::sa_family_t;
    name.sin_port = port.to_be();
    name.sin_addr.s_addr = u32::from(flow.destination).to_be();
    let mut parts = [(0, 0); MAX_SEGMENTS];
    let count = joined(segments, &mut parts);
    for (slice, &(start, end)) in slices.iter_mut().zip(&parts[..count]) {
        // The kernel only reads what a sender's list leads to.
        *slice = libc::iovec {
            iov_base: bytes[start..end].as_ptr().cast_mut().cast(),
            iov_len: end - start,
        };
    }
    header.msg_name = (&mut name as *mut libc::sockaddr_in).cast();
    header.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    header.msg_iov = slices.as_mut_ptr();
    header.msg_iovlen = count;
    let mut control = cut.map(segment_length);
    if let Some(control) = &mut control {
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(control);
    }
    // SAFETY: `header` leads to live buffers of the lengths it names, which the kernel only reads
    // and does not keep.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &header, libc::MSG_DONTWAIT) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The length after which the kernel cuts, in the layout of `cmsghdr`: length, level and type, value,
/// in words of 8 bytes.
fn segment_length(cut: u16) -> ControlBytes {
    let [first, second] = cut.to_ne_bytes();
    let level_and_type = libc::SOL_UDP as u64 | (libc::UDP_SEGMENT as u64) << 32;
    [16 + 2, level_and_type, u64::from_ne_bytes([first, second, 0, 0, 0, 0, 0, 0])]
}
