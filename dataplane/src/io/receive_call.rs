//! Many datagrams in one call of `recvmmsg`, and the time of arrival in what it says of each.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null_mut;

/// Fill the buffers that `calls` name with what waits; how many were filled.
///
/// # Safety
///
/// Every pointer in `calls` leads to a live buffer of the length beside it.
pub unsafe fn receive_waiting(
    socket: BorrowedFd<'_>,
    calls: &mut [libc::mmsghdr],
) -> io::Result<usize> {
    // SAFETY: the caller's promise; the kernel keeps none of the pointers.
    let count = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            calls.as_mut_ptr(),
            calls.len() as u32,
            libc::MSG_DONTWAIT,
            null_mut(),
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// CLOCK_REALTIME in the one control message of a datagram, `control_bytes` long, which has the
/// layout of `cmsghdr` and `timespec`: length, level and type, seconds, nanoseconds.
pub fn realtime_ns(control: &[u64], control_bytes: usize) -> Option<u64> {
    if control_bytes < 4 * size_of::<u64>() {
        return None;
    }
    let [_, level_and_type, seconds, nanoseconds, ..] = *control else { return None };
    let [level, kind] = [level_and_type as u32 as i32, (level_and_type >> 32) as i32];
    let is_time = level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPNS;
    is_time.then(|| seconds * 1_000_000_000 + nanoseconds)
}
