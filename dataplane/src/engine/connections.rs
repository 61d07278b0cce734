//! Which queue pairs exist, with numbers and first sequence numbers that follow from the seed alone.
//!
//! Each ordered pair of ranks that communicates has its own connections: data flows one way on each,
//! acknowledgements the other. A connection's numbers depend on nothing but the seed and its two
//! ends, so a process that knows only the programs of its own ranks agrees with all others, and
//! nothing is exchanged before the first packet.

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
    /// Data class of its messages.
    pub class: u8,
    /// Number among the connections of this ordered pair and class.
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

/// Lowest queue pair number that a rank's NIC may have.
pub fn first_qp(seed: u64, rank: u32) -> u32 {
    let offset = Random::new(seed, u64::from(rank)).next_u64() % QP_BASE_SPREAD;
    LOWEST_QP + offset as u32
}

/// What numbers depend on.
#[derive(Clone, Copy, Debug)]
pub struct Numbering<'a> {
    /// Seed of the job.
    pub seed: u64,
    /// Connections of each ordered pair and data class.
    pub qps_per_peer: u32,
    /// Data classes.
    pub classes: u32,
    /// NIC index of each rank of the job.
    pub nic_of_rank: &'a BTreeMap<u32, u32>,
}

impl Numbering<'_> {
    /// Queue pair numbers that a NIC may have, counted from its first.
    pub fn qps_per_nic(&self) -> u64 {
        let blocks = 2 * self.nic_of_rank.len() as u64 * u64::from(self.classes);
        blocks * u64::from(self.qps_per_peer)
    }

    /// Number at `rank` of a connection with `peer`: two blocks for each NIC of the job, one for
    /// sending to it and one for receiving from it; `slot` is the place in the block.
    fn qp(&self, rank: u32, peer: u32, is_source: bool, slot: u32) -> u32 {
        let block = 2 * self.nic_of_rank[&peer] + u32::from(!is_source);
        first_qp(self.seed, rank) + block * self.qps_per_peer * self.classes + slot
    }

    fn connect(&self, (source_rank, destination_rank, class): Flow, index: u32) -> Connection {
        let slot = u32::from(class) * self.qps_per_peer + index;
        let stream = u64::from(source_rank) << 32 | u64::from(destination_rank);
        let mut random = Random::new(self.seed ^ u64::from(slot) << 1 ^ 1, stream);
        Connection {
            source_rank,
            destination_rank,
            class,
            index,
            source_qp: self.qp(source_rank, destination_rank, true, slot),
            destination_qp: self.qp(destination_rank, source_rank, false, slot),
            psn: random.next_u64() as u32 & MASK_24,
            reverse_psn: random.next_u64() as u32 & MASK_24,
        }
    }
}

/// Source, destination and data class.
type Flow = (u32, u32, u8);

/// All connections of some ranks, ordered by source, destination, class and index.
pub fn plan_connections(
    numbering: &Numbering<'_>,
    programs: &[Arc<Program>],
) -> Result<Vec<Connection>, ConfigError> {
    let above_all = u64::from(LOWEST_QP) + QP_BASE_SPREAD + numbering.qps_per_nic();
    if above_all > u64::from(MASK_24) {
        return Err(ConfigError::new("a NIC may need more than 2^24 queue pairs"));
    }
    let flows = flows(programs);
    if let Some((rank, _, class)) =
        flows.iter().find(|(_, _, class)| u32::from(*class) >= numbering.classes)
    {
        return Err(ConfigError::new(format!(
            "rank {rank} has a message of class {class}, and there are {}",
            numbering.classes
        )));
    }
    if let Some(rank) = flows
        .iter()
        .flat_map(|(source, destination, _)| [source, destination])
        .find(|rank| !numbering.nic_of_rank.contains_key(rank))
    {
        return Err(ConfigError::new(format!("rank {rank} is a peer and has no NIC")));
    }
    let connect =
        |flow: Flow| (0..numbering.qps_per_peer).map(move |index| numbering.connect(flow, index));
    Ok(flows.into_iter().flat_map(connect).collect())
}

