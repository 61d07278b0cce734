//! What holds for every sequence of events.

use crate::profiles::{GBPS, US, mlx5, paper, paper_notifications, swift};
use _native::config::{
    AlphaUpdate, ClampTargetRate, CnpMode, CnpScope, DcqcnConfig, NotificationPointConfig,
    StageCount,
};
use _native::congestion::{CongestionControl, Dcqcn, FlowKey, NotificationPoint, Swift};
use proptest::prelude::*;
use std::collections::HashMap;

/// What happens to a sender next, and how long after the event before.
#[derive(Clone, Copy, Debug)]
enum Event {
    Cnp,
    Sent(u32),
    Ack { bytes: u64, rtt_us: u64 },
    Timeout,
    Nak,
}

fn event() -> impl Strategy<Value = (u64, Event)> {
    let kind = prop_oneof![
        Just(Event::Cnp),
        (64_u32..5_000_000).prop_map(Event::Sent),
        (0_u64..100_000, 1_u64..1_000).prop_map(|(bytes, rtt_us)| Event::Ack { bytes, rtt_us }),
        Just(Event::Timeout),
        Just(Event::Nak),
    ];
    (0_u64..200 * US, kind)
}

fn apply(sender: &mut impl CongestionControl, now_ps: u64, event: Event) {
    match event {
        Event::Cnp => sender.handle_cnp(now_ps),
        Event::Sent(bytes) => sender.handle_sent(now_ps, bytes),
        Event::Ack { bytes, rtt_us } => sender.handle_ack(now_ps, bytes, Some(rtt_us * US)),
        Event::Timeout => sender.handle_retransmission_timeout(now_ps),
        Event::Nak => sender.handle_sequence_nak(now_ps),
    }
}

/// Any combination of the options on which implementations differ.
fn dcqcn() -> impl Strategy<Value = DcqcnConfig> {
    let options = (
        prop_oneof![Just(paper()), Just(mlx5())],
        prop_oneof![Just(AlphaUpdate::OnCnp), Just(AlphaUpdate::Periodic)],
        prop_oneof![Just(StageCount::BeforeCompare), Just(StageCount::AfterCompare)],
        prop_oneof![
            Just(ClampTargetRate::Always),
            Just(ClampTargetRate::AfterIncrease),
            Just(ClampTargetRate::AfterByteIncrease)
        ],
        any::<[bool; 3]>(),
        prop_oneof![Just(0), Just(4 * US), Just(50 * US)],
        0_u64..50,
        (0_u32..=30, 1_u32..4, prop_oneof![Just(1_u32), Just(8)]),
    );
    options.prop_map(
        |(base, alpha_update, stage_count, clamp, flags, period_ps, first_gbps, more)| {
            DcqcnConfig {
                alpha_fraction_bits: more.0,
                hyper_increase_speedup: more.1,
                high_target_divisor: more.2,
                alpha_update,
                stage_count,
                clamp_target_rate: clamp,
                cut_uses_old_alpha: flags[0],
                hyper_increase_multiplies: flags[1],
                hyper_increase_by_timer: flags[2],
                rate_decrease_period_ps: period_ps,
                rate_on_first_cnp_bps: first_gbps * GBPS,
                ..base
            }
        },
    )
}

