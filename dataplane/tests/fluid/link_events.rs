//! Links that change under flows: when flows end, which way they take, and who waits.

use _native::config::{
    CongestionControlConfig, EventTrigger, FailureHashing, LinkChange, LinkChangeConfig,
    LinkEventConfig, OperationId, ReroutingConfig,
};
use _native::engine::link_events::{Happened, LinkEventRow};
use _native::engine::program::Program;
use _native::engine::records::Column;
use _native::engine::testing::{FabricBuilder, clos, star, workloads};
use _native::engine::{self, Progress};
use _native::fluid;
use std::collections::BTreeMap;
use std::sync::Arc;

const US: u64 = 1_000_000;
const SIZE_BYTES: u64 = 4 << 20;

/// At line rate with pauses alone, so that what is measured is the links and not the search for the
/// fair rate.
fn at_line_rate(mut fabric: FabricBuilder) -> FabricBuilder {
    fabric.0.congestion_control = CongestionControlConfig::FixedRate { rate_bps: None };
    fabric
}

fn add(fabric: &mut FabricBuilder, link: u32, at_ps: u64, changes: &[(u64, LinkChange)]) {
    let change = |&(after_ps, change): &(u64, LinkChange)| LinkChangeConfig { after_ps, change };
    let changes = changes.iter().map(change).collect();
    let trigger = EventTrigger::Time { at_ps };
    fabric.0.events.push(LinkEventConfig { links: vec![link], trigger, changes });
}

/// As flows and as packets, to the end.
fn both(fabric: FabricBuilder, programs: &[Arc<Program>]) -> (fluid::Emulation, engine::Emulation) {
    let mut packets = engine::Emulation::new(fabric.0.clone(), programs).expect("a valid job");
    assert_eq!(packets.advance(None, u64::MAX), Progress::Done);
    let mut flows = fluid::Emulation::new(fabric.0, programs, 0.01).expect("a valid job");
    assert_eq!(flows.advance(None, u64::MAX), Progress::Done);
    flows.finish_telemetry();
    (flows, packets)
}

/// Time of the flows over time of the packets.
fn ratio(fabric: FabricBuilder, programs: &[Arc<Program>]) -> f64 {
    let (flows, packets) = both(fabric, programs);
    flows.now_ps() as f64 / packets.world().now_ps() as f64
}

fn happened(rows: &[LinkEventRow]) -> Vec<(u64, Happened)> {
    rows.iter().map(|row| (row.time_ps, row.happened)).collect()
}

