//! Links that go down, come up, flap and change their rate while a job runs.

use _native::config::{
    EventTrigger, LinkChange, LinkChangeConfig, LinkEventConfig, NodeId, OperationId,
    ReroutingConfig,
};
use _native::engine::link_events::{Happened, LinkEventRow};
use _native::engine::medium::{Internal, wrap};
use _native::engine::program::Program;
use _native::engine::testing::{FabricBuilder, clos, star, workloads};
use _native::engine::world::World;
use _native::engine::{Emulation, Progress};
use std::sync::Arc;

const US: u64 = 1_000_000;
const SIZE_BYTES: u64 = 4 << 20;
/// Above any of these jobs.
const FOREVER_PS: u64 = 1_000_000 * US;

fn at(at_ps: u64) -> EventTrigger {
    EventTrigger::Time { at_ps }
}

fn down_for(down_ps: u64) -> Vec<LinkChangeConfig> {
    let change = |after_ps, change| LinkChangeConfig { after_ps, change };
    vec![change(0, LinkChange::Down), change(down_ps, LinkChange::Up)]
}

fn add(fabric: &mut FabricBuilder, link: u32, trigger: EventTrigger, changes: &[LinkChangeConfig]) {
    let changes = changes.to_vec();
    fabric.0.events.push(LinkEventConfig { links: vec![link], trigger, changes });
}

fn played(fabric: FabricBuilder, programs: &[Arc<Program>]) -> (Emulation, Progress) {
    let mut emulation = Emulation::new(fabric.0, programs).expect("a valid job");
    let progress = emulation.advance(None, 100_000_000);
    emulation.world_mut().finish_telemetry();
    (emulation, progress)
}

fn log(emulation: &Emulation) -> Vec<LinkEventRow> {
    emulation.world().link_events().expect("events were to happen").log().to_vec()
}

/// Whatever began to be sent has arrived or was lost, but for what is under way at the end.
fn assert_frames_accounted_for(emulation: &Emulation) {
    for (index, line) in emulation.world().lines().iter().enumerate() {
        let sent = line.totals(u64::MAX).tx_packets;
        let arrived = line.delivered().packets + line.lost().packets;
        assert!(arrived <= sent && sent - arrived < 40, "direction {index}: {arrived} of {sent}");
    }
}

fn assert_bytes_arrived(emulation: &Emulation, bytes: u64) {
    let transports = || emulation.world().hosts().map(|(_, host)| host.nic().counters().transport);
    let sent: u64 =
        transports().map(|c| c.data_payload_bytes_sent - c.data_payload_bytes_retransmitted).sum();
    assert_eq!(sent, bytes);
    assert_eq!(transports().map(|c| c.data_payload_bytes_received).sum::<u64>(), bytes);
}

fn lost_on_links(emulation: &Emulation) -> u64 {
    emulation.world().lines().iter().map(|line| line.lost().packets).sum()
}

/// Frames lost at the switches' queues because of a link, and dropped for other reasons.
fn lost_in_queues(emulation: &Emulation) -> (u64, u64) {
    let mut counts = (0, 0);
    for (_, switch) in emulation.world().switches() {
        for port in 0..switch.ports() {
            for priority in 0..8 {
                let totals = switch.queue_totals(port, priority);
                counts.0 += totals.link_down_packets;
                counts.1 += totals.dropped_packets;
            }
        }
    }
    counts
}

#[test]
fn a_message_survives_the_loss_of_its_only_link_and_ends_after_it_is_back() {
    let mut fabric = star(2);
    add(&mut fabric, 1, at(20 * US), &down_for(300 * US));
    let (emulation, progress) = played(fabric, &workloads::one_message(SIZE_BYTES));
    assert_eq!(progress, Progress::Done);
    assert!(emulation.world().now_ps() > 320 * US);
    assert!(lost_on_links(&emulation) > 5);
    let (by_link, others) = lost_in_queues(&emulation);
    assert!(by_link > 0 && others == 0, "{by_link} by the link, {others} otherwise");
    assert_frames_accounted_for(&emulation);
    assert_bytes_arrived(&emulation, SIZE_BYTES);
}

#[test]
fn a_sender_whose_link_is_down_waits_and_goes_on_by_itself() {
    let mut fabric = star(2);
    add(&mut fabric, 0, at(20 * US), &down_for(20_000 * US));
    let (emulation, progress) = played(fabric, &workloads::one_message(SIZE_BYTES));
    assert_eq!(progress, Progress::Done);
    assert!(emulation.world().now_ps() > 20_020 * US);
    assert_bytes_arrived(&emulation, SIZE_BYTES);
}

