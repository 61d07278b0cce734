//! The reaction point of DCQCN: one sender's rate between notifications and recovery.
//!
//! Source: Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015,
//! sections 3.1 and 5. Implementations differ on many points; each is an option of
//! [`DcqcnConfig`]. What no option changes:
//!
//! * Before the first notification the rate is the line rate, and nothing runs.
//! * A cut restarts the increase timer and both stage counters.
//! * At the line rate, increases change nothing, so none is waited for; their count is caught up.
//! * Rates are integers. Recovery rounds up, so that it ends.

use super::alpha::Alpha;
use super::{CongestionControl, RateSample};
use crate::config::{AlphaUpdate, ClampTargetRate, DcqcnConfig, StageCount};

/// A time that never comes.
const NEVER_PS: u64 = u64::MAX;

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Dcqcn {
    config: DcqcnConfig,
    /// The line rate, or the configured upper bound if that is lower.
    line_rate_bps: u64,
    current_rate_bps: u64,
    target_rate_bps: u64,
    alpha: Alpha,
    /// Time of the first notification.
    started_ps: Option<u64>,
    /// When the cut that a notification caused is due, where cuts have a period.
    next_cut_ps: u64,
    next_increase_ps: u64,
    /// Increases by the timer since the last cut.
    time_stages: u32,
    /// Increases by the byte counter since the last cut.
    byte_stages: u32,
    /// Bytes towards the next stage of the byte counter.
    sent_bytes: u64,
}

impl Dcqcn {
    /// A sender that was never notified.
    pub fn new(config: &DcqcnConfig, line_rate_bps: u64) -> Self {
        let line_rate_bps = match config.max_rate_bps {
            0 => line_rate_bps,
            max_rate_bps => line_rate_bps.min(max_rate_bps),
        };
        Self {
            config: *config,
            line_rate_bps,
            current_rate_bps: line_rate_bps,
            target_rate_bps: line_rate_bps,
            alpha: Alpha::new(config),
            started_ps: None,
            next_cut_ps: NEVER_PS,
            next_increase_ps: NEVER_PS,
            time_stages: 0,
            byte_stages: 0,
            sent_bytes: 0,
        }
    }

    /// The same sender with other rates, as if events not told had led there.
    pub fn with_rates(self, current_rate_bps: u64, target_rate_bps: u64) -> Self {
        Self { current_rate_bps, target_rate_bps, ..self }
    }

    fn start(&mut self, now_ps: u64) {
        self.started_ps = Some(now_ps);
        self.restart_timer(now_ps);
        if self.config.rate_on_first_cnp_bps > 0 {
            let rate_bps = self.config.rate_on_first_cnp_bps.min(self.current_rate_bps);
            self.current_rate_bps = self.clip(rate_bps);
            self.target_rate_bps = self.current_rate_bps;
        }
    }

    /// The estimate's part of a notification.
    fn notify_alpha(&mut self, now_ps: u64, is_first: bool) {
        if is_first {
            self.alpha.start(now_ps);
        } else {
            self.alpha.notify(now_ps);
        }
    }

    /// A notification where each causes a cut.
    fn cut_at_once(&mut self, now_ps: u64, is_first: bool) {
        if self.config.cut_uses_old_alpha {
            self.alpha.advance(if is_first { 0 } else { now_ps });
            self.cut(now_ps);
            self.notify_alpha(now_ps, is_first);
        } else {
            self.notify_alpha(now_ps, is_first);
            self.cut(now_ps);
        }
    }

    /// Cuts happen at multiples of their period since the first notification.
    fn schedule_cut(&mut self, now_ps: u64) {
        if self.next_cut_ps != NEVER_PS {
            return;
        }
        let start_ps = self.started_ps.unwrap_or(now_ps);
        let period_ps = self.config.rate_decrease_period_ps;
        self.next_cut_ps = start_ps + ((now_ps - start_ps) / period_ps + 1) * period_ps;
    }

