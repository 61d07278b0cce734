//! Which queue pair sends next: round robin among those whose rate allows a packet now.
//!
//! A queue pair is in the ring (may send), or waits for its time, or is idle. It knows rates only
//! as the time before which the next packet may not start.

use crate::engine::lazy_timers::LazyTimers;
use std::collections::VecDeque;

/// The order of a NIC's queue pairs.
#[derive(Debug)]
pub struct Pacer {
    ring: VecDeque<u32>,
    is_in_ring: Vec<bool>,
    eligible_ps: Vec<u64>,
    waiting: LazyTimers,
}

impl Pacer {
    /// All of `queue_pairs` are idle and may start at once.
    pub fn new(queue_pairs: usize) -> Self {
        Self {
            ring: VecDeque::new(),
            is_in_ring: vec![false; queue_pairs],
            eligible_ps: vec![0; queue_pairs],
            waiting: LazyTimers::new(queue_pairs),
        }
    }

    /// The queue pair has something to send.
    #[inline]
    pub fn activate(&mut self, now_ps: u64, qp: u32) {
        let index = qp as usize;
        if self.is_in_ring[index] {
            return;
        }
        if self.eligible_ps[index] <= now_ps {
            self.is_in_ring[index] = true;
            self.ring.push_back(qp);
        } else {
            self.waiting.arm(qp, self.eligible_ps[index]);
        }
    }

    /// The next packet of this queue pair may start at `eligible_ps`, earlier or later than said
    /// before. An idle queue pair stays idle.
    #[inline]
    pub fn set_eligible(&mut self, qp: u32, eligible_ps: u64) {
        self.eligible_ps[qp as usize] = eligible_ps;
    }

    /// Take the queue pair whose turn it is. The caller activates it again if it has more to send.
    #[inline]
    pub fn pop_eligible(&mut self, now_ps: u64) -> Option<u32> {
        while let Some(qp) = self.waiting.pop_due(now_ps) {
            self.activate(now_ps, qp);
        }
        while let Some(qp) = self.ring.pop_front() {
            self.is_in_ring[qp as usize] = false;
            if self.eligible_ps[qp as usize] <= now_ps {
                return Some(qp);
            }
            self.activate(now_ps, qp);
        }
        None
    }

    /// The queue pair whose turn it is, of those that need not wait.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        self.ring.front().copied()
    }

    /// No queue pair may send before; `None` if none has anything to send.
    #[inline]
    pub fn next_ps(&self) -> Option<u64> {
        if self.ring.is_empty() { self.waiting.next_ps() } else { Some(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eligible_queue_pairs_take_turns() {
        let mut pacer = Pacer::new(3);
        (0..3).for_each(|qp| pacer.activate(0, qp));
        let mut order = Vec::new();
        for _ in 0..6 {
            let qp = pacer.pop_eligible(0).expect("all are eligible");
            order.push(qp);
            pacer.activate(0, qp);
        }
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn a_paced_queue_pair_waits_for_its_time() {
        let mut pacer = Pacer::new(2);
        pacer.set_eligible(0, 100);
        pacer.activate(0, 0);
        pacer.activate(0, 1);
        assert_eq!(pacer.pop_eligible(0), Some(1));
        assert_eq!(pacer.pop_eligible(0), None);
        assert_eq!(pacer.next_ps(), Some(100));
        assert_eq!(pacer.pop_eligible(100), Some(0));
    }

    #[test]
    fn a_higher_rate_takes_effect_before_the_old_time() {
        let mut pacer = Pacer::new(1);
        pacer.set_eligible(0, 1000);
        pacer.activate(0, 0);
        pacer.set_eligible(0, 200);
        pacer.activate(0, 0);
        assert_eq!(pacer.next_ps(), Some(200));
        assert_eq!(pacer.pop_eligible(200), Some(0));
    }

    #[test]
    fn a_lower_rate_takes_effect_on_a_waiting_queue_pair() {
        let mut pacer = Pacer::new(1);
        pacer.set_eligible(0, 200);
        pacer.activate(0, 0);
        pacer.set_eligible(0, 1000);
        assert_eq!(pacer.pop_eligible(200), None);
        assert_eq!(pacer.next_ps(), Some(1000));
    }
}
