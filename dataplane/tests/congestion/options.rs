//! One rule per option and per invariant of the reaction point.

use crate::profiles::{GBPS, US, mlx5, paper};
use _native::config::{ClampTargetRate, CongestionControlConfig, DcqcnConfig, StageCount};
use _native::congestion::{CongestionControl, Controller, Dcqcn};

fn by_time_only() -> DcqcnConfig {
    DcqcnConfig { rate_increase_bytes: 0, ..paper() }
}

#[test]
fn nothing_runs_before_the_first_notification() {
    let mut sender = Dcqcn::new(&paper(), 40 * GBPS);
    sender.handle_sent(5 * US, 1_000_000_000);
    assert_eq!((sender.rate_bps(), sender.poll_timeout()), (40 * GBPS, None));
    assert_eq!(sender.sample(1_000 * US).alpha, 1.0);
}

#[test]
fn no_timer_is_asked_for_at_the_line_rate() {
    let mut sender = Dcqcn::new(&by_time_only(), 40 * GBPS);
    sender.handle_cnp(0);
    let mut timeouts = 0;
    while let Some(at_ps) = sender.poll_timeout() {
        sender.handle_timeout(at_ps);
        timeouts += 1;
        assert!(timeouts < 100, "recovery must end");
    }
    assert_eq!(sender.rate_bps(), 40 * GBPS);
}

#[test]
fn a_late_call_does_what_was_due_in_its_order() {
    let mut punctual = Dcqcn::new(&by_time_only(), 40 * GBPS);
    let mut late = punctual.clone();
    punctual.handle_cnp(0);
    late.handle_cnp(0);
    (1..=7).for_each(|k| punctual.handle_timeout(k * 55 * US));
    late.handle_timeout(7 * 55 * US + 3);
    assert_eq!(late.sample(400 * US), punctual.sample(400 * US));
    assert_eq!(late.poll_timeout(), punctual.poll_timeout());
}

#[test]
fn a_notification_restarts_the_increase_timer() {
    let mut sender = Dcqcn::new(&paper(), 40 * GBPS);
    sender.handle_cnp(0);
    sender.handle_cnp(50 * US);
    assert_eq!(sender.poll_timeout(), Some(105 * US));
}

#[test]
fn the_byte_counter_increases_without_a_timer() {
    let config = DcqcnConfig { rate_increase_period_ps: 0, ..paper() };
    let mut sender = Dcqcn::new(&config, 40 * GBPS);
    sender.handle_cnp(0);
    assert_eq!(sender.poll_timeout(), None);
    sender.handle_sent(US, 9_999_999);
    assert_eq!(sender.rate_bps(), 20 * GBPS);
    sender.handle_sent(2 * US, 1);
    assert_eq!(sender.rate_bps(), 30 * GBPS);
}

#[test]
fn without_a_byte_counter_the_timer_may_lead_to_hyper_increase_alone() {
    let config = DcqcnConfig {
        fast_recovery_stages: 1,
        stage_count: StageCount::AfterCompare,
        rate_increase_bytes: 0,
        hyper_increase_by_timer: true,
        hyper_increase_multiplies: false,
        ..paper()
    };
    let mut sender = Dcqcn::new(&config, 400 * GBPS).with_rates(20 * GBPS, 20 * GBPS);
    sender.handle_cnp(0);
    let mut steps_bps = [0, 40_000_000, 200_000_000, 200_000_000].into_iter();
    let mut target_bps = 20 * GBPS;
    for (period, step_bps) in (1..).zip(&mut steps_bps) {
        sender.handle_timeout(period * 55 * US);
        target_bps += step_bps;
        assert_eq!(sender.sample(period * 55 * US).target_rate_bps, target_bps);
    }
}

