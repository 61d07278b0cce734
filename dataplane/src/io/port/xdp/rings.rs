//! Memory and rings that an AF_XDP socket shares with the kernel.
//!
//! A ring is an array of a power of two of entries with a producer's and a consumer's index, each
//! written by one side alone. Source: Linux Documentation/networking/af_xdp.rst,
//! `include/uapi/linux/if_xdp.h`.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

/// Memory that is mapped, until it is dropped.
#[derive(Debug)]
pub struct Mapping {
    /// Where it is.
    pub start: NonNull<u8>,
    /// How long it is.
    pub bytes: usize,
}

// SAFETY: the mapping belongs to this value alone; it may be used from any one thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Map `bytes` of a descriptor, or of nothing: then they are zero.
    pub fn new(bytes: usize, from: Option<(BorrowedFd<'_>, libc::off_t)>) -> io::Result<Self> {
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
pub struct Ring<T> {
    _mapping: Mapping,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    /// A power of two.
    count: u32,
    /// Our own index: producer's of the rings that we fill, consumer's of the others.
    own: u32,
}

// SAFETY: the pointers lead into the ring's own mapping; see `Mapping`.
unsafe impl<T> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Map the ring of `count` entries that a socket has at an offset.
    pub fn new(
        socket: BorrowedFd<'_>,
        page_offset: libc::off_t,
        offsets: &libc::xdp_ring_offset,
        count: u32,
    ) -> io::Result<Self> {
        let bytes = offsets.desc as usize + count as usize * size_of::<T>();
        let mapping = Mapping::new(bytes, Some((socket, page_offset)))?;
        // SAFETY: the kernel's offsets lie inside of the ring that it maps, and are aligned.
        let at = |offset: u64| unsafe { mapping.start.add(offset as usize) };
        Ok(Self {
            producer: at(offsets.producer).cast(),
            consumer: at(offsets.consumer).cast(),
            flags: at(offsets.flags).cast(),
            entries: at(offsets.desc).cast(),
            _mapping: mapping,
            count,
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
    pub fn wants_wakeup(&self) -> bool {
        // SAFETY: as above.
        let flags = unsafe { self.flags.as_ref() };
        flags.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    fn entry(&self, index: u32) -> *mut T {
        // SAFETY: the index is within the ring's entries.
        unsafe { self.entries.as_ptr().add((index & (self.count - 1)) as usize) }
    }

    /// The kernel has taken all that was put.
    pub fn is_empty(&self) -> bool {
        self.room() == self.count
    }

    /// Places that we may fill.
    pub fn room(&self) -> u32 {
        self.count - self.own.wrapping_sub(self.consumer().load(Ordering::Acquire))
    }

    /// Fill the next place; there has to be room.
    pub fn put(&mut self, value: T) {
        // SAFETY: the place is ours until the producer's index is moved past it.
        unsafe { self.entry(self.own).write(value) };
        self.own = self.own.wrapping_add(1);
    }

    /// Let the kernel have what was put.
    pub fn submit(&self) {
        self.producer().store(self.own, Ordering::Release);
    }

    /// Entries that the kernel has filled.
    pub fn available(&self) -> u32 {
        self.producer().load(Ordering::Acquire).wrapping_sub(self.own)
    }

    /// Take the next entry; there has to be one.
    pub fn take(&mut self) -> T {
        // SAFETY: the kernel has filled the place and leaves it alone until it is released.
        let value = unsafe { self.entry(self.own).read() };
        self.own = self.own.wrapping_add(1);
        value
    }

    /// Give back what was taken.
    pub fn release(&self) {
        self.consumer().store(self.own, Ordering::Release);
    }
}
