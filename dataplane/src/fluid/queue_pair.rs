//! A queue pair as a flow: messages in their order, the first of them being sent at some rate.

use super::loads::Mix;
use super::message::{Framing, Message, acknowledgement_line_bytes};
use super::route::Latency;
use crate::config::{CongestionControlConfig, JobConfig};
use crate::units::PS_PER_S;
use std::collections::VecDeque;

/// No wake-up is pending.
pub const NO_WAKE_PS: u64 = u64::MAX;

/// Messages that have left.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    pub packets: u64,
    /// Frames, without preambles and gaps.
    pub frame_bytes: u64,
    pub payload_bytes: u64,
}

impl Sent {
    /// The part of it that takes one of several paths.
    pub fn part(&self, fraction: f64) -> Self {
        let part = |whole: u64| (whole as f64 * fraction).round() as u64;
        Self {
            packets: part(self.packets),
            frame_bytes: part(self.frame_bytes),
            payload_bytes: part(self.payload_bytes),
        }
    }
}

/// One queue pair that has sent something.
#[derive(Debug)]
pub struct QueuePair {
    pub source_nic: u32,
    pub destination_nic: u32,
    pub source_port: u16,
    /// What has left so far.
    pub sent: Sent,
    pub forward: Latency,
    pub back: Latency,
    pub messages: VecDeque<Message>,
    /// What the first message puts on the line for each byte.
    pub mix: Mix,
    pub rate_bps: f64,
    /// Bytes on the line that are left of the first message, as of `updated_ps`.
    left_bytes: f64,
    updated_ps: u64,
    /// When the first message will have left at this rate.
    pub finish_ps: u64,
    /// The wake-up that counts; it may be early.
    pub wake_ps: u64,
    /// When its first message began.
    pub begun_ps: u64,
}

impl QueuePair {
    pub fn new(ends: (u32, u32), source_port: u16, forward: Latency, back: Latency) -> Self {
        Self {
            source_nic: ends.0,
            destination_nic: ends.1,
            source_port,
            sent: Sent::default(),
            forward,
            back,
            messages: VecDeque::new(),
            mix: Mix::default(),
            rate_bps: 0.0,
            left_bytes: 0.0,
            updated_ps: 0,
            finish_ps: u64::MAX,
            wake_ps: NO_WAKE_PS,
            begun_ps: 0,
        }
    }

    /// Begin with the first message.
    pub fn begin(&mut self, now_ps: u64, framing: &Framing, size_bytes: u64) {
        let line_bytes = framing.line_bytes as f64;
        self.left_bytes = line_bytes;
        self.updated_ps = now_ps;
        self.begun_ps = now_ps;
        self.mix = Mix {
            payload_ratio: size_bytes as f64 / line_bytes,
            packets_per_byte: framing.packets as f64 / line_bytes,
        };
        self.foresee();
    }

    /// Go on at another rate.
    pub fn set_rate(&mut self, now_ps: u64, rate_bps: f64) {
        let sent = self.rate_bps * (now_ps - self.updated_ps) as f64 / (8 * PS_PER_S) as f64;
        self.left_bytes = (self.left_bytes - sent).max(0.0);
        self.updated_ps = now_ps;
        self.rate_bps = rate_bps;
        self.foresee();
    }

    /// Payload of the first message that has left by `now_ps`.
    pub fn sent_bytes(&self, now_ps: u64) -> u64 {
        let Some(first) = self.messages.front() else { return 0 };
        let sent = self.rate_bps * (now_ps - self.updated_ps) as f64 / (8 * PS_PER_S) as f64;
        let left_bytes = (self.left_bytes - sent).max(0.0) * self.mix.payload_ratio;
        first.size_bytes.saturating_sub(left_bytes as u64)
    }

    fn foresee(&mut self) {
        let left_ps = (self.left_bytes * (8 * PS_PER_S) as f64 / self.rate_bps).ceil();
        self.finish_ps = if self.rate_bps > 0.0 {
            self.updated_ps.saturating_add(left_ps as u64)
        } else {
            u64::MAX
        };
    }
}

/// What congestion control and the window allow at most.
pub fn limit_bps(config: &JobConfig, class: u8, forward: &Latency, back: &Latency) -> u64 {
    let transport = &config.transport;
    let full = Framing::new(u64::from(transport.mtu_bytes), transport.mtu_bytes);
    let round_trip_ps =
        forward.whole_ps(full.packet_line_bytes) + back.whole_ps(acknowledgement_line_bytes());
    let window_bytes = u128::from(transport.window_packets) * u128::from(full.packet_line_bytes);
    let bit_ps = window_bytes * u128::from(8 * PS_PER_S);
    let window_bps = u64::try_from(bit_ps / u128::from(round_trip_ps.max(1)));
    let constant_bps = match *config.congestion_control_of(class) {
        CongestionControlConfig::FixedRate { rate_bps: Some(rate_bps) } => rate_bps,
        _ => u64::MAX,
    };
    window_bps.unwrap_or(u64::MAX).min(constant_bps)
}
