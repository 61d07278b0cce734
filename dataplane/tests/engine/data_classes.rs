//! Several data classes in one job: tags, queues and congestion control of their own.

use _native::config::{CongestionControlConfig, DataClassConfig};
use _native::engine::program::Program;
use _native::engine::testing::{FabricBuilder, ProgramBuilder, pair, star};
use _native::engine::world::RankCompletion;
use _native::engine::{Emulation, Progress};
use std::sync::Arc;

const MB: u64 = 1_000_000;
const GBPS: u64 = 1_000_000_000;
const SECOND_PRIORITY: u8 = 4;

fn fixed(rate_bps: u64) -> CongestionControlConfig {
    CongestionControlConfig::FixedRate { rate_bps: Some(rate_bps) }
}

/// `fabric` with a second class, in a queue of the same kind as the first's.
fn with_second_class(
    mut fabric: FabricBuilder,
    congestion_control: CongestionControlConfig,
) -> FabricBuilder {
    fabric.0.further_classes.push(DataClassConfig {
        name: "second".into(),
        dscp: 30,
        priority: SECOND_PRIORITY,
        ecn_capable: true,
        ack_ecn_capable: false,
        congestion_control,
    });
    for switch in &mut fabric.0.switches {
        switch.priorities[usize::from(SECOND_PRIORITY)] = switch.priorities[3].clone();
    }
    fabric
}

/// Rank `source` sends a message of each class in `classes` to `destination`.
fn messages(
    builders: &mut [ProgramBuilder],
    (source, destination): (usize, usize),
    size_bytes: u64,
    class: u8,
    classes: &mut [Vec<u8>],
) {
    let send = builders[source].next_op();
    let receive = builders[destination].next_op();
    builders[source].send(destination as u32, size_bytes, receive, &[]);
    builders[destination].receive(source as u32, size_bytes, send, &[]);
    classes[source].push(class);
    classes[destination].push(class);
}

/// Flows (source, destination, class), each of one message.
fn programs(ranks: usize, size_bytes: u64, flows: &[(usize, usize, u8)]) -> Vec<Arc<Program>> {
    let mut builders: Vec<_> = (0..ranks as u32).map(ProgramBuilder::new).collect();
    let mut classes = vec![Vec::new(); ranks];
    for &(source, destination, class) in flows {
        messages(&mut builders, (source, destination), size_bytes, class, &mut classes);
    }
    let finish = |(builder, class): (ProgramBuilder, Vec<u8>)| {
        Arc::new(Program { class, ..builder.finish() })
    };
    builders.into_iter().zip(classes).map(finish).collect()
}

/// When the first message of each rank in `ranks` was received.
fn end_ps(fabric: FabricBuilder, programs: &[Arc<Program>], rank: u32, op: u32) -> u64 {
    let mut emulation = Emulation::new(fabric.0, programs).expect("a valid job");
    assert_eq!(emulation.advance(None, 100_000_000), Progress::Done);
    let mut completions: Vec<RankCompletion> = Vec::new();
    emulation.world_mut().take_completions(&mut completions);
    let ours = completions.iter().find(|c| c.rank == rank && c.completion.op == op);
    ours.expect("every operation is complete").completion.end_ps
}

#[test]
fn each_class_has_its_own_congestion_control() {
    let mut fabric = with_second_class(pair(), fixed(40 * GBPS));
    fabric.0.congestion_control = fixed(10 * GBPS);
    let programs = programs(2, MB, &[(0, 1, 0), (0, 1, 1)]);
    let ends: Vec<u64> = (0..2).map(|op| end_ps(fabric.clone(), &programs, 1, op)).collect();
    // 8 Mb and 2 % of headers at 10 and 40 Gb/s.
    for (end_ps, rate_gbps) in ends.iter().zip([10, 40]) {
        let ideal_ps = 8 * MB * 1000 / rate_gbps;
        assert!((ideal_ps..ideal_ps * 103 / 100).contains(end_ps), "{end_ps} of {ideal_ps}");
    }
}

/// Ranks 0 and 1 overload rank 3, and rank 0 also sends to rank 2, in the same class or another.
fn bystander_end_ps(class: u8) -> u64 {
    let mut fabric = with_second_class(star(5), fixed(400 * GBPS));
    fabric.0.congestion_control = fixed(400 * GBPS);
    for switch in &mut fabric.0.switches {
        switch.buffer_bytes = 1 << 20;
    }
    let flows = [(0, 3, 0), (1, 3, 0), (4, 3, 0), (0, 2, class)];
    end_ps(fabric, &programs(5, 8 * MB, &flows), 2, 0)
}

#[test]
fn a_pause_of_one_class_does_not_hold_back_another() {
    let (together_ps, apart_ps) = (bystander_end_ps(0), bystander_end_ps(1));
    // Alone it takes 164 us. Paused with the incast of three it gets a third of the line, in a class
    // of its own the half and what the incast cannot use.
    let alone_ps = 8 * MB * 20 * 4178 / 4096;
    println!("{alone_ps} alone, {apart_ps} apart, {together_ps} together");
    assert!(apart_ps < alone_ps * 16 / 10, "{apart_ps}");
    assert!(together_ps > alone_ps * 2, "{together_ps}");
}

#[test]
fn marks_of_one_class_slow_down_its_own_senders_only() {
    let fabric = with_second_class(star(6), fixed(20 * GBPS));
    let flows = [(0, 5, 0), (1, 5, 0), (2, 5, 0), (3, 5, 1)];
    let mut emulation = Emulation::new(fabric.0, &programs(6, 20 * MB, &flows)).expect("valid");
    assert_eq!(emulation.advance(None, 100_000_000), Progress::Done);
    let rows = emulation.world().telemetry().qps();
    let least = |class| {
        rows.iter().filter(|(_, r)| r.class == class).map(|(_, r)| r.current_rate_bps).min()
    };
    assert!(least(0).expect("sampled") < 300 * GBPS, "DCQCN reacts");
    assert_eq!(least(1), Some(20 * GBPS), "a fixed rate does not");
}

#[test]
fn more_classes_than_priorities_are_refused() {
    let mut fabric = pair();
    for _ in 0..8 {
        fabric = with_second_class(fabric, fixed(GBPS));
    }
    let refusal = Emulation::new(fabric.0, &programs(2, MB, &[(0, 1, 0)])).map(|_| ());
    assert_eq!(refusal.unwrap_err().to_string(), "number of further_classes out of range");
}
