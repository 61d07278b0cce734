//! Programs of well-known shapes.

use super::ProgramBuilder;
use crate::engine::program::Program;
use std::sync::Arc;

fn finish(builders: Vec<ProgramBuilder>) -> Vec<Arc<Program>> {
    builders.into_iter().map(|builder| Arc::new(builder.finish())).collect()
}

/// Rank 0 sends one message to rank 1.
pub fn one_message(size_bytes: u64) -> Vec<Arc<Program>> {
    incast(2, size_bytes)
}

/// Every rank but the last sends one message to the last at once.
pub fn incast(ranks: u32, size_bytes: u64) -> Vec<Arc<Program>> {
    let last = ranks - 1;
    let mut builders: Vec<_> = (0..ranks).map(ProgramBuilder::new).collect();
    for rank in 0..last {
        builders[rank as usize].send(last, size_bytes, rank, &[]);
        builders[last as usize].receive(rank, size_bytes, 0, &[]);
    }
    finish(builders)
}

/// Each rank sends `steps` messages to the next one; a step needs the message of the step before.
pub fn ring(ranks: u32, steps: u32, size_bytes: u64) -> Vec<Arc<Program>> {
    let program = |rank| {
        let (next, previous) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
        let mut builder = ProgramBuilder::new(rank);
        for step in 0..steps {
            let deps = if step == 0 { vec![] } else { vec![2 * step - 1] };
            builder.send(next, size_bytes, 2 * step + 1, &deps);
            builder.receive(previous, size_bytes, 2 * step, &[]);
        }
        builder
    };
    finish((0..ranks).map(program).collect())
}

/// Each rank sends one message to the rank half the ranks away.
pub fn permutation(ranks: u32, size_bytes: u64) -> Vec<Arc<Program>> {
    let program = |rank| {
        let peer = (rank + ranks / 2) % ranks;
        let mut builder = ProgramBuilder::new(rank);
        builder.send(peer, size_bytes, 1, &[]);
        builder.receive((rank + ranks - ranks / 2) % ranks, size_bytes, 0, &[]);
        builder
    };
    finish((0..ranks).map(program).collect())
}

/// Each rank sends one message to every other at once.
pub fn all_to_all(ranks: u32, size_bytes: u64) -> Vec<Arc<Program>> {
    let sends = ranks - 1;
    let program = |rank: u32| {
        let mut builder = ProgramBuilder::new(rank);
        for step in 1..ranks {
            builder.send((rank + step) % ranks, size_bytes, sends + step - 1, &[]);
        }
        for step in 1..ranks {
            builder.receive((rank + ranks - step) % ranks, size_bytes, step - 1, &[]);
        }
        builder
    };
    finish((0..ranks).map(program).collect())
}
