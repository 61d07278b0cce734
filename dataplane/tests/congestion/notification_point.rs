//! When a receiver notifies: modes, scopes and the interval's bounds.

use crate::profiles::{US, paper_notifications};
use _native::config::{CnpMode, CnpScope, NotificationPointConfig};
use _native::congestion::{FlowKey, NotificationPoint};

fn flow(local_qp: u32, remote_address: u32) -> FlowKey {
    FlowKey { local_qp, local_address: 1, remote_address }
}

fn with_mode(mode: CnpMode) -> NotificationPoint {
    NotificationPoint::new(&NotificationPointConfig { mode, ..paper_notifications() })
}

fn with_scope(scope: CnpScope) -> NotificationPoint {
    let mode = CnpMode::Immediate;
    NotificationPoint::new(&NotificationPointConfig { scope, mode, ..paper_notifications() })
}

/// Times of all notifications when marks of one flow come at `marks_ps`.
fn notifications(mut point: NotificationPoint, marks_ps: &[u64]) -> Vec<u64> {
    let mut sent_ps = Vec::new();
    let fire = |point: &mut NotificationPoint, until_ps: u64, sent_ps: &mut Vec<u64>| {
        while let Some(at_ps) = point.poll_timeout().filter(|at_ps| *at_ps <= until_ps) {
            while point.handle_timeout(at_ps).is_some() {
                sent_ps.push(at_ps);
            }
        }
    };
    for mark_ps in marks_ps {
        fire(&mut point, *mark_ps, &mut sent_ps);
        if point.handle_marked(*mark_ps, flow(1, 2)) {
            sent_ps.push(*mark_ps);
        }
    }
    fire(&mut point, u64::MAX, &mut sent_ps);
    sent_ps
}

#[test]
fn a_mark_notifies_at_once_and_marks_in_the_interval_once_more_at_its_end() {
    let marks_ps = [10 * US, 20 * US, 30 * US, 200 * US];
    let sent_ps = notifications(with_mode(CnpMode::ImmediateAndTrailing), &marks_ps);
    assert_eq!(sent_ps, [10 * US, 60 * US, 200 * US]);
}

#[test]
fn steady_marks_notify_once_per_interval() {
    let marks_ps: Vec<u64> = (0..1000).map(|k| k * US).collect();
    let sent_ps = notifications(with_mode(CnpMode::ImmediateAndTrailing), &marks_ps);
    assert_eq!(sent_ps, (0..=20).map(|k| k * 50 * US).collect::<Vec<u64>>());
}

#[test]
fn an_interval_opened_by_its_trailing_notification_holds_marks_back() {
    let marks_ps = [0, 10 * US, 60 * US];
    let sent_ps = notifications(with_mode(CnpMode::ImmediateAndTrailing), &marks_ps);
    assert_eq!(sent_ps, [0, 50 * US, 100 * US]);
}

#[test]
fn a_late_call_loses_no_mark() {
    let mut point = with_mode(CnpMode::ImmediateAndTrailing);
    assert!(point.handle_marked(0, flow(1, 2)));
    assert!(!point.handle_marked(10 * US, flow(1, 2)));
    assert!(!point.handle_marked(55 * US, flow(1, 2)), "the trailing one is still to come");
    assert_eq!(point.handle_timeout(56 * US), Some(flow(1, 2)));
    assert_eq!(point.handle_timeout(56 * US), None);
    assert_eq!(point.poll_timeout(), Some(100 * US));
}

#[test]
fn an_immediate_notifier_forgets_marks_in_the_interval() {
    let marks_ps = [0, 10 * US, 50 * US, 50 * US + 1];
    assert_eq!(notifications(with_mode(CnpMode::Immediate), &marks_ps), [0, 50 * US + 1]);
}

#[test]
fn a_periodic_notifier_answers_once_at_the_end_of_each_period_with_marks() {
    let marks_ps: Vec<u64> = (1..=400).map(|k| k * US).collect();
    let sent_ps = notifications(with_mode(CnpMode::Periodic), &marks_ps);
    assert!((8..=9).contains(&sent_ps.len()), "{sent_ps:?}");
    assert!(sent_ps[0] <= 51 * US);
    assert!(sent_ps.windows(2).all(|pair| pair[1] - pair[0] == 50 * US));
    let sparse_ps = notifications(with_mode(CnpMode::Periodic), &[10 * US, 1000 * US]);
    assert_eq!(sparse_ps.len(), 2);
    assert!(sparse_ps[0] - 10 * US <= 50 * US && sparse_ps[1] - 1000 * US <= 50 * US);
}

#[test]
fn t13_the_scope_says_which_flows_share_an_interval() {
    let flows = [flow(1, 2), flow(2, 2), flow(3, 3), flow(1, 2)];
    let sent = |scope| {
        let mut point = with_scope(scope);
        flows.iter().filter(|flow| point.handle_marked(US, **flow)).count()
    };
    assert_eq!(sent(CnpScope::Qp), 3);
    assert_eq!(sent(CnpScope::IpPair), 2);
    assert_eq!(sent(CnpScope::DestinationIp), 2);
    assert_eq!(sent(CnpScope::Port), 1);
}

#[test]
fn scopes_of_one_destination_span_local_addresses() {
    let from = |local_address| FlowKey { local_qp: 1, local_address, remote_address: 9 };
    let mut by_destination = with_scope(CnpScope::DestinationIp);
    assert!(by_destination.handle_marked(0, from(1)) && !by_destination.handle_marked(0, from(2)));
    let mut by_pair = with_scope(CnpScope::IpPair);
    assert!(by_pair.handle_marked(0, from(1)) && by_pair.handle_marked(0, from(2)));
}

#[test]
fn a_trailing_notification_is_about_the_flow_marked_last() {
    let config = NotificationPointConfig { scope: CnpScope::Port, ..paper_notifications() };
    let mut point = NotificationPoint::new(&config);
    assert!(point.handle_marked(0, flow(1, 2)));
    assert!(!point.handle_marked(US, flow(2, 3)));
    assert!(!point.handle_marked(2 * US, flow(3, 4)));
    assert_eq!(point.handle_timeout(50 * US), Some(flow(3, 4)));
}

#[test]
fn no_interval_notifies_of_every_mark() {
    let config = NotificationPointConfig { cnp_interval_ps: 0, ..paper_notifications() };
    let mut point = NotificationPoint::new(&config);
    assert!((0..5).all(|_| point.handle_marked(7, flow(1, 2))));
}

#[test]
fn a_sequence_error_notifies_only_where_so_chosen() {
    let mut silent = NotificationPoint::new(&paper_notifications());
    assert!(!silent.handle_sequence_error(0, flow(1, 2)));
    let config = NotificationPointConfig { cnp_on_nak: true, ..paper_notifications() };
    let mut point = NotificationPoint::new(&config);
    assert!(point.handle_marked(0, flow(1, 2)));
    assert!(point.handle_sequence_error(US, flow(1, 2)), "the interval does not hold it back");
}

#[test]
fn a_disabled_point_is_silent() {
    let config =
        NotificationPointConfig { enabled: false, cnp_on_nak: true, ..paper_notifications() };
    let mut point = NotificationPoint::new(&config);
    assert!(!point.handle_marked(0, flow(1, 2)) && !point.handle_sequence_error(0, flow(1, 2)));
    assert_eq!(point.poll_timeout(), None);
}
