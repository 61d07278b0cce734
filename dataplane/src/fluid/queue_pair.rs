//! A queue pair as a flow: messages in their order, the first of them being sent at some rate.

use super::loads::Mix;
use super::message::{Framing, Message, acknowledgement_line_bytes};
use super::route::{Latency, Route};
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

    fn less(&self, other: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(other.packets),
            frame_bytes: self.frame_bytes.saturating_sub(other.frame_bytes),
            payload_bytes: self.payload_bytes.saturating_sub(other.payload_bytes),
        }
    }

    pub fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.frame_bytes += other.frame_bytes;
        self.payload_bytes += other.payload_bytes;
    }
}

/// A way of a queue pair is cut, there or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Since when it has waited.
    pub since_ps: u64,
    /// When it falls silent: its window runs out, or its messages do.
    pub silent_ps: u64,
    /// What it sent meanwhile is lost; at the own NIC's link it waits in the NIC.
    pub is_lossy: bool,
    /// When it goes on, once the way is whole again.
    pub resume_ps: Option<u64>,
}

/// One queue pair that has sent something.
#[derive(Debug)]
pub struct QueuePair {
    pub class: u8,
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
    /// The way leads over a link that is down; whether what is sent there is lost.
    pub cut: Option<bool>,
    /// It has something to send and cannot.
    pub outage: Option<Outage>,
    /// Part of the first message that is among what has been counted as sent.
    counted: Sent,
}

impl QueuePair {
    /// Between two NICs with that source port, of a data class; with its ways there and back.
    pub fn new(
        (ends, source_port): ((u32, u32), u16),
        class: u8,
        (forward, back): (&Route, &Route),
    ) -> Self {
        Self {
            class,
            source_nic: ends.0,
            destination_nic: ends.1,
            source_port,
            sent: Sent::default(),
            forward: forward.latency,
            back: back.latency,
            messages: VecDeque::new(),
            mix: Mix::default(),
            rate_bps: 0.0,
            left_bytes: 0.0,
            updated_ps: 0,
            finish_ps: u64::MAX,
            wake_ps: NO_WAKE_PS,
            begun_ps: 0,
            cut: None,
            outage: None,
            counted: Sent::default(),
        }
    }

    /// Count the first message as sent, as far as it isn't.
    pub fn count_sent(&mut self, whole: Sent) {
        let counted = std::mem::take(&mut self.counted);
        self.sent.add(whole.less(counted));
    }

    /// Take what was sent so far, with the part of the first message that has left by now; `whole` is
    /// that message.
    pub fn take_sent(&mut self, whole: Option<Sent>) -> Sent {
        if let Some(whole) = whole {
            let line_bytes = whole.packets as f64 / self.mix.packets_per_byte;
            let part = whole.part((1.0 - self.left_bytes / line_bytes).clamp(0.0, 1.0));
            self.sent.add(part.less(self.counted));
            self.counted = part;
        }
        std::mem::take(&mut self.sent)
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

    /// It has something to send, and a way.
    pub fn is_sending(&self) -> bool {
        !self.messages.is_empty() && self.outage.is_none()
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

/// How long a queue pair at that rate has something that it may send without an acknowledgement.
pub fn lasting_ps(config: &JobConfig, pair: &QueuePair, rate_bps: f64) -> u64 {
    let transport = &config.transport;
    let full = Framing::new(u64::from(transport.mtu_bytes), transport.mtu_bytes);
    let window_bytes = u64::from(transport.window_packets) * full.packet_line_bytes;
    let later = pair.messages.iter().skip(1);
    let later_bytes: u64 =
        later.map(|next| Framing::new(next.size_bytes, transport.mtu_bytes).line_bytes).sum();
    let bytes = (window_bytes as f64).min(pair.left_bytes + later_bytes as f64);
    (bytes * (8 * PS_PER_S) as f64 / rate_bps) as u64
}

/// The retransmission timer, or the first one of an adaptive timer.
pub fn timer_ps(config: &JobConfig) -> u64 {
    let transport = &config.transport;
    let first_ps = transport.adaptive_retransmission.map_or(u64::MAX, |adaptive| {
        adaptive.time_base_ps.saturating_mul(1 << adaptive.initial_exponent.min(32))
    });
    first_ps.min(transport.retransmission_timeout_ps).max(1)
}
