//! The passive description of one job: what stands in the fabric and which parameters hold.
//!
//! Python resolves a lab file into this document and hands it over as JSON; nothing here decides
//! anything. Every default is resolved before: a missing key is an error, except where noted.

use serde::Deserialize;
use std::net::Ipv4Addr;

/// Everything the engine needs apart from the programs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobConfig {
    /// Seed of every random generator of the job.
    pub seed: u64,
    /// Network interfaces, one per rank; a NIC's index is its identity in `routes`.
    pub nics: Vec<NicConfig>,
    /// Virtual switches.
    pub switches: Vec<SwitchConfig>,
    /// Full-duplex links.
    pub links: Vec<LinkConfig>,
    /// RoCEv2 reliable-connection parameters of every NIC.
    pub transport: TransportConfig,
    /// Traffic classes: how packets are tagged and queued.
    pub classes: ClassConfig,
    /// Congestion control of every sender.
    pub congestion_control: CongestionControlConfig,
    /// Notification point of every receiver.
    pub notification_point: NotificationPointConfig,
    /// Time series kept while the job runs.
    pub telemetry: TelemetryConfig,
    /// What links do to frames on purpose; of the rules of a direction, the first that names a
    /// frame's kind holds. Nothing if missing.
    #[serde(default)]
    pub impairments: Vec<ImpairmentConfig>,
    /// Frames that are kept as bytes; nothing if missing.
    #[serde(default)]
    pub capture: Option<CaptureConfig>,
}

impl JobConfig {
    /// MAC address of a node; zeros for one that there is not.
    pub fn mac(&self, node: NodeId) -> [u8; 6] {
        match node {
            NodeId::Nic(index) => self.nics.get(index as usize).map_or([0; 6], |nic| nic.mac),
            NodeId::Switch(index) => {
                self.switches.get(index as usize).map_or([0; 6], |switch| switch.mac)
            }
        }
    }
}

/// What is kept of frames as they arrive at the end of their link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureConfig {
    /// Directions: twice the index of the link, plus one for the direction that leaves its end b.
    pub directions: Vec<u32>,
    /// Frames that each process keeps at most; later ones are counted.
    pub max_packets: u64,
}

/// What some directions of links do to some frames by chance. Ratios are of the frames that the rule
/// applies to, each drawn on its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpairmentConfig {
    /// Directions: twice the index of the link, plus one for the direction that leaves its end b.
    pub directions: Vec<u32>,
    /// Kinds of frames; empty is all but pause frames.
    pub packets: Vec<PacketKind>,
    /// Share that vanishes.
    pub loss_ratio: f64,
    /// Share of which a bit of payload, pad or invariant CRC is flipped.
    pub corruption_ratio: f64,
    /// Share that arrives twice.
    pub duplication_ratio: f64,
    /// Share that arrives `reordering_ps` later, so that others overtake it.
    pub reordering_ratio: f64,
    /// How much later a reordered frame arrives.
    pub reordering_ps: u64,
    /// Delay of every frame, beside the link's own.
    pub delay_ps: u64,
    /// Further delay, uniform from 0 to this; the order is kept.
    pub jitter_ps: u64,
}

/// Kinds of frames that an impairment can be limited to.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum PacketKind {
    /// Parts of SEND requests.
    Send,
    /// Parts of RDMA WRITE requests.
    Write,
    /// RDMA READ requests.
    ReadRequest,
    /// Parts of the answers to RDMA READ requests.
    ReadResponse,
    /// ACK and NAK.
    Acknowledge,
    /// Congestion notification packets.
    Cnp,
    /// Pause frames.
    Pause,
}

/// One network interface with one port (port 0).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NicConfig {
    /// Unique name, for records.
    pub name: String,
    /// The rank that it carries; unique.
    pub rank: u32,
    /// IPv4 address; unique.
    pub address: Ipv4Addr,
    /// MAC address, six octets.
    pub mac: [u8; 6],
}

/// One output-queued switch.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchConfig {
    /// Unique name, for records.
    pub name: String,
    /// MAC address that its pause frames carry.
    pub mac: [u8; 6],
    /// Number of ports.
    pub ports: u16,
    /// `routes[nic index]`: the egress ports that lead there, ascending. They share the flows evenly;
    /// a port that stands there twice gets twice the share.
    pub routes: Vec<Vec<u16>>,
    /// Seed of the ECMP hash.
    pub ecmp_seed: u64,
    /// What is sent over one of several ports together; a missing key is [`PathSelection::Flow`].
    #[serde(default)]
    pub path_selection: PathSelection,
    /// Shared packet buffer, without headroom.
    pub buffer_bytes: u64,
    /// Share of the free shared buffer that one egress queue may take before tail drop
    /// (lossy) or that one ingress may take before pause (lossless).
    pub dynamic_threshold_alpha: f64,
    /// The eight priorities.
    pub priorities: Vec<PriorityConfig>,
    /// Guards the lossless priorities; a missing key is off.
    #[serde(default)]
    pub pfc_watchdog: Option<PfcWatchdogConfig>,
}

