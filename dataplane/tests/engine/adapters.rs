//! NICs whose messages an adapter carries: here one that loses nothing and takes a microsecond.

use _native::config::{JobConfig, QpDistribution};
use _native::engine::World;
use _native::engine::medium::Medium;
use _native::engine::nic::{DeviceEvent, DeviceRequest};
use _native::engine::program::Program;
use _native::engine::testing::{star, workloads};
use _native::roce::queue_pair::FailureReason;
use _native::roce::{Frame, RemoteMemory};
use _native::units::PS_PER_US;
use std::sync::Arc;

/// Keeps what NICs post.
#[derive(Debug, Default)]
struct Adapters {
    posted: Vec<(u32, DeviceRequest)>,
    frames: usize,
}

impl Medium for Adapters {
    fn carry(&mut self, _at_ps: u64, _direction: u32, frame: Frame) -> Option<Frame> {
        self.frames += 1;
        Some(frame)
    }

    fn post(&mut self, nic: u32, request: DeviceRequest) {
        self.posted.push((nic, request));
    }

    fn icrc_errors(&self, _direction: u32) -> u64 {
        0
    }
}

/// A job of which every NIC is an adapter's, started.
fn started(config: JobConfig, programs: &[Arc<Program>]) -> World<Adapters> {
    let nics = config.nics.len() as u32;
    let mut world =
        World::new(Arc::new(config), programs, Adapters::default(), |_| true).expect("a job");
    (0..nics).for_each(|nic| world.offload(nic));
    world.start();
    world
}

/// NIC and queue pair at the other end: the ranks are the NICs' indices.
fn opposite(world: &World<Adapters>, nic: u32, pair: u32) -> (u32, u32) {
    let plans = |nic| world.host(nic).expect("it is here").nic().pair_plans();
    let peer = plans(nic).nth(pair as usize).expect("it has it").peer_rank;
    let place = plans(nic).take(pair as usize).filter(|plan| plan.peer_rank == peer).count();
    let towards = (0..).zip(plans(peer)).filter(|(_, plan)| plan.peer_rank == nic);
    (peer, towards.map(|(index, _)| index).nth(place).expect("there are as many"))
}

/// Handle what is due, then carry what was posted; false if there was nothing.
fn turn(world: &mut World<Adapters>) -> bool {
    while world.step(u64::MAX).is_some() {}
    let posted = std::mem::take(&mut world.medium_mut().posted);
    let now_ps = world.now_ps() + PS_PER_US;
    for &(nic, DeviceRequest { pair, id, immediate, .. }) in &posted {
        let (peer, there) = opposite(world, nic, pair);
        let received = DeviceEvent::Received { immediate, is_intact: true };
        world.inject_device_event(now_ps, peer, there, received);
        world.inject_device_event(now_ps, nic, pair, DeviceEvent::Sent { id });
    }
    !posted.is_empty()
}

fn finished(config: JobConfig, programs: &[Arc<Program>]) -> World<Adapters> {
    let mut world = started(config, programs);
    while turn(&mut world) {}
    assert!(world.is_done(), "{:?}", world.blocked(8));
    assert_eq!(world.medium().frames, 0, "an adapter makes the frames");
    world
}

#[test]
fn a_job_is_carried_without_a_frame() {
    let world = finished(star(4).0, &workloads::ring(4, 5, 10_000));
    assert_eq!(world.now_ps(), 5 * PS_PER_US);
    for (_, host) in world.hosts() {
        let counters = host.nic().counters();
        assert_eq!(counters.transport.data_payload_bytes_sent, 50_000);
        assert_eq!(counters.transport.data_payload_bytes_received, 50_000);
        assert_eq!(counters.tx_packets, 0);
        assert_eq!(host.unexpected_messages(), 0);
    }
}

