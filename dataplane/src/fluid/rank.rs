//! One rank of a fluid emulation: its program, and its ends of connections.

use crate::config::JobConfig;
use crate::engine::ConfigError;
use crate::engine::connections::{Connection, Numbering, plan_connections};
use crate::engine::executor::Executor;
use crate::engine::nic::striping::{Peer, Striping};
use crate::engine::program::Program;
use crate::engine::topology::Topology;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What one NIC has sent and received, bytes of frames without preambles and gaps.
#[derive(Clone, Copy, Debug, Default)]
pub struct NicTotals {
    /// Data packets sent.
    pub tx_packets: u64,
    /// Bytes of them.
    pub tx_bytes: u64,
    /// Payload of them.
    pub sent_bytes: u64,
    /// Data packets received.
    pub rx_packets: u64,
    /// Bytes of them.
    pub rx_bytes: u64,
    /// Payload of them.
    pub received_bytes: u64,
    /// Clear-to-send messages sent.
    pub clear_to_send_sent: u64,
}

/// One rank's program, and its ends of connections.
#[derive(Debug)]
pub struct Rank {
    pub executor: Executor,
    /// Connections to each rank in each class.
    pub peers: BTreeMap<(u32, u8), Peer>,
    pub striping: Striping,
    pub totals: NicTotals,
    pub reported_done: usize,
}

impl Rank {
    /// A rank that has not started; all `connections` of the job are in the order of the plan.
    pub fn new(config: &JobConfig, program: &Arc<Program>, connections: &[Connection]) -> Self {
        let transport = &config.transport;
        let first = connections.partition_point(|c| c.source_rank < program.rank);
        let mut peers = BTreeMap::new();
        for (offset, connection) in connections[first..].iter().enumerate() {
            if connection.source_rank != program.rank {
                break;
            }
            let first = (first + offset) as u32;
            let fresh = Peer { first, count: 0, next: 0 };
            peers.entry((connection.destination_rank, connection.class)).or_insert(fresh).count +=
                1;
        }
        Self {
            executor: Executor::new(program.clone()).with_clear_to_send(transport.clear_to_send),
            peers,
            striping: Striping::new(transport.qp_distribution, transport.qps_per_peer),
            totals: NicTotals::default(),
            reported_done: 0,
        }
    }
}

/// All connections, ordered by source, destination and index.
pub fn connections(
    config: &JobConfig,
    topology: &Topology,
    programs: &[Arc<Program>],
) -> Result<Vec<Connection>, ConfigError> {
    let numbering = Numbering {
        seed: config.seed,
        qps_per_peer: config.transport.qps_per_peer,
        classes: config.data_classes() as u32,
        nic_of_rank: &topology.nic_of_rank,
    };
    plan_connections(&numbering, programs)
}
