//! One transmitter and its eight queues: which frame goes next, and when.
//!
//! Strict priorities go first, the higher number first; the others share what is left by deficit
//! round robin. Source: Shreedhar and Varghese, "Efficient fair queuing using deficit round robin",
//! SIGCOMM 1995. A pause stops its priority and no other, and never a frame that has begun.
//!
//! A frame begins when the line is free and the frame could go, not when somebody asks: asked late,
//! the transmitter behaves as if asked in time, so lateness costs no bandwidth.

use super::PRIORITIES;
use super::queue::Queue;
use crate::roce::packet::PauseFrame;
use crate::units::{LineRate, PREAMBLE_AND_GAP_BYTES};

pub use super::queue::Queued;

/// How a priority shares the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueDiscipline {
    /// Before all weighted ones; among strict ones the higher number first.
    Strict,
    /// By its share of the weights; at least 1.
    Weighted(u32),
}

/// A frame that leaves.
#[derive(Clone, Debug)]
pub struct Departure {
    /// The frame as it was queued.
    pub queued: Queued,
    /// Its priority.
    pub priority: u8,
    /// When its first bit leaves.
    pub start_ps: u64,
    /// When its last bit leaves.
    pub end_ps: u64,
}

/// Bytes that the smallest weight may send per round: at least the longest frame, so that each
/// round serves every queue.
const MIN_QUANTUM_BYTES: u64 = 4_608;

/// State of the deficit round robin.
#[derive(Clone, Debug, Default)]
struct RoundRobin {
    quantum_bytes: [u64; PRIORITIES],
    deficit_bytes: [u64; PRIORITIES],
    turn: usize,
    /// The queue whose turn it is has got its quantum.
    is_granted: bool,
}

impl RoundRobin {
    fn new(disciplines: &[QueueDiscipline; PRIORITIES]) -> Self {
        let weight = |discipline: &QueueDiscipline| match discipline {
            QueueDiscipline::Strict => None,
            QueueDiscipline::Weighted(weight) => Some(u64::from(*weight).max(1)),
        };
        let least = disciplines.iter().filter_map(weight).min().unwrap_or(1);
        let mut round_robin = Self::default();
        for (quantum, discipline) in round_robin.quantum_bytes.iter_mut().zip(disciplines) {
            *quantum = MIN_QUANTUM_BYTES * weight(discipline).unwrap_or(1) / least;
        }
        round_robin
    }

    /// The queue that sends its first frame next; `candidates` are at least two.
    fn choose(&mut self, candidates: u8, queues: &[Queue; PRIORITIES]) -> usize {
        loop {
            let turn = self.turn;
            if candidates & 1 << turn != 0 {
                if !std::mem::replace(&mut self.is_granted, true) {
                    self.deficit_bytes[turn] += self.quantum_bytes[turn];
                }
                let head_bytes = u64::from(queues[turn].head_bytes());
                if self.deficit_bytes[turn] >= head_bytes {
                    self.deficit_bytes[turn] -= head_bytes;
                    return turn;
                }
            }
            self.turn = (turn + 1) % PRIORITIES;
            self.is_granted = false;
        }
    }

    /// A queue with nothing to send keeps no credit.
    #[inline]
    fn clear(&mut self, priority: usize) {
        self.deficit_bytes[priority] = 0;
    }
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct PortScheduler {
    rate: LineRate,
    free_ps: u64,
    queues: [Queue; PRIORITIES],
    round_robin: RoundRobin,
    /// Bit n: priority n has frames.
    waiting: u8,
    /// Bit n: priority n is strict.
    strict: u8,
}

impl PortScheduler {
    /// An idle transmitter on a line of `rate_bps`.
    pub fn new(rate_bps: u64, disciplines: &[QueueDiscipline; PRIORITIES]) -> Self {
        let mut strict = 0;
        for (priority, discipline) in disciplines.iter().enumerate() {
            strict |= u8::from(*discipline == QueueDiscipline::Strict) << priority;
        }
        Self {
            rate: LineRate::new(rate_bps),
            free_ps: 0,
            queues: Default::default(),
            round_robin: RoundRobin::new(disciplines),
            waiting: 0,
            strict,
        }
    }

    /// Queue a frame.
    #[inline]
    pub fn push(&mut self, priority: u8, queued: Queued) {
        self.queues[usize::from(priority)].push(queued);
        self.waiting |= 1 << priority;
    }

    /// Take the next frame, if it could begin by `now_ps`.
    #[inline]
    pub fn poll(&mut self, now_ps: u64) -> Option<Departure> {
        if self.waiting == 0 || self.free_ps > now_ps {
            return None;
        }
        let (start_ps, candidates) = self.candidates(now_ps)?;
        let priority = self.choose(candidates);
        let queued = self.take(start_ps, priority)?;
        let end_ps = self.occupy(start_ps, queued.wire_bytes);
        Some(Departure { queued, priority: priority as u8, start_ps, end_ps })
    }

    /// Take the first frame of a priority out of its queue.
    #[inline]
    fn take(&mut self, now_ps: u64, priority: usize) -> Option<Queued> {
        let queue = &mut self.queues[priority];
        let queued = queue.pop(now_ps)?;
        if queue.is_empty() {
            self.waiting &= !(1 << priority);
            self.round_robin.clear(priority);
        }
        Some(queued)
    }

    /// Take the first frame of a priority without sending it.
    pub fn discard(&mut self, now_ps: u64, priority: u8) -> Option<Queued> {
        self.take(now_ps, usize::from(priority))
    }

    /// The queue of a priority.
    #[inline]
    pub(super) fn queue(&self, priority: usize) -> &Queue {
        &self.queues[priority]
    }

