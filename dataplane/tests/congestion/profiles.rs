//! Parameter sets that the tests share.

use _native::config::{
    AlphaUpdate, ClampTargetRate, CnpMode, CnpScope, DcqcnConfig, NotificationPointConfig,
    StageCount, SwiftConfig,
};

/// One gigabit per second.
pub const GBPS: u64 = 1_000_000_000;
/// One microsecond.
pub const US: u64 = 1_000_000;

/// Reaction point of the paper at 40 Gb/s. Source: Zhu et al., SIGCOMM 2015, section 5.
pub fn paper() -> DcqcnConfig {
    DcqcnConfig {
        g: 1.0 / 256.0,
        initial_alpha: 1.0,
        alpha_update_period_ps: 55 * US,
        alpha_update: AlphaUpdate::OnCnp,
        cut_uses_old_alpha: true,
        rate_decrease_period_ps: 0,
        min_decrease_ratio: 0.5,
        rate_increase_period_ps: 55 * US,
        rate_increase_bytes: 10_000_000,
        fast_recovery_stages: 5,
        stage_count: StageCount::BeforeCompare,
        additive_increase_bps: 40_000_000,
        hyper_increase_bps: 200_000_000,
        hyper_increase_multiplies: true,
        hyper_increase_by_timer: false,
        clamp_target_rate: ClampTargetRate::Always,
        rate_on_first_cnp_bps: 0,
        min_rate_bps: 10_000_000,
        alpha_fraction_bits: 0,
        decrease_alpha_ratio: 0.5,
        hyper_increase_speedup: 1,
        high_target_divisor: 1,
        max_rate_bps: 0,
        rearms_pacer: true,
    }
}

/// Reaction point with the defaults of mlx5. Source: NVIDIA, "DCQCN CC parameters".
pub fn mlx5() -> DcqcnConfig {
    DcqcnConfig {
        g: 5.0 / 1024.0,
        initial_alpha: 1023.0 / 1024.0,
        alpha_update_period_ps: US,
        alpha_update: AlphaUpdate::Periodic,
        cut_uses_old_alpha: false,
        rate_decrease_period_ps: 4 * US,
        min_decrease_ratio: 0.5,
        rate_increase_period_ps: 300 * US,
        rate_increase_bytes: 32_767 * 64,
        fast_recovery_stages: 1,
        stage_count: StageCount::AfterCompare,
        additive_increase_bps: 5_000_000,
        hyper_increase_bps: 50_000_000,
        hyper_increase_multiplies: false,
        hyper_increase_by_timer: false,
        clamp_target_rate: ClampTargetRate::AfterIncrease,
        rate_on_first_cnp_bps: 0,
        min_rate_bps: 1_000_000,
        alpha_fraction_bits: 0,
        decrease_alpha_ratio: 0.5,
        hyper_increase_speedup: 1,
        high_target_divisor: 1,
        max_rate_bps: 0,
        rearms_pacer: true,
    }
}

/// Swift for packets of 1000 bytes over a fabric with a round trip well below 25 us.
pub fn swift() -> SwiftConfig {
    SwiftConfig {
        packet_bytes: 1_000,
        base_target_delay_ps: 25 * US,
        flow_scaling_range_ps: 100 * US,
        flow_scaling_min_packets: 0.1,
        flow_scaling_max_packets: 100.0,
        additive_increase_packets: 1.0,
        beta: 0.8,
        max_decrease_ratio: 0.5,
        initial_window_packets: 10.0,
        min_window_packets: 0.01,
        max_window_packets: 1_000.0,
        timeouts_to_min_window: 5,
    }
}

/// Notification point of the paper.
pub fn paper_notifications() -> NotificationPointConfig {
    NotificationPointConfig {
        enabled: true,
        cnp_interval_ps: 50 * US,
        scope: CnpScope::Qp,
        mode: CnpMode::ImmediateAndTrailing,
        cnp_on_nak: false,
    }
}
