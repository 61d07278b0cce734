//! One queue of an interface: a socket, and the frames that wait to be sent by it.

use super::super::PortCounters;
use super::socket::XdpSocket;

/// Frames taken in one call.
const BATCH: usize = 64;

/// See the module documentation.
#[derive(Debug)]
pub struct Queue {
    /// The socket.
    pub socket: XdpSocket,
    /// Frames that wait for room, one behind the other.
    bytes: Vec<u8>,
    /// End of each in `bytes`.
    ends: Vec<usize>,
    /// Frames of `ends` that have gone.
    sent: usize,
    /// A frame of several parts.
    whole: Vec<u8>,
    /// The kernel has not been told of the last frames.
    is_pushed: bool,
    /// Something came by it.
    pub is_used: bool,
}

impl Queue {
    /// A queue with nothing in it.
    pub fn new(socket: XdpSocket) -> Self {
        Self {
            socket,
            bytes: Vec::new(),
            ends: Vec::new(),
            sent: 0,
            whole: Vec::new(),
            is_pushed: false,
            is_used: false,
        }
    }

    /// Let a frame that `write` appends wait.
    pub fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Give a frame in two pieces to the socket, or let it wait.
    pub fn push(&mut self, first: &[u8], second: &[u8], counters: &mut PortCounters) {
        if self.waiting() == 0 && self.socket.push(first, second) {
            self.count_sent(first.len() + second.len(), counters);
            return;
        }
        self.append(|bytes| {
            bytes.extend_from_slice(first);
            bytes.extend_from_slice(second);
        });
    }

    /// Frames that wait.
    pub fn waiting(&self) -> usize {
        self.ends.len() - self.sent
    }

    /// Send what waits; true if something is left.
    pub fn flush(&mut self, counters: &mut PortCounters) -> bool {
        loop {
            let before = self.sent;
            self.push_waiting(counters);
            counters.bursts_sent += u64::from(std::mem::take(&mut self.is_pushed));
            let is_waiting = self.socket.flush().unwrap_or_else(|_| {
                counters.send_errors += 1;
                false
            });
            if self.waiting() == 0 {
                self.bytes.clear();
                self.ends.clear();
                self.sent = 0;
                return is_waiting;
            }
            if self.sent == before {
                counters.send_stalls += 1;
                return true;
            }
        }
    }

    fn push_waiting(&mut self, counters: &mut PortCounters) {
        let mut start = if self.sent == 0 { 0 } else { self.ends[self.sent - 1] };
        while let Some(&end) = self.ends.get(self.sent) {
            if !self.socket.push(&self.bytes[start..end], &[]) {
                break;
            }
            self.count_sent(end - start, counters);
            self.sent += 1;
            start = end;
        }
    }

    fn count_sent(&mut self, bytes: usize, counters: &mut PortCounters) {
        counters.frames_sent += 1;
        counters.bytes_sent += bytes as u64;
        self.is_pushed = true;
    }

    /// Take what has come, each frame with its CLOCK_MONOTONIC; how many came.
    pub fn receive(
        &mut self,
        counters: &mut PortCounters,
        take: &mut dyn FnMut(&mut [u8], Option<u64>),
    ) -> usize {
        let frames = self.socket.receive(BATCH, &mut self.whole, &mut |bytes, time_ns| {
            counters.bytes_received += bytes.len() as u64;
            counters.untimed_frames += u64::from(time_ns.is_none());
            take(bytes, time_ns);
        });
        counters.frames_received += frames as u64;
        counters.bursts_received += u64::from(frames > 0);
        self.is_used |= frames > 0;
        frames
    }
}
