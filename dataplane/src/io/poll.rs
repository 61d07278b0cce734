//! Waiting for any of many sockets, with a time limit in nanoseconds.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null;

/// Sockets looked at per call.
const MAX_READY: usize = 256;

/// A set of sockets with a number each.
#[derive(Debug)]
pub struct Poll {
    epoll: OwnedFd,
}

impl AsFd for Poll {
    /// Can be read when any of the sockets can.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Poll {
    /// An empty set.
    pub fn new() -> io::Result<Self> {
        // SAFETY: a plain system call; its result is checked before it is owned.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and nobody else owns it.
        Ok(Self { epoll: unsafe { OwnedFd::from_raw_fd(descriptor) } })
    }

    /// Add a socket; `number` names it in [`Poll::ready`].
    pub fn add(&self, socket: impl AsFd, number: u32) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: number.into() };
        let descriptor = socket.as_fd().as_raw_fd();
        // SAFETY: both descriptors are open, and `event` is valid during the call.
        let result = unsafe {
            libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, descriptor, &mut event)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Replace the contents of `numbers` by the sockets that can be read now.
    pub fn ready(&self, numbers: &mut Vec<u32>) {
        numbers.clear();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; MAX_READY];
        // SAFETY: `events` has room for MAX_READY entries.
        let count = unsafe {
            let room = MAX_READY as libc::c_int;
            libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), room, 0)
        };
        let count = usize::try_from(count).unwrap_or(0);
        numbers.extend(events[..count].iter().map(|event| event.u64 as u32));
    }

    /// Sleep until a socket can be read, at most `limit_ns`.
    pub fn wait(&self, limit_ns: u64) {
        wait_for(&self.epoll, limit_ns);
    }
}

/// Sleep until one socket can be read, at most `limit_ns`.
pub fn wait_for(socket: impl AsFd, limit_ns: u64) {
    let descriptor = socket.as_fd().as_raw_fd();
    let mut entry = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    let limit = libc::timespec {
        tv_sec: (limit_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (limit_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: one valid entry, a valid time limit, no signal mask. A signal ends the wait early.
    unsafe { libc::ppoll(&mut entry, 1, &limit, null()) };
}
