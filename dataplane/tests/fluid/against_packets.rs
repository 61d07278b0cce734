//! The same jobs as flows and as packets: equal where nothing queues, near where something does.

use _native::config::{CongestionControlConfig, JobConfig, PathSelection, QpDistribution};
use _native::engine::program::Program;
use _native::engine::testing::{FabricBuilder, clos, pair, star, workloads};
use _native::engine::{self, Progress};
use _native::fluid;
use std::sync::Arc;

fn flows(config: JobConfig, programs: &[Arc<Program>]) -> fluid::Emulation {
    let mut emulation = fluid::Emulation::new(config, programs, 0.01).expect("a valid job");
    assert_eq!(emulation.advance(None, u64::MAX), Progress::Done);
    emulation.finish_telemetry();
    emulation
}

/// End of every operation, rank by rank, as flows and as packets.
fn ends_ps(fabric: FabricBuilder, programs: &[Arc<Program>]) -> (Vec<u64>, Vec<u64>) {
    let mut packets = engine::Emulation::new(fabric.0.clone(), programs).expect("a valid job");
    assert_eq!(packets.advance(None, u64::MAX), Progress::Done);
    let hosts = packets.world().hosts();
    let of_packets = hosts.flat_map(|(_, h)| h.executor().end_ps().to_vec()).collect();
    let fluid = flows(fabric.0, programs);
    let executors = (0..programs.len() as u32).filter_map(|nic| fluid.executor(nic));
    (executors.flat_map(|executor| executor.end_ps().to_vec()).collect(), of_packets)
}

fn last_ratio((flows, packets): (Vec<u64>, Vec<u64>)) -> f64 {
    let last = |ends: Vec<u64>| *ends.iter().max().expect("there are operations") as f64;
    last(flows) / last(packets)
}

#[test]
fn a_message_alone_ends_when_its_packets_do() {
    for (fabric, ends) in [(pair(), 1), (star(2), 1), (clos(2, 2, 1), 1)] {
        for size_bytes in [0, 1, 4096, 1 << 20] {
            let programs = workloads::incast(ends + 1, size_bytes);
            let (flows, packets) = ends_ps(fabric.clone(), &programs);
            for (flow_ps, packet_ps) in flows.iter().zip(&packets) {
                // Store-and-forward of the trailing headers and gaps: less than ten bytes a hop.
                let apart_ps = flow_ps.abs_diff(*packet_ps);
                assert!(apart_ps <= 5 * 20 * 40, "{size_bytes} B: {flow_ps} and {packet_ps}");
            }
        }
    }
}

#[test]
fn a_ring_where_nothing_queues_differs_by_little() {
    let ends = ends_ps(star(8), &workloads::ring(8, 14, 1 << 20));
    for (flow_ps, packet_ps) in ends.0.iter().zip(&ends.1) {
        let ratio = *flow_ps as f64 / *packet_ps as f64;
        assert!((ratio - 1.0).abs() < 0.01, "{flow_ps} and {packet_ps}");
    }
}

#[test]
fn an_incast_takes_its_bytes_over_the_last_link() {
    let ratio = last_ratio(ends_ps(star(8), &workloads::incast(8, 4 << 20)));
    assert!((ratio - 1.0).abs() < 0.1, "{ratio}");
}

#[test]
fn collisions_of_the_hash_are_those_of_the_packets() {
    // At line rate with pauses alone, so that what is measured is the paths and not the search for
    // the fair rate.
    let mut fabric = clos(4, 2, 2);
    fabric.0.congestion_control = CongestionControlConfig::FixedRate { rate_bps: None };
    let ends = ends_ps(fabric, &workloads::permutation(8, 8 << 20));
    let ratio = last_ratio(ends);
    assert!((ratio - 1.0).abs() < 0.1, "{ratio}");
}

#[test]
fn stripes_and_clearing_to_send_and_sprayed_packets_end() {
    let mut fabric = clos(2, 2, 4);
    fabric.0.transport.qps_per_peer = 3;
    fabric.0.transport.qp_distribution = QpDistribution::Split;
    fabric.0.transport.clear_to_send = true;
    for switch in &mut fabric.0.switches {
        switch.path_selection = PathSelection::Packet;
    }
    let programs = workloads::all_to_all(8, 1 << 20);
    let emulation = flows(fabric.0, &programs);
    let totals: Vec<_> = (0..8).filter_map(|nic| emulation.totals(nic)).collect();
    assert!(totals.iter().all(|nic| nic.sent_bytes == 7 << 20 && nic.received_bytes == 7 << 20));
    assert!(totals.iter().all(|nic| nic.clear_to_send_sent == 7));
}

#[test]
fn links_carry_the_bytes_of_the_messages() {
    let emulation = flows(clos(2, 2, 4).0, &workloads::all_to_all(8, 1 << 20));
    let rows = emulation.loads().rows();
    // The NICs' links are the first; every message enters by one and leaves by one.
    let of_nics = rows.iter().filter(|(_, row)| row.direction < 16);
    let payload: u64 = of_nics.map(|(_, row)| row.data_bytes).sum();
    assert!(payload.abs_diff(112 << 20) < 16 * rows.len() as u64, "{payload}");
    assert!(rows.iter().all(|(_, row)| row.busy_ps <= emulation.loads().interval_ps() + 10));
}

#[test]
fn a_window_limits_the_rate() {
    let mut fabric = pair();
    fabric.0.transport.window_packets = 1;
    let ratio = last_ratio(ends_ps(fabric, &workloads::one_message(1 << 20)));
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
}

#[test]
fn a_job_repeats_bit_for_bit() {
    let ends = || {
        let emulation = flows(clos(2, 2, 4).0, &workloads::all_to_all(8, 1 << 20));
        let executors = (0..8).filter_map(|nic| emulation.executor(nic));
        let ends: Vec<_> = executors.map(|executor| executor.end_ps().to_vec()).collect();
        (ends, emulation.loads().rows().to_vec())
    };
    assert_eq!(ends(), ends());
}
