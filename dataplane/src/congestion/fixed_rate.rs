//! A constant rate: no congestion control.

use super::{CongestionControl, RateSample};

/// Sends at one rate, whatever happens.
#[derive(Clone, Copy, Debug)]
pub struct FixedRate {
    rate_bps: u64,
}

impl FixedRate {
    /// At `rate_bps`, but no more than the line; `None` is the line rate.
    pub fn new(rate_bps: Option<u64>, line_rate_bps: u64) -> Self {
        Self { rate_bps: rate_bps.map_or(line_rate_bps, |rate_bps| rate_bps.min(line_rate_bps)) }
    }
}

impl CongestionControl for FixedRate {
    fn handle_cnp(&mut self, _now_ps: u64) {}

    fn handle_sent(&mut self, _now_ps: u64, _wire_bytes: u32) {}

    fn handle_ack(&mut self, _now_ps: u64, _acked_bytes: u64, _rtt_ps: Option<u64>) {}

    fn handle_timeout(&mut self, _now_ps: u64) {}

    fn poll_timeout(&self) -> Option<u64> {
        None
    }

    fn rate_bps(&self) -> u64 {
        self.rate_bps
    }

    fn window_bytes(&self) -> Option<u64> {
        None
    }

    fn sample(&self, _now_ps: u64) -> RateSample {
        RateSample { current_rate_bps: self.rate_bps, target_rate_bps: self.rate_bps, alpha: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_bounds_the_rate() {
        assert_eq!(FixedRate::new(Some(5), 10).rate_bps(), 5);
        assert_eq!(FixedRate::new(Some(50), 10).rate_bps(), 10);
        assert_eq!(FixedRate::new(None, 10).rate_bps(), 10);
    }
}