#[test]
fn stripes_and_clear_to_send_are_the_nics_own() {
    let mut config = star(3).0;
    config.transport.qps_per_peer = 4;
    config.transport.qp_distribution = QpDistribution::Split;
    config.transport.clear_to_send = true;
    let world = finished(config, &workloads::all_to_all(3, 1000));
    for (_, host) in world.hosts() {
        let counters = host.nic().counters();
        assert_eq!((counters.clear_to_send_sent, counters.clear_to_send_received), (2, 2));
        assert_eq!(counters.transport.data_payload_bytes_received, 2 * 1000 + 2 * 64);
    }
}

#[test]
fn a_failed_connection_names_the_message_that_it_could_not_complete() {
    let mut world = started(star(2).0, &workloads::one_message(7));
    while world.step(u64::MAX).is_some() {}
    let (nic, request) = world.medium_mut().posted[0];
    let reason = FailureReason::Device { status: 4 };
    let now_ps = world.now_ps();
    world.inject_device_event(now_ps, nic, request.pair, DeviceEvent::Failed { reason });
    while world.step(u64::MAX).is_some() {}
    let failures = world.host(nic).expect("it is here").failures();
    assert_eq!(failures.len(), 1);
    assert_eq!((failures[0].op, failures[0].reason), (Some(request.id), reason));
    assert_eq!(
        failures[0].reason.to_string(),
        "the adapter stopped the queue pair: local protection error (completion status 4)"
    );
}

#[test]
fn parts_of_a_long_message_are_seen_to_move() {
    let mut world = started(star(2).0, &workloads::one_message(7));
    while world.step(u64::MAX).is_some() {}
    let advances = |world: &World<Adapters>| {
        let totals = world.snapshot().totals;
        totals.iter().find(|(name, _)| *name == "adapter_advances").expect("a total").1
    };
    assert_eq!(advances(&world), 0);
    let (nic, request) = world.medium_mut().posted[0];
    world.inject_device_event(world.now_ps(), nic, request.pair, DeviceEvent::Advanced);
    while world.step(u64::MAX).is_some() {}
    assert_eq!(advances(&world), 1);
    assert_eq!(world.ops_done(), 0);
}

#[test]
fn a_damaged_message_is_counted() {
    let mut world = started(star(2).0, &workloads::one_message(7));
    while world.step(u64::MAX).is_some() {}
    let (nic, DeviceRequest { pair, immediate, .. }) = world.medium_mut().posted[0];
    let (peer, there) = opposite(&world, nic, pair);
    let now_ps = world.now_ps();
    let received = DeviceEvent::Received { immediate, is_intact: false };
    world.inject_device_event(now_ps, peer, there, received);
    while world.step(u64::MAX).is_some() {}
    let counters = world.host(peer).expect("it is here").nic().counters();
    assert_eq!(counters.transport.payload_mismatches, 1);
}

#[test]
fn reports_of_queue_pairs_that_are_not_there_are_ignored() {
    let mut world = started(star(2).0, &workloads::one_message(7));
    let received = DeviceEvent::Received { immediate: 9, is_intact: true };
    world.inject_device_event(0, 0, 99, received);
    while world.step(u64::MAX).is_some() {}
    assert!(!world.is_done());
}

#[test]
fn a_soft_endpoint_takes_the_numbers_of_a_device_if_they_are_as_many_as_planned() {
    let config = Arc::new(star(2).0);
    let programs = workloads::one_message(10_000);
    let mut world = World::new(config, &programs, Adapters::default(), |_| true).expect("a job");
    let memory = RemoteMemory { virtual_address: 4096, remote_key: 7, size_bytes: Some(8192) };
    let refused = world.set_peer_device(0, 1, &[], memory).expect_err("one is planned");
    assert!(refused.to_string().contains("nic1: 0 queue pairs are not those planned"));
    world.set_peer_device(0, 1, &[0x4321], memory).expect("one is planned");
    let plans: Vec<_> = world.host(0).expect("it is here").nic().pair_plans().collect();
    assert_eq!(plans.iter().map(|plan| plan.remote_qp).collect::<Vec<_>>(), [0x4321]);
}
