//! Datagrams taken from the kernel, many in one call and many in one buffer, as frames.
//!
//! The headers that the kernel kept for itself are written again before each datagram, over the end
//! of the one before it, which has been looked at by then: no payload is copied.
#![allow(unsafe_code)]

use super::super::clock::KernelTime;
use super::super::receive_call::{receive_waiting, times};
use super::Received;
use super::timestamps::AdapterClock;
use crate::roce::layout::{BTH_BYTES, HEADERS_BYTES, ICRC_BYTES};
use crate::roce::packet::Ecn;
use crate::roce::{Headers, Packet};
use std::io;
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;

/// Buffers of one call. Each may hold a whole burst.
const BUFFERS: usize = 8;
/// Longest that the kernel coalesces, and the headers before the first datagram.
const BUFFER_BYTES: usize = HEADERS_BYTES + 65_536;
/// Room for four control messages: times of arrival, traffic class, segment length.
const CONTROL_BYTES: usize = 192;

/// What one buffer holds.
#[derive(Clone, Copy, Debug)]
struct Burst {
    source: u32,
    source_port: u16,
    traffic_class: u8,
    bytes: usize,
    /// Length of all datagrams but the last.
    segment_bytes: usize,
    kernel_time: Option<KernelTime>,
}

/// What a call of [`UdpReceiver::receive`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes of their frames.
    pub bytes: u64,
    /// Buffers in which they came.
    pub bursts: u64,
    /// Buffers that were cut or too short.
    pub malformed: u64,
}

/// Buffers for one call; addresses in it stay valid when it moves, because they point to the heap.
pub struct UdpReceiver {
    bytes: Box<[u8]>,
    names: Box<[libc::sockaddr_in]>,
    controls: Box<[[u64; CONTROL_BYTES / 8]]>,
    _slices: Box<[libc::iovec]>,
    calls: Box<[libc::mmsghdr]>,
    clock: AdapterClock,
    address: u32,
}

// SAFETY: the pointers in `calls` and `_slices` lead only into the heap blocks that the same value
// owns and that are never reallocated.
unsafe impl Send for UdpReceiver {}

impl UdpReceiver {
    /// Empty buffers of a port at `address`.
    pub fn new(address: Ipv4Addr) -> Self {
        let mut bytes = vec![0u8; BUFFERS * BUFFER_BYTES].into_boxed_slice();
        // SAFETY: all-zero is a valid value of these plain C structures.
        let (mut names, mut calls): (Box<[libc::sockaddr_in]>, Box<[libc::mmsghdr]>) = unsafe {
            (vec![zeroed(); BUFFERS].into_boxed_slice(), vec![zeroed(); BUFFERS].into_boxed_slice())
        };
        let mut controls = vec![[0u64; CONTROL_BYTES / 8]; BUFFERS].into_boxed_slice();
        let mut slices: Box<[libc::iovec]> = bytes
            .chunks_mut(BUFFER_BYTES)
            .map(|chunk| &mut chunk[HEADERS_BYTES..])
            .map(|room| libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() })
            .collect();
        for (index, call) in calls.iter_mut().enumerate() {
            call.msg_hdr.msg_name = (&mut names[index] as *mut libc::sockaddr_in).cast();
            call.msg_hdr.msg_iov = &mut slices[index];
            call.msg_hdr.msg_iovlen = 1;
            call.msg_hdr.msg_control = controls[index].as_mut_ptr().cast();
        }
        let (clock, address) = (AdapterClock::default(), address.into());
        Self { bytes, names, controls, _slices: slices, calls, clock, address }
    }

    /// Take what waits, at most [`BUFFERS`] buffers.
    pub fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        take: &mut dyn FnMut(Received<'_>),
    ) -> io::Result<Taken> {
        let count = self.fill(socket)?;
        let mut taken = Taken::default();
        for index in 0..count {
            match self.burst(index) {
                Some(burst) => self.hand_out(index, burst, &mut taken, take),
                None => taken.malformed += 1,
            }
        }
        Ok(taken)
    }

    fn fill(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        for call in &mut self.calls {
            call.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            call.msg_hdr.msg_controllen = CONTROL_BYTES;
        }
        // SAFETY: the pointers in `calls` lead to live buffers of the lengths they name.
        unsafe { receive_waiting(socket, &mut self.calls) }
    }

    /// What the kernel says of a buffer; `None` if it is cut.
    fn burst(&mut self, index: usize) -> Option<Burst> {
        let call = &self.calls[index];
        let bytes = call.msg_len as usize;
        let times = times(&self.controls[index], call.msg_hdr.msg_controllen);
        let is_cut = call.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
        let name = &self.names[index];
        let mut burst = Burst {
            source: u32::from_be(name.sin_addr.s_addr),
            source_port: u16::from_be(name.sin_port),
            traffic_class: 0,
            bytes,
            segment_bytes: bytes,
            kernel_time: self.clock.kernel_time(times),
        };
        read_control(&call.msg_hdr, &mut burst);
        (!is_cut && burst.segment_bytes >= BTH_BYTES + ICRC_BYTES).then_some(burst)
    }

    /// Hand out the datagrams of a buffer as frames. The place of each in it is the best guess of
    /// its identification.
    fn hand_out(
        &mut self,
        index: usize,
        burst: Burst,
        taken: &mut Taken,
        take: &mut dyn FnMut(Received<'_>),
    ) {
        let start = index * BUFFER_BYTES;
        let buffer = &mut self.bytes[start..start + HEADERS_BYTES + burst.bytes];
        taken.bursts += 1;
        let packet = Packet {
            source_address: burst.source,
            destination_address: self.address,
            source_port: burst.source_port,
            dscp: burst.traffic_class >> 2,
            ecn: Ecn::from_bits(burst.traffic_class),
            ..Packet::default()
        };
        let mut headers = Headers::new(&packet, burst.segment_bytes as u16);
        for (place, offset) in (0..burst.bytes).step_by(burst.segment_bytes).enumerate() {
            let length = burst.segment_bytes.min(burst.bytes - offset);
            if length < burst.segment_bytes {
                headers = Headers::new(&packet, length as u16);
            }
            let frame = &mut buffer[offset..offset + HEADERS_BYTES + length];
            if let Some(before) = frame.first_chunk_mut() {
                headers.write(place as u16, before);
            }
            taken.datagrams += 1;
            taken.bytes += frame.len() as u64;
            let kernel_time = burst.kernel_time;
            take(Received { bytes: frame, is_identified: false, kernel_time });
        }
    }
}

/// Read the control messages of a call, but for the times of arrival.
fn read_control(header: &libc::msghdr, burst: &mut Burst) {
    // SAFETY: the kernel has filled the control buffer with whole messages up to `msg_controllen`,
    // and these functions stay within it.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: not null, so a whole message of the control buffer.
        let (level, kind, data) =
            unsafe { ((*message).cmsg_level, (*message).cmsg_type, libc::CMSG_DATA(message)) };
        match (level, kind) {
            (libc::SOL_IP, libc::IP_TOS) => {
                // SAFETY: the kernel's message of this type holds a byte.
                burst.traffic_class = unsafe { data.read() };
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                // SAFETY: the kernel's message of this type holds an integer.
                let length: libc::c_int = unsafe { data.cast::<libc::c_int>().read_unaligned() };
                burst.segment_bytes = usize::try_from(length).unwrap_or(0).min(burst.bytes);
            }
            _ => {}
        }
        // SAFETY: as above.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
}
