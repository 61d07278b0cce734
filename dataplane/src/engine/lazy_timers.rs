//! Many timers of which few fire: one heap entry per timer at most times, and moving a timer to a
//! later time costs nothing.
//!
//! A timer fires at or before the time its owner has in mind; the owner looks whether it is really
//! due and arms it again otherwise.

use super::event_queue::EventQueue;

const UNARMED: u64 = u64::MAX;

/// A set of numbered timers.
#[derive(Debug, Default)]
pub struct LazyTimers {
    heap: EventQueue<u32>,
    armed_ps: Vec<u64>,
}

impl LazyTimers {
    /// `timers` timers, none armed.
    pub fn new(timers: usize) -> Self {
        Self { heap: EventQueue::new(), armed_ps: vec![UNARMED; timers] }
    }

    /// Let `timer` fire at `at_ps` at the latest.
    #[inline]
    pub fn arm(&mut self, timer: u32, at_ps: u64) {
        let armed_ps = &mut self.armed_ps[timer as usize];
        if at_ps < *armed_ps {
            *armed_ps = at_ps;
            self.heap.push(at_ps, timer);
        }
    }

    /// No timer fires before.
    #[inline]
    pub fn next_ps(&self) -> Option<u64> {
        self.heap.next_ps()
    }

    /// Disarm and return a timer that is due.
    #[inline]
    pub fn pop_due(&mut self, now_ps: u64) -> Option<u32> {
        while self.heap.next_ps().is_some_and(|at_ps| at_ps <= now_ps) {
            let (at_ps, timer) = self.heap.pop()?;
            let armed_ps = &mut self.armed_ps[timer as usize];
            if *armed_ps == at_ps {
                *armed_ps = UNARMED;
                return Some(timer);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_fires_once_at_its_earliest_time() {
        let mut timers = LazyTimers::new(2);
        timers.arm(0, 50);
        timers.arm(0, 80);
        timers.arm(0, 20);
        timers.arm(1, 30);
        assert_eq!(timers.pop_due(10), None);
        assert_eq!(timers.pop_due(40), Some(0));
        assert_eq!(timers.pop_due(40), Some(1));
        assert_eq!(timers.pop_due(100), None);
    }

    #[test]
    fn a_timer_can_be_armed_again_after_it_fired() {
        let mut timers = LazyTimers::new(1);
        timers.arm(0, 5);
        assert_eq!(timers.pop_due(5), Some(0));
        timers.arm(0, 90);
        assert_eq!(timers.pop_due(89), None);
        assert_eq!(timers.pop_due(90), Some(0));
    }
}
