//! Pending events of a world, in the same order as in an [`EventQueue`], at a cost that does not grow
//! with their number.
//!
//! Nearly all events of a fabric lie within the time of a few packets and a propagation. They are
//! kept in a ring of short spans of time, unordered; a span is sorted when its turn comes. What lies
//! behind the ring's end (timers, slow links) waits in a heap until then.

use super::event_queue::{EventKey, EventQueue};

/// A span is 2^13 ps: a tenth of what a packet of 4 KiB takes at 400 Gb/s.
const SPAN_BITS: u32 = 13;
/// Spans of the ring: 16.8 us.
const SPANS: u64 = 64 * WORDS as u64;
/// Words of 64 spans; at most 64, so that a bit for each fits into one.
const WORDS: usize = 32;
/// Events of a span from which on they are a crowd: the nodes that have so many events at once don't
/// fit into a processor's caches.
const MANY: usize = 32;
/// Events of a crowd that are seen at once.
const SOME: usize = 15;
/// Behind every span.
const NO_SPAN: u64 = u64::MAX;
/// The end of a list.
const NONE: u32 = u32::MAX;

/// An event in the ring, or the place for one.
#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    key: EventKey,
    event: E,
    /// The next one of the same span, or the next free place.
    next: u32,
}

/// The spans that lie ahead, each a list of its events.
#[derive(Debug)]
struct Ring<E> {
    entries: Vec<Entry<E>>,
    free: u32,
    /// By span modulo their number: its first event.
    heads: Vec<u32>,
    /// By word: bit n is set if the span has events.
    occupied: [u64; WORDS],
    /// Bit n: word n is not zero.
    words: u64,
}

impl<E: Copy> Ring<E> {
    fn new() -> Self {
        let heads = vec![NONE; SPANS as usize];
        Self { entries: Vec::new(), free: NONE, heads, occupied: [0; WORDS], words: 0 }
    }

    #[inline]
    fn push(&mut self, span: u64, key: EventKey, event: E) {
        let slot = (span % SPANS) as usize;
        let entry = Entry { key, event, next: self.heads[slot] };
        match self.entries.get_mut(self.free as usize) {
            Some(place) => {
                self.heads[slot] = self.free;
                self.free = std::mem::replace(place, entry).next;
            }
            None => {
                self.heads[slot] = self.entries.len() as u32;
                self.entries.push(entry);
            }
        }
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.words |= 1 << (slot / 64);
    }

    /// The first span from `span` on that has events; all lie less than a ring's length ahead.
    #[inline]
    fn next_span(&self, span: u64) -> Option<u64> {
        let slot = (span % SPANS) as usize;
        let (word, bit) = (slot / 64, slot % 64);
        let ahead = self.occupied[word] >> bit;
        if ahead != 0 {
            return Some(span + u64::from(ahead.trailing_zeros()));
        }
        // The words behind this one, then those before it, then what of it lies before the bit.
        let behind = self.words & (!1 << word);
        let other = if behind != 0 { behind } else { self.words };
        let found = other.trailing_zeros() as usize;
        let first = self.occupied.get(found)?.trailing_zeros() as usize;
        let distance = (64 * found + first) as u64 + SPANS - slot as u64;
        Some(span + distance % SPANS)
    }

    /// Move the events of a span to `into`.
    #[inline]
    fn take(&mut self, span: u64, into: &mut Vec<(EventKey, E)>) {
        let slot = (span % SPANS) as usize;
        let mut next = std::mem::replace(&mut self.heads[slot], NONE);
        while let Some(entry) = self.entries.get_mut(next as usize) {
            into.push((entry.key, entry.event));
            let place = std::mem::replace(&mut next, entry.next);
            entry.next = std::mem::replace(&mut self.free, place);
        }
        let word = &mut self.occupied[slot / 64];
        *word &= !(1 << (slot % 64));
        if *word == 0 {
            self.words &= !(1 << (slot / 64));
        }
    }

    /// Time of the first event of a span.
    fn first_ps(&self, span: u64) -> Option<u64> {
        let mut next = self.heads[(span % SPANS) as usize];
        let list = std::iter::from_fn(|| {
            let entry = self.entries.get(next as usize)?;
            next = entry.next;
            Some(entry.key)
        });
        list.min().map(EventKey::time_ps)
    }
}

