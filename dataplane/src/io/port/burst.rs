//! Datagrams that wait to be sent, gathered so that the kernel takes many in one call.
//!
//! A burst is what one call gives: datagrams of one flow and traffic class that are equally long, but
//! for the last, which may be shorter. The kernel, or an adapter, cuts them apart.

use super::PortCounters;
use crate::roce::layout::HEADERS_BYTES;
use crate::roce::{Frame, encode_datagram};
use crate::units::FCS_BYTES;
use std::io::{self, IoSlice};
use std::net::Ipv4Addr;

/// Datagrams of a burst, at most. Source: Linux `UDP_MAX_SEGMENTS`, 64 before Linux 6.9.
pub const MAX_SEGMENTS: usize = 64;
/// Bytes of a burst, at most: what one IPv4 packet can carry over UDP.
pub const MAX_BURST_BYTES: usize = 65_535 - 20 - 8;
/// Bursts that are looked at for one that a datagram fits to; more flows at once go singly.
const LOOK_BACK: usize = 8;

/// Which flow a datagram is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// UDP source port.
    pub source_port: u16,
    /// Where it goes.
    pub destination: Ipv4Addr,
    /// DSCP and ECN.
    pub traffic_class: u8,
}

/// What one call gives to the kernel, but for its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    /// Whose datagrams.
    pub flow: Flow,
    /// Length of all datagrams but the last.
    pub segment_bytes: usize,
    /// Length of all together.
    pub bytes: usize,
    /// How many.
    pub segments: usize,
}

