//! Messages over the queue pairs towards one rank: whole messages in turn, or each in stripes.

use crate::config::QpDistribution;
use std::collections::BTreeMap;
use std::ops::Range;

/// Stripes are multiples of this, but for the last bytes. Source: NCCL, `net_ib`, with
/// `NCCL_IB_SPLIT_DATA_ON_QPS=1`.
const STRIPE_ALIGNMENT_BYTES: u64 = 128;

/// Where a message goes.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Rank of the other end.
    pub peer_rank: u32,
    /// Data class.
    pub class: u8,
    /// Channel of the collective.
    pub channel: u16,
}

impl Route {
    /// What has queue pairs of its own.
    pub fn flow(self) -> (u32, u8) {
        (self.peer_rank, self.class)
    }
}

/// The queue pairs towards one rank for messages of one class.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub first: u32,
    pub count: u32,
    pub next: u32,
}

impl Peer {
    /// The queue pair whose turn it is.
    pub fn take_turn(&mut self) -> u32 {
        let index = self.first + self.next;
        self.next = (self.next + 1) % self.count;
        index
    }

    /// The queue pair of a channel.
    pub fn of_channel(&self, channel: u16) -> u32 {
        self.first + u32::from(channel) % self.count
    }

    /// All of them.
    pub fn pairs(&self) -> Range<u32> {
        self.first..self.first + self.count
    }
}

/// Bytes of each of `count` stripes; the last ones may be empty, and are sent all the same, so that
/// a receiver knows how many to expect.
pub fn stripes(size_bytes: u64, count: u32) -> impl Iterator<Item = u64> {
    let share = size_bytes.div_ceil(u64::from(count));
    let stripe = share.next_multiple_of(STRIPE_ALIGNMENT_BYTES);
    (0..u64::from(count)).map(move |index| size_bytes.saturating_sub(index * stripe).min(stripe))
}

/// What became of a message that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    pub retransmitted_packets: u32,
    pub cnps: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Incoming {
    peer_rank: u32,
    stripes: u32,
    bytes: u64,
    marked_packets: u32,
}

/// Puts messages together again: one is complete when all its stripes are.
#[derive(Debug)]
pub struct Striping {
    /// Stripes of each message; 1 where messages stay whole.
    count: u32,
    /// By message: stripes that are acknowledged, and what became of them.
    outgoing: BTreeMap<u32, (u32, Sent)>,
    /// By immediate data.
    incoming: BTreeMap<u32, Incoming>,
}

impl Striping {
    pub fn new(distribution: QpDistribution, qps_per_peer: u32) -> Self {
        let count = match distribution {
            QpDistribution::RoundRobin | QpDistribution::Channel => 1,
            QpDistribution::Split => qps_per_peer,
        };
        Self { count, outgoing: BTreeMap::new(), incoming: BTreeMap::new() }
    }

    /// Messages are not sent whole.
    pub fn is_on(&self) -> bool {
        self.count > 1
    }

    /// A stripe of message `id` is acknowledged; the sum over the stripes after the last one.
    pub fn handle_sent(&mut self, id: u32, sent: Sent) -> Option<Sent> {
        if !self.is_on() {
            return Some(sent);
        }
        let (stripes, sum) = self.outgoing.entry(id).or_default();
        *stripes += 1;
        sum.retransmitted_packets += sent.retransmitted_packets;
        sum.cnps += sent.cnps;
        let whole = (*stripes == self.count).then_some(*sum)?;
        self.outgoing.remove(&id);
        Some(whole)
    }

    /// A stripe has arrived; the message's marked packets after the last one.
    pub fn handle_received(
        &mut self,
        peer_rank: u32,
        immediate: u32,
        size_bytes: u64,
        marked_packets: u32,
    ) -> Option<u32> {
        if !self.is_on() {
            return Some(marked_packets);
        }
        let message = self.incoming.entry(immediate).or_default();
        message.peer_rank = peer_rank;
        message.stripes += 1;
        message.bytes += size_bytes;
        message.marked_packets += marked_packets;
        let whole = (message.stripes == self.count).then_some(message.marked_packets)?;
        self.incoming.remove(&immediate);
        Some(whole)
    }

    /// Bytes of whole stripes from a rank whose messages are not complete.
    pub fn receiving_bytes(&self, peer_rank: u32) -> u64 {
        let from_peer = self.incoming.values().filter(|message| message.peer_rank == peer_rank);
        from_peer.map(|message| message.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(size_bytes: u64, count: u32) -> Vec<u64> {
        stripes(size_bytes, count).collect()
    }

    #[test]
    fn stripes_are_multiples_of_128_bytes_and_lose_none() {
        assert_eq!(cut(1 << 20, 4), [1 << 18; 4]);
        assert_eq!(cut(1000, 4), [256, 256, 256, 232]);
        assert_eq!(cut(130, 4), [128, 2, 0, 0]);
        assert_eq!(cut(0, 3), [0, 0, 0]);
        for size_bytes in 0..2000 {
            assert_eq!(cut(size_bytes, 7).iter().sum::<u64>(), size_bytes);
        }
    }

    #[test]
    fn a_message_is_complete_with_its_last_stripe() {
        let mut striping = Striping::new(QpDistribution::Split, 2);
        assert_eq!(striping.handle_received(5, 7, 128, 1), None);
        assert_eq!(striping.handle_received(5, 8, 64, 0), None);
        assert_eq!(striping.receiving_bytes(5), 192);
        assert_eq!(striping.handle_received(5, 7, 100, 2), Some(3));
        assert_eq!(striping.receiving_bytes(5), 64);
        let sent = Sent { retransmitted_packets: 1, cnps: 2 };
        assert_eq!(striping.handle_sent(3, sent), None);
        let sum = Sent { retransmitted_packets: 2, cnps: 4 };
        assert_eq!(striping.handle_sent(3, sent), Some(sum));
    }

    #[test]
    fn queue_pairs_take_turns() {
        let mut peer = Peer { first: 4, count: 2, next: 0 };
        let turns: Vec<u32> = (0..3).map(|_| peer.take_turn()).collect();
        assert_eq!(turns, [4, 5, 4]);
        assert_eq!(peer.pairs(), 4..6);
        assert_eq!([0, 1, 2].map(|channel| peer.of_channel(channel)), [4, 5, 4]);
    }
}
