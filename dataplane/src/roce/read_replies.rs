//! Answers to READ requests, packet by packet.

use super::opcode::Opcode;
use super::packet::{Payload, Reth};
use super::psn;
use std::collections::VecDeque;

/// READs that a peer with a window of its own may have outstanding. Source: Linux
/// `drivers/infiniband/sw/rxe/rxe_param.h` (`RXE_MAX_QP_RD_ATOM`).
const MIN_LIMIT: u32 = 128;

/// An answer being sent.
#[derive(Clone, Copy, Debug)]
struct Reply {
    /// Number of the next response.
    psn: u32,
    /// Where the next response starts in memory.
    offset_bytes: u64,
    /// Bytes still to send.
    left_bytes: u32,
    /// The next response is the first.
    starts: bool,
}

/// A response, before it has an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub opcode: Opcode,
    pub psn: u32,
    pub payload: Payload,
}

/// The answers not yet wholly sent, in the order of the requests.
#[derive(Clone, Debug)]
pub(super) struct ReadReplies {
    mtu_bytes: u32,
    /// Answers that may wait.
    limit: usize,
    replies: VecDeque<Reply>,
}

impl ReadReplies {
    /// A peer that keeps its window of `window_packets` never has more READs outstanding.
    pub fn new(mtu_bytes: u32, window_packets: u32) -> Self {
        let limit = window_packets.max(MIN_LIMIT) as usize;
        Self { mtu_bytes, limit, replies: VecDeque::new() }
    }

    /// Packets that answer a READ of that length.
    pub fn responses(&self, length_bytes: u32) -> u32 {
        length_bytes.div_ceil(self.mtu_bytes).max(1)
    }

    pub fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// Starts the answer to the READ `reth` with number `psn`. If that READ comes again, its old
    /// answer and those to everything behind it are dropped: the requester has gone back. Returns
    /// whether there was room.
    pub fn answer(&mut self, psn: u32, reth: &Reth) -> bool {
        self.replies.retain(|reply| psn::difference(reply.psn, psn) < 0);
        if self.replies.len() >= self.limit {
            return false;
        }
        let (offset_bytes, left_bytes) = (reth.virtual_address, reth.length_bytes);
        self.replies.push_back(Reply { psn, offset_bytes, left_bytes, starts: true });
        true
    }

    /// Opcode and payload length of the next response.
    #[inline]
    pub fn next(&self) -> Option<(Opcode, u32)> {
        let reply = self.replies.front()?;
        let length_bytes = reply.left_bytes.min(self.mtu_bytes);
        let opcode = match (reply.starts, reply.left_bytes <= self.mtu_bytes) {
            (true, true) => Opcode::READ_RESPONSE_ONLY,
            (true, false) => Opcode::READ_RESPONSE_FIRST,
            (false, false) => Opcode::READ_RESPONSE_MIDDLE,
            (false, true) => Opcode::READ_RESPONSE_LAST,
        };
        Some((opcode, length_bytes))
    }

    /// Takes the next response.
    pub fn poll(&mut self) -> Option<Response> {
        let (opcode, length_bytes) = self.next()?;
        let reply = self.replies.front_mut()?;
        let Reply { psn, offset_bytes, .. } = *reply;
        let payload = Payload::Pattern { offset_bytes, length_bytes: length_bytes as u16 };
        reply.psn = psn::add(psn, 1);
        reply.offset_bytes = offset_bytes.wrapping_add(u64::from(length_bytes));
        reply.left_bytes -= length_bytes;
        reply.starts = false;
        if reply.left_bytes == 0 {
            self.replies.pop_front();
        }
        Some(Response { opcode, psn, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(offset: u64, length_bytes: u32) -> Reth {
        Reth { virtual_address: offset, remote_key: 0, length_bytes }
    }

    fn drain(replies: &mut ReadReplies) -> Vec<(Opcode, u32, u32)> {
        std::iter::from_fn(|| replies.poll())
            .map(|response| (response.opcode, response.psn, response.payload.length_bytes()))
            .collect()
    }

    #[test]
    fn an_answer_has_a_first_middle_and_last_response() {
        let mut replies = ReadReplies::new(1024, 64);
        replies.answer(0xFF_FFFF, &read(0, 2500));
        assert_eq!(replies.responses(2500), 3);
        let first = (Opcode::READ_RESPONSE_FIRST, 0xFF_FFFF, 1024);
        let middle = (Opcode::READ_RESPONSE_MIDDLE, 0, 1024);
        assert_eq!(drain(&mut replies), [first, middle, (Opcode::READ_RESPONSE_LAST, 1, 452)]);
    }

    #[test]
    fn a_read_of_nothing_is_answered() {
        let mut replies = ReadReplies::new(1024, 64);
        replies.answer(7, &read(0, 0));
        assert_eq!((replies.responses(0), replies.responses(1024)), (1, 1));
        assert_eq!(drain(&mut replies), [(Opcode::READ_RESPONSE_ONLY, 7, 0)]);
    }

    #[test]
    fn no_more_answers_wait_than_a_peer_may_ask_for() {
        let mut replies = ReadReplies::new(1024, 64);
        assert!((0..MIN_LIMIT).all(|psn| replies.answer(psn, &read(0, 1))));
        assert!(!replies.answer(MIN_LIMIT, &read(0, 1)));
        assert!(replies.poll().is_some());
        assert!(replies.answer(MIN_LIMIT, &read(0, 1)));
    }

    #[test]
    fn a_read_that_comes_again_replaces_its_answer_and_those_behind() {
        let mut replies = ReadReplies::new(1024, 64);
        replies.answer(10, &read(0, 1024));
        replies.answer(11, &read(0, 2048));
        replies.answer(13, &read(0, 1024));
        replies.answer(12, &read(1024, 1024));
        let psns: Vec<u32> = drain(&mut replies).iter().map(|response| response.1).collect();
        // The answer to 11 has not reached 12 yet.
        assert_eq!(psns, [10, 11, 12, 12]);
    }
}
