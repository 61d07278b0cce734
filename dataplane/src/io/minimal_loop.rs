//! The yardstick for wires: one thread that only sends datagrams, one that only receives them.
//!
//! Batches, buffers and headers are made once; nothing is encoded, decoded or looked at. What this
//! loop reaches is what the kernel's loopback can carry on the machine.
#![allow(unsafe_code)]

use super::batch::BATCH;
use super::socket;
use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What the loop carried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopRate {
    /// Datagrams that arrived per second.
    pub received_per_s: f64,
    /// Datagrams that were sent per second; more than arrived if buffers overflowed.
    pub sent_per_s: f64,
}

/// Send datagrams of `datagram_bytes` from one thread to another for a time.
pub fn measure(datagram_bytes: usize, time: Duration) -> io::Result<LoopRate> {
    let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let (sender, receiver) = (socket::bind(any)?, socket::bind(any)?);
    sender.connect(receiver.local_addr()?)?;
    let stop = Arc::new(AtomicBool::new(false));
    let received = Arc::new(AtomicU64::new(0));
    let receiving = {
        let (stop, received) = (stop.clone(), received.clone());
        std::thread::spawn(move || receive(&receiver, datagram_bytes, &stop, &received))
    };
    let start = Instant::now();
    let sent = send(&sender, datagram_bytes, start + time);
    let (elapsed_s, arrived) = (start.elapsed().as_secs_f64(), received.load(Ordering::Relaxed));
    stop.store(true, Ordering::Relaxed);
    let _ = receiving.join();
    Ok(LoopRate { received_per_s: arrived as f64 / elapsed_s, sent_per_s: sent as f64 / elapsed_s })
}

/// Scatter lists over `bytes`, a datagram each. They lead into `bytes`.
fn slices(bytes: &mut [u8], datagram_bytes: usize) -> Vec<libc::iovec> {
    let slice = |chunk: &mut [u8]| libc::iovec {
        iov_base: chunk.as_mut_ptr().cast(),
        iov_len: chunk.len(),
    };
    bytes.chunks_mut(datagram_bytes).map(slice).collect()
}

/// One header for each slice. They lead into `slices`.
fn headers(slices: &mut [libc::iovec]) -> Vec<libc::mmsghdr> {
    let header = |slice: &mut libc::iovec| {
        // SAFETY: all-zero is a valid value of this plain C structure.
        let mut header: libc::mmsghdr = unsafe { zeroed() };
        header.msg_hdr.msg_iov = slice;
        header.msg_hdr.msg_iovlen = 1;
        header
    };
    slices.iter_mut().map(header).collect()
}

fn send(socket: &UdpSocket, datagram_bytes: usize, end: Instant) -> u64 {
    let mut bytes = vec![0u8; datagram_bytes * BATCH];
    let mut slices = slices(&mut bytes, datagram_bytes);
    let mut headers = headers(&mut slices);
    let mut sent = 0;
    while Instant::now() < end {
        // SAFETY: `headers` lead to live buffers of the lengths they name, which the kernel reads.
        let count =
            unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), BATCH as u32, 0) };
        sent += u64::try_from(count).unwrap_or(0);
    }
    sent
}

fn receive(socket: &UdpSocket, datagram_bytes: usize, stop: &AtomicBool, received: &AtomicU64) {
    let mut bytes = vec![0u8; datagram_bytes * BATCH];
    let mut slices = slices(&mut bytes, datagram_bytes);
    let mut headers = headers(&mut slices);
    while !stop.load(Ordering::Relaxed) {
        // SAFETY: `headers` lead to live buffers of the lengths they name.
        let count = unsafe {
            let room = BATCH as u32;
            libc::recvmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), room, 0, null_mut())
        };
        received.fetch_add(u64::try_from(count).unwrap_or(0), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_arrive() {
        let rate = measure(1000, Duration::from_millis(50)).expect("loopback works");
        assert!(rate.received_per_s > 1000.0 && rate.sent_per_s >= rate.received_per_s);
    }
}
