//! Job configurations: refused, or run in virtual time.

use _native::config::JobConfig;
use _native::engine::Emulation;
use _native::engine::program::Program;
use _native::engine::testing::ProgramBuilder;
use std::sync::Arc;

/// Ranks that take part, at most.
const RANKS: usize = 4;
const MESSAGE_BYTES: u64 = 20_000;
/// Calls of [`Emulation::advance`] and events in each.
const TURNS: u64 = 8;
const EVENTS: u64 = 64;

/// Reads a job configuration and starts a job in which each rank sends to the next one.
pub fn run(bytes: &[u8]) {
    let Ok(config) = serde_json::from_slice::<JobConfig>(bytes) else { return };
    let ranks: Vec<u32> = config.nics.iter().map(|nic| nic.rank).take(RANKS).collect();
    let programs = ring(&ranks, config.data_classes());
    let Ok(mut emulation) = Emulation::new(config, &programs) else { return };
    let mut now_ps = 0;
    for _ in 0..TURNS {
        emulation.advance(None, EVENTS);
        assert!(emulation.world().now_ps() >= now_ps, "time runs backwards");
        now_ps = emulation.world().now_ps();
    }
    let world = emulation.world();
    assert!(world.events_handled() <= TURNS * EVENTS);
    assert!(world.ops_done() <= world.ops_total());
}

/// Operation 0 of each rank sends to the next rank, operation 1 receives from the one before; ranks
/// send in each of the classes in turn.
fn ring(ranks: &[u32], classes: usize) -> Vec<Arc<Program>> {
    if ranks.len() < 2 {
        return Vec::new();
    }
    let programs = ranks.iter().enumerate().map(|(index, rank)| {
        let mut builder = ProgramBuilder::new(*rank);
        builder.send(ranks[(index + 1) % ranks.len()], MESSAGE_BYTES, 1, &[]);
        let before = (index + ranks.len() - 1) % ranks.len();
        builder.receive(ranks[before], MESSAGE_BYTES, 0, &[]);
        let class = vec![(index % classes) as u8, (before % classes) as u8];
        Arc::new(Program { class, ..builder.finish() })
    });
    programs.collect()
}