#[test]
fn a_link_that_stays_down_ends_the_job_and_is_named() {
    let mut fabric = star(3);
    add(&mut fabric, 1, at(20 * US), &down_for(FOREVER_PS)[..1]);
    let (emulation, progress) = played(fabric, &workloads::one_message(SIZE_BYTES));
    assert_eq!(progress, Progress::Stalled);
    let blocked = emulation.world().blocked(8);
    assert!(!blocked.is_empty());
    for operation in &blocked {
        let told = &operation.waiting_for;
        assert!(told.contains("link link1 is down since 20.000 us"), "{told}");
    }
}

#[test]
fn flows_leave_a_failed_uplink_for_the_others() {
    let mut fabric = clos(2, 4, 8);
    fabric.0.rerouting = ReroutingConfig { detection_delay_ps: 5 * US, convergence_delay_ps: 0 };
    // Leaf 0 to spine 0.
    add(&mut fabric, 16, at(10 * US), &down_for(FOREVER_PS)[..1]);
    let (emulation, progress) = played(fabric, &workloads::permutation(16, SIZE_BYTES));
    assert_eq!(progress, Progress::Done);
    assert_bytes_arrived(&emulation, 16 * SIZE_BYTES);
    assert_frames_accounted_for(&emulation);
    let rows = log(&emulation);
    let told: Vec<_> = rows.iter().map(|row| (row.time_ps / US, row.happened)).collect();
    assert_eq!(told, [(10, Happened::Down), (15, Happened::Avoided)]);
    let sent = |line: usize| emulation.world().lines()[line].totals(u64::MAX).tx_bytes;
    assert!(sent(32) < SIZE_BYTES, "{} over the failed link", sent(32));
    assert!((17..20).any(|link| sent(2 * link) > 2 * SIZE_BYTES));
}

#[test]
fn other_switches_leave_ways_that_lead_to_a_failed_link_once_routing_has_converged() {
    let lost = |convergence_delay_ps| {
        let mut fabric = clos(2, 2, 4);
        fabric.0.rerouting = ReroutingConfig { detection_delay_ps: US, convergence_delay_ps };
        // Leaf 1 to spine 0: leaf 0 sends to spine 0 until it knows.
        add(&mut fabric, 10, at(10 * US), &down_for(FOREVER_PS)[..1]);
        let (emulation, progress) = played(fabric, &workloads::permutation(8, SIZE_BYTES));
        assert_eq!(progress, Progress::Done);
        assert_bytes_arrived(&emulation, 8 * SIZE_BYTES);
        lost_in_queues(&emulation).0
    };
    let (soon, late) = (lost(0), lost(200 * US));
    assert!(late > 3 * soon, "{soon} lost at once, {late} after 200 us");
}

#[test]
fn a_flap_shorter_than_the_detection_is_not_noticed_by_routing() {
    let mut fabric = clos(2, 2, 4);
    fabric.0.rerouting = ReroutingConfig { detection_delay_ps: 50 * US, convergence_delay_ps: 0 };
    add(&mut fabric, 8, at(10 * US), &down_for(20 * US));
    let (emulation, progress) = played(fabric, &workloads::permutation(8, SIZE_BYTES));
    assert_eq!(progress, Progress::Done);
    let told: Vec<_> = log(&emulation).iter().map(|row| row.happened).collect();
    assert_eq!(told, [Happened::Down, Happened::Up]);
}

#[test]
fn a_link_at_a_quarter_of_its_rate_takes_four_times_as_long() {
    let time_ps = |rate_bps: Option<u64>| {
        let mut fabric = star(2);
        if let Some(rate_bps) = rate_bps {
            let change = LinkChangeConfig { after_ps: 0, change: LinkChange::Rate { rate_bps } };
            add(&mut fabric, 1, at(0), &[change]);
        }
        let (emulation, progress) = played(fabric, &workloads::one_message(SIZE_BYTES));
        assert_eq!(progress, Progress::Done);
        assert_eq!(lost_on_links(&emulation), 0);
        emulation.world().now_ps()
    };
    let ratio = time_ps(Some(100_000_000_000)) as f64 / time_ps(None) as f64;
    assert!((3.8..4.1).contains(&ratio), "{ratio}");
}

