//! The PFC watchdog: a neighbour that pauses a queue for good must not stop the whole fabric.
//!
//! Source: SONiC's PFC watchdog. A queue that holds packets, is paused and has sent nothing for the
//! detection time is in a storm. Until no pause has come for the restoration time its packets are
//! dropped, or sent in spite of the pauses. A queue that is not paused is not watched, and costs
//! nothing.

use super::PRIORITIES;
use super::queue::Queue;
use crate::config::{PfcWatchdogConfig, PriorityConfig, StormAction};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Not paused, as far as is known.
    #[default]
    Idle,
    /// Paused with packets; a check is under way.
    Watched,
    /// See the module documentation; a check is under way.
    Storm,
}

/// What a check finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// Nothing to be done; check again then, if a time is given.
    Unchanged(Option<u64>),
    /// A storm begins; check again then.
    StormBegins(u64),
    /// The storm is over.
    StormEnds,
}

/// The watchdog of one switch.
#[derive(Clone, Debug)]
pub(super) struct Watchdog {
    config: PfcWatchdogConfig,
    /// Bit n: priority n is guarded.
    guarded: u8,
    /// By port.
    states: Vec<[State; PRIORITIES]>,
}

impl Watchdog {
    /// A watchdog over the queues of `ports` ports whose priorities are lossless and watched.
    pub fn new(config: PfcWatchdogConfig, ports: usize, priorities: &[PriorityConfig]) -> Self {
        let guards = |p: &PriorityConfig| u8::from(p.lossless && p.watched);
        let bits = priorities.iter().take(PRIORITIES).enumerate();
        let guarded = bits.fold(0, |mask, (index, p)| mask | guards(p) << index);
        Self { config, guarded, states: vec![Default::default(); ports] }
    }

    /// The priority is guarded.
    #[inline]
    pub fn guards(&self, priority: u8) -> bool {
        self.guarded & 1 << priority != 0
    }

    /// What happens to packets in a storm.
    pub fn action(&self) -> StormAction {
        self.config.action
    }

    /// The queue is in a storm.
    #[inline]
    pub fn is_storm(&self, port: u16, priority: usize) -> bool {
        self.states[usize::from(port)][priority] == State::Storm
    }

    /// A queue was paused, or a packet came into it. Returns when it must be checked, if it is to be
    /// watched from now on.
    #[inline]
    pub fn watch(&mut self, now_ps: u64, port: u16, priority: usize, queue: &Queue) -> Option<u64> {
        let state = &mut self.states[usize::from(port)][priority];
        if *state != State::Idle || queue.is_empty() || !queue.is_paused(now_ps) {
            return None;
        }
        *state = State::Watched;
        Some(self.detection_ps(queue).max(now_ps))
    }

    /// The time of a check has come.
    pub fn check(&mut self, now_ps: u64, port: u16, priority: usize, queue: &Queue) -> Finding {
        let detection_ps = self.detection_ps(queue);
        let restoration_ps = queue.pause_start_ps().saturating_add(self.config.restoration_ps);
        let state = &mut self.states[usize::from(port)][priority];
        match *state {
            State::Idle => Finding::Unchanged(None),
            State::Watched if queue.is_empty() || !queue.is_paused(now_ps) => {
                *state = State::Idle;
                Finding::Unchanged(None)
            }
            State::Watched if now_ps < detection_ps => Finding::Unchanged(Some(detection_ps)),
            State::Watched => {
                *state = State::Storm;
                Finding::StormBegins(restoration_ps.max(now_ps))
            }
            State::Storm if now_ps < restoration_ps => Finding::Unchanged(Some(restoration_ps)),
            State::Storm => {
                *state = State::Idle;
                Finding::StormEnds
            }
        }
    }

    /// When a queue without progress is in a storm.
    #[inline]
    fn detection_ps(&self, queue: &Queue) -> u64 {
        queue.progress_ps().saturating_add(self.config.detection_ps)
    }
}
