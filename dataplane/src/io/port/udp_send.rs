//! Datagrams that wait to be sent, gathered so that the kernel takes many in one call.
//!
//! A burst is what one call gives: datagrams of one flow and traffic class that are equally long, but
//! for the last, which may be shorter. The kernel, or an adapter, cuts them apart.
#![allow(unsafe_code)]

use std::io;
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Datagrams of a burst, at most. Source: Linux `UDP_MAX_SEGMENTS`, 64 before Linux 6.9.
pub const MAX_SEGMENTS: usize = 64;
/// Bytes of a burst, at most: what one IPv4 packet can carry over UDP.
const MAX_BURST_BYTES: usize = 65_535 - 20 - 8;
/// Bursts that are looked at for one that a datagram fits to; more flows at once go singly.
const LOOK_BACK: usize = 8;
/// Room for the two control messages: segment length and traffic class.
type ControlBytes = [u64; 8];

/// Which flow a datagram is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Index of the socket that has the source port.
    pub socket: u32,
    /// Where it goes.
    pub destination: Ipv4Addr,
    /// DSCP and ECN.
    pub traffic_class: u8,
}

#[derive(Debug)]
struct Burst {
    flow: Flow,
    /// Length of all datagrams but the last.
    segment_bytes: usize,
    bytes: usize,
    /// Start and end of each datagram.
    segments: Vec<(usize, usize)>,
    /// The last datagram is shorter, or there are as many as there may be.
    is_closed: bool,
}

/// What a call of [`UdpQueue::flush`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushed {
    /// Datagrams that went.
    pub datagrams: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Calls in which they went.
    pub bursts: u64,
    /// Datagrams that the kernel refused for good.
    pub errors: u64,
    /// A queue of the kernel is full.
    pub is_blocked: bool,
}

/// Datagrams that wait, in bursts.
#[derive(Debug)]
pub struct UdpQueue {
    bytes: Vec<u8>,
    /// The first `used` are in use; the others keep their memory.
    bursts: Vec<Burst>,
    used: usize,
    /// Bursts that have gone.
    sent: usize,
    waiting: usize,
    max_segments: usize,
}

impl UdpQueue {
    /// An empty queue of bursts of at most so many datagrams.
    pub fn new(max_segments: usize) -> Self {
        let max_segments = max_segments.clamp(1, MAX_SEGMENTS);
        Self { bytes: Vec::new(), bursts: Vec::new(), used: 0, sent: 0, waiting: 0, max_segments }
    }

    /// Datagrams that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// The place in its burst that the next datagram of this flow and length has: the identification
    /// that the kernel gives it. Source: Linux `inet_gso_segment`, which counts on from that of the
    /// first, and `ip_select_ident`, which gives 0 to what an unconnected socket sends with DF.
    pub fn next_place(&self, flow: Flow, bytes: usize) -> u16 {
        self.open_burst(flow, bytes).map_or(0, |burst| self.bursts[burst].segments.len() as u16)
    }

    /// Append a datagram. `write` appends something that ends with it to the bytes that it is given.
    pub fn push(&mut self, flow: Flow, bytes: usize, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        let end = self.bytes.len();
        let index = self.open_burst(flow, bytes).unwrap_or_else(|| self.begin(flow, bytes));
        let burst = &mut self.bursts[index];
        burst.segments.push((end - bytes, end));
        burst.bytes += bytes;
        burst.is_closed = bytes < burst.segment_bytes || burst.segments.len() == self.max_segments;
        self.waiting += 1;
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

    /// Send as much as the kernel takes, to `port` of each destination. What is left waits for the
    /// next call; what the kernel refuses for another reason than a full queue is dropped.
    pub fn flush<'a>(&mut self, port: u16, socket: impl Fn(u32) -> BorrowedFd<'a>) -> Flushed {
        let mut flushed = Flushed::default();
        while self.sent < self.used {
            let burst = &self.bursts[self.sent];
            let datagrams = burst.segments.len() as u64;
            match send(socket(burst.flow.socket), port, burst, &self.bytes) {
                Ok(()) => {
                    flushed.datagrams += datagrams;
                    flushed.bytes += burst.bytes as u64;
                    flushed.bursts += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if is_full(&error) => {
                    flushed.is_blocked = true;
                    return flushed;
                }
                Err(_) => flushed.errors += datagrams,
            }
            self.sent += 1;
            self.waiting -= datagrams as usize;
        }
        self.bytes.clear();
        (self.used, self.sent) = (0, 0);
        flushed
    }
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM))
}

