//! The memory that an adapter reads messages from and writes them to.
//!
//! One half holds the payload pattern and is what every WRITE sends from its start; the other half is
//! what every WRITE of the peers is aimed at, each from its start. So whatever overlaps has the same
//! bytes, and a region of some MiB serves any number of queue pairs and messages of any size.
#![allow(unsafe_code)]

use super::abi::MemoryRegion;
use crate::roce::pattern;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ffi::{c_int, c_void};
use std::io;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

const PAGE_BYTES: usize = 4096;
/// Bytes at the end of a WRITE that are compared: comparing all would cost more than receiving.
const COMPARED_BYTES: usize = 64 << 10;
const SLICE_BYTES: usize = 32 << 10;

/// See the module documentation.
pub struct Memory {
    start: *mut u8,
    half_bytes: usize,
}

impl Memory {
    /// Memory for WRITEs of at most `half_bytes`, a multiple of the page size.
    pub fn new(half_bytes: usize) -> Self {
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc_zeroed(layout(half_bytes)) };
        if start.is_null() {
            handle_alloc_error(layout(half_bytes));
        }
        let memory = Self { start, half_bytes };
        memory.fill();
        memory
    }

    fn fill(&self) {
        for offset in (0..self.half_bytes).step_by(SLICE_BYTES) {
            let length = SLICE_BYTES.min(self.half_bytes - offset);
            let bytes = pattern::slice(offset as u64, length as u16);
            // SAFETY: the range is inside of the first half, and nobody else knows it yet.
            unsafe { bytes.as_ptr().copy_to_nonoverlapping(self.start.add(offset), length) };
        }
    }

    /// Address of everything.
    pub fn address(&self) -> *mut c_void {
        self.start.cast()
    }

    /// Size of everything.
    pub fn length_bytes(&self) -> usize {
        2 * self.half_bytes
    }

    /// Where WRITEs are sent from.
    pub fn source(&self) -> u64 {
        self.start as u64
    }

    /// Where WRITEs arrive.
    pub fn target(&self) -> u64 {
        self.start as u64 + self.half_bytes as u64
    }

    /// Put bytes where WRITEs are sent from.
    pub fn put(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.half_bytes, "beyond the memory");
        // SAFETY: the range is inside of the first half, which the adapter reads alone; a WRITE of it
        // that is under way is the caller's business.
        unsafe { bytes.as_ptr().copy_to(self.start.add(offset), bytes.len()) };
    }

    /// A copy of what has arrived.
    pub fn arrived(&self, offset: usize, length: usize) -> Vec<u8> {
        assert!(offset + length <= self.half_bytes, "beyond the memory");
        let mut bytes = vec![0; length];
        // SAFETY: the range is inside of the second half, and the copy has the length.
        unsafe {
            let from = self.start.add(self.half_bytes + offset);
            from.copy_to_nonoverlapping(bytes.as_mut_ptr(), length);
        }
        bytes
    }

    /// The last bytes of a WRITE that arrived are the pattern.
    pub fn holds_pattern(&self, write_bytes: usize) -> bool {
        let end = write_bytes.min(self.half_bytes);
        let length = end.min(COMPARED_BYTES);
        let offset = end - length;
        // SAFETY: both ranges are inside of the halves; the adapter may write while they are compared,
        // which the C library does not mind.
        unsafe {
            let sent = self.start.add(offset);
            let arrived = self.start.add(self.half_bytes + offset);
            libc::memcmp(sent.cast(), arrived.cast(), length) == 0
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with the same layout.
        unsafe { dealloc(self.start, layout(self.half_bytes)) };
    }
}

/// Memory that an adapter may read and write. If the adapter does not let go of it, it is never freed:
/// WRITEs would end up in what has it next.
pub struct Registered {
    memory: ManuallyDrop<Memory>,
    region: NonNull<MemoryRegion>,
    let_go: unsafe extern "C" fn(*mut MemoryRegion) -> c_int,
}

impl Registered {
    /// Memory and what the registration of it returned; null is what the system refused.
    pub fn new(
        memory: Memory,
        region: *mut MemoryRegion,
        let_go: unsafe extern "C" fn(*mut MemoryRegion) -> c_int,
    ) -> io::Result<Self> {
        let region = NonNull::new(region).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { memory: ManuallyDrop::new(memory), region, let_go })
    }

    /// The memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Keys of the memory, for the adapter itself and for peers.
    pub fn keys(&self) -> (u32, u32) {
        // SAFETY: the region is registered.
        let region = unsafe { self.region.as_ref() };
        (region.local_key, region.remote_key)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: the region came from the library and is given back once; the memory is not used
        // afterwards, nor by the adapter.
        unsafe {
            if (self.let_go)(self.region.as_ptr()) == 0 {
                ManuallyDrop::drop(&mut self.memory);
            }
        }
    }
}

fn layout(half_bytes: usize) -> Layout {
    let bytes = (2 * half_bytes).max(PAGE_BYTES);
    Layout::from_size_align(bytes, PAGE_BYTES).expect("a size far below the address space")
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn refuse(_: *mut MemoryRegion) -> c_int {
        libc::EBUSY
    }

    #[test]
    fn memory_that_an_adapter_keeps_is_not_freed() {
        let memory = Memory::new(1 << 20);
        let start: *const u8 = memory.address().cast();
        let mut region = MemoryRegion {
            context: std::ptr::null_mut(),
            domain: std::ptr::null_mut(),
            address: memory.address(),
            length: memory.length_bytes(),
            handle: 0,
            local_key: 5,
            remote_key: 7,
        };
        let registered = Registered::new(memory, &mut region, refuse).expect("a region");
        assert_eq!(registered.keys(), (5, 7));
        drop(registered);
        // SAFETY: what is tested: the memory is still there.
        let kept = unsafe { std::slice::from_raw_parts(start, 64) };
        assert_eq!(kept, pattern::slice(0, 64));
    }

    fn write(memory: &Memory, offset: usize, bytes: &[u8]) {
        let target = memory.target() as usize + offset;
        // SAFETY: the range is inside of the second half.
        unsafe { bytes.as_ptr().copy_to_nonoverlapping(target as *mut u8, bytes.len()) };
    }

    #[test]
    fn what_arrives_is_compared_with_what_is_sent() {
        let memory = Memory::new(1 << 20);
        assert!(memory.holds_pattern(0));
        assert!(!memory.holds_pattern(5000));
        write(&memory, 0, pattern::slice(0, 5000));
        assert!(memory.holds_pattern(5000) && !memory.holds_pattern(5001));
        write(&memory, 4999, &[!pattern::slice(4999, 1)[0]]);
        assert!(memory.holds_pattern(4999) && !memory.holds_pattern(5000));
    }
}
