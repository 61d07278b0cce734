//! Routes, marking, priorities and counts of a whole switch.

use crate::hosts::{Greedy, Sink};
use crate::world::{CONTROL, DATA, GBPS, Host, OTHER, US, World, job, lossy, packet};
use _native::config::{EcnConfig, JobConfig};
use _native::fabric::{Output, PortLink, Switch};
use _native::roce::packet::{Ecn, Frame, Packet};

const LINK: PortLink = PortLink { rate_bps: 100 * GBPS, delay_ps: US };

fn greedy(from: u16, to: u16, classes: &[(u8, u8)]) -> Box<dyn Host> {
    let class = |(dscp, priority): &(u8, u8)| (packet(from, to, *dscp, 1086), *priority);
    Box::new(Greedy::new(LINK.rate_bps, classes.iter().map(class).collect(), 1_000 * US))
}

fn sink() -> Box<dyn Host> {
    Box::new(Sink::default())
}

/// What a switch sends at once for one frame.
fn forwarded(job: &JobConfig, ingress: u16, packet: Packet) -> Vec<Output> {
    let mut switch = Switch::new(job, 0, &vec![LINK; usize::from(job.switches[0].ports)]);
    let mut outputs = Vec::new();
    switch.handle_frame(0, ingress, Frame::Roce(Box::new(packet)), &mut outputs);
    outputs
}

#[test]
fn a_frame_leaves_towards_its_address_with_less_time_to_live() {
    let outputs = forwarded(&job(4, 100_000, lossy()), 0, packet(0, 2, DATA.0, 1086));
    let Output::Transmit { port, frame: Frame::Roce(packet), end_ps } = &outputs[0] else {
        panic!("{outputs:?}")
    };
    assert_eq!((*port, packet.ttl, *end_ps), (2, 63, 1086 * 80));
    assert_eq!(outputs.len(), 1, "nothing else waits");
}

#[test]
fn a_frame_without_route_or_time_to_live_goes_nowhere() {
    let job = job(4, 100_000, lossy());
    assert!(forwarded(&job, 0, packet(0, 9, DATA.0, 1086)).is_empty());
    let expired = Packet { ttl: 1, ..packet(0, 2, DATA.0, 1086) };
    assert!(forwarded(&job, 0, expired).is_empty());
}

#[test]
fn flows_of_one_destination_spread_over_its_ports_and_keep_to_them() {
    let mut job = job(6, 100_000, lossy());
    job.switches[0].routes[0] = vec![2, 3, 4, 5];
    let port_of = |source_port: u16| {
        let packet = Packet { source_port, ..packet(1, 0, DATA.0, 1086) };
        match forwarded(&job, 1, packet).first() {
            Some(Output::Transmit { port, .. }) => *port,
            other => panic!("{other:?}"),
        }
    };
    let mut counts = [0; 6];
    for source_port in 0xC000..0xC400 {
        counts[usize::from(port_of(source_port))] += 1;
    }
    assert_eq!(counts[..2], [0, 0]);
    assert!(counts[2..].iter().all(|count| (210..302).contains(count)), "{counts:?}");
    assert_eq!(port_of(0xC123), port_of(0xC123));
}

#[test]
fn a_standing_queue_marks_capable_packets_of_its_profile_only() {
    let mut priorities = lossy();
    let profile =
        EcnConfig { kmin_bytes: 10_000, kmax_bytes: 20_000, pmax_ratio: 1.0, drops_not_ect: false };
    priorities[usize::from(DATA.1)].ecn = Some(profile);
    let hosts = vec![greedy(0, 2, &[DATA, OTHER]), greedy(1, 2, &[DATA, OTHER]), sink()];
    let mut world = World::new(&job(3, 1_000_000, priorities), LINK, hosts);
    world.sent = Some(Vec::new());
    world.run_until(1_000 * US);
    let is_marked = |(port, frame, _): &(u16, Frame, u64)| {
        let Frame::Roce(packet) = frame else { return None };
        (*port == 2).then_some((packet.dscp, packet.ecn == Ecn::Ce))
    };
    let sent: Vec<(u8, bool)> = world.sent.iter().flatten().filter_map(is_marked).collect();
    let marked = |dscp| sent.iter().filter(|packet| **packet == (dscp, true)).count();
    assert_eq!(marked(OTHER.0), 0);
    assert!(marked(DATA.0) > 1000);
    assert_eq!(world.switch.queue_totals(2, DATA.1).marked_packets as usize, marked(DATA.0));
}

