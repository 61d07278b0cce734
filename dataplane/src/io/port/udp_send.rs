//! One burst of datagrams as one call of `sendmsg` on a UDP socket.
#![allow(unsafe_code)]

use super::burst::{Burst, MAX_SEGMENTS, joined};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Room for the two control messages: segment length and traffic class.
type ControlBytes = [u64; 8];

/// Give one burst to the kernel, for `port` of its destination.
pub fn send(socket: BorrowedFd<'_>, port: u16, burst: &Burst, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: all-zero is a valid value of these plain C structures.
    let (mut name, mut slices, mut header): (
        libc::sockaddr_in,
        [libc::iovec; MAX_SEGMENTS],
        libc::msghdr,
    ) = unsafe { (zeroed(), zeroed(), zeroed()) };
    name.sin_family = libc::AF_INET as libc::sa_family_t;
    name.sin_port = port.to_be();
    name.sin_addr.s_addr = u32::from(burst.flow.destination).to_be();
    let mut parts = [(0, 0); MAX_SEGMENTS];
    let count = joined(&burst.segments, &mut parts);
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
    header.msg_controllen = put_control(&mut control, burst);
    // SAFETY: `header` leads to live buffers of the lengths it names, which the kernel only reads
    // and does not keep.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &header, libc::MSG_DONTWAIT) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Traffic class, and segment length of more than one datagram, in the layout of `cmsghdr`: length,
/// level and type, value, in words of 8 bytes. Returns the length of all.
fn put_control(control: &mut ControlBytes, burst: &Burst) -> usize {
    let head = |length: usize, level: libc::c_int, kind: libc::c_int| {
        [(16 + length) as u64, u64::from(level as u32) | u64::from(kind as u32) << 32]
    };
    control[..2].copy_from_slice(&head(4, libc::SOL_IP, libc::IP_TOS));
    control[2] = native_word(&i32::from(burst.flow.traffic_class).to_ne_bytes());
    if burst.segments.len() == 1 {
        return 24;
    }
    control[3..5].copy_from_slice(&head(2, libc::SOL_UDP, libc::UDP_SEGMENT));
    control[5] = native_word(&(burst.segment_bytes as u16).to_ne_bytes());
    48
}

/// A word whose first bytes in memory are these.
fn native_word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}
