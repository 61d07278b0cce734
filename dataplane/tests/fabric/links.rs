//! A link that goes down takes its queue and its pauses with it, and nothing else.

use crate::world::{DATA, GBPS, OTHER, US, job, lossless, packet};
use _native::fabric::{Output, PortLink, Switch};
use _native::roce::packet::{Frame, PauseFrame};

const LINK: PortLink = PortLink { rate_bps: 100 * GBPS, delay_ps: US };

fn switch() -> Switch {
    Switch::new(&job(3, 2_000_000, lossless(10_000, 100_000)), 0, &[LINK; 3])
}

fn arrive(switch: &mut Switch, now_ps: u64, (dscp, _): (u8, u8)) -> Vec<Output> {
    let mut outputs = Vec::new();
    let frame = Frame::Roce(Box::new(packet(0, 2, dscp, 4158)));
    switch.handle_frame(now_ps, 0, frame, &mut outputs);
    outputs
}

/// Port 2 is told to stop data.
fn pause_port_2(switch: &mut Switch, now_ps: u64) {
    let pause = PauseFrame { source_mac: [0; 6], class_enable: 1 << DATA.1, quanta: [0xFFFF; 8] };
    switch.handle_frame(now_ps, 2, Frame::Pause(Box::new(pause)), &mut Vec::new());
}

/// Packets that left port 2, and pauses of data that left port 0.
fn sent(outputs: &[Output]) -> (usize, usize) {
    outputs.iter().fold((0, 0), |(packets, pauses), output| match output {
        Output::Transmit { port: 2, frame: Frame::Roce(_), .. } => (packets + 1, pauses),
        Output::Transmit { port: 0, frame: Frame::Pause(pause), .. } => {
            (packets, pauses + usize::from(pause.quanta[usize::from(DATA.1)] > 0))
        }
        _ => (packets, pauses),
    })
}

#[test]
fn what_waits_for_a_link_is_lost_with_it_and_counted_by_itself() {
    let mut switch = switch();
    pause_port_2(&mut switch, 0);
    (0..3).for_each(|k| drop(arrive(&mut switch, k, DATA)));
    let queued_bytes = switch.depth_bytes(2, DATA.1);
    switch.handle_link_down(US, 2, &mut Vec::new());
    arrive(&mut switch, 2 * US, DATA);
    arrive(&mut switch, 2 * US, OTHER);
    let totals = switch.queue_totals(2, DATA.1);
    assert_eq!((totals.link_down_packets, totals.dropped_packets), (4, 0));
    assert_eq!(totals.link_down_bytes, queued_bytes / 3 * 4);
    assert_eq!(switch.queue_totals(2, OTHER.1).link_down_packets, 1);
    assert_eq!(switch.buffer().used_bytes(), 0);
}

#[test]
fn no_pause_of_the_neighbour_outlives_the_link() {
    let mut switch = switch();
    pause_port_2(&mut switch, 0);
    switch.handle_link_down(US, 2, &mut Vec::new());
    switch.handle_link_up(2 * US, 2, &mut Vec::new());
    assert_eq!(sent(&arrive(&mut switch, 3 * US, DATA)).0, 1);
}

#[test]
fn the_loss_of_a_queue_lets_those_resume_who_were_paused_for_it() {
    let mut switch = switch();
    pause_port_2(&mut switch, 0);
    let paused: usize = (0..3).map(|k| sent(&arrive(&mut switch, k * US, DATA)).1).sum();
    assert_eq!(paused, 1, "three packets are above the threshold");
    let mut outputs = Vec::new();
    switch.handle_link_down(5 * US, 2, &mut outputs);
    let resumes = outputs.iter().any(|output| {
        matches!(output, Output::Transmit { port: 0, frame: Frame::Pause(pause), .. }
            if pause.quanta[usize::from(DATA.1)] == 0)
    });
    assert!(resumes, "{outputs:?}");
}

#[test]
fn an_ingress_above_its_threshold_pauses_its_neighbour_anew_when_the_link_is_back() {
    let mut switch = switch();
    pause_port_2(&mut switch, 0);
    (0..3).for_each(|k| drop(arrive(&mut switch, k * US, DATA)));
    switch.handle_link_down(5 * US, 0, &mut Vec::new());
    let mut outputs = Vec::new();
    switch.handle_link_up(9 * US, 0, &mut outputs);
    assert_eq!(sent(&outputs).1, 1, "{outputs:?}");
}

#[test]
fn a_frame_that_begins_after_a_change_of_rate_takes_the_new_time() {
    let mut switch = switch();
    switch.set_link_rate(2, 25 * GBPS);
    let outputs = arrive(&mut switch, 0, DATA);
    let end_ps = outputs.iter().find_map(|output| match output {
        Output::Transmit { port: 2, end_ps, .. } => Some(*end_ps),
        _ => None,
    });
    let wire_bytes = u64::from(packet(0, 2, DATA.0, 4158).wire_bytes());
    assert_eq!(end_ps, Some(wire_bytes * 8 * 40));
}
