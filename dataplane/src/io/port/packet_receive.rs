//! Frames taken from a packet socket, many in one call and, where the kernel left them together,
//! many in one buffer.
//!
//! A long frame is cut where its `virtio_net_hdr` says: the header is written again before each
//! part, over the end of the part before, which has been looked at by then.
#![allow(unsafe_code)]

use super::super::clock::KernelTime;
use super::super::receive_call::{receive_waiting, times};
use super::packet_send::{GSO_UDP_L4, VNET_BYTES};
use super::timestamps::AdapterClock;
use super::view::{View, view};
use super::{PortCounters, Received};
use crate::roce::layout::HEADERS_BYTES;
use crate::roce::packet::Ecn;
use crate::roce::{Headers, Packet};
use std::io;
use std::mem::zeroed;
use std::os::fd::BorrowedFd;

/// Buffers of one call. Each may hold a whole burst.
const BUFFERS: usize = 16;
const BUFFER_BYTES: usize = VNET_BYTES + 65_536 + 64;
/// Room for two control messages: the times of arrival, the kernel's and the adapter's.
const CONTROL_BYTES: usize = 128;

/// Buffers for one call; addresses in it stay valid when it moves, because they point to the heap.
pub struct PacketReceiver {
    bytes: Box<[u8]>,
    controls: Box<[[u64; CONTROL_BYTES / 8]]>,
    _slices: Box<[libc::iovec]>,
    calls: Box<[libc::mmsghdr]>,
    clock: AdapterClock,
}

// SAFETY: the pointers in `calls` and `_slices` lead only into the heap blocks that the same value
// owns and that are never reallocated.
unsafe impl Send for PacketReceiver {}

impl PacketReceiver {
    /// Empty buffers.
    pub fn new() -> Self {
        let mut bytes = vec![0u8; BUFFERS * BUFFER_BYTES].into_boxed_slice();
        // SAFETY: all-zero is a valid value of this plain C structure.
        let mut calls: Box<[libc::mmsghdr]> = unsafe { vec![zeroed(); BUFFERS].into_boxed_slice() };
        let mut controls = vec![[0u64; CONTROL_BYTES / 8]; BUFFERS].into_boxed_slice();
        let mut slices: Box<[libc::iovec]> = bytes
            .chunks_mut(BUFFER_BYTES)
            .map(|room| libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() })
            .collect();
        for (index, call) in calls.iter_mut().enumerate() {
            call.msg_hdr.msg_iov = &mut slices[index];
            call.msg_hdr.msg_iovlen = 1;
            call.msg_hdr.msg_control = controls[index].as_mut_ptr().cast();
        }
        Self { bytes, controls, _slices: slices, calls, clock: AdapterClock::default() }
    }

    /// Take what waits, at most [`BUFFERS`] buffers; how many frames came.
    pub fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        counters: &mut PortCounters,
        take: &mut dyn FnMut(Received<'_>),
    ) -> usize {
        let before = counters.frames_received;
        for index in 0..self.fill(socket).unwrap_or(0) {
            let length = self.calls[index].msg_len as usize;
            let is_cut = self.calls[index].msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            let control_bytes = self.calls[index].msg_hdr.msg_controllen;
            let kernel_time = self.clock.kernel_time(times(&self.controls[index], control_bytes));
            let start = index * BUFFER_BYTES;
            let buffer = &mut self.bytes[start..start + length.min(BUFFER_BYTES)];
            if is_cut || !hand_out(buffer, kernel_time, counters, take) {
                counters.misaddressed += 1;
            }
        }
        (counters.frames_received - before) as usize
    }

    fn fill(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        for call in &mut self.calls {
            call.msg_hdr.msg_controllen = CONTROL_BYTES;
        }
        // SAFETY: the pointers in `calls` lead to live buffers of the lengths they name.
        unsafe { receive_waiting(socket, &mut self.calls) }
    }
}

/// Hand out the frames of a buffer; false if it is none of ours.
fn hand_out(
    buffer: &mut [u8],
    kernel_time: Option<KernelTime>,
    counters: &mut PortCounters,
    take: &mut dyn FnMut(Received<'_>),
) -> bool {
    if buffer.len() < VNET_BYTES {
        return false;
    }
    let (vnet, frame) = buffer.split_at_mut(VNET_BYTES);
    let is_together = vnet[1] & 0x7F == GSO_UDP_L4;
    let segment_bytes = usize::from(u16::from_ne_bytes([vnet[4], vnet[5]]));
    counters.bursts_received += 1;
    if !is_together {
        counters.frames_received += 1;
        counters.bytes_received += frame.len() as u64;
        take(Received { bytes: frame, is_identified: true, kernel_time });
        return true;
    }
    segment_bytes > 0 && take_apart(frame, segment_bytes, kernel_time, counters, take)
}

/// Hand out the frames that the kernel has put together, each with headers of its own in the place
/// before its datagram; false if they are none of ours.
fn take_apart(
    frame: &mut [u8],
    segment_bytes: usize,
    kernel_time: Option<KernelTime>,
    counters: &mut PortCounters,
    take: &mut dyn FnMut(Received<'_>),
) -> bool {
    let Some(whole) = view(frame) else { return false };
    let (packet, together_bytes) = (packet_of(&whole), whole.datagram.len());
    let macs: [[u8; 6]; 2] = [0, 6].map(|at| std::array::from_fn(|octet| frame[at + octet]));
    let headers_for = |length: usize| {
        let mut headers = Headers::new(&packet, length as u16);
        headers.set_macs(macs[0], macs[1]);
        headers
    };
    let mut headers = headers_for(segment_bytes);
    for (place, offset) in (0..together_bytes).step_by(segment_bytes).enumerate() {
        let length = segment_bytes.min(together_bytes - offset);
        if length < segment_bytes {
            headers = headers_for(length);
        }
        let identification = packet.identification.wrapping_add(place as u16);
        let part = &mut frame[offset..offset + HEADERS_BYTES + length];
        part[..HEADERS_BYTES].copy_from_slice(&headers.with(identification));
        counters.frames_received += 1;
        counters.bytes_received += part.len() as u64;
        take(Received { bytes: part, is_identified: false, kernel_time });
    }
    true
}

/// What all frames of a buffer have in common.
fn packet_of(whole: &View<'_>) -> Packet {
    Packet {
        source_address: whole.source.into(),
        destination_address: whole.destination.into(),
        source_port: whole.source_port,
        dscp: whole.traffic_class >> 2,
        ecn: Ecn::from_bits(whole.traffic_class),
        identification: whole.identification,
        ..Packet::default()
    }
}
