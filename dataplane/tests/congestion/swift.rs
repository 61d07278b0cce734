//! Swift's window, rule by rule. Source: Kumar et al., SIGCOMM 2020, algorithm 1.

use crate::profiles::{GBPS, US, swift};
use _native::config::{CongestionControlConfig, SwiftConfig};
use _native::congestion::{CongestionControl, Controller, Swift};

/// No scaling of the target, which is 25 us.
fn plain() -> SwiftConfig {
    SwiftConfig { flow_scaling_range_ps: 0, ..swift() }
}

fn flow(config: &SwiftConfig) -> Swift {
    Swift::new(config, 100 * GBPS)
}

fn assert_close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-9 * expected, "{actual} is not {expected}");
}

#[test]
fn below_the_target_the_window_grows_by_a_constant_per_round_trip() {
    let mut flow = flow(&plain());
    assert_close(flow.window_packets(), 10.0);
    flow.handle_ack(US, 10_000, Some(20 * US));
    assert_close(flow.window_packets(), 11.0);
}

#[test]
fn a_window_below_a_packet_grows_by_the_constant_per_packet() {
    let config = SwiftConfig { initial_window_packets: 0.25, ..plain() };
    let mut flow = flow(&config);
    flow.handle_ack(US, 1_000, Some(20 * US));
    assert_close(flow.window_packets(), 1.25);
}

#[test]
fn above_the_target_the_window_shrinks_by_its_excess_once_per_round_trip() {
    let mut flow = flow(&plain());
    flow.handle_ack(100 * US, 1_000, Some(50 * US));
    assert_close(flow.window_packets(), 10.0 * (1.0 - 0.8 * 0.5));
    flow.handle_ack(149 * US, 1_000, Some(50 * US));
    assert_close(flow.window_packets(), 6.0);
    flow.handle_ack(150 * US, 1_000, Some(50 * US));
    assert_close(flow.window_packets(), 3.6);
}

#[test]
fn no_decrease_exceeds_the_largest() {
    let mut flow = flow(&plain());
    flow.handle_ack(US, 1_000, Some(10_000 * US));
    assert_close(flow.window_packets(), 5.0);
}

#[test]
fn a_loss_takes_the_largest_decrease_and_repeated_timeouts_the_whole_window() {
    let mut flow = flow(&plain());
    flow.handle_sequence_nak(US);
    assert_close(flow.window_packets(), 5.0);
    flow.handle_retransmission_timeout(2 * US);
    assert_close(flow.window_packets(), 5.0);
    (0..4).for_each(|k| flow.handle_retransmission_timeout((3 + k) * US));
    assert_close(flow.window_packets(), 0.01);
}

#[test]
fn an_acknowledgement_ends_a_row_of_timeouts() {
    let mut flow = flow(&plain());
    (0..4).for_each(|k| flow.handle_retransmission_timeout(k));
    flow.handle_ack(US, 1_000, None);
    flow.handle_retransmission_timeout(2 * US);
    assert_close(flow.window_packets(), 5.0);
}

#[test]
fn the_target_rises_as_the_window_falls_within_the_scaling_range() {
    let target_us = |initial_window_packets| {
        let flow = flow(&SwiftConfig { initial_window_packets, ..swift() });
        flow.target_delay_ps() / US as f64
    };
    assert_close(target_us(0.05), 25.0 + 100.0);
    assert_close(target_us(0.1), 25.0 + 100.0);
    assert_close(target_us(100.0), 25.0);
    assert_close(target_us(400.0), 25.0);
    let slope = 100.0 / (1.0 / 0.1_f64.sqrt() - 0.1);
    assert_close(target_us(4.0), 25.0 + slope * (0.5 - 0.1));
}

#[test]
fn a_window_of_packets_is_sent_at_line_rate_and_less_than_one_is_paced() {
    let mut flow = flow(&plain());
    assert_eq!((flow.window_bytes(), flow.rate_bps()), (Some(10_000), 100 * GBPS));
    (0..5).for_each(|k| flow.handle_retransmission_timeout(k));
    flow.handle_ack(US, 0, Some(24 * US));
    assert_eq!(flow.window_bytes(), Some(1_000));
    assert_eq!(flow.rate_bps(), 80 * 1_000_000_000_000 / (24 * US), "0.01 packets per 24 us");
}

#[test]
fn notifications_change_nothing() {
    let config = CongestionControlConfig::Swift(swift());
    let mut controller = Controller::new(&config, 100 * GBPS);
    let before = controller.sample(0);
    controller.handle_cnp(US);
    assert_eq!((controller.sample(US), controller.poll_timeout()), (before, None));
}