#[test]
fn an_event_happens_when_an_operation_starts_or_when_all_have_ended() {
    let operations = |ops: &[u32]| -> Vec<OperationId> {
        ops.iter().map(|op| OperationId { rank: 1, op: *op }).collect()
    };
    let moment_ps = |trigger: EventTrigger| {
        let mut fabric = star(4);
        let change =
            LinkChangeConfig { after_ps: 7, change: LinkChange::Rate { rate_bps: 1 << 38 } };
        add(&mut fabric, 3, trigger, &[change]);
        let (emulation, progress) = played(fabric, &workloads::ring(4, 3, 100_000));
        assert_eq!(progress, Progress::Done);
        let host = emulation.world().host(1).expect("it is local");
        let executor = host.executor();
        let [row] = log(&emulation)[..] else { panic!("one change") };
        (row.time_ps - 7, executor.start_ps().to_vec(), executor.end_ps().to_vec())
    };
    let (at_ps, start_ps, _) =
        moment_ps(EventTrigger::FirstStart { operations: operations(&[4, 2]) });
    assert_eq!(at_ps, start_ps[2].min(start_ps[4]));
    let (at_ps, _, end_ps) = moment_ps(EventTrigger::LastEnd { operations: operations(&[3, 0]) });
    assert_eq!(at_ps, end_ps[0].max(end_ps[3]));
}

#[test]
fn an_event_of_an_operation_that_there_is_not_is_refused() {
    let mut fabric = star(2);
    let operations = vec![OperationId { rank: 0, op: 99 }];
    add(&mut fabric, 0, EventTrigger::LastEnd { operations }, &down_for(1));
    let error = Emulation::new(fabric.0, &workloads::one_message(1)).expect_err("it is wrong");
    assert!(error.to_string().contains("operation 99 of rank 0"), "{error}");
}

#[test]
fn flapping_links_lose_frames_and_no_account_of_them_and_do_so_alike_every_time() {
    let run = || {
        let mut fabric = clos(2, 2, 4);
        fabric.0.rerouting =
            ReroutingConfig { detection_delay_ps: 3 * US, convergence_delay_ps: 2 * US };
        for flap in 0..20 {
            add(&mut fabric, flap % 12, at((5 + 11 * u64::from(flap)) * US), &down_for(6 * US));
        }
        let (emulation, progress) = played(fabric, &workloads::all_to_all(8, 1 << 20));
        assert_eq!(progress, Progress::Done);
        assert_frames_accounted_for(&emulation);
        assert_bytes_arrived(&emulation, 56 << 20);
        assert!(lost_on_links(&emulation) > 100);
        (emulation.world().now_ps(), emulation.world().events_handled(), log(&emulation))
    };
    assert_eq!(run(), run());
}

#[test]
fn a_part_of_a_job_tells_moments_and_takes_orders() {
    let mut fabric = star(2);
    let operations = vec![OperationId { rank: 0, op: 0 }, OperationId { rank: 1, op: 0 }];
    let trigger = EventTrigger::LastEnd { operations };
    add(&mut fabric, 1, trigger, &down_for(5 * US));
    add(&mut fabric, 1, at(400 * US), &down_for(5 * US));
    let programs = workloads::one_message(SIZE_BYTES);
    let medium = wrap(&fabric.0, Internal::new(&fabric.0));
    // All but the second NIC: the end of its operation is for others to tell.
    let mut world =
        World::new(Arc::new(fabric.0), &programs[..1], medium, |node| node != NodeId::Nic(1))
            .expect("a valid part");
    world.start();
    assert_eq!(world.take_moments(), [], "the message has not arrived");
    world.order_event(0, 100 * US);
    world.order_event(0, 1);
    world.order_event(1, 1); // It has a time of its own.
    world.order_event(9, 1);
    while world.step(300 * US).is_some() {}
    let (orders, ends) = world.link_events().expect("it has some").of_part().expect("a part");
    assert_eq!(orders.iter().map(|o| (o.event, o.base_ps)).collect::<Vec<_>>(), [(0, 100 * US)]);
    let ends: Vec<_> = ends.iter().map(|row| (row.time_ps / US, row.end, row.happened)).collect();
    assert_eq!(ends, [(100, 3, Happened::Down), (105, 3, Happened::Up)], "the switch's end alone");
}
