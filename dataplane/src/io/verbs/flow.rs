//! One queue pair of an adapter: messages into WRITEs, completions back into messages.
//!
//! It knows no library: what it wants posted it says, so that its order can be tested without one.

use super::queue_pair::Write;
use crate::engine::nic::DeviceRequest;
use std::collections::VecDeque;

/// The memory that WRITEs go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Where each WRITE begins.
    pub address: u64,
    /// Its key.
    pub remote_key: u32,
    /// Longest WRITE, at least 1.
    pub write_bytes: u64,
}

/// The memory that WRITEs come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Where each WRITE begins.
    pub address: u64,
    /// Its key.
    pub local_key: u32,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: DeviceRequest,
    left_bytes: u64,
}

/// Messages of one queue pair, in the order in which they were posted.
#[derive(Debug, Default)]
pub struct Flow {
    waiting: VecDeque<Waiting>,
    /// WRITEs that are posted: the message that each ends, if it ends one.
    posted: VecDeque<Option<u32>>,
}

impl Flow {
    /// Add a message behind all others.
    pub fn push(&mut self, request: DeviceRequest) {
        self.waiting.push_back(Waiting { request, left_bytes: request.size_bytes });
    }

    /// The next WRITE, if fewer than `depth` are posted: a message's last has its immediate data.
    pub fn next_write(&mut self, depth: usize, source: &Source, target: &Target) -> Option<Write> {
        if self.posted.len() >= depth {
            return None;
        }
        let front = self.waiting.front_mut()?;
        let length_bytes = front.left_bytes.min(target.write_bytes);
        front.left_bytes -= length_bytes;
        let DeviceRequest { pair, id, immediate, .. } = front.request;
        let is_last = front.left_bytes == 0;
        if is_last {
            self.waiting.pop_front();
        }
        self.posted.push_back(is_last.then_some(id));
        Some(Write {
            id: pair.into(),
            source: source.address,
            local_key: source.local_key,
            length_bytes: length_bytes as u32,
            target: target.address,
            remote_key: target.remote_key,
            immediate: is_last.then_some(immediate),
        })
    }

    /// The oldest WRITE is complete; the message that it ended.
    pub fn complete(&mut self) -> Option<u32> {
        self.posted.pop_front().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Target = Target { address: 4096, remote_key: 7, write_bytes: 1000 };
    const SOURCE: Source = Source { address: 8192, local_key: 5 };

    fn request(id: u32, size_bytes: u64) -> DeviceRequest {
        DeviceRequest { pair: 3, id, size_bytes, immediate: 100 + id }
    }

    fn lengths(flow: &mut Flow, depth: usize) -> Vec<(u32, Option<u32>)> {
        std::iter::from_fn(|| flow.next_write(depth, &SOURCE, &TARGET))
            .map(|write| (write.length_bytes, write.immediate))
            .collect()
    }

    #[test]
    fn only_the_last_write_of_a_message_has_its_immediate_data() {
        let mut flow = Flow::default();
        for request in [request(0, 2500), request(1, 0), request(2, 1000)] {
            flow.push(request);
        }
        let expected =
            [(1000, None), (1000, None), (500, Some(100)), (0, Some(101)), (1000, Some(102))];
        assert_eq!(lengths(&mut flow, 16), expected);
        let ended: Vec<_> = (0..5).map(|_| flow.complete()).collect();
        assert_eq!(ended, [None, None, Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn no_more_writes_are_posted_than_the_queue_holds() {
        let mut flow = Flow::default();
        flow.push(request(0, 3000));
        assert_eq!(lengths(&mut flow, 2).len(), 2);
        assert_eq!(flow.complete(), None);
        assert_eq!(lengths(&mut flow, 2), [(1000, Some(100))]);
    }
}
