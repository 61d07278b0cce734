//! Datagrams that wait to be sent, gathered so that the kernel takes many in one call.
//!
//! A burst is what one call gives: datagrams of one flow and traffic class that are equally long, but
//! for the last, which may be shorter. The kernel, or an adapter, cuts them apart.

use super::PortCounters;
use super::view::View;
use crate::roce::icrc::IdentificationEffect;
use crate::roce::layout::{ETHERNET_BYTES, HEADERS_BYTES, ICRC_BYTES};
use crate::roce::{Frame, encode};
use crate::units::FCS_BYTES;
use std::io;
use std::net::Ipv4Addr;

/// Datagrams of a burst, at most. Source: Linux `UDP_MAX_SEGMENTS`, 64 before Linux 6.9.
pub const MAX_SEGMENTS: usize = 64;
/// Bytes of a burst, at most: what one IPv4 packet can carry over UDP.
const MAX_BURST_BYTES: usize = 65_535 - 20 - 8;
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

/// What one call gives to the kernel.
#[derive(Debug)]
pub struct Burst {
    /// Whose datagrams.
    pub flow: Flow,
    /// Length of all datagrams but the last.
    pub segment_bytes: usize,
    /// Length of all together.
    pub bytes: usize,
    /// Start and end of each datagram in the bytes of its queue.
    pub segments: Vec<(usize, usize)>,
    /// The last datagram is shorter, or there are as many as there may be.
    is_closed: bool,
}

/// The places of datagrams in the bytes of their queue, neighbours taken together: the fewer parts a
/// burst has, the less the kernel has to do. Returns how many of `parts` were filled.
pub fn joined(segments: &[(usize, usize)], parts: &mut [(usize, usize); MAX_SEGMENTS]) -> usize {
    let mut count = 0;
    for &(start, end) in segments {
        if count > 0 && parts[count - 1].1 == start {
            parts[count - 1].1 = end;
        } else {
            parts[count] = (start, end);
            count += 1;
        }
    }
    count
}

/// Datagrams that wait, in bursts.
#[derive(Debug)]
pub struct BurstQueue {
    bytes: Vec<u8>,
    /// The first `used` are in use; the others keep their memory.
    bursts: Vec<Burst>,
    used: usize,
    /// Bursts that have gone.
    sent: usize,
    waiting: usize,
    max_segments: usize,
    /// Of the last length that an ICRC was put right for.
    effect: IdentificationEffect,
}

impl BurstQueue {
    /// An empty queue of bursts of at most so many datagrams.
    pub fn new(max_segments: usize) -> Self {
        let max_segments = max_segments.clamp(1, MAX_SEGMENTS);
        let effect = IdentificationEffect::new(0);
        let (bytes, bursts) = (Vec::new(), Vec::new());
        Self { bytes, bursts, used: 0, sent: 0, waiting: 0, max_segments, effect }
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
        self.push(index, bytes, |out| encode(frame, [0; 6], [0; 6], out));
    }

    /// Append a packet that is there as bytes; its ICRC is put right for the identification that the
    /// kernel will give it.
    pub fn push_view(&mut self, view: &View<'_>) {
        let flow = Flow {
            source_port: view.source_port,
            destination: view.destination,
            traffic_class: view.traffic_class,
        };
        let bytes = view.datagram.len();
        let index = self.burst_for(flow, bytes);
        let place = self.next_place(index);
        let (covered, icrc) = view.datagram.split_at(bytes - ICRC_BYTES);
        let covered_bytes = covered.len() + HEADERS_BYTES - ETHERNET_BYTES;
        if self.effect.covered_bytes() != covered_bytes {
            self.effect = IdentificationEffect::new(covered_bytes);
        }
        let icrc = u32::from_le_bytes([icrc[0], icrc[1], icrc[2], icrc[3]]);
        let icrc = self.effect.replace(icrc, view.identification, place);
        self.push(index, bytes, |out| {
            out.extend_from_slice(view.datagram);
            let end = out.len();
            out[end - ICRC_BYTES..].copy_from_slice(&icrc.to_le_bytes());
        });
    }