/// What a switch does about a neighbour that pauses it for good. Source: SONiC's PFC watchdog.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct PfcWatchdogConfig {
    /// A queue that is paused and sends nothing for so long is in a storm.
    pub detection_ps: u64,
    /// The storm is over when no pause has come for so long.
    pub restoration_ps: u64,
    /// What happens in a storm.
    pub action: StormAction,
}

/// What happens to the packets of a queue in a storm.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum StormAction {
    /// They are dropped.
    Drop,
    /// They are sent in spite of the pauses.
    Forward,
}

/// What takes one of several ports together. All but `Flow` can reorder the packets of a flow.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(tag = "mode", rename_all = "snake_case", deny_unknown_fields)]
pub enum PathSelection {
    /// All packets of a flow, by its hash.
    #[default]
    Flow,
    /// Packets of a flow with gaps no longer than this between them; each such flowlet takes a port
    /// by chance. Source: Vanini et al., "Let it flow", NSDI 2017.
    Flowlet {
        /// A longer gap begins a new flowlet.
        gap_ps: u64,
    },
    /// Each packet, by chance. Source: Dixit et al., "On the impact of packet spraying in data
    /// center networks", INFOCOM 2013.
    Packet,
    /// Each packet takes the port with the shortest queue of its priority; by chance among equals.
    ShortestQueue,
}

/// How a switch treats one priority on every port.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorityConfig {
    /// PFC is on: pause the upstream instead of dropping.
    pub lossless: bool,
    /// Strict priority over all weighted ones; among strict, the higher number first.
    pub strict: bool,
    /// Weight among the non-strict priorities (deficit round robin); at least 1.
    pub weight: u32,
    /// ECN marking at dequeue; `None` is off.
    pub ecn: Option<EcnConfig>,
    /// Pause when one ingress holds more; `None` takes the dynamic threshold.
    pub xoff_bytes: Option<u64>,
    /// Resume when the ingress holds this much less than the pause threshold.
    pub xon_offset_bytes: u64,
    /// Bytes that one ingress may hold above its pause threshold.
    pub headroom_bytes: u64,
}

/// RED/ECN profile on the instantaneous egress queue, decided at dequeue.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EcnConfig {
    /// No mark at or below.
    pub kmin_bytes: u64,
    /// Every packet marked above.
    pub kmax_bytes: u64,
    /// Probability at `kmax_bytes`.
    pub pmax_ratio: f64,
}

/// A node of the fabric.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub enum NodeId {
    /// Index into [`JobConfig::nics`].
    Nic(u32),
    /// Index into [`JobConfig::switches`].
    Switch(u32),
}

/// One end of a link.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
#[serde(deny_unknown_fields)]
pub struct LinkEnd {
    /// The node.
    pub node: NodeId,
    /// Its port; 0 on a NIC.
    pub port: u16,
}

/// A full-duplex link; both directions have the same rate and delay.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Unique name, for records.
    pub name: String,
    /// One end; direction 0 leaves it.
    pub a: LinkEnd,
    /// The other end; direction 1 leaves it.
    pub b: LinkEnd,
    /// Line rate in bits per second.
    pub rate_bps: u64,
    /// Propagation delay in picoseconds.
    pub delay_ps: u64,
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
    /// DSCP of congestion notification packets.
    pub cnp_dscp: u8,
    /// Priority of congestion notification packets.
    pub cnp_priority: u8,
}

/// The sender's congestion control.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "algorithm", rename_all = "snake_case", deny_unknown_fields)]
pub enum CongestionControlConfig {
    /// Quantized congestion notification of data centres.
    Dcqcn(DcqcnConfig),
    /// Swift: a window steered by the round-trip time.
    Swift(SwiftConfig),
    /// A constant rate per queue pair; no reaction.
    FixedRate {
        /// The rate; `None` is the line rate.
        rate_bps: Option<u64>,
    },
}