    /// Let pauses of a priority have no effect, or have it again.
    pub(super) fn ignore_pauses(&mut self, priority: u8, ignores_pauses: bool) {
        self.queues[usize::from(priority)].ignore_pauses(ignores_pauses);
    }

    /// The time at which the next frame could begin, and the priorities that could then send.
    #[inline]
    fn candidates(&self, now_ps: u64) -> Option<(u64, u8)> {
        let mut ready_ps = [u64::MAX; PRIORITIES];
        let mut first_ps = u64::MAX;
        for priority in bits(self.waiting) {
            ready_ps[priority] = self.queues[priority].ready_ps().unwrap_or(u64::MAX);
            first_ps = first_ps.min(ready_ps[priority]);
        }
        let start_ps = first_ps.max(self.free_ps);
        if start_ps > now_ps {
            return None;
        }
        let mut candidates = 0;
        for priority in bits(self.waiting) {
            candidates |= u8::from(ready_ps[priority] <= start_ps) << priority;
        }
        Some((start_ps, candidates))
    }

    /// Which of the priorities goes next.
    #[inline]
    fn choose(&mut self, candidates: u8) -> usize {
        let strict = candidates & self.strict;
        if strict != 0 {
            return 7 - strict.leading_zeros() as usize;
        }
        if candidates.is_power_of_two() {
            return candidates.trailing_zeros() as usize;
        }
        self.round_robin.choose(candidates, &self.queues)
    }

    /// Occupy the line with a frame that begins at `start_ps`, when the line must be free. Returns
    /// when its last bit leaves.
    #[inline]
    pub fn occupy(&mut self, start_ps: u64, wire_bytes: u32) -> u64 {
        debug_assert!(start_ps >= self.free_ps);
        let bytes = u64::from(wire_bytes);
        let occupied_ps = self.rate.transfer_ps(bytes + PREAMBLE_AND_GAP_BYTES);
        self.free_ps = start_ps.saturating_add(occupied_ps);
        start_ps.saturating_add(self.rate.transfer_ps(bytes))
    }

    /// When [`poll`](Self::poll) could have a frame; `None` if nothing waits.
    #[inline]
    pub fn next_ps(&self) -> Option<u64> {
        let ready_ps = bits(self.waiting).filter_map(|priority| self.queues[priority].ready_ps());
        ready_ps.min().map(|ready_ps| ready_ps.max(self.free_ps))
    }

    /// Begin the next frame at another rate.
    pub fn set_rate(&mut self, rate_bps: u64) {
        self.rate = LineRate::new(rate_bps);
    }

    /// The link begins anew at `now_ps`: nothing is being sent, no pause holds.
    pub fn restart(&mut self, now_ps: u64) {
        self.free_ps = now_ps;
        self.queues.iter_mut().for_each(|queue| queue.resume(now_ps));
    }

    /// Stop or resume the priorities that a pause frame names. Frames that could begin before must
    /// have been polled.
    pub fn handle_pause(&mut self, now_ps: u64, pause: &PauseFrame) {
        for priority in bits(pause.class_enable) {
            self.queues[priority].pause(now_ps, pause.quanta[priority], self.rate.bps());
        }
    }

    /// When the line is free.
    #[inline]
    pub fn free_ps(&self) -> u64 {
        self.free_ps
    }

    /// Line rate.
    pub fn rate_bps(&self) -> u64 {
        self.rate.bps()
    }

    /// The priorities (bit n: n) of which something waits.
    #[inline]
    pub(super) fn waiting(&self) -> u8 {
        self.waiting
    }

    /// A glance at what a frame of a priority needs.
    #[inline]
    pub(super) fn glance_at(&self, priority: u8) -> u64 {
        let index = usize::from(priority);
        self.free_ps ^ self.round_robin.deficit_bytes[index] ^ self.queues[index].glance()
    }

    /// Something waits, paused or not.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.waiting != 0
    }

    /// Bytes queued.
    #[inline]
    pub fn depth_bytes(&self, priority: u8) -> u64 {
        self.queues[usize::from(priority)].depth_bytes()
    }

    /// Bytes queued in all priorities.
    pub fn total_depth_bytes(&self) -> u64 {
        self.queues.iter().map(Queue::depth_bytes).sum()
    }

    /// Most bytes queued at once since the last call.
    pub fn take_max_depth_bytes(&mut self, priority: u8) -> u64 {
        self.queues[usize::from(priority)].take_max_depth_bytes()
    }

    /// The priorities (bit n: n) whose queues change by themselves after `now_ps`: something waits, or a
    /// pause holds.
    pub fn unsettled(&self, now_ps: u64) -> u8 {
        let paused = self.queues.iter().map(|queue| u8::from(queue.is_paused(now_ps)));
        paused.enumerate().fold(self.waiting, |mask, (n, is_paused)| mask | is_paused << n)
    }

    /// The priority may not send at `now_ps`.
    #[inline]
    pub fn is_paused(&self, now_ps: u64, priority: u8) -> bool {
        self.queues[usize::from(priority)].is_paused(now_ps)
    }

    /// When the priority's last pause ends or ended.
    #[inline]
    pub fn paused_until_ps(&self, priority: u8) -> u64 {
        self.queues[usize::from(priority)].pause_end_ps()
    }

    /// Time that the priority has been paused, up to `now_ps`.
    pub fn paused_ps(&self, now_ps: u64, priority: u8) -> u64 {
        self.queues[usize::from(priority)].paused_ps(now_ps)
    }
}

/// Indices of the bits that are set, lowest first.
#[inline]
pub(crate) fn bits(mut mask: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let index = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (index < PRIORITIES).then_some(index)
    })
}
