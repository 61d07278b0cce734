//! Impairments do what their rule says, to the frames that it names, and are counted.

use _native::config::{ImpairmentConfig, PacketKind};
use _native::engine::impairment::ImpairmentCounters;
use _native::engine::records::Column;
use _native::engine::testing::{FabricBuilder, pair, star, workloads};
use _native::engine::world::Medium;
use _native::engine::{Emulation, Progress};
use _native::units::PS_PER_US;

const SIZE_BYTES: u64 = 4 << 20;
const PACKETS: u64 = SIZE_BYTES / 4096;

/// A rule without effect for what leaves NIC 0 of a builder's fabric.
fn from_nic_0() -> ImpairmentConfig {
    ImpairmentConfig {
        directions: vec![0],
        packets: Vec::new(),
        opcodes: Vec::new(),
        loss_ratio: 0.0,
        corruption_ratio: 0.0,
        duplication_ratio: 0.0,
        reordering_ratio: 0.0,
        reordering_ps: 0,
        delay_ps: 0,
        jitter_ps: 0,
    }
}

/// One message from rank 0 to rank 1, which must arrive whole.
fn deliver(mut fabric: FabricBuilder, rules: Vec<ImpairmentConfig>) -> Emulation {
    fabric.0.impairments = rules;
    let programs = workloads::one_message(SIZE_BYTES);
    let mut emulation = Emulation::new(fabric.0, &programs).expect("a valid job");
    assert_eq!(emulation.advance(None, 100_000_000), Progress::Done);
    let received = receiver(&emulation);
    assert_eq!(received.transport.data_payload_bytes_received, SIZE_BYTES);
    assert_eq!(received.transport.payload_mismatches, 0);
    emulation
}

fn receiver(emulation: &Emulation) -> _native::engine::nic::NicCounters {
    let mut hosts = emulation.world().hosts();
    hosts.find(|&(nic, _)| nic == 1).expect("there is NIC 1").1.nic().counters()
}

fn counters(emulation: &Emulation) -> ImpairmentCounters {
    let of_directions = emulation.world().medium().impairments();
    assert_eq!(of_directions.len(), 1, "one direction is impaired");
    assert_eq!(of_directions[0].0, 0);
    of_directions[0].1
}

