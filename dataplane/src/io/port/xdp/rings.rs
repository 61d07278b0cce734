//! An AF_XDP socket: its memory, and the four rings that it shares with the kernel.
//!
//! A ring is an array of a power of two of entries with a producer's and a consumer's index, each
//! written by one side alone. Source: Linux Documentation/networking/af_xdp.rst,
//! `include/uapi/linux/if_xdp.h`.
#![allow(unsafe_code)]

use crate::io::socket;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Bytes of a chunk of memory: a frame has one or several.
pub const CHUNK_BYTES: usize = 4096;
/// Entries of each ring.
pub const RING_ENTRIES: u32 = 2048;
/// One second for a queue to become free.
const BIND_TRIES: u32 = 50;
const BIND_EVERY: Duration = Duration::from_millis(20);
/// Chunks for frames that come, then as many for frames that go.
const CHUNKS: usize = 2 * RING_ENTRIES as usize;

/// Memory that is mapped, until it is dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone; it may be used from any one thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Map `bytes` of a descriptor, or of nothing: then they are zero.
    fn new(bytes: usize, from: Option<(BorrowedFd<'_>, libc::off_t)>) -> io::Result<Self> {
        let (flags, descriptor, offset) = match from {
            Some((descriptor, offset)) => {
                (libc::MAP_SHARED | libc::MAP_POPULATE, descriptor.as_raw_fd(), offset)
            }
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE, -1, 0),
        };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses.
        let start = unsafe { libc::mmap(null_mut(), bytes, protection, flags, descriptor, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { start, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// One ring of entries of type `T`, a plain C value.
#[derive(Debug)]
struct Ring<T> {
    _mapping: Mapping,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    /// Our own index: producer's of the rings that we fill, consumer's of the others.
    own: u32,
}

// SAFETY: the pointers lead into the ring's own mapping; see `Mapping`.
unsafe impl<T> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    fn new(
        socket: BorrowedFd<'_>,
        page_offset: libc::off_t,
        offsets: &libc::xdp_ring_offset,
    ) -> io::Result<Self> {
        let bytes = offsets.desc as usize + RING_ENTRIES as usize * size_of::<T>();
        let mapping = Mapping::new(bytes, Some((socket, page_offset)))?;
        // SAFETY: the kernel's offsets lie inside of the ring that it maps, and are aligned.
        let at = |offset: u64| unsafe { mapping.start.add(offset as usize) };
        Ok(Self {
            producer: at(offsets.producer).cast(),
            consumer: at(offsets.consumer).cast(),
            flags: at(offsets.flags).cast(),
            entries: at(offsets.desc).cast(),
            _mapping: mapping,
            own: 0,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: inside of the mapping, which lives as long as `self`.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    /// The kernel asks to be called.
    fn wants_wakeup(&self) -> bool {
        // SAFETY: as above.
        let flags = unsafe { self.flags.as_ref() };
        flags.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    fn entry(&self, index: u32) -> *mut T {
        // SAFETY: the index is within the ring's entries.
        unsafe { self.entries.as_ptr().add((index & (RING_ENTRIES - 1)) as usize) }
    }

    /// Places that we may fill.
    fn room(&self) -> u32 {
        RING_ENTRIES - self.own.wrapping_sub(self.consumer().load(Ordering::Acquire))
    }

    /// Fill the next place; there has to be room.
    fn put(&mut self, value: T) {
        // SAFETY: the place is ours until the producer's index is moved past it.
        unsafe { self.entry(self.own).write(value) };
        self.own = self.own.wrapping_add(1);
    }

    /// Let the kernel have what was put.
    fn submit(&self) {
        self.producer().store(self.own, Ordering::Release);
    }

    /// Entries that the kernel has filled.
    fn available(&self) -> u32 {
        self.producer().load(Ordering::Acquire).wrapping_sub(self.own)
    }

    /// Take the next entry; there has to be one.
    fn take(&mut self) -> T {
        // SAFETY: the kernel has filled the place and leaves it alone until it is released.
        let value = unsafe { self.entry(self.own).read() };
        self.own = self.own.wrapping_add(1);
        value
    }

    /// Give back what was taken.
    fn release(&self) {
        self.consumer().store(self.own, Ordering::Release);
    }
}

/// An AF_XDP socket on one queue of an interface.
#[derive(Debug)]
pub struct XdpSocket {
    fill: Ring<u64>,
    completion: Ring<u64>,
    receive: Ring<libc::xdp_desc>,
    transmit: Ring<libc::xdp_desc>,
    /// Addresses of chunks that wait for a frame to be sent.
    free: Vec<u64>,
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
    /// Frames may have several chunks.
    pub has_parts: bool,
    /// Microseconds that the kernel polls the adapter in a call, instead of by interrupts; 0: none.
    pub busy_poll_us: u32,
}

impl XdpSocket {
    /// Make the memory and the rings, and bind them.
    pub fn open(options: XdpOptions) -> io::Result<Self> {
        let memory = Mapping::new(CHUNKS * CHUNK_BYTES, None)?;
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: a plain system call; its result is checked before it is owned.
        let descriptor = unsafe { libc::socket(libc::AF_XDP, kind, 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and nobody else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
        register(&socket, &memory)?;
        for ring in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            socket::set_option(&socket, libc::SOL_XDP, ring, RING_ENTRIES as libc::c_int)?;
        }
        let offsets = offsets(&socket)?;
        let place = socket.as_fd();
        let mut made = Self {
            fill: Ring::new(place, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t, &offsets.fr)?,
            completion: Ring::new(
                place,
                libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t,
                &offsets.cr,
            )?,
            receive: Ring::new(place, libc::XDP_PGOFF_RX_RING, &offsets.rx)?,
            transmit: Ring::new(place, libc::XDP_PGOFF_TX_RING, &offsets.tx)?,
            free: (RING_ENTRIES as usize..CHUNKS).map(|n| (n * CHUNK_BYTES) as u64).collect(),
            socket,
            memory,
        };
        for chunk in 0..RING_ENTRIES as usize {
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
        while self.transmit.room() < RING_ENTRIES {
            let before = self.transmit.room();
            outcome = self.kick();
            self.reclaim();
            if outcome.is_err() || self.transmit.room() == before {
                break;
            }
        }
        self.reclaim();
        outcome.map(|()| self.transmit.room() < RING_ENTRIES)
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

    /// Take what has come, at most `limit` frames; `whole` is where frames of several chunks are put
    /// together. How many came.
    pub fn receive(
        &mut self,
        limit: usize,
        whole: &mut Vec<u8>,
        take: &mut dyn FnMut(&mut [u8]),
    ) -> usize {
        let (mut frames, mut left) = (0, self.receive.available());
        while left > 0 && (frames < limit || !whole.is_empty()) {
            let part = self.receive.take();
            left -= 1;
            let continues = part.options & libc::XDP_PKT_CONTD != 0;
            // SAFETY: the kernel has filled these bytes of a chunk that is ours until it is given
            // back below; it lies in the memory, since all chunks do.
            let bytes = unsafe {
                let place = self.memory.start.as_ptr().add(part.addr as usize);
                std::slice::from_raw_parts_mut(place, part.len as usize)
            };
            if continues || !whole.is_empty() {
                whole.extend_from_slice(bytes);
            } else {
                take(bytes);
            }
            if !continues {
                if !whole.is_empty() {
                    take(whole);
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
