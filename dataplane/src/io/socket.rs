//! UDP sockets with the options that wires need.
#![allow(unsafe_code)]

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

/// Wanted socket buffers: a hundred milliseconds of any wire that a laptop carries.
const BUFFER_BYTES: libc::c_int = 8 << 20;
/// Socket option that tells its memory counters. Source: Linux
/// `include/uapi/asm-generic/socket.h`.
const SO_MEMINFO: libc::c_int = 55;
/// Place of the drop counter among them. Source: Linux `include/uapi/linux/sock_diag.h`.
const MEMINFO_DROPS: usize = 8;

/// Bind a nonblocking socket with large buffers that tells when datagrams arrived.
pub fn bind(address: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    for (forced, plain) in
        [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
    {
        // The system's limit holds for those who may not pass it.
        if set_option(&socket, libc::SOL_SOCKET, forced, BUFFER_BYTES).is_err() {
            set_option(&socket, libc::SOL_SOCKET, plain, BUFFER_BYTES)?;
        }
    }
    set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    Ok(socket)
}

/// Set an option that is an integer.
pub fn set_option(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the socket is open, and `value` is an integer of the given length.
    let result = unsafe {
        let value = (&value as *const libc::c_int).cast();
        libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, value, length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Read an option that is an integer.
pub fn option(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the socket is open, and `value` has `length` bytes.
    let result = unsafe {
        let value = (&mut value as *mut libc::c_int).cast();
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, option, value, &mut length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}

/// Send and receive by one interface alone.
pub fn bind_to_interface(socket: impl AsFd, interface: &str) -> io::Result<()> {
    // SAFETY: the socket is open, and the name has the given length; the kernel copies it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BINDTODEVICE,
            interface.as_ptr().cast(),
            interface.len() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Datagrams that the kernel dropped because the receive buffer was full.
pub fn dropped_datagrams(socket: impl AsFd) -> u64 {
    let mut values = [0u32; MEMINFO_DROPS + 1];
    let mut length = size_of_val(&values) as libc::socklen_t;
    // SAFETY: `values` has `length` bytes, and the kernel writes no more.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_MEMINFO,
            values.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if result < 0 { 0 } else { values[MEMINFO_DROPS].into() }
}
