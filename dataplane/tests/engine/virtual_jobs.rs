//! Jobs on small fabrics: times, bytes and counts that must hold.

use _native::config::JobConfig;
use _native::engine::program::Program;
use _native::engine::rows::LinkRow;
use _native::engine::testing::{FabricBuilder, clos, pair, star, workloads};
use _native::engine::{Emulation, Progress};
use std::sync::Arc;

const MTU: u64 = 4096;

fn finished(fabric: FabricBuilder, programs: &[Arc<Program>]) -> Emulation {
    let mut emulation = Emulation::new(fabric.0, programs).expect("a valid job");
    assert_eq!(emulation.advance(None, 100_000_000), Progress::Done);
    emulation.world_mut().finish_telemetry();
    emulation
}

fn end_ps(emulation: &Emulation, rank: u32, op: usize) -> u64 {
    let (_, host) = emulation.world().hosts().nth(rank as usize).expect("the rank is local");
    host.executor().end_ps()[op]
}

/// Bytes on the line of a message in MTU-sized packets, preamble and gap included.
fn line_bytes(size_bytes: u64) -> u64 {
    let packets = size_bytes.div_ceil(MTU);
    size_bytes + packets * (14 + 20 + 8 + 12 + 4 + 4 + 20) + 16 + 4
}

#[test]
fn an_uncongested_transfer_takes_its_bytes_over_the_rate_and_the_delay() {
    let size_bytes = 10 << 20;
    let emulation = finished(pair(), &workloads::one_message(size_bytes));
    let ideal_ps = line_bytes(size_bytes) * 20 + 500_000;
    let arrival_ps = end_ps(&emulation, 1, 0);
    assert!(arrival_ps.abs_diff(ideal_ps) <= MTU * 20, "{arrival_ps} against {ideal_ps}");
    let acknowledged_ps = end_ps(&emulation, 0, 0);
    assert!(acknowledged_ps > arrival_ps + 500_000 && acknowledged_ps < arrival_ps + 510_000);
}

#[test]
fn every_hop_adds_one_packet_time_and_its_delay() {
    let size_bytes = 10 << 20;
    let emulation = finished(clos(2, 2, 4), &workloads::permutation(8, size_bytes));
    let _ = emulation;
    let emulation = finished(star(2), &workloads::one_message(size_bytes));
    let ideal_ps = line_bytes(size_bytes) * 20 + 2 * 500_000 + 4096 * 20;
    assert!(end_ps(&emulation, 1, 0).abs_diff(ideal_ps) <= MTU * 20);
}

fn assert_bytes_conserved(emulation: &Emulation) {
    let (mut sent, mut again, mut received) = (0, 0, 0);
    for (_, host) in emulation.world().hosts() {
        let counters = host.nic().counters();
        sent += counters.transport.data_payload_bytes_sent;
        again += counters.transport.data_payload_bytes_retransmitted;
        received += counters.transport.data_payload_bytes_received;
        assert_eq!(host.unexpected_messages(), 0);
        assert_eq!(counters.transport.payload_mismatches, 0);
        assert_eq!(counters.unknown_qp_packets, 0);
    }
    let programs = emulation.world().hosts().map(|(_, host)| host.executor().program().clone());
    let posted: u64 = programs
        .flat_map(|p| {
            (0..p.len()).filter(|&i| p.kind[i] == 0).map(|i| p.size_bytes[i]).collect::<Vec<_>>()
        })
        .sum();
    assert_eq!(received, posted);
    assert_eq!(sent - again, posted);
}

#[test]
fn jobs_of_every_shape_end_with_every_byte_delivered_once() {
    let jobs = [
        (star(8), workloads::ring(8, 14, 1 << 20)),
        (clos(2, 2, 4), workloads::ring(8, 14, 999_983)),
        (clos(2, 2, 4), workloads::all_to_all(8, 1 << 20)),
        (clos(2, 2, 4), workloads::permutation(8, 3 << 20)),
        (star(8), workloads::incast(8, 4 << 20)),
        (star(3), workloads::ring(3, 4, 0)),
    ];
    for (fabric, programs) in jobs {
        assert_bytes_conserved(&finished(fabric, &programs));
    }
}

#[test]
fn a_job_repeats_bit_for_bit() {
    let run = || {
        let emulation = finished(clos(2, 2, 4), &workloads::all_to_all(8, 1 << 20));
        let world = emulation.world();
        let times: Vec<u64> =
            world.hosts().flat_map(|(_, h)| h.executor().end_ps().to_vec()).collect();
        (times, world.events_handled(), world.telemetry().queues().to_vec())
    };
    assert_eq!(run(), run());
}

#[test]
fn a_coarse_series_and_a_fine_one_tell_the_same_totals() {
    let totals = |max_samples| {
        let mut fabric = star(4);
        fabric.0.telemetry.max_samples = max_samples;
        let emulation = finished(fabric, &workloads::ring(4, 6, 1 << 20));
        let telemetry = emulation.world().telemetry();
        let links = telemetry.links();
        let mut places: Vec<_> = links.iter().map(|(s, row)| (*s, row.direction)).collect();
        places.dedup();
        assert_eq!(places.len(), links.len(), "one row per sample and direction");
        let sum = |of: fn(&LinkRow) -> u64| links.iter().map(|(_, row)| of(row)).sum::<u64>();
        assert!(links.iter().all(|(_, row)| row.busy_ps <= telemetry.interval_ps()));
        (sum(|r| r.tx_bytes), sum(|r| r.tx_packets), sum(|r| r.data_bytes), sum(|r| r.busy_ps))
    };
    let fine = totals(1000);
    for max_samples in [2, 3, 7, 64] {
        assert_eq!(totals(max_samples), fine);
    }
}

/// A new key without a default would otherwise show only when the fuzz targets run.
#[test]
fn the_first_inputs_of_the_fuzz_target_for_jobs_are_jobs_as_they_are_now() {
    for text in [
        include_str!("../../fuzz/seeds/job/pair.json"),
        include_str!("../../fuzz/seeds/job/star.json"),
    ] {
        let config: JobConfig = serde_json::from_str(text).expect("every key that has no default");
        assert!(Emulation::new(config, &workloads::one_message(1)).is_ok());
    }
}
