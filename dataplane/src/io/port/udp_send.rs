//! One burst of datagrams as one call of `sendmsg` on a UDP socket, or as one call for each.
#![allow(unsafe_code)]

use super::burst::{Burst, Flow, MAX_SEGMENTS, joined};
use crate::roce::icrc::IdentificationEffect;
use crate::roce::layout::{ETHERNET_BYTES, HEADERS_BYTES, ICRC_BYTES};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Room for the two control messages: segment length and traffic class.
type ControlBytes = [u64; 8];

/// Give one burst to the kernel, for `port` of its destination.
pub fn send(socket: BorrowedFd<'_>, port: u16, burst: &Burst, bytes: &[u8]) -> io::Result<()> {
    let cut = (burst.segments.len() > 1).then_some(burst.segment_bytes as u16);
    send_segments(socket, port, burst.flow, &burst.segments, cut, bytes)
}

/// Give the datagrams of a burst to the kernel one by one. Each then has the identification 0, and
/// its ICRC is put right for that.
pub fn send_singly(
    socket: BorrowedFd<'_>,
    port: u16,
    burst: &Burst,
    bytes: &[u8],
) -> io::Result<()> {
    for (place, &(start, end)) in burst.segments.iter().enumerate() {
        let mut datagram = bytes[start..end].to_vec();
        let (covered, icrc) = datagram.split_at_mut(end - start - ICRC_BYTES);
        let effect = IdentificationEffect::new(covered.len() + HEADERS_BYTES - ETHERNET_BYTES);
        let found = u32::from_le_bytes([icrc[0], icrc[1], icrc[2], icrc[3]]);
        icrc.copy_from_slice(&effect.replace(found, place as u16, 0).to_le_bytes());
        send_segments(socket, port, burst.flow, &[(0, datagram.len())], None, &datagram)?;
    }
    Ok(())
}

/// Send the bytes of some segments, which the kernel shall cut after every `cut` bytes.
fn send_segments(
    socket: BorrowedFd<'_>,
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
    let mut control: ControlBytes = [0; 8];
    header.msg_name = (&mut name as *mut libc::sockaddr_in).cast();
    header.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    header.msg_iov = slices.as_mut_ptr();
    header.msg_iovlen = count;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = put_control(&mut control, flow.traffic_class, cut);
    // SAFETY: `header` leads to live buffers of the lengths it names, which the kernel only reads
    // and does not keep.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &header, libc::MSG_DONTWAIT) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Traffic class, and the length after which the kernel cuts, in the layout of `cmsghdr`: length,
/// level and type, value, in words of 8 bytes. Returns the length of all.
fn put_control(control: &mut ControlBytes, traffic_class: u8, cut: Option<u16>) -> usize {
    let head = |length: usize, level: libc::c_int, kind: libc::c_int| {
        [(16 + length) as u64, u64::from(level as u32) | u64::from(kind as u32) << 32]
    };
    control[..2].copy_from_slice(&head(4, libc::SOL_IP, libc::IP_TOS));
    control[2] = native_word(&i32::from(traffic_class).to_ne_bytes());
    let Some(cut) = cut else { return 24 };
    control[3..5].copy_from_slice(&head(2, libc::SOL_UDP, libc::UDP_SEGMENT));
    control[5] = native_word(&cut.to_ne_bytes());
    48
}

/// A word whose first bytes in memory are these.
fn native_word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}
