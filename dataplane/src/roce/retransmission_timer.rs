//! When a requester stops waiting for an acknowledgement. Source: IBTA volume 1, section 9.9.2.1.

use crate::config::TransportConfig;

/// What an expired timer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    /// Send again.
    Retry,
    /// Give up: there was no progress after all retries.
    Exhausted,
}

/// One timer for the oldest packet that is not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetransmissionTimer {
    timeout_ps: u64,
    retry_count: u32,
    deadline_ps: Option<u64>,
    /// Expiries since the last progress.
    expiries: u32,
}

impl RetransmissionTimer {
    pub fn new(transport: &TransportConfig) -> Self {
        Self {
            timeout_ps: transport.retransmission_timeout_ps,
            retry_count: transport.retry_count,
            deadline_ps: None,
            expiries: 0,
        }
    }

    pub fn poll(&self) -> Option<u64> {
        self.deadline_ps
    }

    /// A packet was sent: the timer runs from the first one.
    #[inline]
    pub fn start(&mut self, now_ps: u64) {
        if self.deadline_ps.is_none() {
            self.deadline_ps = Some(now_ps.saturating_add(self.timeout_ps));
        }
    }

    pub fn stop(&mut self) {
        self.deadline_ps = None;
    }

    /// Packets were acknowledged; the timer runs anew if others are `in_flight`.
    #[inline]
    pub fn progress(&mut self, now_ps: u64, in_flight: bool) {
        self.expiries = 0;
        self.deadline_ps = None;
        if in_flight {
            self.start(now_ps);
        }
    }

    /// Stops the timer and says what it means, if it has expired.
    pub fn expire(&mut self, now_ps: u64) -> Option<Expiry> {
        self.deadline_ps.take_if(|deadline| *deadline <= now_ps)?;
        self.expiries += 1;
        Some(if self.expiries > self.retry_count { Expiry::Exhausted } else { Expiry::Retry })
    }
}
