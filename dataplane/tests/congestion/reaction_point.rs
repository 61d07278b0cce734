//! Deterministic vectors of a single reaction point, computed independently of this code: T5, which is
//! V-a to V-e.

use crate::profiles::{GBPS, US, mlx5, paper};
use _native::config::{DcqcnConfig, StageCount};
use _native::congestion::{CongestionControl, Dcqcn};

/// Five steps of fast recovery, no byte counter.
fn five_steps() -> DcqcnConfig {
    DcqcnConfig { stage_count: StageCount::AfterCompare, rate_increase_bytes: 0, ..paper() }
}

/// Rates in Gb/s after each of `count` events of the increase timer.
fn recover(sender: &mut Dcqcn, count: usize) -> Vec<f64> {
    let next = |sender: &mut Dcqcn| {
        let at_ps = sender.poll_timeout().expect("the sender recovers");
        sender.handle_timeout(at_ps);
        sender.rate_bps() as f64 / GBPS as f64
    };
    (0..count).map(|_| next(sender)).collect()
}

fn assert_close(actual: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(actual.len(), expected.len());
    for (actual, expected) in actual.iter().zip(expected) {
        assert!((actual - expected).abs() <= tolerance, "{actual} is not {expected}");
    }
}

#[test]
fn t5_v_a_one_notification_halves_the_rate_and_recovery_doubles_back() {
    let mut sender = Dcqcn::new(&five_steps(), 40 * GBPS);
    sender.handle_cnp(0);
    let cut = sender.sample(0);
    assert_eq!((cut.target_rate_bps, cut.current_rate_bps), (40 * GBPS, 20 * GBPS));
    assert_eq!(cut.alpha, 1.0);
    let expected = [30.0, 35.0, 37.5, 38.75, 39.375, 39.6875, 39.84375, 39.921875];
    assert_close(&recover(&mut sender, 8), &expected, 1e-8);
    assert_eq!(sender.sample(8 * 55 * US).target_rate_bps, 40 * GBPS);
}

#[test]
fn t5_v_b_two_notifications_quarter_the_rate_and_additive_increase_follows_recovery() {
    let mut sender = Dcqcn::new(&five_steps(), 100 * GBPS).with_rates(40 * GBPS, 40 * GBPS);
    sender.handle_cnp(0);
    sender.handle_cnp(0);
    let cut = sender.sample(0);
    assert_eq!((cut.target_rate_bps, cut.current_rate_bps), (20 * GBPS, 10 * GBPS));
    let expected = [
        15.0,
        17.5,
        18.75,
        19.375,
        19.6875,
        19.86375,
        19.971875,
        20.0459375,
        20.10296875,
        20.151484375,
    ];
    assert_close(&recover(&mut sender, 10), &expected, 1e-8);
    assert_eq!(sender.sample(550 * US).target_rate_bps, 20 * GBPS + 200_000_000);
}

#[test]
fn t5_v_b_the_estimate_decays_by_g_in_each_silent_period() {
    let mut sender = Dcqcn::new(&five_steps(), 100 * GBPS);
    sender.handle_cnp(0);
    sender.handle_cnp(0);
    let alpha = |periods: u64| sender.sample(periods * 55 * US).alpha;
    assert_close(&[alpha(1), alpha(2), alpha(10)], &[0.996094, 0.992203, 0.961617], 5e-7);
    assert_eq!(sender.sample(55 * US - 1).alpha, 1.0);
}

/// The estimate just after a notification, with one every `period_ps`.
fn settled_alpha(period_ps: u64) -> f64 {
    let mut sender = Dcqcn::new(&five_steps(), 40 * GBPS);
    (0..20_000).for_each(|k| sender.handle_cnp(k * period_ps));
    sender.sample(19_999 * period_ps).alpha
}

#[test]
fn t5_v_c_regular_notifications_settle_the_estimate() {
    let settled = [100, 300, 340].map(|period_us| settled_alpha(period_us * US));
    assert_close(&settled, &[0.50097847, 0.16830170, 0.14453999], 5e-9);
    assert_close(&[settled_alpha(50 * US)], &[1.0], 1e-12);
}

/// The rate in Gb/s just before a notification, with one every 340 us.
fn settled_rate(config: &DcqcnConfig, line_rate_bps: u64) -> f64 {
    let mut sender = Dcqcn::new(config, line_rate_bps);
    for k in 0..40_000 {
        sender.handle_cnp(k * 340 * US);
    }
    sender.handle_timeout(40_000 * 340 * US - 1);
    sender.rate_bps() as f64 / GBPS as f64
}