    /// Datagrams per burst at most.
    pub fn max_segments(&self) -> usize {
        self.max_segments
    }

    /// Datagrams per burst at most, from now on.
    pub fn limit_segments(&mut self, max_segments: usize) {
        self.max_segments = max_segments.clamp(1, MAX_SEGMENTS);
    }

    /// The place that the next datagram of a burst has: the identification that the kernel gives it. Source: Linux `inet_gso_segment`, which counts on from that of the
    /// first, and `ip_select_ident`, which gives 0 to what an unconnected socket sends with DF.
    fn next_place(&self, index: usize) -> u16 {
        self.bursts[index].segments.len() as u16
    }

    /// Append a datagram to a burst. `write` appends something that ends with it to the bytes that it
    /// is given.
    fn push(&mut self, index: usize, bytes: usize, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        let end = self.bytes.len();
        let burst = &mut self.bursts[index];
        burst.segments.push((end - bytes, end));
        burst.bytes += bytes;
        burst.is_closed = bytes < burst.segment_bytes || burst.segments.len() == self.max_segments;
        self.waiting += 1;
    }

    /// The burst that the next datagram of this flow and length joins or begins.
    fn burst_for(&mut self, flow: Flow, bytes: usize) -> usize {
        self.open_burst(flow, bytes).unwrap_or_else(|| self.begin(flow, bytes))
    }

    /// The burst that a datagram may join. Bursts of a flow go in their order, so only its last.
    fn open_burst(&self, flow: Flow, bytes: usize) -> Option<usize> {
        let first = self.sent.max(self.used.saturating_sub(LOOK_BACK));
        let index = (first..self.used).rev().find(|&index| self.bursts[index].flow == flow)?;
        let burst = &self.bursts[index];
        let fits = !burst.is_closed
            && bytes <= burst.segment_bytes
            && burst.bytes + bytes <= MAX_BURST_BYTES;
        fits.then_some(index)
    }

    fn begin(&mut self, flow: Flow, segment_bytes: usize) -> usize {
        let index = self.used;
        self.used += 1;
        if index == self.bursts.len() {
            let segments = Vec::with_capacity(self.max_segments);
            self.bursts.push(Burst { flow, segment_bytes, bytes: 0, segments, is_closed: false });
        }
        let burst = &mut self.bursts[index];
        burst.flow = flow;
        burst.segment_bytes = segment_bytes;
        burst.bytes = 0;
        burst.segments.clear();
        burst.is_closed = false;
        index
    }

    /// Give burst after burst to `send`, with the bytes that its segments lead into, until the kernel
    /// is full: true then, and the rest waits for the next call. What the kernel refuses for another
    /// reason is dropped. `counters` count frames, whole headers included.
    pub fn flush(
        &mut self,
        counters: &mut PortCounters,
        mut send: impl FnMut(&Burst, &[u8]) -> io::Result<()>,
    ) -> bool {
        while self.sent < self.used {
            let burst = &self.bursts[self.sent];
            let datagrams = burst.segments.len();
            match send(burst, &self.bytes) {
                Ok(()) => {
                    counters.frames_sent += datagrams as u64;
                    counters.bytes_sent += (burst.bytes + datagrams * HEADERS_BYTES) as u64;
                    counters.bursts_sent += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if is_full(&error) => {
                    counters.send_stalls += 1;
                    return true;
                }
                Err(_) => counters.send_errors += datagrams as u64,
            }
            self.sent += 1;
            self.waiting -= datagrams;
        }
        self.bytes.clear();
        (self.used, self.sent) = (0, 0);
        false
    }
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(source_port: u16) -> Flow {
        Flow { source_port, destination: Ipv4Addr::LOCALHOST, traffic_class: 0 }
    }

    /// The places that datagrams of these lengths take.
    fn places(queue: &mut BurstQueue, lengths: &[(u16, usize)]) -> Vec<u16> {
        let place = |&(port, bytes): &(u16, usize)| {
            let index = queue.burst_for(flow(port), bytes);
            let place = queue.next_place(index);
            queue.push(index, bytes, |all| all.resize(all.len() + bytes, 0));
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