/// Give a burst to `send` and count it, whole headers included; false if the kernel is full. What it
/// refuses for another reason is dropped.
pub fn give(
    burst: &Burst,
    slices: &[IoSlice<'_>],
    counters: &mut PortCounters,
    send: &mut impl FnMut(&Burst, &[IoSlice<'_>]) -> io::Result<()>,
) -> bool {
    loop {
        match send(burst, slices) {
            Ok(()) => {
                counters.frames_sent += burst.segments as u64;
                counters.bytes_sent += (burst.bytes + burst.segments * HEADERS_BYTES) as u64;
                counters.bursts_sent += 1;
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_full(&error) => {
                counters.send_stalls += 1;
                return false;
            }
            Err(_) => {
                counters.send_errors += burst.segments as u64;
                return true;
            }
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM))
}

/// A burst that grows.
#[derive(Debug)]
struct Waiting {
    burst: Burst,
    /// Start and end of what stands together in the bytes of the queue. The fewer there are, the less
    /// the kernel has to do: each costs it 20 ns and more.
    parts: Vec<(usize, usize)>,
    /// The last datagram is shorter, or there are as many as there may be.
    is_closed: bool,
}

/// Datagrams that wait, in bursts.
#[derive(Debug)]
pub struct BurstQueue {
    bytes: Vec<u8>,
    /// The first `used` are in use; the others keep their memory.
    bursts: Vec<Waiting>,
    used: usize,
    /// Bursts that have gone.
    sent: usize,
    waiting: usize,
    max_segments: usize,
}

impl BurstQueue {
    /// An empty queue of bursts of at most so many datagrams.
    pub fn new(max_segments: usize) -> Self {
        let max_segments = max_segments.clamp(1, MAX_SEGMENTS);
        let (bytes, bursts) = (Vec::new(), Vec::new());
        Self { bytes, bursts, used: 0, sent: 0, waiting: 0, max_segments }
    }

    /// Datagrams that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Append a packet; its identification becomes the one that the kernel will give it.
    pub fn push_frame(&mut self, frame: &mut Frame) {
        let Frame::Roce(packet) = frame else { return };
        let flow = Flow {
            source_port: packet.source_port,
            destination: packet.destination_address.into(),
            traffic_class: packet.dscp << 2 | packet.ecn as u8,
        };
        let bytes = packet.wire_bytes() as usize - HEADERS_BYTES - FCS_BYTES as usize;
        let index = self.burst_for(flow, bytes);
        packet.identification = self.next_place(index);
        let start = self.bytes.len();
        encode_datagram(packet, &mut self.bytes);
        self.append(index, start);
    }

    /// Datagrams per burst at most.
    pub fn max_segments(&self) -> usize {
        self.max_segments
    }

    /// Datagrams per burst at most, from now on.
    pub fn limit_segments(&mut self, max_segments: usize) {
        self.max_segments = max_segments.clamp(1, MAX_SEGMENTS);
    }

    /// The place that the next datagram of a burst has: the identification that the kernel gives it.
    /// Source: Linux `inet_gso_segment`, which counts on from that of the first, and
    /// `ip_select_ident`, which gives 0 to what an unconnected socket sends with DF.
    fn next_place(&self, index: usize) -> u16 {
        self.bursts[index].burst.segments as u16
    }

    /// Append a datagram to a burst: what stands in the bytes from `start` on.
    fn append(&mut self, index: usize, start: usize) {
        let end = self.bytes.len();
        let Waiting { burst, parts, is_closed } = &mut self.bursts[index];
        match parts.last_mut() {
            Some((_, last)) if *last == start => *last = end,
            _ => parts.push((start, end)),
        }
        burst.segments += 1;
        burst.bytes += end - start;
        *is_closed = end - start < burst.segment_bytes || burst.segments == self.max_segments;
        self.waiting += 1;
    }

    /// The burst that the next datagram of this flow and length joins or begins.
    fn burst_for(&mut self, flow: Flow, bytes: usize) -> usize {
        self.open_burst(flow, bytes).unwrap_or_else(|| self.begin(flow, bytes))
    }

    /// The burst that a datagram may join. Bursts of a flow go in their order, so only its last.
    fn open_burst(&self, flow: Flow, bytes: usize) -> Option<usize> {
        let first = self.sent.max(self.used.saturating_sub(LOOK_BACK));
        let index =
            (first..self.used).rev().find(|&index| self.bursts[index].burst.flow == flow)?;
        let Waiting { burst, is_closed, .. } = &self.bursts[index];
        let fits =
            !is_closed && bytes <= burst.segment_bytes && burst.bytes + bytes <= MAX_BURST_BYTES;
        fits.then_some(index)
    }

    fn begin(&mut self, flow: Flow, segment_bytes: usize) -> usize {
        let burst = Burst { flow, segment_bytes, bytes: 0, segments: 0 };
        let index = self.used;
        self.used += 1;
        if index == self.bursts.len() {
            self.bursts.push(Waiting { burst, parts: Vec::new(), is_closed: false });
        }
        let waiting = &mut self.bursts[index];
        waiting.burst = burst;
        waiting.parts.clear();
        waiting.is_closed = false;
        index
    }

    /// Give burst after burst to `send` until the kernel is full: true then, and the rest waits for
    /// the next call.
    pub fn flush(
        &mut self,
        counters: &mut PortCounters,
        mut send: impl FnMut(&Burst, &[IoSlice<'_>]) -> io::Result<()>,
    ) -> bool {
        let mut slices = Vec::new();
        for Waiting { burst, parts, .. } in &self.bursts[self.sent..self.used] {
            slices.clear();
            slices.extend(parts.iter().map(|&(start, end)| IoSlice::new(&self.bytes[start..end])));
            if !give(burst, &slices, counters, &mut send) {
                return true;
            }
            self.sent += 1;
            self.waiting -= burst.segments;
        }
        self.bytes.clear();
        (self.used, self.sent) = (0, 0);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roce::packet::Bth;
    use crate::roce::{Packet, Payload, encode, opcode::Opcode};

    fn flow(source_port: u16) -> Flow {
        Flow { source_port, destination: Ipv4Addr::LOCALHOST, traffic_class: 0 }
    }

    /// The places that datagrams of these lengths take.
    fn places(queue: &mut BurstQueue, lengths: &[(u16, usize)]) -> Vec<u16> {
        let place = |&(port, bytes): &(u16, usize)| {
            let index = queue.burst_for(flow(port), bytes);
            let place = queue.next_place(index);
            let start = queue.bytes.len();
            queue.bytes.resize(start + bytes, 0);
            queue.append(index, start);
            place
        };
        lengths.iter().map(place).collect()
    }

    #[test]
    fn equally_long_datagrams_of_a_flow_are_a_burst_that_a_shorter_one_ends() {
        let mut queue = BurstQueue::new(64);
        let lengths = [(0, 100), (0, 100), (0, 60), (0, 60), (0, 100)];
        assert_eq!(places(&mut queue, &lengths), [0, 1, 2, 0, 0]);
        assert_eq!(queue.waiting(), 5);
    }

    #[test]
    fn the_datagrams_of_a_burst_stand_together_with_the_icrcs_of_their_places() {
        let mut queue = BurstQueue::new(64);
        let packet = Packet {
            bth: Bth { opcode: Opcode::WRITE_MIDDLE, ..Bth::default() },
            payload: Payload::Pattern { offset_bytes: 70_000, length_bytes: 1024 },
            ..Packet::default()
        };
        let (mut frames, mut sent) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let mut frame = Frame::Roce(Box::new(packet.clone()));
            queue.push_frame(&mut frame);
            encode(&frame, [0; 6], [0; 6], &mut frames);
        }
        queue.flush(&mut PortCounters::default(), |burst, slices| {
            assert_eq!((burst.segments, slices.len()), (3, 1));
            sent.extend(slices.iter().flat_map(|slice| slice.iter().copied()));
            Ok(())
        });
        let whole = HEADERS_BYTES + 1040;
        let datagrams = frames.chunks(whole).flat_map(|frame| &frame[HEADERS_BYTES..]);
        assert!(datagrams.eq(&sent));
    }

    #[test]
    fn what_does_not_go_waits_for_the_next_flush() {
        let mut queue = BurstQueue::new(1);
        places(&mut queue, &[(0, 9); 3]);
        let mut calls = 0;
        let mut send = |_: &Burst, _: &[IoSlice<'_>]| {
            calls += 1;
            if calls == 1 { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
        };
        let mut counters = PortCounters::default();
        assert!(queue.flush(&mut counters, &mut send));
        assert_eq!((queue.waiting(), counters.frames_sent, counters.send_stalls), (2, 1, 1));
        assert!(!queue.flush(&mut counters, |_, _| Ok(())));
        assert_eq!((queue.waiting(), counters.frames_sent), (0, 3));
    }

    #[test]
    fn flows_that_alternate_have_a_burst_each() {
        let mut queue = BurstQueue::new(64);
        assert_eq!(places(&mut queue, &[(0, 9), (1, 9), (0, 9), (1, 9)]), [0, 0, 1, 1]);
    }

    #[test]
    fn a_burst_has_at_most_as_many_datagrams_as_said() {
        let mut queue = BurstQueue::new(3);
        assert_eq!(places(&mut queue, &[(0, 9); 5]), [0, 1, 2, 0, 1]);
    }

    #[test]
    fn a_burst_is_no_longer_than_an_ip_packet_can_be() {
        let mut queue = BurstQueue::new(64);
        let places = places(&mut queue, &[(0, 4112); 17]);
        assert_eq!((places[14], places[15], places[16]), (14, 0, 1));
    }
}
