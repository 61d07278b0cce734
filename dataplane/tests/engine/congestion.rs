//! Whole jobs under each congestion control and path selection.

use _native::config::{CongestionControlConfig, LossRecovery, PathSelection, SwiftConfig};
use _native::engine::program::Program;
use _native::engine::testing::{FabricBuilder, clos, star, workloads};
use _native::engine::{Emulation, Progress};
use _native::fabric::QueueTotals;
use std::sync::Arc;

const US: u64 = 1_000_000;
const MB: u64 = 1_000_000;
/// Time of a byte at 400 Gb/s.
const BYTE_PS: u64 = 20;

/// A round trip without queues is about 3 us here.
fn swift() -> SwiftConfig {
    SwiftConfig {
        packet_bytes: 4096,
        base_target_delay_ps: 10 * US,
        flow_scaling_range_ps: 0,
        flow_scaling_min_packets: 0.1,
        flow_scaling_max_packets: 100.0,
        additive_increase_packets: 1.0,
        beta: 0.8,
        max_decrease_ratio: 0.5,
        initial_window_packets: 32.0,
        min_window_packets: 0.01,
        max_window_packets: 4096.0,
        timeouts_to_min_window: 5,
    }
}

fn finished(fabric: FabricBuilder, programs: &[Arc<Program>]) -> Emulation {
    let mut emulation = Emulation::new(fabric.0, programs).expect("a valid job");
    assert_eq!(emulation.advance(None, 100_000_000), Progress::Done);
    emulation
}

/// Sums over all queues of all switches.
fn totals(emulation: &Emulation) -> QueueTotals {
    let mut totals = QueueTotals::default();
    for (_, switch) in emulation.world().switches() {
        for port in 0..switch.ports() {
            (0..8).for_each(|priority| totals.add(&switch.queue_totals(port, priority)));
        }
    }
    totals
}

/// Most bytes that the first switch held.
fn held_bytes(emulation: &Emulation) -> u64 {
    let (_, switch) = emulation.world().switches().next().expect("there is one");
    switch.buffer().max_used_bytes()
}

fn swift_incast(config: SwiftConfig) -> Emulation {
    let mut fabric = star(9);
    fabric.0.congestion_control = CongestionControlConfig::Swift(config);
    fabric.0.transport.ack_every_packets = 1;
    finished(fabric, &workloads::incast(9, 8 * MB))
}

#[test]
fn swift_keeps_the_queue_of_an_incast_at_its_target_and_the_line_full() {
    let emulation = swift_incast(swift());
    let ideal_ps = 8 * 8 * MB * BYTE_PS * 4178 / 4096;
    let now_ps = emulation.world().now_ps();
    println!("{now_ps} of {ideal_ps}, {} bytes held", held_bytes(&emulation));
    assert!(now_ps < ideal_ps * 105 / 100, "{now_ps} of {ideal_ps}");
    let target_bytes = 10 * US / BYTE_PS;
    assert!(held_bytes(&emulation) < 8 * 32 * 4158 + target_bytes);
    assert_eq!(totals(&emulation).dropped_packets, 0);
}

/// Eight hosts of each of two leaves send to the other leaf over eight spines.
fn permutation_ps(path_selection: PathSelection) -> u64 {
    let mut fabric = clos(2, 8, 8);
    for switch in &mut fabric.0.switches {
        switch.path_selection = path_selection;
    }
    fabric.0.transport.loss_recovery = LossRecovery::SelectiveRepeat;
    fabric.0.transport.reordering_packets = 64;
    let emulation = finished(fabric, &workloads::permutation(16, 4 * MB));
    assert_eq!(totals(&emulation).dropped_packets, 0);
    println!("{path_selection:?}: {} ps", emulation.world().now_ps());
    emulation.world().now_ps()
}

/// A receiver asks again for every packet that another one overtakes, so spraying by chance pays for
/// the reordering that it causes; by the shortest queue there is hardly any.
#[test]
fn spraying_over_the_shortest_queues_evens_out_what_flows_collide_on() {
    let by_flow_ps = permutation_ps(PathSelection::Flow);
    let sprayed_ps = permutation_ps(PathSelection::Packet);
    let shortest_ps = permutation_ps(PathSelection::ShortestQueue);
    let ideal_ps = 4 * MB * BYTE_PS * 4178 / 4096;
    assert!(by_flow_ps > ideal_ps * 3 / 2, "two flows share some spine: {by_flow_ps}");
    assert!(sprayed_ps > shortest_ps, "{sprayed_ps}");
    assert!(shortest_ps < ideal_ps * 110 / 100, "{shortest_ps} of {ideal_ps}");
}