#[test]
fn hyper_increase_needs_both_counters_beyond_recovery() {
    let config = DcqcnConfig { fast_recovery_stages: 1, ..paper() };
    let mut sender = Dcqcn::new(&config, 400 * GBPS).with_rates(20 * GBPS, 20 * GBPS);
    sender.handle_cnp(0);
    (1..=3).for_each(|_| sender.handle_sent(US, 10_000_000));
    let target_bps = |sender: &Dcqcn, at_ps| sender.sample(at_ps).target_rate_bps;
    let after_bytes_bps = target_bps(&sender, US);
    assert_eq!(after_bytes_bps, 20 * GBPS + 3 * 40_000_000, "additive: the timer is behind");
    sender.handle_timeout(55 * US);
    sender.handle_timeout(110 * US);
    assert_eq!(target_bps(&sender, 110 * US), after_bytes_bps + 40_000_000 + 200_000_000);
    sender.handle_timeout(165 * US);
    assert_eq!(target_bps(&sender, 165 * US), after_bytes_bps + 240_000_000 + 400_000_000);
}

#[test]
fn a_cut_keeps_at_least_the_minimum_share() {
    let config = DcqcnConfig { min_decrease_ratio: 0.9, ..paper() };
    let mut sender = Dcqcn::new(&config, 40 * GBPS);
    sender.handle_cnp(0);
    assert_eq!(sender.rate_bps(), 36 * GBPS);
}

#[test]
fn rates_stay_between_the_minimum_and_the_line() {
    let mut sender = Dcqcn::new(&paper(), 40 * GBPS);
    (0..100).for_each(|k| sender.handle_cnp(k));
    assert_eq!(sender.rate_bps(), 10_000_000);
    sender.handle_timeout(1_000_000 * US);
    assert_eq!(sender.rate_bps(), 40 * GBPS);
}

#[test]
fn the_first_notification_may_set_the_rate() {
    let config = DcqcnConfig { rate_on_first_cnp_bps: 10 * GBPS, ..mlx5() };
    let mut sender = Dcqcn::new(&config, 100 * GBPS);
    sender.handle_cnp(0);
    assert_eq!(sender.rate_bps(), 10 * GBPS);
    assert_eq!(sender.sample(0).target_rate_bps, 10 * GBPS);
    sender.handle_timeout(4 * US);
    let second_cut_bps = sender.rate_bps();
    assert!(second_cut_bps < 6 * GBPS, "its cut comes at the end of the period");
}

#[test]
fn without_a_notification_in_its_period_no_cut_comes() {
    let mut sender = Dcqcn::new(&mlx5(), 100 * GBPS);
    sender.handle_cnp(0);
    sender.handle_timeout(4 * US);
    let cut_bps = sender.rate_bps();
    sender.handle_timeout(40 * US);
    assert_eq!(sender.rate_bps(), cut_bps);
}

#[test]
fn the_target_is_clamped_only_after_an_increase_where_so_chosen() {
    let target_after_two_cuts_bps = |clamp_target_rate, between: fn(&mut Dcqcn)| {
        let config = DcqcnConfig { clamp_target_rate, ..paper() };
        let mut sender = Dcqcn::new(&config, 40 * GBPS);
        sender.handle_cnp(0);
        between(&mut sender);
        sender.handle_cnp(60 * US);
        sender.sample(60 * US).target_rate_bps / GBPS
    };
    let tick: fn(&mut Dcqcn) = |sender| sender.handle_timeout(55 * US);
    let bytes: fn(&mut Dcqcn) = |sender| sender.handle_sent(US, 10_000_000);
    use ClampTargetRate::{AfterByteIncrease, AfterIncrease, Always};
    assert_eq!(target_after_two_cuts_bps(Always, tick), 30);
    assert_eq!(target_after_two_cuts_bps(AfterIncrease, tick), 30);
    assert_eq!(target_after_two_cuts_bps(AfterByteIncrease, tick), 40);
    assert_eq!(target_after_two_cuts_bps(AfterByteIncrease, bytes), 35);
    let without_timer =
        DcqcnConfig { rate_increase_period_ps: 0, clamp_target_rate: AfterIncrease, ..paper() };
    let mut sender = Dcqcn::new(&without_timer, 40 * GBPS);
    sender.handle_cnp(0);
    sender.handle_cnp(60 * US);
    assert_eq!(sender.sample(60 * US).target_rate_bps, 40 * GBPS);
}

