//! Senders at line rate that react to nothing.

use crate::config::{CongestionControlConfig, NotificationPointConfig};

/// A flow at its receiver.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct FlowKey {
    pub local_qp: u32,
    pub local_address: u32,
    pub remote_address: u32,
}

/// State of a rate.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct RateSample {
    pub current_rate_bps: u64,
    pub target_rate_bps: u64,
    pub alpha: f64,
}

/// What congestion control is asked and told.
#[allow(missing_docs)]
pub trait CongestionControl {
    fn handle_cnp(&mut self, _now_ps: u64) {}
    fn handle_sent(&mut self, _now_ps: u64, _wire_bytes: u32) {}
    fn handle_ack(&mut self, _now_ps: u64, _acked_bytes: u64, _round_trip_ps: Option<u64>) {}
    fn handle_timeout(&mut self, _now_ps: u64) {}
    fn poll_timeout(&self) -> Option<u64> {
        None
    }
    fn rate_bps(&self) -> u64;
    fn window_bytes(&self) -> Option<u64> {
        None
    }
    fn sample(&self) -> RateSample;
}

/// A sender at line rate.
#[derive(Debug)]
pub struct Controller {
    rate_bps: u64,
}

impl Controller {
    /// A sender at `line_rate_bps`.
    pub fn new(_config: &CongestionControlConfig, line_rate_bps: u64) -> Self {
        Self { rate_bps: line_rate_bps }
    }
}

impl CongestionControl for Controller {
    fn rate_bps(&self) -> u64 {
        self.rate_bps
    }

    fn sample(&self) -> RateSample {
        let rate_bps = self.rate_bps;
        RateSample { current_rate_bps: rate_bps, target_rate_bps: rate_bps, alpha: 0.0 }
    }
}

/// A receiver that never notifies.
#[derive(Debug)]
pub struct NotificationPoint;

#[allow(missing_docs)]
impl NotificationPoint {
    pub fn new(_config: &NotificationPointConfig) -> Self {
        Self
    }

    pub fn handle_marked(&mut self, _now_ps: u64, _flow: FlowKey) -> bool {
        false
    }

    pub fn handle_sequence_error(&mut self, _now_ps: u64, _flow: FlowKey) -> bool {
        false
    }

    pub fn poll_timeout(&self) -> Option<u64> {
        None
    }

    pub fn handle_timeout(&mut self, _now_ps: u64) -> Option<FlowKey> {
        None
    }
}
