//! Many packets through a fabric that loses, repeats, damages and reorders them: every message arrives
//! once, in order, unaltered, and no bound is passed on the way.
//!
//! `SOAK_PACKETS` says how many; `make soak PACKETS=100000000` sets it and prints the figures.

use _native::config::{CongestionControlConfig, ImpairmentConfig, LossRecovery};
use _native::engine::executor::NEVER_PS;
use _native::engine::impairment::ImpairmentCounters;
use _native::engine::nic::NicCounters;
use _native::engine::program::{OpKind, Program};
use _native::engine::testing::{FabricBuilder, ProgramBuilder, clos};
use _native::engine::world::Medium;
use _native::engine::{Emulation, Progress};
use _native::random::Random;
use _native::units::PS_PER_US;
use std::sync::Arc;
use std::time::Instant;

const RANKS: u32 = 16;
/// Each rank sends to so many others: 64 queue pairs.
const PEERS: u32 = 4;
const MTU_BYTES: u64 = 1024;
const WINDOW_PACKETS: u32 = 64;
/// Share of frames that each misfortune hits, on every direction of every link.
const MISFORTUNE_RATIO: f64 = 0.0005;
/// Most packets of a message; sizes are uniform from 0.
const MAX_MESSAGE_PACKETS: u64 = 512;
const EVENTS_BETWEEN_CHECKS: u64 = 1000;

fn fabric(loss_recovery: LossRecovery) -> FabricBuilder {
    let mut fabric = clos(4, 2, 4);
    let job = &mut fabric.0;
    job.transport.mtu_bytes = MTU_BYTES as u32;
    job.transport.window_packets = WINDOW_PACKETS;
    job.transport.retry_count = 1000;
    job.transport.retransmission_timeout_ps = 100 * PS_PER_US;
    job.transport.loss_recovery = loss_recovery;
    job.telemetry.sample_interval_ps = 1000 * PS_PER_US;
    for priority in job.switches.iter_mut().flat_map(|switch| &mut switch.priorities) {
        if let Some(ecn) = &mut priority.ecn {
            (ecn.kmin_bytes, ecn.kmax_bytes) = (20_000, 100_000);
        }
    }
    job.impairments = vec![ImpairmentConfig {
        directions: (0..2 * job.links.len() as u32).collect(),
        packets: Vec::new(),
        opcodes: Vec::new(),
        loss_ratio: MISFORTUNE_RATIO,
        corruption_ratio: MISFORTUNE_RATIO,
        duplication_ratio: MISFORTUNE_RATIO,
        reordering_ratio: MISFORTUNE_RATIO,
        reordering_ps: 2 * PS_PER_US,
        delay_ps: 0,
        jitter_ps: 0,
    }];
    fabric
}

/// Every rank sends `messages` of random sizes to each of its peers, all at once. Operations of a rank
/// by message and peer: first the sends, then the receives.
fn programs(messages: u32) -> Vec<Arc<Program>> {
    let mut random = Random::new(1, 0x736F_616B);
    let count = messages * PEERS;
    let sizes: Vec<Vec<u64>> = (0..RANKS)
        .map(|_| {
            (0..count).map(|_| random.next_u64() % (MAX_MESSAGE_PACKETS * MTU_BYTES)).collect()
        })
        .collect();
    let program = |rank: u32| {
        let mut builder = ProgramBuilder::new(rank);
        for op in 0..count {
            let peer = (rank + 1 + 3 * (op % PEERS)) % RANKS;
            builder.send(peer, sizes[rank as usize][op as usize], count + op, &[]);
        }
        for op in 0..count {
            let peer = (rank + RANKS - 1 - 3 * (op % PEERS)) % RANKS;
            builder.receive(peer, sizes[peer as usize][op as usize], op, &[]);
        }
        Arc::new(builder.finish())
    };
    (0..RANKS).map(program).collect()
}

fn check_bounds(emulation: &Emulation, min_rate_bps: u64) {
    let world = emulation.world();
    let line_rate_bps = world.topology().directions[0].rate_bps;
    for (_, host) in world.hosts() {
        for sample in host.nic().rate_samples(world.now_ps()) {
            let rate = sample.rate;
            assert!((min_rate_bps..=line_rate_bps).contains(&rate.current_rate_bps), "{sample:?}");
            assert!((0.0..=1.0).contains(&rate.alpha), "{sample:?}");
        }
        let window_bytes = u64::from(WINDOW_PACKETS) * MTU_BYTES;
        assert!(host.nic().in_flight_bytes().all(|bytes| bytes <= window_bytes));
        assert!(host.failures().is_empty(), "{:?}", host.failures());
    }
    for (_, switch) in world.switches() {
        let ports = 0..switch.ports();
        let depth = |port| (0..8).map(move |priority| switch.depth_bytes(port, priority));
        assert_eq!(switch.buffer().used_bytes(), ports.flat_map(depth).sum::<u64>());
    }
}

