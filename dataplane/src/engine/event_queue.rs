//! Pending events in the order of their time, ties in the order of their rank, then of their
//! insertion.
//!
//! A 4-ary heap on a 128-bit key (time, rank, sequence number). It knows nothing about what an event
//! means.

/// Bits of the sequence number: a million million events.
const SEQUENCE_BITS: u32 = 40;

/// When an event happens, and its place among events of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey(u128);

impl EventKey {
    /// A key; at the same time the smaller `rank` (24 bits) comes first, then the smaller
    /// `sequence` (40 bits).
    #[inline]
    pub fn new(time_ps: u64, rank: u32, sequence: u64) -> Self {
        debug_assert!(sequence >> SEQUENCE_BITS == 0 && rank >> (64 - SEQUENCE_BITS) == 0);
        let place = u64::from(rank) << SEQUENCE_BITS | sequence;
        Self((u128::from(time_ps) << 64) | u128::from(place))
    }

    /// The time.
    #[inline]
    pub fn time_ps(self) -> u64 {
        (self.0 >> 64) as u64
    }
}

/// Children per node: one cache line of keys, and half the levels of a binary heap.
const ARITY: usize = 4;

/// A priority queue of events.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: Vec<(EventKey, E)>,
    next_sequence: u64,
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue.
    pub fn new() -> Self {
        Self { heap: Vec::new(), next_sequence: 0 }
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// A key for an event at `time_ps` that comes after every key of this rank made before at that
    /// time.
    #[inline]
    pub fn key(&mut self, time_ps: u64, rank: u32) -> EventKey {
        let key = EventKey::new(time_ps, rank, self.next_sequence);
        self.next_sequence += 1;
        key
    }

    /// Add an event of rank 0 at `time_ps`.
    #[inline]
    pub fn push(&mut self, time_ps: u64, event: E) {
        let key = self.key(time_ps, 0);
        self.push_key(key, event);
    }

    /// Add an event under a key made before.
    #[inline]
    pub fn push_key(&mut self, key: EventKey, event: E) {
        let mut hole = self.heap.len();
        self.heap.push((key, event));
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.heap[parent].0 <= key {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = (key, event);
    }

    /// Time of the earliest event.
    #[inline]
    pub fn next_ps(&self) -> Option<u64> {
        self.heap.first().map(|(key, _)| key.time_ps())
    }

    /// Remove the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, E)> {
        self.pop_entry().map(|(key, event)| (key.time_ps(), event))
    }

    /// Remove the earliest event with its key.
    #[inline]
    pub fn pop_entry(&mut self) -> Option<(EventKey, E)> {
        let last = self.heap.pop()?;
        let Some(&top) = self.heap.first() else {
            return Some(last);
        };
        self.sift_down(last);
        Some(top)
    }

    /// Put `entry` at the root's hole and restore the order.
    #[inline]
    fn sift_down(&mut self, entry: (EventKey, E)) {
        let heap = &mut self.heap[..];
        let mut hole = 0;
        loop {
            let first = ARITY * hole + 1;
            if first >= heap.len() {
                break;
            }
            let end = (first + ARITY).min(heap.len());
            let mut least = first;
            for child in first + 1..end {
                if heap[child].0 < heap[least].0 {
                    least = child;
                }
            }
            if heap[least].0 >= entry.0 {
                break;
            }
            heap[hole] = heap[least];
            hole = least;
        }
        heap[hole] = entry;
    }
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn events_of_one_time_leave_in_the_order_of_insertion() {
        let mut queue = EventQueue::new();
        for event in 0..100u32 {
            queue.push(7, event);
        }
        queue.push(3, 1000);
        assert_eq!(queue.pop(), Some((3, 1000)));
        for event in 0..100 {
            assert_eq!(queue.pop(), Some((7, event)));
        }
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn a_key_made_early_keeps_its_place_when_it_is_pushed_late() {
        let mut queue = EventQueue::new();
        let early = queue.key(5, 0);
        queue.push(5, 'b');
        queue.push_key(early, 'a');
        assert_eq!(queue.pop(), Some((5, 'a')));
        assert_eq!(queue.pop(), Some((5, 'b')));
    }

    #[test]
    fn events_of_one_time_leave_in_the_order_of_their_rank() {
        let mut queue = EventQueue::new();
        for rank in [2, 0, 1] {
            let key = queue.key(5, rank);
            queue.push_key(key, rank);
        }
        assert_eq!([(); 3].map(|()| queue.pop()), [0, 1, 2].map(|rank| Some((5, rank))));
    }

    #[test]
    fn any_interleaving_of_pushes_and_pops_yields_ascending_times() {
        let mut random = Random::new(1, 2);
        let mut queue = EventQueue::new();
        let mut now_ps = 0;
        for event in 0..20_000u32 {
            queue.push(now_ps + random.next_u64() % 1000, event);
            if random.next_u64().is_multiple_of(3) {
                let (time_ps, _) = queue.pop().expect("something was pushed");
                assert!(time_ps >= now_ps);
                now_ps = time_ps;
            }
        }
        while let Some((time_ps, _)) = queue.pop() {
            assert!(time_ps >= now_ps);
            now_ps = time_ps;
        }
    }
}