#[test]
fn t5_v_d_regular_notifications_settle_the_rate_where_order_and_recovery_steps_say() {
    let old_alpha = five_steps();
    let new_alpha = DcqcnConfig { cut_uses_old_alpha: false, ..old_alpha };
    let four_steps = |config| DcqcnConfig { stage_count: StageCount::BeforeCompare, ..config };
    let rates = [settled_rate(&old_alpha, 400 * GBPS), settled_rate(&new_alpha, 400 * GBPS)];
    assert_close(&rates, &[18.132207, 17.711362], 2e-6);
    let rates =
        [four_steps(old_alpha), four_steps(new_alpha)].map(|c| settled_rate(&c, 400 * GBPS));
    assert_close(&rates, &[45.33, 44.28], 5e-3);
}

/// Rates in Mb/s after cuts, with a notification in every period of 4 us.
#[test]
fn t5_v_e_cuts_of_mlx5_come_once_per_period_and_keep_half_the_rate() {
    let frozen = DcqcnConfig { g: 0.0, ..mlx5() };
    let mut sender = Dcqcn::new(&frozen, 100 * GBPS);
    let mut rates = Vec::new();
    for period in 0..6 {
        sender.handle_cnp(4 * US * period);
        sender.handle_cnp(4 * US * period + US);
        assert_eq!(sender.poll_timeout(), Some(4 * US * (period + 1)));
        sender.handle_timeout(4 * US * (period + 1));
        rates.push(sender.rate_bps() as f64 / 1e6);
    }
    let expected = [50048.828, 25048.852, 12536.657, 6274.450, 3140.289, 1571.678];
    assert_close(&rates, &expected, 1e-3);
}

#[test]
fn t5_v_e_the_estimate_of_mlx5_halves_in_141_microseconds() {
    let mut sender = Dcqcn::new(&mlx5(), 100 * GBPS);
    sender.handle_cnp(0);
    let alpha = |us: u64| sender.sample(us * US).alpha / (1023.0 / 1024.0);
    assert!(alpha(141) > 0.5 && alpha(142) < 0.5);
}

/// mlx5 with an estimate in 1/1024, updated once in each period of the cuts.
fn integers() -> DcqcnConfig {
    DcqcnConfig { alpha_fraction_bits: 10, alpha_update_period_ps: 4 * US, ..mlx5() }
}

/// With a notification in each period the integer estimate stays at 1023: 1019 x 1023 / 1024 is 1018,
/// and 5 are added. So every cut keeps 1 - 1023 / 2048 of the rate, without the minimum of one half.
#[test]
fn t5_v_e_integer_estimate_cuts_by_1023_of_2048_at_every_notification() {
    let mut sender = Dcqcn::new(&integers(), 100 * GBPS);
    sender.handle_cnp(0);
    let mut rates = Vec::new();
    for period in 0..6 {
        sender.handle_cnp(4 * US * period + 2 * US);
        sender.handle_timeout(4 * US * (period + 1));
        assert_eq!(sender.sample(4 * US * (period + 1)).alpha, 1023.0 / 1024.0);
        rates.push(sender.rate_bps() as f64 / 1e6);
    }
    let expected = [50048.828, 25048.852, 12536.657, 6274.450, 3140.289, 1571.678];
    assert_close(&rates, &expected, 5e-4);
}

#[test]
fn t5_v_e_integer_estimate_is_rounded_down_in_each_silent_period() {
    let mut sender = Dcqcn::new(&integers(), 100 * GBPS);
    sender.handle_cnp(0);
    let alpha = |periods: u64| sender.sample(4 * US * periods).alpha * 1024.0;
    let steps = [0, 1, 2, 10, 100, 200, 500];
    assert_eq!(steps.map(alpha), [1023.0, 1018.0, 1013.0, 973.0, 590.0, 329.0, 0.0]);
    assert_eq!(alpha(1_000_000_000), 0.0);
}

/// The estimate in 1/1024 after growing from 0 with a notification in each of 3000 periods.
fn grown_alpha(alpha_fraction_bits: u32) -> f64 {
    let config = DcqcnConfig { initial_alpha: 0.0, alpha_fraction_bits, ..integers() };
    let mut sender = Dcqcn::new(&config, 100 * GBPS);
    (0..3000).for_each(|period| sender.handle_cnp(4 * US * period));
    sender.sample(4 * US * 3000).alpha * 1024.0
}

#[test]
fn t5_v_e_integer_estimate_sticks_at_820_and_sixteen_binary_digits_do_not() {
    assert_eq!(grown_alpha(10), 820.0);
    assert!(grown_alpha(16) > 1020.0, "{}", grown_alpha(16));
    assert!((grown_alpha(30) - grown_alpha(0)).abs() < 0.01);
}

#[test]
fn t5_v_e_the_number_of_periods_at_a_time_does_not_matter() {
    let mut often = Dcqcn::new(&integers(), 100 * GBPS);
    often.handle_cnp(0);
    let seldom = often.clone();
    (1..=300).for_each(|period| often.handle_timeout(4 * US * period));
    assert_eq!(often.sample(1200 * US).alpha, seldom.sample(1200 * US).alpha);
}
