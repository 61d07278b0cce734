//! Wires on loopback, frame by frame.

use _native::config::NodeId;
use _native::engine::testing::pair;
use _native::io::Wires;
use _native::io::clock::KernelTime;
use _native::roce::opcode::Opcode;
use _native::roce::packet::{Bth, PauseFrame};
use _native::roce::{Frame, Packet, Payload};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

/// The wires of two NICs, connected with each other.
fn connected() -> [Wires; 2] {
    let config = pair().0;
    let mut ends =
        [0, 1].map(|nic| Wires::new(&config, |n| n == NodeId::Nic(nic)).expect("sockets"));
    let ports = [0, 1].map(|nic: usize| {
        let bound = ends[nic].bind(Ipv4Addr::LOCALHOST, &BTreeMap::new()).expect("free ports");
        assert_eq!(bound.len(), 1);
        bound[0].1
    });
    for nic in 0..2 {
        let peer = SocketAddrV4::new(Ipv4Addr::LOCALHOST, ports[1 - nic]);
        let name = format!("link0/{nic}");
        ends[nic].connect(&BTreeMap::from([(name, peer)])).expect("known ends");
    }
    ends
}

fn data(psn: u32, length_bytes: u16) -> Frame {
    let bth = Bth { opcode: Opcode::WRITE_MIDDLE, psn, ..Bth::default() };
    let payload = Payload::Pattern { offset_bytes: u64::from(psn), length_bytes };
    Frame::Roce(Box::new(Packet { bth, payload, ..Packet::default() }))
}

/// Receive until `count` frames have come.
fn receive(wires: &mut Wires, count: usize) -> Vec<(u32, Frame)> {
    let mut frames = Vec::new();
    let end = Instant::now() + Duration::from_secs(5);
    while frames.len() < count && Instant::now() < end {
        wires.wait(1_000_000);
        wires.receive(|arrival| frames.push((arrival.direction, arrival.frame)));
    }
    frames
}

#[test]
fn frames_arrive_whole_and_in_order() {
    let [mut a, mut b] = connected();
    for psn in 0..200 {
        a.push(0, 0, &data(psn, 4096));
    }
    assert!(!a.flush());
    let frames = receive(&mut b, 200);
    assert_eq!(frames.len(), 200);
    for (psn, (direction, frame)) in frames.iter().enumerate() {
        assert_eq!((*direction, frame), (0, &data(psn as u32, 4096)));
    }
}

#[test]
fn pause_frames_travel_the_other_way() {
    let [mut a, mut b] = connected();
    let pause =
        Frame::Pause(Box::new(PauseFrame { source_mac: [2; 6], class_enable: 8, quanta: [7; 8] }));
    b.push(0, 1, &pause);
    b.flush();
    let frames = receive(&mut a, 1);
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0].0, 1);
    let Frame::Pause(received) = &frames[0].1 else { panic!("no pause frame") };
    assert_eq!((received.class_enable, received.quanta[3]), (8, 7));
}

#[test]
fn arrivals_carry_the_time_at_which_the_kernel_took_them() {
    let [mut a, mut b] = connected();
    // The kernel begins to take times a moment after the first socket asks for them.
    std::thread::sleep(Duration::from_millis(100));
    a.push(0, 0, &data(0, 64));
    a.flush();
    std::thread::sleep(Duration::from_millis(30));
    let now_ns = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a clock after 1970")
        .as_nanos() as u64;
    let mut arrivals = Vec::new();
    b.receive(|arrival| arrivals.push(arrival.kernel_time));
    let time = arrivals[0].expect("the kernel tells the time");
    let KernelTime::Realtime(arrival_ns) = time else { panic!("{time:?}") };
    assert!((20_000_000..10_000_000_000).contains(&(now_ns - arrival_ns)));
}

#[test]
fn counters_of_both_ends_agree() {
    let [mut a, mut b] = connected();
    (0..10).for_each(|psn| a.push(0, 0, &data(psn, 100)));
    a.flush();
    receive(&mut b, 10);
    let (sent, received) = (a.counters()[0].2, b.counters()[0].2);
    assert_eq!((sent.datagrams_sent, received.datagrams_received), (10, 10));
    assert_eq!((received.decode_errors, received.receive_overflows), (0, 0));
}