#[test]
fn a_profile_that_drops_takes_packets_that_it_cannot_mark_and_counts_them() {
    let mut priorities = lossy();
    let profile =
        EcnConfig { kmin_bytes: 10_000, kmax_bytes: 20_000, pmax_ratio: 0.1, drops_not_ect: true };
    priorities[usize::from(DATA.1)].ecn = Some(profile);
    let plain = Packet { ecn: Ecn::NotEct, ..packet(0, 2, DATA.0, 1086) };
    let plain: Box<dyn Host> =
        Box::new(Greedy::new(LINK.rate_bps, vec![(plain, DATA.1)], 1_000 * US));
    let hosts = vec![plain, greedy(1, 2, &[DATA]), sink()];
    let mut world = World::new(&job(3, 1_000_000, priorities), LINK, hosts);
    world.run_until(3_000 * US);
    let totals = world.switch.queue_totals(2, DATA.1);
    assert!(totals.wred_dropped_packets > 1000, "{totals:?}");
    assert_eq!(totals.wred_dropped_packets, totals.dropped_packets);
    assert_eq!(totals.dropped_bytes, 1086 * totals.dropped_packets);
    assert!(totals.marked_packets > 1000, "capable packets are marked as before");
    let sent = |port| world.host::<Greedy>(port).sent_packets[0];
    assert_eq!(sent(0) + sent(1), totals.tx_packets + totals.dropped_packets);
    assert!(totals.tx_packets > sent(1), "some of the plain ones pass");
}

#[test]
fn a_queue_fills_drops_and_all_packets_are_accounted_for() {
    let hosts = vec![greedy(0, 2, &[OTHER]), greedy(1, 2, &[OTHER]), sink()];
    let mut world = World::new(&job(3, 200_000, lossy()), LINK, hosts);
    world.run_until(500 * US);
    let mid = world.switch.take_queue_sample(2, OTHER.1);
    assert!(mid.max_depth_bytes <= 100_000 && mid.max_depth_bytes > 98_000);
    world.run_until(3_000 * US);
    let sent: u64 = (0..2).map(|port| world.host::<Greedy>(port).sent_packets[0]).sum();
    let totals = world.switch.queue_totals(2, OTHER.1);
    assert_eq!(sent, totals.tx_packets + totals.dropped_packets);
    assert_eq!(world.host::<Sink>(2).packets, totals.tx_packets);
    assert_eq!(totals.headroom_dropped_packets, 0);
    assert_eq!(world.switch.buffer().used_bytes(), 0);
    let rest = world.switch.take_queue_sample(2, OTHER.1);
    assert_eq!(mid.tx_packets + rest.tx_packets, totals.tx_packets);
}

#[test]
fn an_overloaded_port_is_never_idle() {
    let hosts = vec![greedy(0, 2, &[DATA]), greedy(1, 2, &[OTHER]), sink()];
    let mut world = World::new(&job(3, 1_000_000, lossy()), LINK, hosts);
    world.run_until(1_000 * US);
    let busy_ps = world.switch.port_totals(2).tx_packets * (1086 + 20) * 80;
    assert!(busy_ps > 998 * US, "{busy_ps}");
}

#[test]
fn a_strict_priority_waits_for_one_frame_at_most() {
    let control = Packet { ecn: Ecn::NotEct, ..packet(3, 2, CONTROL.0, 126) };
    let hosts = vec![greedy(0, 2, &[DATA]), greedy(1, 2, &[OTHER]), sink(), sink()];
    let mut world = World::new(&job(4, 1_000_000, lossy()), LINK, hosts);
    world.run_until(500 * US);
    let mut outputs = Vec::new();
    let frame = Frame::Roce(Box::new(control));
    world.switch.handle_frame(500 * US, 3, frame, &mut outputs);
    world.sent = Some(Vec::new());
    world.run_until(501 * US);
    let is_control = |(_, frame, _): &&(u16, Frame, u64)| frame.wire_bytes() == 126;
    let (.., end_ps) = world.sent.iter().flatten().find(is_control).expect("it left");
    assert!(end_ps - 500 * US <= (1106 + 126) * 80);
}

#[test]
fn a_late_wake_costs_no_bandwidth() {
    let job = job(3, 1_000_000, lossy());
    let mut switch = Switch::new(&job, 0, &[LINK; 3]);
    let mut outputs = Vec::new();
    for _ in 0..10 {
        let frame = Frame::Roce(Box::new(packet(0, 2, DATA.0, 1086)));
        switch.handle_frame(0, 0, frame, &mut outputs);
    }
    let Some(Output::Wake { token, at_ps }) = outputs.pop() else { panic!("frames wait") };
    assert_eq!(at_ps, 1106 * 80);
    switch.handle_wake(1_000 * US, token, &mut outputs);
    let end_ps = |output: &Output| match output {
        Output::Transmit { end_ps, .. } => Some(*end_ps),
        Output::Wake { .. } => None,
    };
    let ends_ps: Vec<u64> = outputs.iter().filter_map(end_ps).collect();
    assert_eq!(ends_ps, (0..10).map(|k| k * 1106 * 80 + 1086 * 80).collect::<Vec<u64>>());
}