fn column(table: &[(&'static str, Column)], name: &str) -> Vec<u64> {
    let (_, column) = table.iter().find(|(own, _)| *own == name).expect("it is there");
    match column {
        Column::U8(values) => values.iter().map(|value| u64::from(*value)).collect(),
        Column::U16(values) => values.iter().map(|value| u64::from(*value)).collect(),
        Column::U32(values) => values.iter().map(|value| u64::from(*value)).collect(),
        Column::U64(values) => values.clone(),
        other => panic!("{other:?}"),
    }
}

/// Payload by source rank, link and direction.
fn payloads(tables: &[(&'static str, Vec<(&'static str, Column)>)]) -> BTreeMap<[u64; 3], u64> {
    let (_, table) = tables.iter().find(|(name, _)| *name == "flow_links").expect("it is on");
    let [source, link, direction, payload] =
        ["source_rank", "link", "direction", "data_bytes"].map(|name| column(table, name));
    let mut payloads = BTreeMap::new();
    for row in 0..link.len() {
        *payloads.entry([source[row], link[row], direction[row]]).or_insert(0) += payload[row];
    }
    payloads
}

#[test]
fn a_link_that_slows_down_carries_the_rest_at_the_new_rate() {
    let mut fabric = at_line_rate(star(2));
    let rate_bps = 100_000_000_000;
    add(&mut fabric, 1, 40 * US, &[(0, LinkChange::Rate { rate_bps })]);
    let (flows, packets) = both(fabric, &workloads::one_message(SIZE_BYTES));
    let ratio = flows.now_ps() as f64 / packets.world().now_ps() as f64;
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
    let busy_ps: u64 =
        flows.loads().rows().iter().filter(|(_, r)| r.direction == 3).map(|(_, r)| r.busy_ps).sum();
    let spare_ps = flows.now_ps() - busy_ps;
    assert!(spare_ps < 5 * US, "busy from the first byte to the last, but for {spare_ps} ps");
}

#[test]
fn a_link_that_gets_faster_lets_a_flow_go_above_its_first_peak() {
    let slow_bps = 100_000_000_000;
    let mut fabric = at_line_rate(star(2));
    add(&mut fabric, 1, 0, &[(0, LinkChange::Rate { rate_bps: slow_bps })]);
    add(&mut fabric, 1, 100 * US, &[(0, LinkChange::Rate { rate_bps: 4 * slow_bps })]);
    let ratio = ratio(fabric, &workloads::one_message(SIZE_BYTES));
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
}

#[test]
fn a_flow_whose_sender_still_has_packets_goes_on_when_the_link_is_up() {
    let mut fabric = at_line_rate(star(2));
    add(&mut fabric, 1, 20 * US, &[(0, LinkChange::Down), (30 * US, LinkChange::Up)]);
    let ratio = ratio(fabric, &workloads::one_message(SIZE_BYTES));
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
}

#[test]
fn a_sender_that_has_fallen_silent_waits_for_its_timer() {
    let mut fabric = at_line_rate(star(2));
    // All packets have left before the link is up again.
    add(&mut fabric, 1, 20 * US, &[(0, LinkChange::Down), (300 * US, LinkChange::Up)]);
    let ratio = ratio(fabric, &workloads::one_message(SIZE_BYTES));
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
}

#[test]
fn a_sender_whose_own_link_is_down_goes_on_with_it() {
    let mut fabric = at_line_rate(star(2));
    add(&mut fabric, 0, 20 * US, &[(0, LinkChange::Down), (300 * US, LinkChange::Up)]);
    let ratio = ratio(fabric, &workloads::one_message(SIZE_BYTES));
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
}

#[test]
fn flows_leave_a_failed_uplink_by_the_hash_of_the_packets() {
    for hashing in [FailureHashing::Modulo, FailureHashing::Resilient] {
        let mut fabric = at_line_rate(clos(2, 4, 8));
        fabric.0.telemetry.flow_paths = true;
        fabric.0.rerouting = ReroutingConfig { detection_delay_ps: 0, convergence_delay_ps: 0 };
        fabric.0.switches.iter_mut().for_each(|switch| switch.failure_hashing = hashing);
        // Leaf 0 to spine 0, before anything has got there: all goes over what is left.
        add(&mut fabric, 16, 0, &[(0, LinkChange::Down)]);
        let (flows, packets) = both(fabric, &workloads::permutation(16, SIZE_BYTES));
        let log = flows.link_events().expect("one was to happen").log();
        let told = [(0, Happened::Down), (0, Happened::Avoided)];
        assert_eq!(happened(log), told);
        assert_eq!(log, packets.world().link_events().expect("likewise").log());
        let of_flows = payloads(&flows.record_tables());
        let of_packets = payloads(&packets.world().record_tables());
        for (place, payload) in &of_flows {
            assert_eq!(*payload, SIZE_BYTES, "{place:?}");
            let crossed = of_packets.get(place).copied().unwrap_or(0);
            assert!(crossed >= SIZE_BYTES, "{place:?}: {crossed} bytes of packets");
        }
    }
}

#[test]
fn a_flow_that_is_moved_leaves_its_bytes_where_it_sent_them() {
    let mut fabric = at_line_rate(clos(2, 2, 1));
    fabric.0.telemetry.flow_paths = true;
    for spine in 0..2 {
        let up_us = if spine == 0 { 20 } else { 60 };
        add(
            &mut fabric,
            2 + spine,
            up_us * US,
            &[(0, LinkChange::Down), (20 * US, LinkChange::Up)],
        );
    }
    let programs = workloads::incast(2, SIZE_BYTES);
    let (flows, _) = both(fabric, &programs);
    let of_flows = payloads(&flows.record_tables());
    let uplinks: Vec<u64> = (2..6)
        .flat_map(|link| {
            [0, 1].map(|direction| {
                of_flows
                    .iter()
                    .filter(|(place, _)| place[1..] == [link, direction])
                    .map(|(_, payload)| payload)
                    .sum::<u64>()
            })
        })
        .collect();
    let sent: u64 = uplinks.iter().sum();
    assert!(sent.abs_diff(2 * SIZE_BYTES) < 8, "over one uplink and one downlink: {uplinks:?}");
    assert!(uplinks.iter().filter(|payload| **payload > 0).count() >= 3, "{uplinks:?}");
}

#[test]
fn an_event_waits_for_an_operation() {
    let mut fabric = star(4);
    let operations = vec![OperationId { rank: 1, op: 3 }];
    let change = LinkChange::Rate { rate_bps: 1 << 37 };
    let changes = vec![LinkChangeConfig { after_ps: 7, change }];
    let trigger = EventTrigger::LastEnd { operations };
    fabric.0.events.push(LinkEventConfig { links: vec![3], trigger, changes });
    let (flows, _) = both(fabric, &workloads::ring(4, 3, 100_000));
    let end_ps = flows.executor(1).expect("it has a program").end_ps()[3];
    let [row] = flows.link_events().expect("it has come").log() else { panic!("one change") };
    assert_eq!(row.time_ps, end_ps + 7);
}

#[test]
fn a_link_that_stays_down_ends_the_job_and_is_named() {
    let mut fabric = star(3);
    add(&mut fabric, 1, 20 * US, &[(0, LinkChange::Down)]);
    let programs = workloads::one_message(SIZE_BYTES);
    let mut flows = fluid::Emulation::new(fabric.0, &programs, 0.01).expect("a valid job");
    assert_eq!(flows.advance(None, u64::MAX), Progress::Stalled);
    let blocked = flows.blocked(8);
    assert!(!blocked.is_empty());
    for operation in &blocked {
        let told = &operation.waiting_for;
        assert!(told.contains("link link1 is down since 20.000 us"), "{told}");
    }
}

#[test]
fn flapping_links_end_alike_every_time() {
    let run = || {
        let mut fabric = clos(2, 2, 4);
        fabric.0.rerouting =
            ReroutingConfig { detection_delay_ps: 3 * US, convergence_delay_ps: 2 * US };
        for flap in 0..20_u32 {
            let at_ps = (5 + 11 * u64::from(flap)) * US;
            add(&mut fabric, flap % 12, at_ps, &[(0, LinkChange::Down), (6 * US, LinkChange::Up)]);
        }
        let (flows, _) = both(fabric, &workloads::all_to_all(8, 1 << 20));
        let received: u64 =
            (0..8).filter_map(|nic| flows.totals(nic)).map(|t| t.received_bytes).sum();
        assert_eq!(received, 56 << 20);
        (flows.now_ps(), flows.events_handled(), flows.loads().rows().to_vec())
    };
    assert_eq!(run(), run());
}
