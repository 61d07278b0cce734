//! Priority flow control between a switch and its hosts: T11 and T12.

use crate::hosts::{Greedy, Sink};
use crate::world::{DATA, GBPS, Host, OTHER, US, World, job, lossless, packet};
use _native::fabric::pause::headroom_bytes;
use _native::fabric::{Output, PortLink, Switch};
use _native::roce::packet::{Frame, PauseFrame};

/// 28.5 kB are in flight in a round trip: with the pause's own frame, 0.84 of a frame more than 6 whole
/// ones. Frames come whole, so a shorter headroom shows where this is far from a whole number.
const LINK: PortLink = PortLink { rate_bps: 100 * GBPS, delay_ps: 1_140_000 };
const FRAME_BYTES: u32 = 4158;

/// Headroom for hosts that obey a pause with the next frame.
fn by_formula() -> u64 {
    headroom_bytes(LINK.rate_bps, LINK.delay_ps, u64::from(FRAME_BYTES) + 20, 0)
}

fn greedy(from: u16, to: u16, classes: &[(u8, u8)]) -> Box<dyn Host> {
    let class = |(dscp, priority): &(u8, u8)| (packet(from, to, *dscp, FRAME_BYTES), *priority);
    Box::new(Greedy::new(LINK.rate_bps, classes.iter().map(class).collect(), 2_000 * US))
}

/// Seven hosts send to the eighth, which sends to the first, so that pauses wait for its frames.
fn incast(headroom_bytes: u64) -> World {
    let mut hosts: Vec<Box<dyn Host>> = (0..7).map(|port| greedy(port, 7, &[DATA])).collect();
    hosts.push(greedy(7, 0, &[OTHER]));
    World::new(&job(8, 2_000_000, lossless(50_000, headroom_bytes)), LINK, hosts)
}

fn received(world: &World) -> u64 {
    world.host::<Greedy>(7).received_packets
}

#[test]
fn t11_an_incast_without_congestion_control_loses_nothing_with_headroom_by_the_formula() {
    let mut world = incast(by_formula());
    world.run_until(3_000 * US);
    let sent: u64 = (0..7).map(|port| world.host::<Greedy>(port).sent_packets[0]).sum();
    assert_eq!(received(&world), sent);
    assert_eq!(world.switch.queue_totals(7, DATA.1).dropped_packets, 0);
    assert!((0..7).all(|port| world.host::<Greedy>(port).pauses > 10));
    assert_eq!(world.switch.buffer().used_bytes(), 0);
}

#[test]
fn an_incast_keeps_its_port_busy_and_shares_it_fairly() {
    let mut world = incast(by_formula());
    world.run_until(2_000 * US);
    let busy_ps = received(&world) * 4178 * 80;
    assert!(busy_ps > 1_990 * US, "{busy_ps}");
    let sent = |port| world.host::<Greedy>(port).sent_packets[0] as f64;
    let (sum, squares) = (0..7).map(sent).fold((0.0, 0.0), |(a, b), x| (a + x, b + x * x));
    assert!(sum * sum / (7.0 * squares) > 0.99);
}

#[test]
fn t11_headroom_short_of_one_frame_drops_and_says_so() {
    let mut world = incast(by_formula() - u64::from(FRAME_BYTES));
    world.run_until(3_000 * US);
    let totals = world.switch.queue_totals(7, DATA.1);
    assert!(totals.headroom_dropped_packets > 0);
    assert_eq!(totals.headroom_dropped_packets, totals.dropped_packets);
}

#[test]
fn a_paused_priority_never_blocks_another() {
    let hosts: Vec<Box<dyn Host>> =
        vec![greedy(0, 2, &[DATA, OTHER]), greedy(1, 2, &[DATA]), Box::new(Sink::default())];
    let mut priorities = lossless(50_000, by_formula());
    priorities[usize::from(OTHER.1)].weight = 3;
    let mut world = World::new(&job(3, 2_000_000, priorities), LINK, hosts);
    world.run_until(2_000 * US);
    let sender = world.host::<Greedy>(0);
    assert!(sender.scheduler.paused_ps(2_000 * US, DATA.1) > 500 * US);
    assert_eq!(sender.scheduler.paused_ps(2_000 * US, OTHER.1), 0);
    let line_packets = 2_000 * US / (4178 * 80);
    let other_share = sender.sent_packets[1] as f64 / line_packets as f64;
    assert!(other_share > 0.74, "{other_share}");
}

#[test]
fn t12_a_neighbour_that_stays_congested_is_paused_again_before_its_pause_ends() {
    let mut switch = Switch::new(&job(3, 2_000_000, lossless(1, 1_000_000)), 0, &[LINK; 3]);
    let mut outputs = Vec::new();
    let mut quanta = [0; 8];
    quanta[usize::from(DATA.1)] = 0xFFFF;
    let pause = PauseFrame { source_mac: [0; 6], class_enable: 1 << DATA.1, quanta };
    switch.handle_frame(0, 2, Frame::Pause(Box::new(pause)), &mut outputs);
    let frame = Frame::Roce(Box::new(packet(0, 2, DATA.0, FRAME_BYTES)));
    switch.handle_frame(0, 0, frame, &mut outputs);
    let half_ps = 65_535 * 64 * 80 / 2;
    let mut pauses_ps = Vec::new();
    while let Some(output) = outputs.pop() {
        match output {
            Output::Transmit { port: 0, frame: Frame::Pause(_), end_ps } => pauses_ps.push(end_ps),
            Output::Wake { token, at_ps } if at_ps < 2 * half_ps => {
                switch.handle_wake(at_ps, token, &mut outputs);
            }
            _ => {}
        }
    }
    assert_eq!(pauses_ps, [64 * 80, half_ps + 64 * 80]);
}

#[test]
fn t12_a_pause_that_is_not_refreshed_expires() {
    let mut switch = Switch::new(&job(3, 2_000_000, lossless(50_000, 0)), 0, &[LINK; 3]);
    let mut outputs = Vec::new();
    let pause = PauseFrame { source_mac: [0; 6], class_enable: 1 << DATA.1, quanta: [1_000; 8] };
    switch.handle_frame(0, 2, Frame::Pause(Box::new(pause)), &mut outputs);
    let frame = Frame::Roce(Box::new(packet(0, 2, DATA.0, FRAME_BYTES)));
    switch.handle_frame(0, 0, frame, &mut outputs);
    let end_ps = 1_000 * 64 * 80;
    assert_eq!(outputs, [Output::Wake { token: 2, at_ps: end_ps }]);
    outputs.clear();
    switch.handle_wake(end_ps, 2, &mut outputs);
    assert!(matches!(outputs[..], [Output::Transmit { port: 2, .. }]));
    assert_eq!(switch.paused_ps(2 * end_ps, 2, DATA.1), end_ps);
}