fn column(emulation: &Emulation, table: &str, name: &str) -> Vec<u64> {
    let tables = emulation.world().counter_tables();
    let (_, table) = tables.iter().find(|(key, _)| *key == table).expect("the table");
    match &table.iter().find(|(key, _)| *key == name).expect("the column").1 {
        Column::U64(values) => values.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_rule_without_effect_changes_nothing_but_its_count() {
    let plain = deliver(pair(), Vec::new());
    let ruled = deliver(pair(), vec![from_nic_0()]);
    assert_eq!(ruled.world().now_ps(), plain.world().now_ps());
    let packets = ImpairmentCounters { packets: PACKETS, ..Default::default() };
    assert_eq!(counters(&ruled), packets);
}

#[test]
fn losses_are_as_many_as_asked_and_made_good() {
    let emulation = deliver(pair(), vec![ImpairmentConfig { loss_ratio: 0.02, ..from_nic_0() }]);
    let counted = counters(&emulation);
    let ratio = counted.lost as f64 / counted.packets as f64;
    assert!((0.01..0.03).contains(&ratio), "{counted:?}");
    assert_eq!(counted.packets - counted.lost, receiver(&emulation).rx_packets);
    assert_eq!(column(&emulation, "impairments", "lost"), [counted.lost]);
}

#[test]
fn damaged_frames_pass_a_switch_and_fail_the_icrc_at_the_nic() {
    let rule = ImpairmentConfig { corruption_ratio: 0.02, ..from_nic_0() };
    let emulation = deliver(star(2), vec![rule]);
    let corrupted = counters(&emulation).corrupted;
    assert!(corrupted > 0);
    assert_eq!(column(&emulation, "nics", "rx_icrc_errors"), [0, corrupted]);
}

#[test]
fn repeated_frames_arrive_twice_and_count_as_duplicates() {
    let rule = ImpairmentConfig { duplication_ratio: 0.05, ..from_nic_0() };
    let emulation = deliver(pair(), vec![rule]);
    let duplicated = counters(&emulation).duplicated;
    assert!(duplicated > 20, "{duplicated}");
    // A copy of the last frame may still be under way when the job is done.
    let seen = receiver(&emulation).transport.duplicate_requests;
    assert!((duplicated - 1..=duplicated).contains(&seen), "{seen} of {duplicated}");
}

#[test]
fn reordered_frames_are_overtaken() {
    let rule =
        ImpairmentConfig { reordering_ratio: 0.01, reordering_ps: PS_PER_US, ..from_nic_0() };
    let emulation = deliver(pair(), vec![rule]);
    assert!(counters(&emulation).reordered > 0);
    assert!(receiver(&emulation).transport.out_of_sequence > 0);
}

#[test]
fn delay_and_jitter_come_on_top_of_the_link_and_keep_the_order() {
    let plain = deliver(pair(), Vec::new()).world().now_ps();
    let (delay_ps, jitter_ps) = (7 * PS_PER_US, 3 * PS_PER_US);
    let emulation = deliver(pair(), vec![ImpairmentConfig { delay_ps, jitter_ps, ..from_nic_0() }]);
    let late_ps = emulation.world().now_ps() - plain;
    assert!((delay_ps..=delay_ps + jitter_ps).contains(&late_ps), "{late_ps}");
    assert_eq!(receiver(&emulation).transport.out_of_sequence, 0);
    assert_eq!(counters(&emulation).delayed, PACKETS);
}

#[test]
fn a_rule_applies_to_the_kinds_that_it_names_only() {
    let packets = vec![PacketKind::Acknowledge, PacketKind::Cnp];
    let rule = ImpairmentConfig { packets, loss_ratio: 1.0, ..from_nic_0() };
    let emulation = deliver(pair(), vec![rule]);
    assert_eq!(emulation.world().medium().impairments(), [], "rank 0 sends WRITEs alone");
}

#[test]
fn the_same_seed_brings_the_same_misfortune() {
    let rule = || vec![ImpairmentConfig { loss_ratio: 0.01, ..from_nic_0() }];
    let (once, again) = (deliver(pair(), rule()), deliver(pair(), rule()));
    assert_eq!(counters(&once), counters(&again));
    assert_eq!(once.world().now_ps(), again.world().now_ps());
    let mut other = pair();
    other.0.seed = 2;
    assert_ne!(deliver(other, rule()).world().now_ps(), once.world().now_ps());
}

#[test]
fn a_rule_may_name_single_opcodes() {
    // RC_RDMA_WRITE_LAST_WITH_IMMEDIATE, of which a message has one.
    let last = ImpairmentConfig { opcodes: vec![0x09], delay_ps: PS_PER_US, ..from_nic_0() };
    let emulation = deliver(pair(), vec![last.clone()]);
    let expected = ImpairmentCounters { packets: 1, delayed: 1, ..Default::default() };
    assert_eq!(counters(&emulation), expected);
    let middle = ImpairmentConfig { opcodes: vec![0x07], loss_ratio: 0.02, ..from_nic_0() };
    let both = counters(&deliver(pair(), vec![middle, last]));
    assert!(both.lost > 0 && both.packets > PACKETS - 1, "the first packet is of neither");
}

#[test]
fn opcodes_and_kinds_of_a_rule_add_up() {
    let rule = ImpairmentConfig {
        directions: vec![1],
        packets: vec![PacketKind::Cnp],
        opcodes: vec![0x11],
        ..from_nic_0()
    };
    let emulation = deliver(pair(), vec![rule]);
    let of_directions = emulation.world().medium().impairments();
    assert_eq!(of_directions.len(), 1, "acknowledgements go from end b");
    assert!(of_directions[0].1.packets > 0);
}
