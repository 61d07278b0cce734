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
    last: LastView,
}

/// What the last packet that came as bytes looked like, and where it went: most are followed by more
/// of their flow.
#[derive(Clone, Copy, Debug)]
struct LastView {
    /// Length of its frame; 0 if the next packet has to be looked at.
    frame_bytes: usize,
    /// Length of what stands behind the UDP header, ICRC included.
    datagram_bytes: usize,
    headers: [u8; HEADERS_BYTES],
    burst: usize,
}

impl LastView {
    const NONE: Self =
        Self { frame_bytes: 0, datagram_bytes: 0, headers: [0; HEADERS_BYTES], burst: 0 };

    /// Whether another frame is like this one in length and in all that a flow has in common.
    /// Addresses of the link, identification and checksums may differ.
    #[inline]
    fn is_like(&self, frame: &[u8]) -> bool {
        self.frame_bytes == frame.len()
            && frame.first_chunk().is_some_and(|headers: &[u8; HEADERS_BYTES]| {
                headers[12..18] == self.headers[12..18]
                    && headers[20..24] == self.headers[20..24]
                    && headers[26..40] == self.headers[26..40]
            })
    }
}

impl BurstQueue {
    /// An empty queue of bursts of at most so many datagrams.
    pub fn new(max_segments: usize) -> Self {
        let max_segments = max_segments.clamp(1, MAX_SEGMENTS);
        let effect = IdentificationEffect::new(0);
        let (bytes, bursts) = (Vec::new(), Vec::new());
        let last = LastView::NONE;
        Self { bytes, bursts, used: 0, sent: 0, waiting: 0, max_segments, effect, last }
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

    /// Append a packet that is there as bytes if it is of the same flow and length as the one before,
    /// which was looked at; false if it is not.
    #[inline]
    pub fn push_alike(&mut self, frame: &[u8]) -> bool {
        let LastView { burst, datagram_bytes, .. } = self.last;
        let joins = self.last.is_like(frame)
            && !self.bursts[burst].is_closed
            && self.bursts[burst].bytes + datagram_bytes <= MAX_BURST_BYTES;
        if joins {
            let identification = u16::from_be_bytes([frame[18], frame[19]]);
            let datagram = &frame[HEADERS_BYTES..HEADERS_BYTES + datagram_bytes];
            self.push_datagram(burst, datagram, identification);
        }
        joins
    }

    /// Append a packet that is there as bytes, of which `view` tells the fields.
    pub fn push_view(&mut self, frame: &[u8], view: &View<'_>) {
        let flow = Flow {
            source_port: view.source_port,
            destination: view.destination,
            traffic_class: view.traffic_class,
        };
        let datagram_bytes = view.datagram.len();
        let burst = self.burst_for(flow, datagram_bytes);
        let headers = frame.first_chunk().copied().unwrap_or([0; HEADERS_BYTES]);
        self.last = LastView { frame_bytes: frame.len(), datagram_bytes, headers, burst };
        self.push_datagram(burst, view.datagram, view.identification);
    }

    /// Append a datagram; its ICRC is put right for the identification that the kernel will give it.
    #[inline]
    fn push_datagram(&mut self, index: usize, datagram: &[u8], identification: u16) {
        let bytes = datagram.len();
        let covered_bytes = bytes + HEADERS_BYTES - ETHERNET_BYTES - ICRC_BYTES;
        if self.effect.covered_bytes() != covered_bytes {
            self.effect = IdentificationEffect::new(covered_bytes);
        }
        let Some((covered, icrc)) = datagram.split_last_chunk::<ICRC_BYTES>() else { return };
        let icrc = u32::from_le_bytes(*icrc);
        let icrc = self.effect.replace(icrc, identification, self.next_place(index));
        self.bytes.extend_from_slice(covered);
        self.bytes.extend_from_slice(&icrc.to_le_bytes());
        self.note(index, bytes);
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
        self.note(index, bytes);
    }

    /// The last `bytes` are a datagram of a burst.
    #[inline]
    fn note(&mut self, index: usize, bytes: usize) {
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
        self.last = LastView::NONE;
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
        self.last = LastView::NONE;
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
    use super::super::view::view;
    use super::*;
    use crate::roce::icrc::icrc;
    use crate::roce::packet::Bth;
    use crate::roce::{Packet, Payload, opcode::Opcode};

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

    /// A frame of a flow.
    fn frame(source_port: u16, length_bytes: u16) -> Vec<u8> {
        let packet = Packet {
            source_port,
            bth: Bth { opcode: Opcode::WRITE_MIDDLE, ..Bth::default() },
            payload: Payload::Pattern { offset_bytes: 0, length_bytes },
            ..Packet::default()
        };
        let mut bytes = Vec::new();
        encode(&Frame::Roce(Box::new(packet)), [1; 6], [2; 6], &mut bytes);
        bytes
    }

    fn push_looked_at(queue: &mut BurstQueue, frame: &[u8]) {
        queue.push_view(frame, &view(frame).expect("it is RoCEv2"));
    }

    #[test]
    fn frames_like_the_one_before_join_its_burst_with_icrcs_of_their_places() {
        let mut queue = BurstQueue::new(64);
        let sent = frame(0xC000, 1024);
        push_looked_at(&mut queue, &sent);
        assert!((1..60).all(|_| queue.push_alike(&sent)));
        let mut places = 0;
        queue.flush(&mut PortCounters::default(), |burst, bytes| {
            for (place, &(start, end)) in burst.segments.iter().enumerate() {
                let mut found = sent[..HEADERS_BYTES].to_vec();
                found[18..20].copy_from_slice(&(place as u16).to_be_bytes());
                found.extend_from_slice(&bytes[start..end - ICRC_BYTES]);
                let right = icrc(&found[ETHERNET_BYTES..]).expect("it is IPv4");
                assert_eq!(bytes[end - ICRC_BYTES..end], right.to_le_bytes(), "{place}");
                places += 1;
            }
            Ok(())
        });
        assert_eq!(places, 60);
    }

    #[test]
    fn a_frame_is_looked_at_if_it_differs_or_begins_a_burst() {
        let mut queue = BurstQueue::new(2);
        let sent = frame(0xC000, 1024);
        assert!(!queue.push_alike(&sent), "nothing came before");
        push_looked_at(&mut queue, &sent);
        assert!(!queue.push_alike(&frame(0xC001, 1024)), "another flow");
        assert!(!queue.push_alike(&frame(0xC000, 1028)), "another length");
        assert!(queue.push_alike(&sent));
        assert!(!queue.push_alike(&sent), "the burst is full");
        push_looked_at(&mut queue, &sent);
        queue.flush(&mut PortCounters::default(), |_, _| Ok(()));
        assert!(!queue.push_alike(&sent), "the burst has gone");
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
