//! What a world waits for: operations that have started and are not complete.

use super::host::Host;
use super::program::OpKind;
use super::world::{Medium, World};

/// An operation that has started and is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Rank.
    pub rank: u32,
    /// Operation.
    pub op: u32,
    /// What it does.
    pub kind: OpKind,
    /// Rank of the other side; the own rank for a delay.
    pub peer: u32,
    /// Size of its message; 0 for a delay.
    pub size_bytes: u64,
    /// RECV: bytes of the peer's message under way that have arrived.
    pub received_bytes: u64,
    /// What it waits for, in words.
    pub waiting_for: String,
}

impl<M: Medium> World<M> {
    /// Operations that have started and are not complete, at most `limit`: of each rank in turn
    /// those that started first.
    pub fn blocked(&self, limit: usize) -> Vec<Blocked> {
        let mut of_ranks: Vec<Vec<Blocked>> =
            self.hosts().map(|(_, host)| blocked_of(host, limit)).collect();
        let mut blocked = Vec::new();
        for turn in 0..limit {
            for of_rank in &mut of_ranks {
                if let Some(operation) = of_rank.get(turn) {
                    blocked.push(operation.clone());
                }
            }
        }
        blocked.truncate(limit);
        for operation in &mut blocked {
            if matches!(operation.kind, OpKind::Send | OpKind::Receive) {
                let outage = self.outage_between(operation.rank, operation.peer);
                if !outage.is_empty() {
                    operation.waiting_for.push_str("; ");
                    operation.waiting_for.push_str(&outage);
                }
            }
        }
        blocked
    }
}

fn blocked_of(host: &Host, limit: usize) -> Vec<Blocked> {
    let executor = host.executor();
    let mut pending: Vec<u32> = executor.pending().collect();
    pending.sort_by_key(|&op| (executor.start_ps()[op as usize], op));
    pending.truncate(limit);
    pending.into_iter().map(|op| describe(host, op)).collect()
}

fn describe(host: &Host, op: u32) -> Blocked {
    let program = host.executor().program();
    let (kind, peer) = (program.op_kind(op), program.peer[op as usize]);
    let size_bytes = program.size_bytes[op as usize];
    let received_bytes = match kind {
        OpKind::Receive => host.nic().receiving_bytes(peer),
        _ => 0,
    };
    let failure = host.failures().iter().find(|failure| failure.peer_rank == peer);
    let waiting_for = match (kind, failure) {
        (OpKind::Send | OpKind::Receive, Some(failure)) => {
            format!("queue pair {:#08x}, which failed: {}", failure.qp, failure.reason)
        }
        (OpKind::Send, None) if !host.executor().is_cleared(op) => {
            "the receiver's readiness".into()
        }
        (OpKind::Send, None) => "its acknowledgement".into(),
        (OpKind::Receive, None) => "its message".into(),
        (OpKind::Delay | OpKind::Join, _) => "its end".into(),
    };
    Blocked { rank: program.rank, op, kind, peer, size_bytes, received_bytes, waiting_for }
}
