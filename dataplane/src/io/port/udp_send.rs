//! One burst of datagrams as one call of `sendmsg` on a UDP socket, or as one call for each.
#![allow(unsafe_code)]

use super::burst::{Burst, Flow};
use crate::io::socket;
use crate::roce::icrc::IdentificationEffect;
use crate::roce::layout::{ETHERNET_BYTES, HEADERS_BYTES, ICRC_BYTES};
use std::io::{self, IoSlice};
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
    pub fn send(&mut self, port: u16, burst: &Burst, slices: &[IoSlice<'_>]) -> io::Result<()> {
        self.choose_class(burst.flow.traffic_class)?;
        let cut = (burst.segments > 1).then_some(burst.segment_bytes as u16);
        send_slices(&self.socket, port, burst.flow, cut, slices)
    }

    /// Give the datagrams of a burst to the kernel one by one. Each then has the identification 0,
    /// and its ICRC is put right for that.
    pub fn send_singly(
        &mut self,
        port: u16,
        burst: &Burst,
        slices: &[IoSlice<'_>],
    ) -> io::Result<()> {
        self.choose_class(burst.flow.traffic_class)?;
        let mut all: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        for (place, datagram) in all.chunks_mut(burst.segment_bytes).enumerate() {
            let covered_bytes = datagram.len() + HEADERS_BYTES - ETHERNET_BYTES - ICRC_BYTES;
            let effect = IdentificationEffect::new(covered_bytes);
            if let Some(icrc) = datagram.last_chunk_mut::<ICRC_BYTES>() {
                let found = u32::from_le_bytes(*icrc);
                *icrc = effect.replace(found, place as u16, 0).to_le_bytes();
            }
            send_slices(&self.socket, port, burst.flow, None, &[IoSlice::new(datagram)])?;
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

/// Send some bytes, which the kernel shall cut after every `cut` of them.
fn send_slices(
    socket: &UdpSocket,
    port: u16,
    flow: Flow,
    cut: Option<u16>,
    slices: &[IoSlice<'_>],
) -> io::Result<()> {
    // SAFETY: all-zero is a valid value of these plain C structures.
    let (mut name, mut header): (libc::sockaddr_in, libc::msghdr) = unsafe { (zeroed(), zeroed()) };
    name.sin_family = libc::AF_INET as libc::sa_family_t;
    name.sin_port = port.to_be();
    name.sin_addr.s_addr = u32::from(flow.destination).to_be();
    header.msg_name = (&mut name as *mut libc::sockaddr_in).cast();
    header.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // An `IoSlice` is an `iovec`; the kernel only reads what a sender's list leads to.
    header.msg_iov = slices.as_ptr().cast_mut().cast();
    header.msg_iovlen = slices.len();
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
