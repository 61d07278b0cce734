//! Congestion control: how fast a sender may send, and how a receiver tells it of congestion.
//!
//! * [`dcqcn`]: the reaction point of DCQCN; [`swift`]: a window by delay; [`fixed_rate`]: no reaction.
//! * [`notification_point`]: when marked packets cause congestion notification packets.
//!
//! Everything here is one queue pair's or one port's state machine: time is an argument, and nothing
//! knows packets, queues or how a rate is kept. Timers are asked for by `poll_timeout`; being called
//! late is harmless, since what was due is done as of the time when it was due.

mod alpha;
pub mod dcqcn;
pub mod fixed_rate;
pub mod notification_point;
pub mod swift;

pub use alpha::MAX_FRACTION_BITS;
pub use dcqcn::Dcqcn;
pub use fixed_rate::FixedRate;
pub use notification_point::{FlowKey, NotificationPoint};
pub use swift::Swift;

use crate::config::CongestionControlConfig;

/// A sender's state at one time, for time series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// The rate that holds.
    pub current_rate_bps: u64,
    /// The rate that recovery aims at.
    pub target_rate_bps: u64,
    /// Estimate of congestion, 0 to 1; 0 where the algorithm has none.
    pub alpha: f64,
}

/// Congestion control of one sending queue pair.
///
/// After any `handle_*` both [`rate_bps`](Self::rate_bps) and
/// [`poll_timeout`](Self::poll_timeout) may have changed: whoever paces by the rate must take the
/// new one at once, not only for the packet after next. (A send time computed at an old, tiny rate
/// breaks fairness.)
pub trait CongestionControl {
    /// A congestion notification packet has arrived.
    fn handle_cnp(&mut self, now_ps: u64);

    /// A data packet of `wire_bytes` (frame with FCS) has left.
    fn handle_sent(&mut self, now_ps: u64, wire_bytes: u32);

    /// An acknowledgement has arrived for `acked_bytes` of payload, with the round-trip time of the
    /// last packet acknowledged where it is known.
    fn handle_ack(&mut self, now_ps: u64, acked_bytes: u64, rtt_ps: Option<u64>);

    /// The retransmission timer has expired: packets are sent again.
    fn handle_retransmission_timeout(&mut self, _now_ps: u64) {}

    /// The receiver misses a packet and says so: packets are sent again.
    fn handle_sequence_nak(&mut self, _now_ps: u64) {}

    /// The time of [`poll_timeout`](Self::poll_timeout) has come.
    fn handle_timeout(&mut self, now_ps: u64);

    /// When the rate may change by itself next; `None` if only an event can change it.
    fn poll_timeout(&self) -> Option<u64>;

    /// The rate that holds.
    fn rate_bps(&self) -> u64;

    /// A packet that waits for its time takes a changed rate at once.
    fn rearms_pacer(&self) -> bool {
        true
    }

    /// Payload bytes that may be unacknowledged; `None` is no limit.
    fn window_bytes(&self) -> Option<u64>;

    /// The state at `now_ps`, which is not before the last event.
    fn sample(&self, now_ps: u64) -> RateSample;
}

/// Any congestion control, dispatched without an indirect call.
#[derive(Clone, Debug)]
pub enum Controller {
    /// See [`Dcqcn`].
    Dcqcn(Box<Dcqcn>),
    /// See [`Swift`].
    Swift(Swift),
    /// See [`FixedRate`].
    FixedRate(FixedRate),
}

impl Controller {
    /// A sender that has sent nothing yet, on a line of `line_rate_bps`.
    pub fn new(config: &CongestionControlConfig, line_rate_bps: u64) -> Self {
        match config {
            CongestionControlConfig::Dcqcn(dcqcn) => {
                Controller::Dcqcn(Box::new(Dcqcn::new(dcqcn, line_rate_bps)))
            }
            CongestionControlConfig::Swift(swift) => {
                Controller::Swift(Swift::new(swift, line_rate_bps))
            }
            CongestionControlConfig::FixedRate { rate_bps } => {
                Controller::FixedRate(FixedRate::new(*rate_bps, line_rate_bps))
            }
        }
    }
}

/// Call the same method of whichever algorithm it is.
macro_rules! dispatch {
    ($controller:expr, $algorithm:ident => $call:expr) => {
        match $controller {
            Controller::Dcqcn($algorithm) => $call,
            Controller::Swift($algorithm) => $call,
            Controller::FixedRate($algorithm) => $call,
        }
    };
}

impl CongestionControl for Controller {
    #[inline]
    fn handle_cnp(&mut self, now_ps: u64) {
        dispatch!(self, algorithm => algorithm.handle_cnp(now_ps))
    }

    #[inline]
    fn handle_sent(&mut self, now_ps: u64, wire_bytes: u32) {
        dispatch!(self, algorithm => algorithm.handle_sent(now_ps, wire_bytes))
    }

    #[inline]
    fn handle_ack(&mut self, now_ps: u64, acked_bytes: u64, rtt_ps: Option<u64>) {
        dispatch!(self, algorithm => algorithm.handle_ack(now_ps, acked_bytes, rtt_ps))
    }

    fn handle_retransmission_timeout(&mut self, now_ps: u64) {
        dispatch!(self, algorithm => algorithm.handle_retransmission_timeout(now_ps))
    }

    fn handle_sequence_nak(&mut self, now_ps: u64) {
        dispatch!(self, algorithm => algorithm.handle_sequence_nak(now_ps))
    }

    #[inline]
    fn handle_timeout(&mut self, now_ps: u64) {
        dispatch!(self, algorithm => algorithm.handle_timeout(now_ps))
    }

    #[inline]
    fn poll_timeout(&self) -> Option<u64> {
        dispatch!(self, algorithm => algorithm.poll_timeout())
    }

    #[inline]
    fn rate_bps(&self) -> u64 {
        dispatch!(self, algorithm => algorithm.rate_bps())
    }

    fn rearms_pacer(&self) -> bool {
        dispatch!(self, algorithm => algorithm.rearms_pacer())
    }

    #[inline]
    fn window_bytes(&self) -> Option<u64> {
        dispatch!(self, algorithm => algorithm.window_bytes())
    }

    fn sample(&self, now_ps: u64) -> RateSample {
        dispatch!(self, algorithm => algorithm.sample(now_ps))
    }
}