    /// The cut that is due at `at_ps`. Where the estimate's periods and the cuts' coincide, the
    /// estimate is updated before the cut or after it as the option says.
    fn cut_on_schedule(&mut self, at_ps: u64) {
        let alpha_first =
            !self.config.cut_uses_old_alpha || self.config.alpha_update == AlphaUpdate::OnCnp;
        self.alpha.advance(if alpha_first { at_ps } else { at_ps - 1 });
        self.next_cut_ps = NEVER_PS;
        self.cut(at_ps);
    }

    /// `R_C = R_C (1 - alpha/2)` in the paper, `R_T` as the clamp says.
    fn cut(&mut self, now_ps: u64) {
        if self.clamps_target() {
            self.target_rate_bps = self.current_rate_bps;
        }
        let decrease = self.alpha.value() * self.config.decrease_alpha_ratio;
        let factor = (1.0 - decrease).max(self.config.min_decrease_ratio);
        let rate_bps = (self.current_rate_bps as f64 * factor).round() as u64;
        self.current_rate_bps = self.clip(rate_bps).min(self.current_rate_bps);
        self.time_stages = 0;
        self.byte_stages = 0;
        self.sent_bytes = 0;
        self.restart_timer(now_ps);
    }

    /// Begin a period of the increase timer; a period of 0 is no timer.
    fn restart_timer(&mut self, now_ps: u64) {
        let period_ps = self.config.rate_increase_period_ps;
        self.next_increase_ps = if period_ps == 0 { NEVER_PS } else { now_ps + period_ps };
    }

    fn clamps_target(&self) -> bool {
        match self.config.clamp_target_rate {
            ClampTargetRate::Always => true,
            ClampTargetRate::AfterIncrease => self.time_stages > 0 || self.byte_stages > 0,
            ClampTargetRate::AfterByteIncrease => self.byte_stages > 0,
        }
    }

    /// One more increase of the counter that `stages` selects.
    fn count_increase(&mut self, stages: fn(&mut Self) -> &mut u32) {
        let is_first = *stages(self) == 0;
        match self.config.stage_count {
            StageCount::BeforeCompare => {
                *stages(self) = stages(self).saturating_add(1);
                self.increase(is_first);
            }
            StageCount::AfterCompare => {
                self.increase(is_first);
                *stages(self) = stages(self).saturating_add(1);
            }
        }
    }

    /// The lower and the higher of the stage counters.
    fn stages(&self) -> (u32, u32) {
        let timer_decides =
            self.config.hyper_increase_by_timer && self.config.rate_increase_bytes == 0;
        if timer_decides {
            (self.time_stages, self.time_stages)
        } else if self.time_stages < self.byte_stages {
            (self.time_stages, self.byte_stages)
        } else {
            (self.byte_stages, self.time_stages)
        }
    }

    /// How many times as fast timer and byte counter run in the present stage.
    fn speedup(&self) -> u64 {
        let is_hyper = self.config.hyper_increase_speedup > 1
            && self.stages().0 > self.config.fast_recovery_stages;
        if is_hyper { u64::from(self.config.hyper_increase_speedup) } else { 1 }
    }

    /// Period of the increase timer in the present stage.
    fn increase_period_ps(&self) -> u64 {
        (self.config.rate_increase_period_ps / self.speedup()).max(1)
    }

    /// Fast recovery, additive or hyper increase by the stage counters.
    fn increase(&mut self, is_first: bool) {
        let threshold = self.config.fast_recovery_stages;
        let (least, most) = self.stages();
        let step_bps = if least > threshold {
            self.hyper_step_bps(least - threshold)
        } else if most >= threshold {
            self.config.additive_increase_bps
        } else {
            0
        };
        let divisor = u64::from(self.config.high_target_divisor.max(1));
        let is_high = divisor > 1 && self.target_rate_bps / 10 > self.current_rate_bps;
        self.target_rate_bps = self.clip(match is_first && is_high {
            true => self.target_rate_bps / divisor,
            false => self.target_rate_bps.saturating_add(step_bps),
        });
        let middle_bps = (self.target_rate_bps + self.current_rate_bps).div_ceil(2);
        self.current_rate_bps = self.clip(middle_bps);
    }

