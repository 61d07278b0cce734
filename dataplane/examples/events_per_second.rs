//! How fast jobs run in virtual time: frames handed over a link, and events, per second of one core.

use _native::engine::program::Program;
use _native::engine::testing::{FabricBuilder, clos, workloads};
use _native::engine::{Emulation, Progress};
use std::sync::Arc;
use std::time::Instant;

fn measure(name: &str, fabric: FabricBuilder, programs: &[Arc<Program>]) {
    let mut emulation = Emulation::new(fabric.0, programs).expect("a valid job");
    let start = Instant::now();
    assert_eq!(emulation.advance(None, u64::MAX), Progress::Done);
    let seconds = start.elapsed().as_secs_f64();
    let world = emulation.world();
    println!(
        "{name:28} {:9} frames {:9} events {:6.2} s {:6.2} M frame-hops/s {:6.2} M events/s",
        world.frames_delivered(),
        world.events_handled(),
        seconds,
        world.frames_delivered() as f64 / seconds / 1e6,
        world.events_handled() as f64 / seconds / 1e6,
    );
}

fn main() {
    measure("permutation, 8 ranks", clos(2, 2, 4), &workloads::permutation(8, 64 << 20));
    measure("ring, 8 ranks", clos(2, 2, 4), &workloads::ring(8, 56, 4 << 20));
    measure("permutation, 32 ranks", clos(4, 8, 8), &workloads::permutation(32, 16 << 20));
    measure("incast, 32 ranks", clos(4, 8, 8), &workloads::incast(32, 4 << 20));
    measure("all-to-all, 32 ranks", clos(4, 8, 8), &workloads::all_to_all(32, 512 << 10));
    measure("all-to-all, 128 ranks", clos(16, 8, 8), &workloads::all_to_all(128, 32 << 10));
}