/// Flows with at least one message.
fn flows(programs: &[Arc<Program>]) -> BTreeSet<Flow> {
    let mut flows = BTreeSet::new();
    for program in programs {
        for op in 0..program.len() {
            let (peer, class) = (program.peer[op], program.class_of(op as u32));
            match program.op_kind(op as u32) {
                OpKind::Send => flows.insert((program.rank, peer, class)),
                OpKind::Receive => flows.insert((peer, program.rank, class)),
                OpKind::Delay | OpKind::Join => false,
            };
        }
    }
    flows
}

#[cfg(test)]
mod tests {
    use super::super::testing::workloads;
    use super::*;

    fn plan(
        seed: u64,
        qps_per_peer: u32,
        ranks: u32,
        programs: &[Arc<Program>],
    ) -> Vec<Connection> {
        let nic_of_rank = (0..ranks).map(|rank| (rank, rank)).collect();
        let numbering = Numbering { seed, qps_per_peer, classes: 2, nic_of_rank: &nic_of_rank };
        plan_connections(&numbering, programs).expect("few queue pairs")
    }

    #[test]
    fn only_pairs_that_communicate_are_connected() {
        let connections = plan(1, 2, 5, &workloads::ring(5, 1, 1));
        assert_eq!(connections.len(), 5 * 2);
        assert!(connections.iter().all(|c| c.destination_rank == (c.source_rank + 1) % 5));
    }

    #[test]
    fn queue_pair_numbers_of_a_rank_are_distinct() {
        let connections = plan(7, 3, 4, &workloads::all_to_all(4, 1));
        let ends = connections
            .iter()
            .flat_map(|c| [(c.source_rank, c.source_qp), (c.destination_rank, c.destination_qp)]);
        assert_eq!(ends.collect::<BTreeSet<_>>().len(), 2 * connections.len());
    }

    #[test]
    fn a_process_that_knows_one_program_agrees_with_the_whole() {
        let programs = workloads::all_to_all(4, 1);
        let whole = plan(7, 2, 4, &programs);
        for program in &programs {
            let part = plan(7, 2, 4, std::slice::from_ref(program));
            assert_eq!(part.len(), 2 * 3 * 2);
            assert!(part.iter().all(|connection| whole.contains(connection)));
        }
    }

    #[test]
    fn a_class_has_connections_of_its_own() {
        let mut programs = workloads::ring(3, 1, 1);
        let mut first = (*programs[0]).clone();
        first.class = vec![1; first.len()];
        programs[0] = Arc::new(first);
        let connections = plan(1, 2, 3, &programs);
        let of_class = |class| connections.iter().filter(move |c| c.class == class);
        assert_eq!((of_class(0).count(), of_class(1).count()), (3 * 2, 2 * 2));
        assert!(of_class(1).all(|c| c.source_rank == 0 || c.destination_rank == 0));
        let numbers: BTreeSet<u32> = connections.iter().map(|c| c.source_qp).collect();
        assert_eq!(numbers.len(), connections.len());
    }

    #[test]
    fn a_class_that_is_not_configured_is_refused() {
        let mut program = (*workloads::ring(2, 1, 1)[0]).clone();
        program.class = vec![2; program.len()];
        let nic_of_rank = (0..2).map(|rank| (rank, rank)).collect();
        let numbering =
            Numbering { seed: 1, qps_per_peer: 1, classes: 2, nic_of_rank: &nic_of_rank };
        let refusal = plan_connections(&numbering, &[Arc::new(program)]).expect_err("class 2 of 2");
        assert!(refusal.to_string().contains("of class 2, and there are 2"), "{refusal}");
    }

    #[test]
    fn a_seed_yields_the_same_plan_and_another_seed_another() {
        let of_seed = |seed| plan(seed, 1, 3, &workloads::ring(3, 1, 1));
        assert_eq!(of_seed(1), of_seed(1));
        assert_ne!(of_seed(1), of_seed(2));
    }
}