    fn hyper_step_bps(&self, hyper_stages: u32) -> u64 {
        let factor = if self.config.hyper_increase_multiplies { hyper_stages } else { 1 };
        self.config.hyper_increase_bps.saturating_mul(u64::from(factor))
    }

    fn clip(&self, rate_bps: u64) -> u64 {
        rate_bps.max(self.config.min_rate_bps).min(self.line_rate_bps)
    }

    /// Increases change no rate.
    #[inline]
    fn is_at_line_rate(&self) -> bool {
        self.current_rate_bps == self.line_rate_bps && self.target_rate_bps == self.line_rate_bps
    }

    /// Do what was due up to `now_ps`, in its order.
    #[inline]
    fn advance(&mut self, now_ps: u64) {
        while self.next_cut_ps.min(self.next_increase_ps) <= now_ps {
            if self.next_cut_ps <= self.next_increase_ps {
                self.cut_on_schedule(self.next_cut_ps);
            } else if self.is_at_line_rate() {
                self.count_idle_increases(now_ps.min(self.next_cut_ps - 1));
            } else {
                let at_ps = self.next_increase_ps;
                self.count_increase(|own| &mut own.time_stages);
                self.next_increase_ps = at_ps + self.increase_period_ps();
            }
        }
    }

    /// Count the timer's increases up to `now_ps`, which change no rate.
    fn count_idle_increases(&mut self, now_ps: u64) {
        let period_ps = self.increase_period_ps();
        let can_change = self.config.hyper_increase_speedup > 1;
        let count = if can_change { 1 } else { (now_ps - self.next_increase_ps) / period_ps + 1 };
        self.next_increase_ps += count * period_ps;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.time_stages = self.time_stages.saturating_add(count);
    }
}

impl CongestionControl for Dcqcn {
    fn handle_cnp(&mut self, now_ps: u64) {
        self.advance(now_ps);
        let is_first = self.started_ps.is_none();
        if is_first {
            self.start(now_ps);
        }
        if self.config.rate_decrease_period_ps == 0 {
            self.cut_at_once(now_ps, is_first);
        } else {
            self.notify_alpha(now_ps, is_first);
            self.schedule_cut(now_ps);
        }
    }

    #[inline]
    fn handle_sent(&mut self, now_ps: u64, wire_bytes: u32) {
        if self.started_ps.is_none() {
            return;
        }
        self.advance(now_ps);
        if self.config.rate_increase_bytes == 0 {
            return;
        }
        self.sent_bytes += u64::from(wire_bytes);
        loop {
            let stage_bytes = (self.config.rate_increase_bytes / self.speedup()).max(1);
            if self.sent_bytes < stage_bytes {
                return;
            }
            self.sent_bytes -= stage_bytes;
            self.count_increase(|own| &mut own.byte_stages);
        }
    }

    fn handle_ack(&mut self, _now_ps: u64, _acked_bytes: u64, _rtt_ps: Option<u64>) {}

    fn handle_timeout(&mut self, now_ps: u64) {
        self.advance(now_ps);
    }

    #[inline]
    fn poll_timeout(&self) -> Option<u64> {
        let increase_ps = if self.is_at_line_rate() { NEVER_PS } else { self.next_increase_ps };
        let next_ps = self.next_cut_ps.min(increase_ps);
        (next_ps != NEVER_PS).then_some(next_ps)
    }

    #[inline]
    fn rate_bps(&self) -> u64 {
        self.current_rate_bps
    }

    fn rearms_pacer(&self) -> bool {
        self.config.rearms_pacer
    }

    fn window_bytes(&self) -> Option<u64> {
        None
    }

    fn sample(&self, now_ps: u64) -> RateSample {
        let mut alpha = self.alpha;
        if self.started_ps.is_some() {
            alpha.advance(now_ps);
        }
        RateSample {
            current_rate_bps: self.current_rate_bps,
            target_rate_bps: self.target_rate_bps,
            alpha: alpha.value(),
        }
    }
}
