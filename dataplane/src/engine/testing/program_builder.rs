//! Programs for tests, built operation by operation.

use crate::engine::program::{NO_LANE, OpKind, Program};

/// Appends operations to a program.
#[derive(Debug)]
pub struct ProgramBuilder(Program);

impl ProgramBuilder {
    /// A program without operations.
    pub fn new(rank: u32) -> Self {
        Self(Program { rank, dep_offsets: vec![0], ..Program::default() })
    }

    /// Append a SEND; its index.
    pub fn send(&mut self, peer: u32, size_bytes: u64, peer_op: u32, deps: &[u32]) -> u32 {
        self.append(OpKind::Send, peer, size_bytes, peer_op, deps)
    }

    /// Append a RECV; its index.
    pub fn receive(&mut self, peer: u32, size_bytes: u64, peer_op: u32, deps: &[u32]) -> u32 {
        self.append(OpKind::Receive, peer, size_bytes, peer_op, deps)
    }

    /// Append a DELAY; its index.
    pub fn delay(&mut self, duration_ps: u64, lane: i32, deps: &[u32]) -> u32 {
        let op = self.append(OpKind::Delay, self.0.rank, 0, 0, deps);
        self.0.duration_ps[op as usize] = duration_ps;
        self.0.lane[op as usize] = lane;
        op
    }

    /// Append a JOIN; its index.
    pub fn join(&mut self, deps: &[u32]) -> u32 {
        self.append(OpKind::Join, self.0.rank, 0, 0, deps)
    }

    /// The program.
    pub fn finish(self) -> Program {
        self.0
    }

    /// Number of operations so far.
    pub fn next_op(&self) -> u32 {
        self.0.len() as u32
    }

    fn append(
        &mut self,
        kind: OpKind,
        peer: u32,
        size_bytes: u64,
        peer_op: u32,
        deps: &[u32],
    ) -> u32 {
        let program = &mut self.0;
        program.kind.push(kind as u8);
        program.peer.push(peer);
        program.size_bytes.push(size_bytes);
        program.duration_ps.push(0);
        program.lane.push(NO_LANE);
        program.peer_op.push(peer_op);
        program.deps.extend_from_slice(deps);
        program.dep_offsets.push(program.deps.len() as u32);
        program.kind.len() as u32 - 1
    }
}