/// See the module documentation.
#[derive(Debug)]
pub struct Calendar<E> {
    /// The events before `next_span`, the last one first.
    current: Vec<(EventKey, E)>,
    /// The first span whose events are in the ring.
    next_span: u64,
    ring: Ring<E>,
    /// Events that lay behind the ring's end when they came.
    later: EventQueue<E>,
    /// Events that the span in `current` had when its turn came.
    span_events: usize,
}

impl<E: Copy> Calendar<E> {
    /// Without events.
    pub fn new() -> Self {
        Self {
            current: Vec::new(),
            next_span: 0,
            ring: Ring::new(),
            later: EventQueue::new(),
            span_events: 0,
        }
    }

    /// A key for an event at `time_ps` that comes after every key of this rank made before at that
    /// time.
    #[inline]
    pub fn key(&mut self, time_ps: u64, rank: u32) -> EventKey {
        self.later.key(time_ps, rank)
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
        let span = key.time_ps() >> SPAN_BITS;
        if span < self.next_span {
            let place = self.current.partition_point(|(later, _)| *later > key);
            self.current.insert(place, (key, event));
        } else if span - self.next_span < SPANS {
            self.ring.push(span, key, event);
        } else {
            self.later.push_key(key, event);
        }
    }

    /// Time of the earliest event.
    pub fn next_ps(&self) -> Option<u64> {
        if let Some((key, _)) = self.current.last() {
            return Some(key.time_ps());
        }
        let near = self.ring.next_span(self.next_span).and_then(|span| self.ring.first_ps(span));
        [near, self.later.next_ps()].into_iter().flatten().min()
    }

    /// Remove the earliest event if it is not later than `until_ps`.
    #[inline]
    pub fn pop_until(&mut self, until_ps: u64) -> Option<(u64, E)> {
        if self.current.is_empty() {
            self.turn_to_next_span(until_ps);
        }
        let at_ps = self.current.last()?.0.time_ps();
        if at_ps > until_ps {
            return None;
        }
        self.current.pop().map(|(_, event)| (at_ps, event))
    }

    /// The next events of the span whose turn it is, in no order, if it has many; else none.
    #[inline]
    pub fn crowd(&self) -> &[(EventKey, E)] {
        let first = self.current.len().saturating_sub(SOME);
        if self.span_events < MANY { &[] } else { &self.current[first..] }
    }

    /// Move the events of a span that had to wait behind the ring to `current`.
    #[cold]
    fn take_later(&mut self, span: u64) {
        while self.later.next_ps().is_some_and(|at_ps| at_ps >> SPAN_BITS == span) {
            self.current.extend(self.later.pop_entry());
        }
    }

    /// Sort the next span that has events into `current`, if it begins by `until_ps`.
    #[inline]
    fn turn_to_next_span(&mut self, until_ps: u64) {
        let near = self.ring.next_span(self.next_span).unwrap_or(NO_SPAN);
        let far = self.later.next_ps().map_or(NO_SPAN, |at_ps| at_ps >> SPAN_BITS);
        let span = near.min(far);
        if span > until_ps >> SPAN_BITS {
            return;
        }
        self.next_span = span + 1;
        if near == span {
            self.ring.take(span, &mut self.current);
        }
        if far == span {
            self.take_later(span);
        }
        self.span_events = self.current.len();
        if self.span_events > 1 {
            self.current.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
        }
    }
}