proptest! {
    #[test]
    fn rates_and_estimates_stay_in_their_ranges(
        config in dcqcn(),
        events in prop::collection::vec(event(), 1..200),
    ) {
        let mut sender = Dcqcn::new(&config, 40 * GBPS);
        let mut now_ps = 0;
        for (gap_ps, event) in events {
            now_ps += gap_ps;
            apply(&mut sender, now_ps, event);
            sender.handle_timeout(now_ps);
            let sample = sender.sample(now_ps);
            prop_assert!((config.min_rate_bps..=40 * GBPS).contains(&sample.current_rate_bps));
            prop_assert!(sample.current_rate_bps <= sample.target_rate_bps);
            prop_assert!(sample.target_rate_bps <= 40 * GBPS);
            prop_assert!((0.0..=1.0).contains(&sample.alpha));
            prop_assert!(sender.poll_timeout().is_none_or(|at_ps| at_ps > now_ps));
        }
    }

    #[test]
    fn being_called_late_changes_nothing(
        config in dcqcn(),
        events in prop::collection::vec(event(), 1..100),
    ) {
        let mut punctual = Dcqcn::new(&config, 40 * GBPS);
        let mut late = punctual.clone();
        let mut now_ps = 0;
        for (gap_ps, event) in events {
            now_ps += gap_ps;
            while let Some(at_ps) = punctual.poll_timeout().filter(|at_ps| *at_ps <= now_ps) {
                punctual.handle_timeout(at_ps);
            }
            apply(&mut punctual, now_ps, event);
            apply(&mut late, now_ps, event);
        }
        punctual.handle_timeout(now_ps);
        late.handle_timeout(now_ps);
        let (punctual, late) = (punctual.sample(now_ps), late.sample(now_ps));
        prop_assert_eq!(punctual.current_rate_bps, late.current_rate_bps);
        prop_assert_eq!(punctual.target_rate_bps, late.target_rate_bps);
        prop_assert!((punctual.alpha - late.alpha).abs() < 1e-9);
    }

    #[test]
    fn windows_stay_in_their_range(events in prop::collection::vec(event(), 1..200)) {
        let mut sender = Swift::new(&swift(), 100 * GBPS);
        let mut now_ps = 0;
        for (gap_ps, event) in events {
            now_ps += gap_ps;
            apply(&mut sender, now_ps, event);
            prop_assert!((0.01..=1000.0).contains(&sender.window_packets()));
            prop_assert!((25e6..=125e6 + 1.0).contains(&sender.target_delay_ps()));
            prop_assert!((1..=100 * GBPS).contains(&sender.rate_bps()));
            prop_assert!(sender.window_bytes().is_some_and(|bytes| bytes >= 1_000));
        }
    }

    #[test]
    fn notifications_of_a_scope_are_an_interval_apart_and_answer_every_mark(
        mode in prop_oneof![
            Just(CnpMode::Immediate), Just(CnpMode::ImmediateAndTrailing), Just(CnpMode::Periodic)
        ],
        marks in prop::collection::vec((0_u64..40 * US, 0_u32..3), 1..200),
    ) {
        let config = NotificationPointConfig { mode, scope: CnpScope::Qp, ..paper_notifications() };
        let mut point = NotificationPoint::new(&config);
        let mut sent: HashMap<u32, Vec<u64>> = HashMap::new();
        let mut last_mark_ps: HashMap<u32, u64> = HashMap::new();
        let mut now_ps = 0;
        for (gap_ps, local_qp) in marks {
            now_ps += gap_ps;
            fire(&mut point, now_ps, &mut sent);
            let flow = FlowKey { local_qp, local_address: 1, remote_address: 2 };
            last_mark_ps.insert(local_qp, now_ps);
            if point.handle_marked(now_ps, flow) {
                sent.entry(local_qp).or_default().push(now_ps);
            }
        }
        fire(&mut point, u64::MAX, &mut sent);
        for (qp, mark_ps) in last_mark_ps {
            let times_ps = &sent[&qp];
            let interval_ps = config.cnp_interval_ps;
            prop_assert!(times_ps.windows(2).all(|pair| pair[1] - pair[0] >= interval_ps));
            let last_ps = times_ps[times_ps.len() - 1];
            let answered_from_ps =
                if mode == CnpMode::Immediate { mark_ps.saturating_sub(interval_ps) } else { mark_ps };
            prop_assert!(last_ps >= answered_from_ps && last_ps <= mark_ps + interval_ps);
        }
    }
}

/// What one interval of a scope is of, as a checker of captures sees it.
fn scope_of(scope: CnpScope, flow: FlowKey) -> (u32, u32, u32) {
    match scope {
        CnpScope::Qp => (flow.local_qp, 0, 0),
        CnpScope::IpPair => (0, flow.local_address, flow.remote_address),
        CnpScope::DestinationIp => (0, 0, flow.remote_address),
        CnpScope::Port => (0, 0, 0),
    }
}

proptest! {
    /// The rule by which Lumina (SIGCOMM 2023) checks adapters: a mark is answered if the last
    /// notification of its scope is longer ago than the interval.
    #[test]
    fn t13_notifications_of_each_scope_are_those_of_the_rule_for_captures(
        scope in prop_oneof![
            Just(CnpScope::Qp), Just(CnpScope::IpPair), Just(CnpScope::DestinationIp), Just(CnpScope::Port)
        ],
        marks in prop::collection::vec((0_u64..60, 0_u32..4, 1_u32..3, 1_u32..4), 1..300),
    ) {
        let mode = CnpMode::Immediate;
        let config = NotificationPointConfig { mode, scope, ..paper_notifications() };
        let mut point = NotificationPoint::new(&config);
        let mut last_ps: HashMap<(u32, u32, u32), u64> = HashMap::new();
        let mut now_ps = 0;
        for (gap_us, local_qp, local_address, remote_address) in marks {
            now_ps += gap_us * US;
            let flow = FlowKey { local_qp, local_address, remote_address };
            let last = last_ps.get(&scope_of(scope, flow));
            let expected = last.is_none_or(|last_ps| now_ps - last_ps > config.cnp_interval_ps);
            if expected {
                last_ps.insert(scope_of(scope, flow), now_ps);
            }
            prop_assert_eq!(point.handle_marked(now_ps, flow), expected);
        }
    }
}

/// Note the notifications that are due up to `until_ps`.
fn fire(point: &mut NotificationPoint, until_ps: u64, sent: &mut HashMap<u32, Vec<u64>>) {
    while let Some(at_ps) = point.poll_timeout().filter(|at_ps| *at_ps <= until_ps) {
        while let Some(flow) = point.handle_timeout(at_ps) {
            sent.entry(flow.local_qp).or_default().push(at_ps);
        }
    }
}
