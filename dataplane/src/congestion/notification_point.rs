//! The notification point of a receiver: when marked packets cause congestion notification packets.
//!
//! Source of the paper's form (immediate and trailing): Zhu et al., SIGCOMM 2015, section 3.1. The
//! scopes are those that Lumina (SIGCOMM 2023) found adapters to have.
//!
//! A notification opens an interval, in which its scope sends no other one. The interval's last
//! instant belongs to it.

use crate::config::{CnpMode, CnpScope, NotificationPointConfig};
use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};

/// The receiving end of a flow: where a notification about it comes from and goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowKey {
    /// Queue pair that the marked packet arrived at.
    pub local_qp: u32,
    /// Address of that queue pair's port.
    pub local_address: u32,
    /// Address of the sender, which the notification goes to.
    pub remote_address: u32,
}

/// The running interval of one scope.
#[derive(Clone, Copy, Debug)]
struct Interval {
    end_ps: u64,
    /// The flow of the last mark, which a notification at the interval's end is about.
    flow: FlowKey,
    last_mark_ps: u64,
    /// A notification is due at the end.
    is_due: bool,
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct NotificationPoint {
    config: NotificationPointConfig,
    intervals: HashMap<u64, Interval>,
    /// Ends and scopes of the intervals with a notification due at the end.
    due: BinaryHeap<Reverse<(u64, u64)>>,
}

impl NotificationPoint {
    /// A receiver that has seen no mark.
    pub fn new(config: &NotificationPointConfig) -> Self {
        Self { config: *config, intervals: HashMap::new(), due: BinaryHeap::new() }
    }

    /// A marked packet of `flow` has arrived. True if a notification about it must go now.
    pub fn handle_marked(&mut self, now_ps: u64, flow: FlowKey) -> bool {
        if !self.config.enabled {
            return false;
        }
        if self.config.cnp_interval_ps == 0 {
            return true;
        }
        match self.config.mode {
            CnpMode::Immediate => self.open_if_over(now_ps, flow),
            CnpMode::ImmediateAndTrailing => {
                let is_sent = self.open_if_over(now_ps, flow);
                if !is_sent {
                    self.note_mark(now_ps, flow);
                }
                is_sent
            }
            CnpMode::Periodic => {
                self.open_period(now_ps, flow);
                self.note_mark(now_ps, flow);
                false
            }
        }
    }

    /// An out-of-sequence NAK goes out on `flow`. True if a notification must go with it; intervals
    /// neither hold it back nor start by it.
    pub fn handle_sequence_error(&mut self, _now_ps: u64, _flow: FlowKey) -> bool {
        self.config.enabled && self.config.cnp_on_nak
    }

    /// When a notification is due by itself.
    #[inline]
    pub fn poll_timeout(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((end_ps, _))| *end_ps)
    }

    /// The next notification that is due by now: send it, and call again until there is none.
    pub fn handle_timeout(&mut self, now_ps: u64) -> Option<FlowKey> {
        let end_ps = self.poll_timeout()?;
        if end_ps > now_ps {
            return None;
        }
        let Reverse((_, scope)) = self.due.pop()?;
        let interval = self.intervals.get_mut(&scope)?;
        let flow = interval.flow;
        interval.is_due = false;
        interval.end_ps = end_ps + self.config.cnp_interval_ps;
        if interval.last_mark_ps > end_ps {
            let late_mark_ps = interval.last_mark_ps;
            self.note_mark(late_mark_ps, flow);
        }
        Some(flow)
    }

    /// Open an interval for the flow's scope, unless one is running or due to be closed.
    fn open_if_over(&mut self, now_ps: u64, flow: FlowKey) -> bool {
        let end_ps = now_ps + self.config.cnp_interval_ps;
        let opened = Interval { end_ps, flow, last_mark_ps: now_ps, is_due: false };
        match self.intervals.entry(scope_of(self.config.scope, flow)) {
            Entry::Vacant(entry) => {
                entry.insert(opened);
                true
            }
            Entry::Occupied(mut entry) => {
                let is_over = !entry.get().is_due && now_ps > entry.get().end_ps;
                if is_over {
                    entry.insert(opened);
                }
                is_over
            }
        }
    }

    /// Make sure that the period of the flow's scope that holds `now_ps` is the running one. Each
    /// scope has periods of its own phase, as if each had begun at another time.
    fn open_period(&mut self, now_ps: u64, flow: FlowKey) {
        let interval_ps = self.config.cnp_interval_ps;
        let scope = scope_of(self.config.scope, flow);
        let phase_ps = scope.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) % interval_ps;
        let since_ps = (now_ps + interval_ps - phase_ps) % interval_ps;
        let end_ps = now_ps - since_ps.min(now_ps) + interval_ps;
        let opened = Interval { end_ps, flow, last_mark_ps: now_ps, is_due: false };
        let interval = self.intervals.entry(scope).or_insert(opened);
        if !interval.is_due && now_ps >= interval.end_ps {
            *interval = opened;
        }
    }

    /// Remember a mark inside the running interval of the flow's scope.
    fn note_mark(&mut self, now_ps: u64, flow: FlowKey) {
        let scope = scope_of(self.config.scope, flow);
        if let Some(interval) = self.intervals.get_mut(&scope) {
            interval.flow = flow;
            interval.last_mark_ps = now_ps;
            if !interval.is_due {
                interval.is_due = true;
                self.due.push(Reverse((interval.end_ps, scope)));
            }
        }
    }
}

/// The number of the scope that the flow belongs to.
fn scope_of(scope: CnpScope, flow: FlowKey) -> u64 {
    match scope {
        CnpScope::Qp => u64::from(flow.local_qp),
        CnpScope::IpPair => u64::from(flow.local_address) << 32 | u64::from(flow.remote_address),
        CnpScope::DestinationIp => u64::from(flow.remote_address),
        CnpScope::Port => 0,
    }
}
