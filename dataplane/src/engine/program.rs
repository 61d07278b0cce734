//! Programs: what each rank does, as flat arrays, and the checks that make them safe to execute.
//!
//! A program names its peers by rank and the counterpart of an operation by its index in the peer's
//! program. It knows no address, no link and no time of day.

use super::error::ConfigError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Lane of an operation that needs no serial resource.
pub const NO_LANE: i32 = -1;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum OpKind {
    /// Posts a message; complete when its last byte is acknowledged.
    Send = 0,
    /// Waits for a message; complete when started and the whole message has arrived.
    Receive = 1,
    /// Takes time on a lane.
    Delay = 2,
    /// Takes no time.
    Join = 3,
}

impl OpKind {
    /// The kind with this number in a program's arrays.
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Send),
            1 => Some(Self::Receive),
            2 => Some(Self::Delay),
            3 => Some(Self::Join),
            _ => None,
        }
    }

    /// Lower-case name, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Receive => "recv",
            Self::Delay => "delay",
            Self::Join => "join",
        }
    }
}

/// The operations of one rank, one array element for each.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The rank that executes it.
    pub rank: u32,
    /// Numbers of [`OpKind`].
    pub kind: Vec<u8>,
    /// Rank of the other side; the own rank for DELAY and JOIN.
    pub peer: Vec<u32>,
    /// Message size of SEND and RECV.
    pub size_bytes: Vec<u64>,
    /// Time that a DELAY takes.
    pub duration_ps: Vec<u64>,
    /// Lane of a DELAY or [`NO_LANE`].
    pub lane: Vec<i32>,
    /// Index of the counterpart in the peer's program.
    pub peer_op: Vec<u32>,
    /// Channel of a SEND; empty if all are of channel 0.
    pub channel: Vec<u16>,
    /// Data class of a SEND or RECV; empty if all are of class 0.
    pub class: Vec<u8>,
    /// `deps[dep_offsets[i]..dep_offsets[i + 1]]` must be complete before operation `i` starts.
    pub dep_offsets: Vec<u32>,
    /// Operations that others wait for.
    pub deps: Vec<u32>,
}

impl Program {
    /// Number of operations.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// No operation at all.
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    /// Kind of operation `op` of a checked program.
    #[inline]
    pub fn op_kind(&self, op: u32) -> OpKind {
        OpKind::from_number(self.kind[op as usize]).unwrap_or(OpKind::Join)
    }

    /// Channel of SEND `op`.
    pub fn channel_of(&self, op: u32) -> u16 {
        self.channel.get(op as usize).copied().unwrap_or(0)
    }

    /// Data class of SEND or RECV `op`.
    pub fn class_of(&self, op: u32) -> u8 {
        self.class.get(op as usize).copied().unwrap_or(0)
    }

    /// Operations that `op` waits for.
    pub fn deps_of(&self, op: usize) -> &[u32] {
        &self.deps[self.dep_offsets[op] as usize..self.dep_offsets[op + 1] as usize]
    }

    /// The operations that wait for each operation, as offsets and members, members ascending.
    pub fn dependents(&self) -> (Vec<u32>, Vec<u32>) {
        let mut offsets = vec![0u32; self.len() + 1];
        for &dep in &self.deps {
            offsets[dep as usize + 1] += 1;
        }
        for op in 0..self.len() {
            offsets[op + 1] += offsets[op];
        }
        let mut next = offsets.clone();
        let mut members = vec![0u32; self.deps.len()];
        for op in 0..self.len() {
            for &dep in self.deps_of(op) {
                members[next[dep as usize] as usize] = op as u32;
                next[dep as usize] += 1;
            }
        }
        (offsets, members)
    }

    /// Check everything that needs no other program.
    fn check(&self) -> Result<(), ConfigError> {
        self.check_lengths()?;
        self.check_dependencies()?;
        self.check_kinds()?;
        self.check_acyclic()
    }

    fn wrong(&self, what: String) -> ConfigError {
        ConfigError::new(format!("program of rank {}: {what}", self.rank))
    }

    fn check_lengths(&self) -> Result<(), ConfigError> {
        let n = self.len();
        if u32::try_from(n).is_err() || u32::try_from(self.deps.len()).is_err() {
            return Err(self.wrong("more than 2^32 operations or dependencies".into()));
        }
        let columns = [
            ("peer", self.peer.len()),
            ("size_bytes", self.size_bytes.len()),
            ("duration_ps", self.duration_ps.len()),
            ("lane", self.lane.len()),
            ("peer_op", self.peer_op.len()),
            ("dep_offsets", self.dep_offsets.len().wrapping_sub(1)),
        ];
        if !self.channel.is_empty() && self.channel.len() != n {
            return Err(self.wrong(format!("channel does not fit {n} operations")));
        }
        if !self.class.is_empty() && self.class.len() != n {
            return Err(self.wrong(format!("class does not fit {n} operations")));
        }
        for (name, length) in columns {
            if length != n {
                return Err(self.wrong(format!("{name} does not fit {n} operations")));
            }
        }
        Ok(())
    }

    fn check_dependencies(&self) -> Result<(), ConfigError> {
        let ascending = self.dep_offsets.windows(2).all(|pair| pair[0] <= pair[1]);
        let last = self.dep_offsets.last().copied().unwrap_or(0);
        if self.dep_offsets.first() != Some(&0) || !ascending || last as usize != self.deps.len() {
            return Err(self.wrong("dep_offsets must ascend from 0 to the length of deps".into()));
        }
        match self.deps.iter().find(|&&dep| dep as usize >= self.len()) {
            Some(dep) => Err(self.wrong(format!("deps names operation {dep} of {}", self.len()))),
            None => Ok(()),
        }
    }

