//! Swift: a congestion window steered by the round-trip time.
//!
//! Source: Kumar et al., "Swift: delay is simple and effective for congestion control in the
//! datacenter", SIGCOMM 2020, algorithm 1 and section 3.5 (flow-based scaling of the target). Below
//! the target the window grows by a constant per round trip; above it, it shrinks once per round trip
//! in proportion to the excess. Windows below one packet are kept by pacing.
//!
//! Left out: the window for delay in the host, since a NIC here has none; scaling by the number of
//! hops, which belongs into the base target of a fabric whose paths have one length. The time for
//! which a receiver holds an acknowledgement back is part of the delay, so acknowledge every packet.

use super::{CongestionControl, RateSample};
use crate::config::SwiftConfig;
use crate::units::PS_PER_S;

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Swift {
    config: SwiftConfig,
    line_rate_bps: u64,
    /// Slope and offset of flow scaling over `1 / sqrt(window)`, in picoseconds.
    scaling_slope_ps: f64,
    scaling_offset_ps: f64,
    window_packets: f64,
    rtt_ps: u64,
    last_decrease_ps: Option<u64>,
    timeouts: u32,
}

impl Swift {
    /// A flow that has sent nothing, on a line of `line_rate_bps`.
    pub fn new(config: &SwiftConfig, line_rate_bps: u64) -> Self {
        let at_min = 1.0 / config.flow_scaling_min_packets.sqrt();
        let at_max = 1.0 / config.flow_scaling_max_packets.sqrt();
        let scaling_slope_ps = config.flow_scaling_range_ps as f64 / (at_min - at_max);
        Self {
            config: *config,
            line_rate_bps,
            scaling_slope_ps,
            scaling_offset_ps: scaling_slope_ps * at_max,
            window_packets: config.initial_window_packets,
            rtt_ps: config.base_target_delay_ps,
            last_decrease_ps: None,
            timeouts: 0,
        }
    }

    /// The round-trip time that the flow aims at with its window.
    pub fn target_delay_ps(&self) -> f64 {
        let scaling_ps =
            self.scaling_slope_ps / self.window_packets.sqrt() - self.scaling_offset_ps;
        let range_ps = self.config.flow_scaling_range_ps as f64;
        self.config.base_target_delay_ps as f64 + scaling_ps.clamp(0.0, range_ps)
    }

    /// The window.
    pub fn window_packets(&self) -> f64 {
        self.window_packets
    }

    /// The window may shrink once per round trip.
    fn may_decrease(&self, now_ps: u64) -> bool {
        self.last_decrease_ps.is_none_or(|last_ps| now_ps.saturating_sub(last_ps) >= self.rtt_ps)
    }

    fn increase(&mut self, acked_packets: f64) {
        let step = self.config.additive_increase_packets * acked_packets;
        let per_round = self.window_packets.max(1.0);
        self.set_window(self.window_packets + step / per_round);
    }

    fn decrease(&mut self, now_ps: u64, factor: f64) {
        if self.may_decrease(now_ps) {
            let floor = 1.0 - self.config.max_decrease_ratio;
            self.set_window(self.window_packets * factor.max(floor));
            self.last_decrease_ps = Some(now_ps);
        }
    }

    fn set_window(&mut self, packets: f64) {
        self.window_packets =
            packets.max(self.config.min_window_packets).min(self.config.max_window_packets);
    }

    /// The rate at which the window passes in a round trip.
    fn window_rate_bps(&self) -> u64 {
        let bits = self.window_packets * f64::from(self.config.packet_bytes) * 8.0;
        let rate_bps = bits * PS_PER_S as f64 / self.rtt_ps.max(1) as f64;
        (rate_bps as u64).clamp(1, self.line_rate_bps)
    }
}

impl CongestionControl for Swift {
    fn handle_cnp(&mut self, _now_ps: u64) {}

    fn handle_sent(&mut self, _now_ps: u64, _wire_bytes: u32) {}

    fn handle_ack(&mut self, now_ps: u64, acked_bytes: u64, rtt_ps: Option<u64>) {
        self.timeouts = 0;
        let Some(rtt_ps) = rtt_ps else { return };
        self.rtt_ps = rtt_ps;
        let delay_ps = rtt_ps as f64;
        let target_ps = self.target_delay_ps();
        if delay_ps < target_ps {
            self.increase(acked_bytes as f64 / f64::from(self.config.packet_bytes));
        } else {
            let excess_ratio = (delay_ps - target_ps) / delay_ps;
            self.decrease(now_ps, 1.0 - self.config.beta * excess_ratio);
        }
    }

    fn handle_retransmission_timeout(&mut self, now_ps: u64) {
        self.timeouts = self.timeouts.saturating_add(1);
        if self.timeouts >= self.config.timeouts_to_min_window {
            self.set_window(self.config.min_window_packets);
            self.last_decrease_ps = Some(now_ps);
        } else {
            self.decrease(now_ps, 0.0);
        }
    }

    fn handle_sequence_nak(&mut self, now_ps: u64) {
        self.timeouts = 0;
        self.decrease(now_ps, 0.0);
    }

    fn handle_timeout(&mut self, _now_ps: u64) {}

    fn poll_timeout(&self) -> Option<u64> {
        None
    }

    /// The line rate; where the window is below a packet, the rate that keeps it.
    fn rate_bps(&self) -> u64 {
        if self.window_packets < 1.0 { self.window_rate_bps() } else { self.line_rate_bps }
    }

    fn window_bytes(&self) -> Option<u64> {
        let packets = self.window_packets.max(1.0);
        Some((packets * f64::from(self.config.packet_bytes)) as u64)
    }

    fn sample(&self, _now_ps: u64) -> RateSample {
        let rate_bps = self.window_rate_bps();
        RateSample { current_rate_bps: rate_bps, target_rate_bps: rate_bps, alpha: 0.0 }
    }
}
