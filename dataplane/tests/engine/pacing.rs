//! Rates that change while a packet waits for its time.

use _native::config::CongestionControlConfig;
use _native::engine::testing::{star, workloads};
use _native::engine::{Emulation, Progress};

const US: u64 = 1_000_000;
const MB: u64 = 1_000_000;

/// At 1 Mb/s the packet after the first notification is due in 33 ms, but the rate is up again 55 us
/// later. A sender that keeps a time computed at the old rate would sleep through all recovery.
/// Source: the second of the instabilities of DCQCN's implementations, an unarmed pacer.
fn finished(rearms_pacer: bool) -> Emulation {
    let mut fabric = star(3);
    let CongestionControlConfig::Dcqcn(dcqcn) = &mut fabric.0.congestion_control else {
        panic!("the builder's congestion control is DCQCN");
    };
    dcqcn.rearms_pacer = rearms_pacer;
    dcqcn.rate_on_first_cnp_bps = 1_000_000;
    dcqcn.min_rate_bps = 1_000_000;
    dcqcn.fast_recovery_stages = 0;
    dcqcn.additive_increase_bps = 40_000_000_000;
    let mut emulation = Emulation::new(fabric.0, &workloads::incast(3, 4 * MB)).expect("valid");
    assert_eq!(emulation.advance(None, 100_000_000), Progress::Done);
    let rows = emulation.world().telemetry().qps();
    assert!(rows.iter().any(|(_, row)| row.current_rate_bps == 1_000_000), "the rate was cut");
    emulation
}

#[test]
fn t10_the_pacer_is_armed_anew_when_the_rate_rises() {
    let now_ps = finished(true).world().now_ps();
    assert!(now_ps < 3_000 * US, "{now_ps}: a packet waits 33 000 us at the lowest rate");
}

/// HPCC's ns-3 does not move the next send time when the rate changes; an option does the same.
#[test]
fn a_pacer_that_is_not_armed_anew_sleeps_through_the_recovery() {
    assert!(finished(false).world().now_ps() > 33_000 * US);
}
