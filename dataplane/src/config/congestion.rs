//! Congestion control of senders, and the notification point of receivers.

use serde::Deserialize;

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
    /// Binary digits behind the point of the estimate, which is rounded down at every update: 10 is an
    /// integer in 1/1024; 0 is a real number.
    pub alpha_fraction_bits: u32,
    /// Period of the estimate's decay.
    pub alpha_update_period_ps: u64,
    /// When the estimate rises: see [`AlphaUpdate`].
    pub alpha_update: AlphaUpdate,
    /// The cut uses the estimate before (`true`) or after (`false`) the notification's own update.
    pub cut_uses_old_alpha: bool,
    /// At most one cut in this period; 0 cuts on every notification.
    pub rate_decrease_period_ps: u64,
    /// Share of the estimate by which a cut lowers the rate; 0.5 in the paper.
    pub decrease_alpha_ratio: f64,
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
    /// In hyper increase, timer and byte counter run so many times as fast; at least 1.
    pub hyper_increase_speedup: u32,
    /// Without a byte counter the timer alone leads to hyper increase (HPCC's ns-3); otherwise
    /// hyper increase takes both counters, so that there is none without one of them (paper).
    pub hyper_increase_by_timer: bool,
    /// When a cut also lowers the target rate to the current rate.
    pub clamp_target_rate: ClampTargetRate,
    /// At the first increase after a cut, a target rate above ten times the current rate is divided by
    /// this instead of raised; 1 never is. Source: quantized congestion notification.
    pub high_target_divisor: u32,
    /// Rate set by the first notification; 0 leaves the rate as it is.
    pub rate_on_first_cnp_bps: u64,
    /// Lower bound of the rate.
    pub min_rate_bps: u64,
    /// Upper bound of the rate, where a sender starts; 0 is the line rate.
    pub max_rate_bps: u64,
    /// A packet that waits for its time takes a changed rate at once; otherwise it keeps the time
    /// computed when the one before it left.
    pub rearms_pacer: bool,
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