/// Reaction point of DCQCN: a value for every parameter and an option for every point on which
/// implementations differ.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DcqcnConfig {
    /// Gain of the congestion estimate.
    pub g: f64,
    /// Estimate before the first notification.
    pub initial_alpha: f64,
    /// Period of the estimate's decay.
    pub alpha_update_period_ps: u64,
    /// When the estimate rises: see [`AlphaUpdate`].
    pub alpha_update: AlphaUpdate,
    /// The cut uses the estimate before (`true`) or after (`false`) the notification's own update.
    pub cut_uses_old_alpha: bool,
    /// At most one cut in this period; 0 cuts on every notification.
    pub rate_decrease_period_ps: u64,
    /// Smallest new rate as a share of the old one at a cut; 0.5 is a halving at most.
    pub min_decrease_ratio: f64,
    /// Period of the increase timer; 0 is off.
    pub rate_increase_period_ps: u64,
    /// Bytes of the increase byte counter; 0 is off.
    pub rate_increase_bytes: u64,
    /// Stages of fast recovery.
    pub fast_recovery_stages: u32,
    /// When a stage counts: see [`StageCount`].
    pub stage_count: StageCount,
    /// Step of additive increase.
    pub additive_increase_bps: u64,
    /// Step of hyper increase.
    pub hyper_increase_bps: u64,
    /// The hyper step is multiplied by the number of hyper stages (paper) or constant.
    pub hyper_increase_multiplies: bool,
    /// Without a byte counter the timer alone leads to hyper increase (HPCC's ns-3); otherwise
    /// hyper increase takes both counters, so that there is none without one of them (paper).
    pub hyper_increase_by_timer: bool,
    /// When a cut also lowers the target rate to the current rate.
    pub clamp_target_rate: ClampTargetRate,
    /// Rate set by the first notification; 0 leaves the rate as it is.
    pub rate_on_first_cnp_bps: u64,
    /// Lower bound of the rate.
    pub min_rate_bps: u64,
}

/// Swift's parameters. Windows are counted in packets and may be fractions of one.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwiftConfig {
    /// Bytes of a packet's payload: the unit of windows.
    pub packet_bytes: u32,
    /// Target of the round-trip time of a flow with a large window.
    pub base_target_delay_ps: u64,
    /// What flow scaling adds to the target at most; 0 is off.
    pub flow_scaling_range_ps: u64,
    /// Flow scaling adds its whole range at windows of this and less; above 0.
    pub flow_scaling_min_packets: f64,
    /// Flow scaling adds nothing at windows of this and more; above `flow_scaling_min_packets`.
    pub flow_scaling_max_packets: f64,
    /// Growth of the window per round trip below the target.
    pub additive_increase_packets: f64,
    /// Decrease per excess of the target, as a share of the measured delay.
    pub beta: f64,
    /// Largest decrease per round trip, as a share of the window.
    pub max_decrease_ratio: f64,
    /// Window of a new flow.
    pub initial_window_packets: f64,
    /// Smallest window; above 0.
    pub min_window_packets: f64,
    /// Largest window.
    pub max_window_packets: f64,
    /// Timeouts in a row after which the window is the smallest.
    pub timeouts_to_min_window: u32,
}

/// When alpha rises.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum AlphaUpdate {
    /// On every notification; the decay timer restarts then (paper).
    OnCnp,
    /// Once per period, by whether a notification came in it (mlx5, HPCC's ns-3).
    Periodic,
}

/// How increase events are counted against the stages of fast recovery.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum StageCount {
    /// Count, then compare with `<`: one recovery step fewer than stages.
    BeforeCompare,
    /// Compare, then count: as many recovery steps as stages.
    AfterCompare,
}

/// When a cut sets the target rate to the current rate.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ClampTargetRate {
    /// At every cut.
    Always,
    /// Only if the byte counter or the timer has counted an increase since the last cut.
    AfterIncrease,
    /// Only if the byte counter has counted an increase since the last cut.
    AfterByteIncrease,
}

/// Notification point: when marked packets cause congestion notification packets.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotificationPointConfig {
    /// Off: marks are counted, nothing is sent.
    pub enabled: bool,
    /// Minimum time between two notifications of one scope.
    pub cnp_interval_ps: u64,
    /// What one interval limits.
    pub scope: CnpScope,
    /// What happens to marks inside an interval.
    pub mode: CnpMode,
    /// Also notify with every out-of-sequence NAK.
    pub cnp_on_nak: bool,
}

/// The flows that share one notification interval.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum CnpScope {
    /// Each queue pair.
    Qp,
    /// Each pair of addresses.
    IpPair,
    /// Each destination address of the notification.
    DestinationIp,
    /// The whole port.
    Port,
}

/// What a notification point does with marks inside the interval.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum CnpMode {
    /// Notify at once; if marks came in the interval, once more at its end (paper).
    ImmediateAndTrailing,
    /// Notify at once; marks inside the interval are dropped (mlx5).
    Immediate,
    /// Only at the end of each interval that had marks (ns3-rdma).
    Periodic,
}

/// Time series.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TelemetryConfig {
    /// First sampling interval; it doubles, and neighbouring samples merge, when `max_samples` is reached.
    pub sample_interval_ps: u64,
    /// Samples kept per series.
    pub max_samples: u32,
}