/// Every message has arrived, and those of one sender in the order in which they were posted.
fn check_messages(emulation: &Emulation) {
    for (_, host) in emulation.world().hosts() {
        assert_eq!(host.unexpected_messages(), 0, "a message came twice");
        let (program, ends) = (host.executor().program(), host.executor().end_ps());
        let mut last_ps = [0; RANKS as usize];
        for op in 0..program.len() {
            assert_ne!(ends[op], NEVER_PS);
            if program.op_kind(op as u32) == OpKind::Receive {
                let last_ps = &mut last_ps[program.peer[op] as usize];
                assert!(ends[op] >= *last_ps, "operation {op} came before an earlier one");
                *last_ps = ends[op];
            }
        }
    }
}

fn total(emulation: &Emulation, of: impl Fn(&NicCounters) -> u64) -> u64 {
    emulation.world().hosts().map(|(_, host)| of(&host.nic().counters())).sum()
}

fn impairments(emulation: &Emulation) -> ImpairmentCounters {
    let mut sum = ImpairmentCounters::default();
    for (_, counters) in emulation.world().medium().impairments() {
        sum.packets += counters.packets;
        sum.lost += counters.lost;
        sum.corrupted += counters.corrupted;
        sum.duplicated += counters.duplicated;
        sum.reordered += counters.reordered;
    }
    sum
}

fn report(emulation: &Emulation, seconds: f64) {
    println!(
        "{seconds:.0} s, {:.3} ms emulated: {} data packets sent, {} again, {} timeouts, {} marked; {:?}",
        emulation.world().now_ps() as f64 / 1e9,
        total(emulation, |c| c.transport.data_packets_sent),
        total(emulation, |c| c.transport.retransmitted_packets),
        total(emulation, |c| c.transport.local_ack_timeout_err),
        total(emulation, |c| c.transport.ecn_marked_packets),
        impairments(emulation),
    );
}

/// Send at least `packets` data packets and check everything.
fn soak(packets: u64, loss_recovery: LossRecovery) {
    let per_round = u64::from(RANKS * PEERS) * MAX_MESSAGE_PACKETS / 2;
    let messages = packets.div_ceil(per_round).max(2) as u32;
    let fabric = fabric(loss_recovery);
    let CongestionControlConfig::Dcqcn(dcqcn) = &fabric.0.congestion_control else {
        panic!("the builder's jobs have DCQCN");
    };
    let min_rate_bps = dcqcn.min_rate_bps;
    let mut emulation = Emulation::new(fabric.0, &programs(messages)).expect("a valid job");
    let start = Instant::now();
    let mut reported = 0;
    loop {
        let progress = emulation.advance(None, EVENTS_BETWEEN_CHECKS);
        check_bounds(&emulation, min_rate_bps);
        match progress {
            Progress::Done => break,
            Progress::Stalled => panic!("{:?}", emulation.world().blocked(8)),
            Progress::Paused => {}
        }
        if start.elapsed().as_secs() >= reported + 10 {
            reported = start.elapsed().as_secs();
            report(&emulation, start.elapsed().as_secs_f64());
        }
    }
    check_messages(&emulation);
    report(&emulation, start.elapsed().as_secs_f64());
    assert_eq!(total(&emulation, |c| c.transport.payload_mismatches), 0);
    let done = impairments(&emulation);
    let each = [done.lost, done.corrupted, done.duplicated, done.reordered];
    assert!(each.iter().all(|&count| count > 100), "{done:?}");
    assert!(total(&emulation, |c| c.cnps_handled) > 0);
    assert!(total(&emulation, |c| c.transport.retransmitted_packets) > 0);
}

#[test]
fn half_a_million_packets_arrive_once_in_order_and_unaltered_with_selective_repeat() {
    soak(500_000, LossRecovery::SelectiveRepeat);
}

#[test]
fn half_a_million_packets_arrive_once_in_order_and_unaltered_with_go_back_n() {
    soak(500_000, LossRecovery::GoBackN);
}

#[test]
#[ignore = "takes long: make soak PACKETS=100000000"]
fn as_many_packets_as_asked_arrive_once_in_order_and_unaltered() {
    let packets = std::env::var("SOAK_PACKETS").expect("SOAK_PACKETS says how many packets");
    soak(packets.parse().expect("a number of packets"), LossRecovery::SelectiveRepeat);
}
