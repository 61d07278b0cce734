//! Rates that a textbook gives, and fairness while flows come and go.

use super::*;
use crate::random::Random;

const GBPS: u64 = 1_000_000_000;

fn hops(directions: &[u32]) -> Vec<Hop> {
    directions.iter().map(|&direction| Hop { direction, fraction: 1.0 }).collect()
}

/// Links of these capacities, Gb/s, with active flows over these directions; the rates, Gb/s.
fn rates(capacities: &[u64], flows: &[&[u32]]) -> Vec<f64> {
    let mut sharing = Sharing::new(capacities.iter().map(|c| c * GBPS));
    for flow in flows {
        let flow = sharing.add_flow(&hops(flow), u64::MAX);
        sharing.activate(flow);
    }
    sharing.share(&mut Vec::new());
    (0..flows.len() as u32).map(|flow| sharing.rate_bps(flow) / GBPS as f64).collect()
}

#[test]
fn flows_on_one_link_share_it_evenly() {
    assert_eq!(rates(&[90], &[&[0], &[0], &[0]]), [30.0, 30.0, 30.0]);
}

#[test]
fn what_a_flow_can_t_use_the_others_get() {
    // The textbook's line: a long flow, and one on each of its links.
    assert_eq!(rates(&[10, 40], &[&[0, 1], &[0], &[1]]), [5.0, 5.0, 35.0]);
}

#[test]
fn a_limited_flow_leaves_the_rest() {
    let mut sharing = Sharing::new([100 * GBPS]);
    for limit_gbps in [10, 1000] {
        let flow = sharing.add_flow(&hops(&[0]), limit_gbps * GBPS);
        sharing.activate(flow);
    }
    sharing.share(&mut Vec::new());
    assert_eq!([sharing.rate_bps(0), sharing.rate_bps(1)], [10e9, 90e9]);
}

#[test]
fn a_flow_over_two_paths_takes_half_of_its_rate_on_each() {
    let mut sharing = Sharing::new([100 * GBPS, 30 * GBPS, 30 * GBPS]);
    let spread = |direction| Hop { direction, fraction: 0.5 };
    let flow = sharing.add_flow(&[hops(&[0])[0], spread(1), spread(2)], u64::MAX);
    let alone = Activation { rate_bps: 60e9, least_bps: 60e9, is_final: true };
    assert_eq!(sharing.activate(flow), alone);
}

#[test]
fn a_flow_alone_has_its_peak_at_once_and_nobody_is_looked_at() {
    let mut sharing = Sharing::new([10 * GBPS, 10 * GBPS]);
    let flows = [0, 1].map(|link| sharing.add_flow(&hops(&[link]), u64::MAX));
    let alone = Activation { rate_bps: 10e9, least_bps: 10e9, is_final: true };
    assert_eq!(flows.map(|flow| sharing.activate(flow)), [alone; 2]);
    assert_eq!(sharing.share(&mut Vec::new()), 0);
    assert!(!sharing.deactivate(flows[0]));
}

/// No link carries more than it can.
fn assert_possible(sharing: &Sharing, active: &[u32]) {
    let mut carried = vec![0.0; sharing.links.len()];
    for &flow in active {
        for (direction, fraction) in sharing.hops(flow) {
            carried[direction as usize] += fraction * sharing.rate_bps(flow);
        }
    }
    for (link, carried) in sharing.links.iter().zip(carried) {
        assert!(carried <= link.capacity_bps as f64 * (1.0 + 1e-9));
    }
}

/// No link carries too much, and every flow has its peak or a full link on which no other has more.
fn assert_fair(sharing: &Sharing, active: &[u32]) {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs();
    let mut carried = vec![0.0; sharing.links.len()];
    let mut most = vec![0.0_f64; sharing.links.len()];
    for &flow in active {
        for (direction, fraction) in sharing.hops(flow) {
            carried[direction as usize] += fraction * sharing.rate_bps(flow);
            let most = &mut most[direction as usize];
            *most = most.max(sharing.rate_bps(flow));
        }
    }
    let full = |d: usize| near(carried[d], sharing.links[d].capacity_bps as f64);
    assert_possible(sharing, active);
    for &flow in active {
        let rate_bps = sharing.rate_bps(flow);
        let is_held = |(d, _): (u32, f64)| full(d as usize) && near(rate_bps, most[d as usize]);
        let has_peak = near(rate_bps, sharing.peak_bps(flow) as f64);
        assert!(has_peak || sharing.hops(flow).any(is_held), "flow {flow} could have more");
    }
}

#[test]
fn rates_stay_fair_while_flows_come_and_go() {
    let mut random = Random::new(1, 1);
    let mut below = |n: u64| random.next_u64() % n;
    let mut sharing = Sharing::new((0..20).map(|link| (10 + link % 3) * GBPS));
    for _ in 0..200 {
        let mut path: Vec<u32> = (0..1 + below(4)).map(|_| below(20) as u32).collect();
        path.sort_unstable();
        path.dedup();
        let limit_bps = if below(4) == 0 { below(3 * GBPS) } else { u64::MAX };
        sharing.add_flow(&hops(&path), limit_bps);
    }
    let mut active: Vec<u32> = Vec::new();
    for _ in 0..300 {
        let flow = below(200) as u32;
        match active.iter().position(|&other| other == flow) {
            Some(place) => {
                sharing.deactivate(flow);
                active.swap_remove(place);
            }
            None => {
                sharing.activate(flow);
                active.push(flow);
                assert_possible(&sharing, &active);
            }
        }
        sharing.share(&mut Vec::new());
        assert_fair(&sharing, &active);
    }
}
