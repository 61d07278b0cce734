//! The reliable connection, and how its packets are tagged.

use super::CongestionControlConfig;
use serde::Deserialize;

/// The retry count of a receiver that is not ready that means without end. Source: IBTA volume 1,
/// section 9.7.5.2.8.
pub const ENDLESS_RETRIES: u32 = 7;
/// Source: the limit that mlx5 adapters report (`max_qp_rd_atom` 16).
pub const DEFAULT_OUTSTANDING_READS: u32 = 16;

fn endless_retries() -> u32 {
    ENDLESS_RETRIES
}

fn default_outstanding_reads() -> u32 {
    DEFAULT_OUTSTANDING_READS
}

/// RoCEv2 RC parameters.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransportConfig {
    /// Path MTU: 256, 512, 1024, 2048 or 4096 payload bytes.
    pub mtu_bytes: u32,
    /// Queue pairs per ordered pair of peers.
    pub qps_per_peer: u32,
    /// What a queue pair takes of the messages to its peer; whole messages in turn if missing.
    #[serde(default)]
    pub qp_distribution: QpDistribution,
    /// A receiver tells the sender of each message when it may be sent; off if missing.
    #[serde(default)]
    pub clear_to_send: bool,
    /// Times in a row that a peer without a posted receive is asked again; [`ENDLESS_RETRIES`], also
    /// if missing, is without end. Source: IBTA volume 1, section 9.7.5.2.8 (RNR retry count).
    #[serde(default = "endless_retries")]
    pub rnr_retry_count: u32,
    /// READs that a requester has outstanding at most; at least 1, [`DEFAULT_OUTSTANDING_READS`] if
    /// missing. Source: `max_rd_atomic` of the verbs.
    #[serde(default = "default_outstanding_reads")]
    pub max_outstanding_reads: u32,
    /// Packets that may be unacknowledged on one queue pair, at most 2^23.
    pub window_packets: u32,
    /// The responder acknowledges at least every so many packets.
    pub ack_every_packets: u32,
    /// An acknowledgement is held back at most this long.
    pub ack_delay_ps: u64,
    /// Retransmission timer.
    pub retransmission_timeout_ps: u64,
    /// Timeouts without progress before the queue pair fails.
    pub retry_count: u32,
    /// What is sent again after a loss; go-back-N if missing.
    #[serde(default)]
    pub loss_recovery: LossRecovery,
    /// With selective repeat, a packet counts as lost when one more than so many behind it has
    /// arrived: 0 suits paths that keep the order, more suits packets sprayed over several paths. What
    /// is lost at the very end then waits for the timer. 0 if missing.
    #[serde(default)]
    pub reordering_packets: u32,
    /// The retransmission timer adapts; it is constant if missing.
    #[serde(default)]
    pub adaptive_retransmission: Option<AdaptiveRetransmissionConfig>,
}

/// How messages to one peer use several queue pairs. Both ends have the same. Source: NCCL,
/// `NCCL_IB_SPLIT_DATA_ON_QPS` 0 and 1.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum QpDistribution {
    /// Whole messages, each queue pair in turn.
    #[default]
    RoundRobin,
    /// Every message in as many stripes as there are queue pairs.
    Split,
    /// Whole messages, each on the queue pair of its channel; a queue pair may have several channels.
    Channel,
}

/// What a requester sends again after a loss. Both ends of a connection have the same.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum LossRecovery {
    /// The missing packet and everything behind it. Source: IBTA volume 1, section 9.7.5.1.1.
    #[default]
    GoBackN,
    /// Only what is missing: the responder keeps packets that arrive ahead of their turn, and a NAK
    /// names the one that caused it. Source: Mittal et al., "Revisiting network support for RDMA",
    /// SIGCOMM 2018, section 3.1 (IRN).
    SelectiveRepeat,
}

/// A retransmission timer that starts short and doubles. Timeouts are `time_base_ps` times a power of
/// two and never above [`TransportConfig::retransmission_timeout_ps`]; the queue pair fails after
/// `retry_count` times that without progress. Source: NVIDIA, "Adaptive Retransmission: Parameters
/// Control", with one range of timeouts.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdaptiveRetransmissionConfig {
    /// Timeout of exponent 0.
    pub time_base_ps: u64,
    /// Smallest exponent of the first timeout.
    pub initial_exponent: u32,
    /// The first timeout's exponent is drawn from so many, so that queue pairs differ; at least 1.
    pub initial_exponents: u32,
    /// Smallest exponent of later timeouts.
    pub min_exponent: u32,
    /// Largest exponent.
    pub max_exponent: u32,
    /// Times that a timeout is used before it doubles; the first one is used once.
    pub retries_per_timeout: u32,
    /// How far the exponent falls when there is progress; 32 and more is back to the smallest.
    pub progress_decrease: u32,
}

/// Tags and queues of the three kinds of packets.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassConfig {
    /// DSCP of data packets.
    pub data_dscp: u8,
    /// Priority of data packets, 0 to 7.
    pub data_priority: u8,
    /// Data packets are ECN-capable (ECT(0)).
    pub data_ecn_capable: bool,
    /// DSCP of acknowledgements.
    pub ack_dscp: u8,
    /// Priority of acknowledgements.
    pub ack_priority: u8,
    /// Acknowledgements are ECN-capable (ECT(0)); they aren't if missing.
    #[serde(default)]
    pub ack_ecn_capable: bool,
    /// DSCP of congestion notification packets.
    pub cnp_dscp: u8,
    /// Priority of congestion notification packets.
    pub cnp_priority: u8,
}

/// One more class of data packets, which queue pairs of its own carry. Acknowledgements have the tags
/// of their class: a reliable connection has one traffic class for all that it sends.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataClassConfig {
    /// Unique name, for messages.
    pub name: String,
    /// DSCP of its packets.
    pub dscp: u8,
    /// Priority of its packets, 0 to 7.
    pub priority: u8,
    /// Its data packets are ECN-capable (ECT(0)).
    pub ecn_capable: bool,
    /// So are its acknowledgements; they aren't if missing.
    #[serde(default)]
    pub ack_ecn_capable: bool,
    /// Congestion control of its senders.
    pub congestion_control: CongestionControlConfig,
}