    fn check_kinds(&self) -> Result<(), ConfigError> {
        for op in 0..self.len() {
            match OpKind::from_number(self.kind[op]) {
                None => return Err(self.wrong(format!("op {op} has kind {}", self.kind[op]))),
                Some(OpKind::Delay) if self.lane[op] < NO_LANE => {
                    return Err(self.wrong(format!("op {op} has lane {}", self.lane[op])));
                }
                Some(OpKind::Send | OpKind::Receive) if self.peer[op] == self.rank => {
                    return Err(self.wrong(format!("op {op} sends to or receives from itself")));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn check_acyclic(&self) -> Result<(), ConfigError> {
        let (offsets, members) = self.dependents();
        let mut waiting: Vec<u32> = self.dep_offsets.windows(2).map(|p| p[1] - p[0]).collect();
        let mut ready: Vec<u32> =
            (0..self.len() as u32).filter(|&op| waiting[op as usize] == 0).collect();
        let mut seen = 0;
        while let Some(op) = ready.pop() {
            seen += 1;
            let range = offsets[op as usize] as usize..offsets[op as usize + 1] as usize;
            for &dependent in &members[range] {
                waiting[dependent as usize] -= 1;
                if waiting[dependent as usize] == 0 {
                    ready.push(dependent);
                }
            }
        }
        if seen == self.len() {
            return Ok(());
        }
        let op = waiting.iter().position(|&count| count > 0).unwrap_or(0);
        Err(self.wrong(format!("op {op} lies on or behind a cycle of dependencies")))
    }
}

/// Check programs, alone and against each other. With `whole_job`, every peer must have one.
pub fn check_programs(programs: &[Arc<Program>], whole_job: bool) -> Result<(), ConfigError> {
    let mut by_rank = BTreeMap::new();
    for program in programs {
        program.check()?;
        if by_rank.insert(program.rank, program.as_ref()).is_some() {
            return Err(ConfigError::new(format!("rank {} has two programs", program.rank)));
        }
    }
    programs.iter().try_for_each(|program| check_counterparts(program, &by_rank, whole_job))
}

fn check_counterparts(
    program: &Program,
    by_rank: &BTreeMap<u32, &Program>,
    whole_job: bool,
) -> Result<(), ConfigError> {
    for op in 0..program.len() {
        let expected = match program.op_kind(op as u32) {
            OpKind::Send => OpKind::Receive,
            OpKind::Receive => OpKind::Send,
            OpKind::Delay | OpKind::Join => continue,
        };
        let (peer, peer_op) = (program.peer[op], program.peer_op[op]);
        let Some(other) = by_rank.get(&peer) else {
            if !whole_job {
                continue;
            }
            return Err(program.wrong(format!("op {op} names rank {peer}, which has no program")));
        };
        let index = peer_op as usize;
        let symmetric = index < other.len()
            && other.op_kind(peer_op) == expected
            && other.peer[index] == program.rank
            && other.peer_op[index] as usize == op
            && other.size_bytes[index] == program.size_bytes[op]
            && other.class_of(peer_op) == program.class_of(op as u32);
        if !symmetric {
            return Err(program.wrong(format!(
                "op {op} ({}, {} B) is not matched by op {peer_op} of rank {peer}",
                program.op_kind(op as u32).name(),
                program.size_bytes[op]
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::ProgramBuilder;
    use super::*;

    fn pair() -> [Program; 2] {
        let mut sender = ProgramBuilder::new(0);
        sender.send(1, 100, 0, &[]);
        let mut receiver = ProgramBuilder::new(1);
        receiver.receive(0, 100, 0, &[]);
        [sender.finish(), receiver.finish()]
    }

    fn shared(programs: &[Program]) -> Vec<Arc<Program>> {
        programs.iter().cloned().map(Arc::new).collect()
    }

    fn message(programs: &[Program]) -> String {
        check_programs(&shared(programs), true).expect_err("the programs are wrong").to_string()
    }

    #[test]
    fn a_matched_pair_is_accepted() {
        assert!(check_programs(&shared(&pair()), true).is_ok());
    }

    #[test]
    fn a_counterpart_of_another_size_is_refused() {
        let mut programs = pair();
        programs[1].size_bytes[0] = 99;
        assert!(message(&programs).contains("op 0 (send, 100 B) is not matched by op 0 of rank 1"));
    }

    #[test]
    fn a_counterpart_of_another_class_is_refused() {
        let mut programs = pair();
        programs[1].class = vec![1];
        assert!(message(&programs).contains("is not matched by op 0 of rank 1"));
    }

    #[test]
    fn a_peer_without_a_program_is_refused() {
        assert!(message(&pair()[..1]).contains("names rank 1, which has no program"));
    }

    #[test]
    fn a_peer_may_be_in_another_process() {
        assert!(check_programs(&shared(&pair()[..1]), false).is_ok());
    }

    #[test]
    fn a_cycle_is_refused() {
        let mut builder = ProgramBuilder::new(0);
        builder.join(&[1]);
        builder.join(&[0]);
        assert!(message(&[builder.finish()]).contains("cycle"));
    }

    #[test]
    fn a_forward_dependency_is_accepted() {
        let mut builder = ProgramBuilder::new(0);
        builder.join(&[1]);
        builder.join(&[]);
        assert!(check_programs(&shared(&[builder.finish()]), true).is_ok());
    }

    #[test]
    fn a_dependency_out_of_range_is_refused() {
        let mut builder = ProgramBuilder::new(0);
        builder.join(&[7]);
        assert!(message(&[builder.finish()]).contains("deps names operation 7 of 1"));
    }

    #[test]
    fn two_programs_of_one_rank_are_refused() {
        let [sender, receiver] = pair();
        assert!(message(&[sender.clone(), receiver, sender]).contains("rank 0 has two programs"));
    }
}