/// Give one burst to the kernel.
fn send(socket: BorrowedFd<'_>, port: u16, burst: &Burst, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: all-zero is a valid value of these plain C structures.
    let (mut name, mut slices, mut header): (
        libc::sockaddr_in,
        [libc::iovec; MAX_SEGMENTS],
        libc::msghdr,
    ) = unsafe { (zeroed(), zeroed(), zeroed()) };
    name.sin_family = libc::AF_INET as libc::sa_family_t;
    name.sin_port = port.to_be();
    name.sin_addr.s_addr = u32::from(burst.flow.destination).to_be();
    for (slice, &(start, end)) in slices.iter_mut().zip(&burst.segments) {
        // The kernel only reads what a sender's list leads to.
        *slice = libc::iovec {
            iov_base: bytes[start..end].as_ptr().cast_mut().cast(),
            iov_len: end - start,
        };
    }
    let mut control: ControlBytes = [0; 8];
    header.msg_name = (&mut name as *mut libc::sockaddr_in).cast();
    header.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    header.msg_iov = slices.as_mut_ptr();
    header.msg_iovlen = burst.segments.len();
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = put_control(&mut control, burst);
    // SAFETY: `header` leads to live buffers of the lengths it names, which the kernel only reads
    // and does not keep.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &header, libc::MSG_DONTWAIT) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Traffic class, and segment length of more than one datagram, in the layout of `cmsghdr`: length,
/// level and type, value, in words of 8 bytes. Returns the length of all.
fn put_control(control: &mut ControlBytes, burst: &Burst) -> usize {
    let head = |length: usize, level: libc::c_int, kind: libc::c_int| {
        [(16 + length) as u64, u64::from(level as u32) | u64::from(kind as u32) << 32]
    };
    control[..2].copy_from_slice(&head(4, libc::SOL_IP, libc::IP_TOS));
    control[2] = native_word(&i32::from(burst.flow.traffic_class).to_ne_bytes());
    if burst.segments.len() == 1 {
        return 24;
    }
    control[3..5].copy_from_slice(&head(2, libc::SOL_UDP, libc::UDP_SEGMENT));
    control[5] = native_word(&(burst.segment_bytes as u16).to_ne_bytes());
    48
}

/// A word whose first bytes in memory are these.
fn native_word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(socket: u32) -> Flow {
        Flow { socket, destination: Ipv4Addr::LOCALHOST, traffic_class: 0 }
    }

    /// The places that datagrams of these lengths take.
    fn places(queue: &mut UdpQueue, lengths: &[(u32, usize)]) -> Vec<u16> {
        let place = |&(socket, bytes): &(u32, usize)| {
            let place = queue.next_place(flow(socket), bytes);
            queue.push(flow(socket), bytes, |all| all.resize(all.len() + bytes, 0));
            place
        };
        lengths.iter().map(place).collect()
    }

    #[test]
    fn equally_long_datagrams_of_a_flow_are_a_burst_that_a_shorter_one_ends() {
        let mut queue = UdpQueue::new(64);
        let lengths = [(0, 100), (0, 100), (0, 60), (0, 60), (0, 100)];
        assert_eq!(places(&mut queue, &lengths), [0, 1, 2, 0, 0]);
        assert_eq!(queue.waiting(), 5);
    }

    #[test]
    fn flows_that_alternate_have_a_burst_each() {
        let mut queue = UdpQueue::new(64);
        assert_eq!(places(&mut queue, &[(0, 9), (1, 9), (0, 9), (1, 9)]), [0, 0, 1, 1]);
    }

    #[test]
    fn a_burst_has_at_most_as_many_datagrams_as_said() {
        let mut queue = UdpQueue::new(3);
        assert_eq!(places(&mut queue, &[(0, 9); 5]), [0, 1, 2, 0, 1]);
    }

    #[test]
    fn a_burst_is_no_longer_than_an_ip_packet_can_be() {
        let mut queue = UdpQueue::new(64);
        let places = places(&mut queue, &[(0, 4112); 17]);
        assert_eq!((places[14], places[15], places[16]), (14, 0, 1));
    }
}