impl<E: Copy> Default for Calendar<E> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const SPAN_PS: u64 = 1 << SPAN_BITS;
    const RING_PS: u64 = SPANS * SPAN_PS;

    /// Everything that is pending, in order.
    fn drain(calendar: &mut Calendar<u32>) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| calendar.pop_until(u64::MAX)).collect()
    }

    #[test]
    fn events_of_one_time_leave_by_rank_and_then_in_the_order_of_insertion() {
        let mut calendar = Calendar::new();
        for (event, rank) in [(0, 2), (1, 0), (2, 1), (3, 0)] {
            let key = calendar.key(5, rank);
            calendar.push_key(key, event);
        }
        assert_eq!(drain(&mut calendar), [(5, 1), (5, 3), (5, 2), (5, 0)]);
    }

    #[test]
    fn an_event_may_come_for_the_span_whose_turn_it_is() {
        let mut calendar = Calendar::new();
        calendar.push(10, 0);
        calendar.push(30, 1);
        assert_eq!(calendar.pop_until(10), Some((10, 0)));
        calendar.push(20, 2);
        calendar.push(40, 3);
        assert_eq!(calendar.next_ps(), Some(20));
        assert_eq!(drain(&mut calendar), [(20, 2), (30, 1), (40, 3)]);
    }

    #[test]
    fn an_event_stays_until_its_time() {
        let mut calendar = Calendar::new();
        calendar.push(3 * SPAN_PS, 0);
        assert_eq!(calendar.pop_until(3 * SPAN_PS - 1), None);
        calendar.push(SPAN_PS, 1);
        assert_eq!(calendar.next_ps(), Some(SPAN_PS));
        assert_eq!(drain(&mut calendar), [(SPAN_PS, 1), (3 * SPAN_PS, 0)]);
        assert_eq!(calendar.next_ps(), None);
    }

    #[test]
    fn a_span_with_many_events_shows_the_next_of_them() {
        let mut calendar = Calendar::new();
        (0..MANY as u32).for_each(|event| calendar.push(u64::from(event), event));
        (0..10).for_each(|event| calendar.push(SPAN_PS, event));
        assert_eq!(calendar.pop_until(u64::MAX), Some((0, 0)));
        let mut seen: Vec<u32> = calendar.crowd().iter().map(|(_, event)| *event).collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(1..=SOME as u32));
        (1..=MANY).for_each(|_| _ = calendar.pop_until(u64::MAX));
        assert!(calendar.crowd().is_empty(), "ten are few");
    }

    #[test]
    fn events_near_and_far_of_one_span_leave_together() {
        let mut calendar = Calendar::new();
        let at_ps = RING_PS + 7;
        calendar.push(at_ps, 0);
        calendar.push(2 * SPAN_PS, 1);
        assert_eq!(calendar.pop_until(u64::MAX), Some((2 * SPAN_PS, 1)));
        calendar.push(at_ps - 1, 2);
        calendar.push(at_ps + 1, 3);
        assert_eq!(calendar.next_ps(), Some(at_ps - 1));
        assert_eq!(drain(&mut calendar), [(at_ps - 1, 2), (at_ps, 0), (at_ps + 1, 3)]);
    }

    #[test]
    fn any_interleaving_gives_the_order_of_a_heap() {
        let mut random = Random::new(1, 2);
        let (mut calendar, mut heap) = (Calendar::new(), EventQueue::new());
        let mut now_ps = 0;
        for event in 0..200_000u32 {
            let horizon_ps =
                [1, SPAN_PS, 100 * SPAN_PS, RING_PS, 3 * RING_PS][(random.next_u64() % 5) as usize];
            let at_ps = now_ps + random.next_u64() % horizon_ps;
            let rank = (random.next_u64() % 3) as u32;
            let keys = (calendar.key(at_ps, rank), heap.key(at_ps, rank));
            calendar.push_key(keys.0, event);
            heap.push_key(keys.1, event);
            // Rarely more than a few hundred are pending, and now and then none.
            while random.next_u64() % 5 < 2 + u64::from(event % 1000 > 800) {
                assert_eq!(calendar.next_ps(), heap.next_ps());
                let until_ps = now_ps + random.next_u64() % (2 * horizon_ps);
                let expected = heap.next_ps().filter(|at_ps| *at_ps <= until_ps);
                let expected = expected.and_then(|_| heap.pop());
                assert_eq!(calendar.pop_until(until_ps), expected);
                let Some((at_ps, _)) = expected else { break };
                now_ps = at_ps;
            }
        }
        assert_eq!(drain(&mut calendar), std::iter::from_fn(|| heap.pop()).collect::<Vec<_>>());
    }
}
