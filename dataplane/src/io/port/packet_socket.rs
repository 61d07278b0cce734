//! Packet sockets and their filters.
#![allow(unsafe_code)]

use super::interface::Interface;
use crate::io::socket;
use crate::roce::layout::{ETHER_TYPE_IPV4, ROCE_PORT};
use std::io;
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// A `virtio_net_hdr` stands before each frame. Source: packet(7), Linux `if_packet.h`.
const PACKET_VNET_HDR: libc::c_int = 15;
/// What this host sends is not shown. Source: Linux `if_packet.h`.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const BUFFER_BYTES: libc::c_int = 16 << 20;

/// A packet socket that takes and gives the RoCEv2 frames for `address` at one interface.
pub fn open(interface: &Interface, address: Ipv4Addr) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // No protocol: nothing comes before the filter stands.
    // SAFETY: a plain system call; its result is checked before it is owned.
    let descriptor = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and nobody else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    filter(&socket, &mut rocev2_for(address))?;
    for (level, option, value) in [
        (libc::SOL_PACKET, PACKET_VNET_HDR, 1),
        (libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1),
        (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1),
        (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER_BYTES),
        (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, BUFFER_BYTES),
    ] {
        let set = socket::set_option(&socket, level, option, value);
        // Without CAP_NET_ADMIN buffers keep the system's size.
        if level == libc::SOL_PACKET || option == libc::SO_TIMESTAMPNS {
            set?;
        }
    }
    bind(&socket, interface)?;
    Ok(socket)
}

fn bind(socket: &OwnedFd, interface: &Interface) -> io::Result<()> {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut place: libc::sockaddr_ll = unsafe { zeroed() };
    place.sll_family = libc::AF_PACKET as libc::sa_family_t;
    place.sll_protocol = ETHER_TYPE_IPV4.to_be();
    place.sll_ifindex = interface.index as libc::c_int;
    // SAFETY: `place` has the length that is given; the kernel copies it.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&place as *const libc::sockaddr_ll).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Let a socket take nothing at all.
pub fn refuse_everything(socket: impl AsFd) -> io::Result<()> {
    filter(socket, &mut [instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0)])
}

/// Classic BPF that passes IPv4 without options, UDP, port 4791, for an address. The Ethernet header
/// is there.
fn rocev2_for(address: Ipv4Addr) -> [libc::sock_filter; 10] {
    let load = |size, offset| instruction(libc::BPF_LD | size | libc::BPF_ABS, 0, 0, offset);
    let unless =
        |value, over| instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, over, value);
    [
        // The type was chosen by the protocol of the socket.
        load(libc::BPF_B, 14),
        unless(0x45, 7),
        load(libc::BPF_B, 23),
        unless(libc::IPPROTO_UDP as u32, 5),
        load(libc::BPF_W, 30),
        unless(address.into(), 3),
        load(libc::BPF_H, 36),
        unless(ROCE_PORT.into(), 1),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ]
}

fn instruction(code: u32, yes: u8, no: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: yes, jf: no, k: value }
}

fn filter(socket: impl AsFd, program: &mut [libc::sock_filter]) -> io::Result<()> {
    let program =
        libc::sock_fprog { len: program.len() as libc::c_ushort, filter: program.as_mut_ptr() };
    // SAFETY: the socket is open; `program` leads to as many instructions as it says, and the kernel
    // copies them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&program as *const libc::sock_fprog).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
