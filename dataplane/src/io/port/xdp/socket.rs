//! An AF_XDP socket on one queue of an interface: its memory, and its four rings.
#![allow(unsafe_code)]

use super::program::{MARK, META_BYTES};
use super::rings::{Mapping, Ring};
use crate::io::socket;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::time::Duration;

/// Bytes of a chunk of memory: a frame has one or several.
pub const CHUNK_BYTES: usize = 4096;
/// One second for a queue to become free.
const BIND_TRIES: u32 = 50;
const BIND_EVERY: Duration = Duration::from_millis(20);

/// An AF_XDP socket on one queue of an interface.
#[derive(Debug)]
pub struct XdpSocket {
    fill: Ring<u64>,
    completion: Ring<u64>,
    receive: Ring<libc::xdp_desc>,
    transmit: Ring<libc::xdp_desc>,
    /// Addresses of chunks that wait for a frame to be sent.
    free: Vec<u64>,
    /// When the first part of an unfinished frame came.
    part_ns: Option<u64>,
    socket: OwnedFd,
    memory: Mapping,
}

/// How a socket is to be.
#[derive(Clone, Copy, Debug)]
pub struct XdpOptions {
    /// Interface by its index.
    pub interface: u32,
    /// Queue of the interface.
    pub queue: u32,
    /// Entries of each ring, a power of two. There are as many chunks for frames that come, and for
    /// frames that go.
    pub ring_entries: u32,
    /// Frames may have several chunks.
    pub has_parts: bool,
    /// Microseconds that the kernel polls the adapter in a call, instead of by interrupts; 0: none.
    pub busy_poll_us: u32,
}

impl XdpSocket {
    /// Make the memory and the rings, and bind them.
    pub fn open(options: XdpOptions) -> io::Result<Self> {
        let entries = options.ring_entries;
        let chunks = 2 * entries as usize;
        let memory = Mapping::new(chunks * CHUNK_BYTES, None)?;
        let socket = new_socket()?;
        register(&socket, &memory)?;
        set_ring_sizes(&socket, entries)?;
        let offsets = offsets(&socket)?;
        let place = socket.as_fd();
        let mut made = Self {
            fill: Ring::new(
                place,
                libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t,
                &offsets.fr,
                entries,
            )?,
            completion: Ring::new(
                place,
                libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t,
                &offsets.cr,
                entries,
            )?,
            receive: Ring::new(place, libc::XDP_PGOFF_RX_RING, &offsets.rx, entries)?,
            transmit: Ring::new(place, libc::XDP_PGOFF_TX_RING, &offsets.tx, entries)?,
            free: (entries as usize..chunks).map(|n| (n * CHUNK_BYTES) as u64).collect(),
            part_ns: None,
            socket,
            memory,
        };
        for chunk in 0..entries as usize {
            made.fill.put((chunk * CHUNK_BYTES) as u64);
        }
        made.fill.submit();
        poll_busily(&made.socket, options.busy_poll_us)?;
        bind_patiently(&made.socket, options)?;
        Ok(made)
    }

    /// Queue a frame, given in two pieces one behind the other; false if there is no room for it now.
    pub fn push(&mut self, first: &[u8], second: &[u8]) -> bool {
        let bytes = first.len() + second.len();
        let parts = bytes.div_ceil(CHUNK_BYTES);
        if self.free.len() < parts || (self.transmit.room() as usize) < parts {
            return false;
        }
        for start in (0..bytes).step_by(CHUNK_BYTES) {
            let end = bytes.min(start + CHUNK_BYTES);
            let Some(addr) = self.free.pop() else { return false };
            // SAFETY: the chunk is ours until the kernel completes it, and no other slice of it lives.
            let chunk = unsafe {
                let place = self.memory.start.as_ptr().add(addr as usize);
                std::slice::from_raw_parts_mut(place, end - start)
            };
            let of_first = &first[start.min(first.len())..end.min(first.len())];
            let [from, to] = [start, end].map(|at| at.saturating_sub(first.len()));
            chunk[..of_first.len()].copy_from_slice(of_first);
            chunk[of_first.len()..].copy_from_slice(&second[from..to]);
            let options = if end < bytes { libc::XDP_PKT_CONTD } else { 0 };
            self.transmit.put(libc::xdp_desc { addr, len: (end - start) as u32, options });
        }
        true
    }

