//! Many datagrams in one call of `recvmmsg`, and the times of arrival in what it says of each.
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

/// When a packet came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// CLOCK_REALTIME of the kernel.
    pub realtime_ns: Option<u64>,
    /// The adapter's own clock.
    pub adapter_ns: Option<u64>,
}

/// The times in the control messages of a packet, of which the first `control_bytes` are filled.
///
/// Each is a `cmsghdr` (length, level, type) and, of these types, one or three `timespec`, of which
/// the third is the adapter's. Source: Linux Documentation/networking/timestamping.rst.
pub fn times(control: &[u64], control_bytes: usize) -> Times {
    let mut times = Times::default();
    let mut left = &control[..control.len().min(control_bytes / size_of::<u64>())];
    while let [length, level_and_type, data @ ..] = left {
        let [level, kind] = [*level_and_type as u32 as i32, (*level_and_type >> 32) as i32];
        let nanoseconds = |at: usize| match data.get(at..at + 2) {
            Some([0, 0]) | None => None,
            Some(time) => Some(time[0] * 1_000_000_000 + time[1]),
        };
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => times.realtime_ns = nanoseconds(0),
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => times.adapter_ns = nanoseconds(4),
            _ => {}
        }
        let words = (*length as usize).div_ceil(size_of::<u64>()).max(2);
        left = left.get(words..).unwrap_or_default();
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: i32, bytes: u64) -> [u64; 2] {
        [16 + bytes, libc::SOL_SOCKET as u64 | (kind as u64) << 32]
    }

    #[test]
    fn both_times_are_found_among_other_messages() {
        let mut control = vec![24 - 7, 99, 0];
        control.extend(head(libc::SCM_TIMESTAMPNS, 16));
        control.extend([3, 5]);
        control.extend(head(libc::SCM_TIMESTAMPING, 48));
        control.extend([0, 0, 0, 0, 7, 11]);
        let found = times(&control, 8 * control.len());
        assert_eq!(found.realtime_ns, Some(3_000_000_005));
        assert_eq!(found.adapter_ns, Some(7_000_000_011));
        assert_eq!(times(&control, 16), Times::default());
        assert_eq!(times(&control, 56), Times { adapter_ns: None, ..found });
    }

    #[test]
    fn an_adapter_that_took_no_time_has_none() {
        let mut control = head(libc::SCM_TIMESTAMPING, 48).to_vec();
        control.extend([3, 5, 0, 0, 0, 0]);
        assert_eq!(times(&control, 64), Times::default());
    }
}