#[test]
fn a_cut_lowers_the_rate_by_the_chosen_share_of_alpha() {
    let after_cut = |decrease_alpha_ratio| {
        let config = DcqcnConfig { decrease_alpha_ratio, min_decrease_ratio: 0.0, ..paper() };
        let mut sender = Dcqcn::new(&config, 40 * GBPS);
        sender.handle_cnp(0);
        sender.rate_bps()
    };
    // rpg_gd 11, 12 and 13.
    assert_eq!([0.5, 0.25, 0.125].map(after_cut), [20 * GBPS, 30 * GBPS, 35 * GBPS]);
}

#[test]
fn a_sender_starts_at_its_maximum_rate_and_never_exceeds_it() {
    let config = DcqcnConfig { max_rate_bps: 10 * GBPS, ..by_time_only() };
    let mut sender = Dcqcn::new(&config, 40 * GBPS);
    assert_eq!(sender.rate_bps(), 10 * GBPS);
    sender.handle_cnp(0);
    sender.handle_timeout(1_000_000 * US);
    assert_eq!(sender.rate_bps(), 10 * GBPS);
    assert_eq!(Dcqcn::new(&config, GBPS).rate_bps(), GBPS);
}

#[test]
fn hyper_increase_may_run_timer_and_byte_counter_faster() {
    let config = DcqcnConfig {
        fast_recovery_stages: 1,
        hyper_increase_speedup: 2,
        stage_count: StageCount::AfterCompare,
        ..paper()
    };
    let mut sender = Dcqcn::new(&config, 400 * GBPS).with_rates(20 * GBPS, 20 * GBPS);
    sender.handle_cnp(0);
    sender.handle_sent(US, 20_000_000);
    // The timer is behind: its second event is 55 us after the first, the third half of that.
    let mut times_us = Vec::new();
    for _ in 0..4 {
        let at_ps = sender.poll_timeout().expect("below the line rate");
        times_us.push(at_ps as f64 / US as f64);
        sender.handle_timeout(at_ps);
    }
    assert_eq!(times_us, [55.0, 110.0, 137.5, 165.0]);
    let before_bps = sender.sample(165 * US).target_rate_bps;
    sender.handle_sent(166 * US, 5_000_000);
    assert_eq!(sender.sample(166 * US).target_rate_bps, before_bps + 200_000_000);
}

#[test]
fn a_target_far_above_the_rate_may_be_lowered_at_the_first_increase() {
    let target_after = |high_target_divisor, current_bps| {
        let clamp_target_rate = ClampTargetRate::AfterIncrease;
        let config = DcqcnConfig { high_target_divisor, clamp_target_rate, ..by_time_only() };
        let mut sender = Dcqcn::new(&config, 400 * GBPS).with_rates(2 * current_bps, 200 * GBPS);
        sender.handle_cnp(0);
        sender.handle_timeout(55 * US);
        sender.sample(55 * US).target_rate_bps / GBPS
    };
    assert_eq!(target_after(8, 10 * GBPS), 25);
    assert_eq!(target_after(8, 30 * GBPS), 200);
    assert_eq!(target_after(1, 10 * GBPS), 200);
}

#[test]
fn a_controller_is_the_configured_algorithm() {
    let fixed = CongestionControlConfig::FixedRate { rate_bps: Some(7) };
    assert_eq!(Controller::new(&fixed, 100).rate_bps(), 7);
    let mut dcqcn = Controller::new(&CongestionControlConfig::Dcqcn(paper()), 40 * GBPS);
    dcqcn.handle_cnp(0);
    assert_eq!(dcqcn.rate_bps(), 20 * GBPS);
}