    /// Let the kernel send what was pushed, and take back the chunks of what it has sent. True if
    /// some of it waits.
    pub fn flush(&mut self) -> io::Result<bool> {
        self.transmit.submit();
        let mut outcome = Ok(());
        while !self.transmit.is_empty() {
            let before = self.transmit.room();
            outcome = self.kick();
            self.reclaim();
            if outcome.is_err() || self.transmit.room() == before {
                break;
            }
        }
        self.reclaim();
        outcome.map(|()| !self.transmit.is_empty())
    }

    fn kick(&self) -> io::Result<()> {
        let nothing = std::ptr::null();
        let descriptor = self.socket.as_raw_fd();
        // SAFETY: a call without a buffer.
        let sent =
            unsafe { libc::sendto(descriptor, nothing, 0, libc::MSG_DONTWAIT, null_mut(), 0) };
        let error = io::Error::last_os_error();
        let is_full = matches!(
            error.raw_os_error(),
            Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR)
        );
        if sent < 0 && !is_full { Err(error) } else { Ok(()) }
    }

    fn reclaim(&mut self) {
        for _ in 0..self.completion.available() {
            let chunk = self.completion.take();
            self.free.push(chunk & !(CHUNK_BYTES as u64 - 1));
        }
        self.completion.release();
    }

    /// Take what has come, at most `limit` frames, each with its CLOCK_MONOTONIC if the program could
    /// tell it; `whole` is where frames of several chunks are put together. How many came.
    pub fn receive(
        &mut self,
        limit: usize,
        whole: &mut Vec<u8>,
        take: &mut dyn FnMut(&mut [u8], Option<u64>),
    ) -> usize {
        let (mut frames, mut left) = (0, self.receive.available());
        while left > 0 && (frames < limit || !whole.is_empty()) {
            let part = self.receive.take();
            left -= 1;
            let continues = part.options & libc::XDP_PKT_CONTD != 0;
            if whole.is_empty() {
                self.part_ns = self.take_time(part.addr);
            }
            // SAFETY: the kernel has filled these bytes of a chunk that is ours until it is given
            // back below; it lies in the memory, since all chunks do.
            let bytes = unsafe {
                let place = self.memory.start.as_ptr().add(part.addr as usize);
                std::slice::from_raw_parts_mut(place, part.len as usize)
            };
            if continues || !whole.is_empty() {
                whole.extend_from_slice(bytes);
            } else {
                take(bytes, self.part_ns);
            }
            if !continues {
                if !whole.is_empty() {
                    take(whole, self.part_ns);
                    whole.clear();
                }
                frames += 1;
            }
            self.fill.put(part.addr & !(CHUNK_BYTES as u64 - 1));
        }
        self.receive.release();
        self.fill.submit();
        if self.fill.wants_wakeup() {
            self.ask_for_frames();
        }
        frames
    }

    /// The time that the program has written before a frame, if it has; it is wiped, so that it is not
    /// there for the chunk's next frame.
    fn take_time(&mut self, addr: u64) -> Option<u64> {
        if (addr as usize % CHUNK_BYTES) < META_BYTES {
            return None;
        }
        // SAFETY: the bytes before the frame are of the same chunk, which is ours until it is given
        // back, and no slice of it lives.
        let meta = unsafe {
            let place = self.memory.start.as_ptr().add(addr as usize - META_BYTES);
            std::slice::from_raw_parts_mut(place.cast::<[u8; 8]>(), META_BYTES / 8)
        };
        let [time, mark] = [0, 1].map(|word: usize| u64::from_ne_bytes(meta[word]));
        meta[1] = [0; 8];
        (mark == MARK).then_some(time)
    }

    /// Whether the adapter reads and writes the memory itself.
    pub fn has_zero_copy(&self) -> bool {
        // SAFETY: all-zero is a valid value of this plain C structure.
        let mut options: libc::xdp_options = unsafe { zeroed() };
        let read = read_option(&self.socket, libc::XDP_OPTIONS, &mut options);
        read.is_ok() && options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0
    }

    fn ask_for_frames(&self) {
        let descriptor = self.socket.as_raw_fd();
        // SAFETY: a call without a buffer.
        unsafe {
            libc::recvfrom(descriptor, null_mut(), 0, libc::MSG_DONTWAIT, null_mut(), null_mut())
        };
    }

    /// Frames that the kernel dropped because there was no room for them.
    pub fn dropped(&self) -> u64 {
        // SAFETY: all-zero is a valid value of this plain C structure.
        let mut values: libc::xdp_statistics = unsafe { zeroed() };
        let read = read_option(&self.socket, libc::XDP_STATISTICS, &mut values);
        if read.is_err() {
            return 0;
        }
        values.rx_dropped + values.rx_ring_full + values.rx_fill_ring_empty_descs
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn new_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: a plain system call; its result is checked before it is owned.
    let descriptor = unsafe { libc::socket(libc::AF_XDP, kind, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn set_ring_sizes(socket: &OwnedFd, entries: u32) -> io::Result<()> {
    for ring in [
        libc::XDP_UMEM_FILL_RING,
        libc::XDP_UMEM_COMPLETION_RING,
        libc::XDP_RX_RING,
        libc::XDP_TX_RING,
    ] {
        socket::set_option(socket, libc::SOL_XDP, ring, entries as libc::c_int)?;
    }
    Ok(())
}

fn register(socket: &OwnedFd, memory: &Mapping) -> io::Result<()> {
    let region = libc::xdp_umem_reg {
        addr: memory.start.as_ptr() as u64,
        len: memory.bytes as u64,
        chunk_size: CHUNK_BYTES as u32,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    // SAFETY: the structure has the length that is given; the memory outlives the socket, because
    // fields are dropped in their order and the socket stands before it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            libc::XDP_UMEM_REG,
            (&raw const region).cast(),
            size_of::<libc::xdp_umem_reg>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn offsets(socket: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { zeroed() };
    read_option(socket, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
    Ok(offsets)
}

fn read_option<T>(socket: &OwnedFd, option: libc::c_int, into: &mut T) -> io::Result<()> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `into` is a plain C structure of `length` bytes, and the kernel writes no more.
    let result = unsafe {
        let place = (into as *mut T).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_XDP, option, place, &mut length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Source: Linux Documentation/networking/napi.rst, busy polling.
fn poll_busily(socket: &OwnedFd, busy_poll_us: u32) -> io::Result<()> {
    const SO_PREFER_BUSY_POLL: libc::c_int = 69;
    const SO_BUSY_POLL_BUDGET: libc::c_int = 70;
    if busy_poll_us == 0 {
        return Ok(());
    }
    for (option, value) in [
        (SO_PREFER_BUSY_POLL, 1),
        (libc::SO_BUSY_POLL, busy_poll_us as libc::c_int),
        (SO_BUSY_POLL_BUDGET, 64),
    ] {
        socket::set_option(socket, libc::SOL_SOCKET, option, value)?;
    }
    Ok(())
}

/// The kernel gives a queue back some time after a socket is closed.
fn bind_patiently(socket: &OwnedFd, options: XdpOptions) -> io::Result<()> {
    for _ in 0..BIND_TRIES {
        match bind(socket, options) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(BIND_EVERY);
            }
            bound => return bound,
        }
    }
    bind(socket, options)
}

fn bind(socket: &OwnedFd, options: XdpOptions) -> io::Result<()> {
    let parts = if options.has_parts { libc::XDP_USE_SG } else { 0 };
    let place = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_USE_NEED_WAKEUP | parts,
        sxdp_ifindex: options.interface,
        sxdp_queue_id: options.queue,
        sxdp_shared_umem_fd: 0,
    };
    // SAFETY: `place` has the length that is given; the kernel copies it.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const place).cast(),
            size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
