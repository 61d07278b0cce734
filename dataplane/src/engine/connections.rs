//! Which queue pairs exist, with numbers and first sequence numbers that follow from the seed alone.
//!
//! Every process of a run derives the same list from the same programs, so nothing is exchanged
//! before the first packet. Each ordered pair of ranks that communicates has its own connections:
//! data flows one way on each, acknowledgements the other.

use super::error::ConfigError;
use super::program::{OpKind, Program};
use crate::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Queue pair numbers of a NIC start at or above; the ones below are reserved or managed by
/// convention. Source: IBTA volume 1, section 3.5.1 (0 and 1), and common practice.
const LOWEST_QP: u32 = 0x100;
/// The seed moves a NIC's first number by less than this, so that source ports differ by seed.
const QP_BASE_SPREAD: u64 = 1 << 20;
const MASK_24: u32 = 0xFF_FFFF;

/// One connection, seen from both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Rank that sends.
    pub source_rank: u32,
    /// Rank that receives.
    pub destination_rank: u32,
    /// Number among the connections of this ordered pair.
    pub index: u32,
    /// Queue pair number at the source.
    pub source_qp: u32,
    /// Queue pair number at the destination.
    pub destination_qp: u32,
    /// First sequence number of requests from source to destination.
    pub psn: u32,
    /// First sequence number of requests the other way, of which there are none.
    pub reverse_psn: u32,
}

/// Queue pair number of a rank's first queue pair; the others follow without gap.
pub fn first_qp(seed: u64, rank: u32) -> u32 {
    let offset = Random::new(seed, u64::from(rank)).next_u64() % QP_BASE_SPREAD;
    LOWEST_QP + offset as u32
}

/// All connections of a job, ordered by source, destination and index; at each rank the queue pair
/// numbers ascend in this order.
pub fn plan_connections(
    seed: u64,
    qps_per_peer: u32,
    programs: &[Arc<Program>],
) -> Result<Vec<Connection>, ConfigError> {
    let mut next_qp = BTreeMap::new();
    let mut connections = Vec::new();
    for (source_rank, destination_rank) in communicating_pairs(programs) {
        for index in 0..qps_per_peer {
            let mut take = |rank| {
                let next = next_qp.entry(rank).or_insert_with(|| first_qp(seed, rank));
                *next += 1;
                *next - 1
            };
            let (source_qp, destination_qp) = (take(source_rank), take(destination_rank));
            if source_qp.max(destination_qp) > MASK_24 {
                return Err(ConfigError::new("a NIC needs more than 2^24 queue pairs"));
            }
            let stream = u64::from(source_rank) << 32 | u64::from(destination_rank);
            let mut random = Random::new(seed ^ u64::from(index) << 1 ^ 1, stream);
            connections.push(Connection {
                source_rank,
                destination_rank,
                index,
                source_qp,
                destination_qp,
                psn: random.next_u64() as u32 & MASK_24,
                reverse_psn: random.next_u64() as u32 & MASK_24,
            });
        }
    }
    Ok(connections)
}

/// Ordered pairs (source, destination) with at least one message.
fn communicating_pairs(programs: &[Arc<Program>]) -> BTreeSet<(u32, u32)> {
    let mut pairs = BTreeSet::new();
    for program in programs {
        let sends = (0..program.len()).filter(|&op| program.op_kind(op as u32) == OpKind::Send);
        pairs.extend(sends.map(|op| (program.rank, program.peer[op])));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::super::testing::ProgramBuilder;
    use super::*;

    fn ring(ranks: u32) -> Vec<Arc<Program>> {
        let program = |rank| {
            let mut builder = ProgramBuilder::new(rank);
            builder.send((rank + 1) % ranks, 1, 1, &[]);
            builder.receive((rank + ranks - 1) % ranks, 1, 0, &[]);
            Arc::new(builder.finish())
        };
        (0..ranks).map(program).collect()
    }

    #[test]
    fn only_pairs_that_communicate_are_connected() {
        let connections = plan_connections(1, 2, &ring(5)).expect("few queue pairs");
        assert_eq!(connections.len(), 5 * 2);
        assert!(connections.iter().all(|c| c.destination_rank == (c.source_rank + 1) % 5));
    }

    #[test]
    fn queue_pair_numbers_of_a_rank_are_contiguous() {
        let connections = plan_connections(7, 3, &ring(4)).expect("few queue pairs");
        let mut of_rank_2: Vec<u32> = Vec::new();
        for connection in &connections {
            if connection.source_rank == 2 {
                of_rank_2.push(connection.source_qp);
            }
            if connection.destination_rank == 2 {
                of_rank_2.push(connection.destination_qp);
            }
        }
        let first = first_qp(7, 2);
        assert_eq!(of_rank_2, (first..first + 6).collect::<Vec<_>>());
    }

    #[test]
    fn a_seed_yields_the_same_plan_and_another_seed_another() {
        let plan = |seed| plan_connections(seed, 1, &ring(3)).expect("few queue pairs");
        assert_eq!(plan(1), plan(1));
        assert_ne!(plan(1), plan(2));
    }
}
