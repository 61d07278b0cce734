//! When a requester stops waiting for an acknowledgement. Source: IBTA volume 1, section 9.9.2.1.

use crate::config::{AdaptiveRetransmissionConfig, TransportConfig};
use crate::random::Random;

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
    adaptive: Option<Adaptive>,
    deadline_ps: Option<u64>,
    /// Expiries since the last progress.
    expiries: u32,
    /// Timeouts that have expired since the last progress, added up.
    waited_ps: u64,
}

impl RetransmissionTimer {
    /// A stopped timer; `seed` makes adaptive timers differ.
    pub fn new(transport: &TransportConfig, seed: u64) -> Self {
        let adaptive = transport.adaptive_retransmission;
        Self {
            timeout_ps: transport.retransmission_timeout_ps,
            retry_count: transport.retry_count,
            adaptive: adaptive.map(|config| Adaptive::new(config, seed)),
            deadline_ps: None,
            expiries: 0,
            waited_ps: 0,
        }
    }

    pub fn poll(&self) -> Option<u64> {
        self.deadline_ps
    }

    /// The timeout in force, never above the constant one.
    fn current_ps(&self) -> u64 {
        let adapted_ps = self.adaptive.map_or(u64::MAX, |adaptive| adaptive.timeout_ps());
        adapted_ps.min(self.timeout_ps)
    }

    /// A packet was sent: the timer runs from the first one.
    #[inline]
    pub fn start(&mut self, now_ps: u64) {
        if self.deadline_ps.is_none() {
            self.deadline_ps = Some(now_ps.saturating_add(self.current_ps()));
        }
    }

    pub fn stop(&mut self) {
        self.deadline_ps = None;
    }

    /// Packets were acknowledged; the timer runs anew if others are `in_flight`.
    #[inline]
    pub fn progress(&mut self, now_ps: u64, in_flight: bool) {
        if self.expiries > 0 {
            self.expiries = 0;
            self.waited_ps = 0;
            if let Some(adaptive) = &mut self.adaptive {
                adaptive.progress();
            }
        }
        self.deadline_ps = None;
        if in_flight {
            self.start(now_ps);
        }
    }

    /// Stops the timer and says what it means, if it has expired.
    pub fn expire(&mut self, now_ps: u64) -> Option<Expiry> {
        self.deadline_ps.take_if(|deadline| *deadline <= now_ps)?;
        self.expiries += 1;
        self.waited_ps = self.waited_ps.saturating_add(self.current_ps());
        let exhausted = match &mut self.adaptive {
            Some(adaptive) => {
                adaptive.expire();
                self.waited_ps >= self.timeout_ps.saturating_mul(u64::from(self.retry_count))
            }
            None => self.expiries > self.retry_count,
        };
        Some(if exhausted { Expiry::Exhausted } else { Expiry::Retry })
    }
}

/// The exponent of an adaptive timeout.
#[derive(Clone, Copy, Debug)]
struct Adaptive {
    config: AdaptiveRetransmissionConfig,
    exponent: u32,
    /// Expiries with this exponent.
    used: u32,
    /// The exponent is the first one, which was drawn.
    initial: bool,
}

impl Adaptive {
    fn new(config: AdaptiveRetransmissionConfig, seed: u64) -> Self {
        let draw = Random::new(seed, 0).next_u64() % u64::from(config.initial_exponents.max(1));
        let exponent = config.initial_exponent + draw as u32;
        Self { config, exponent, used: 0, initial: true }
    }

    fn timeout_ps(&self) -> u64 {
        let factor = 1u64.checked_shl(self.exponent).unwrap_or(u64::MAX);
        self.config.time_base_ps.saturating_mul(factor)
    }

    fn bounded(&self, exponent: u32) -> u32 {
        exponent.max(self.config.min_exponent).min(self.config.max_exponent)
    }

    fn expire(&mut self) {
        self.used += 1;
        if self.initial || self.used >= self.config.retries_per_timeout {
            self.initial = false;
            self.used = 0;
            self.exponent = self.bounded(self.exponent + 1);
        }
    }

    fn progress(&mut self) {
        self.used = 0;
        self.exponent = self.bounded(self.exponent.saturating_sub(self.config.progress_decrease));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LossRecovery;

    const BASE_PS: u64 = 4_000_000;

    fn transport(retries_per_timeout: u32) -> TransportConfig {
        TransportConfig {
            mtu_bytes: 4096,
            qps_per_peer: 1,
            qp_distribution: Default::default(),
            clear_to_send: false,
            rnr_retry_count: 7,
            max_outstanding_reads: 16,
            window_packets: 64,
            ack_every_packets: 1,
            ack_delay_ps: 0,
            retransmission_timeout_ps: 64 * BASE_PS,
            retry_count: 3,
            loss_recovery: LossRecovery::GoBackN,
            reordering_packets: 0,
            adaptive_retransmission: Some(AdaptiveRetransmissionConfig {
                time_base_ps: BASE_PS,
                initial_exponent: 2,
                initial_exponents: 1,
                min_exponent: 3,
                max_exponent: 20,
                retries_per_timeout,
                progress_decrease: 32,
            }),
        }
    }

    /// Runs a timer that nobody answers until it gives up: the timeouts in units of the base.
    fn timeouts(timer: &mut RetransmissionTimer) -> Vec<u64> {
        let mut seen = vec![];
        loop {
            timer.start(0);
            let timeout_ps = timer.poll().unwrap();
            seen.push(timeout_ps / BASE_PS);
            assert_eq!(timer.expire(timeout_ps - 1), None);
            if timer.expire(timeout_ps) == Some(Expiry::Exhausted) {
                return seen;
            }
        }
    }

    #[test]
    fn timeouts_double_up_to_the_constant_one_and_end_with_its_total() {
        let mut timer = RetransmissionTimer::new(&transport(1), 1);
        // 3 x 64 in all.
        assert_eq!(timeouts(&mut timer), [4, 8, 16, 32, 64, 64, 64]);
    }

    #[test]
    fn a_timeout_is_used_as_often_as_configured_but_the_first_once() {
        let mut timer = RetransmissionTimer::new(&transport(2), 1);
        assert_eq!(timeouts(&mut timer), [4, 8, 8, 16, 16, 32, 32, 64, 64]);
    }

    #[test]
    fn progress_takes_the_timeout_back() {
        let mut timer = RetransmissionTimer::new(&transport(1), 1);
        for _ in 0..3 {
            timer.start(0);
            assert_eq!(timer.expire(u64::MAX), Some(Expiry::Retry));
        }
        timer.progress(0, true);
        assert_eq!(timer.poll(), Some(8 * BASE_PS));
    }

    #[test]
    fn first_timeouts_differ_between_queue_pairs() {
        let mut transport = transport(1);
        transport.adaptive_retransmission.as_mut().unwrap().initial_exponents = 3;
        let mut first: Vec<u64> = (0..50)
            .map(|seed| {
                let mut timer = RetransmissionTimer::new(&transport, seed);
                timer.start(0);
                timer.poll().unwrap() / BASE_PS
            })
            .collect();
        first.sort_unstable();
        first.dedup();
        assert_eq!(first, [4, 8, 16]);
    }
}
