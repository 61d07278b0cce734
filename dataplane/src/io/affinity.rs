//! Which processor a thread runs on.
#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};

/// Keep the calling thread on one processor.
pub fn stay_on(processor: usize) -> io::Result<()> {
    if processor >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: all-zero is the empty set, the number is one that a set can hold, and the call reads
    // as many bytes as a set has.
    let result = unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
