//! Executes one rank's program: starts each operation when those before it are complete.
//!
//! It posts messages and delays as [`Action`]s and is told when they end; it knows no packet, no
//! queue pair and no clock. Nobody is asked for permission: a rank goes on when its own
//! dependencies are complete and its data has arrived.

use super::program::{NO_LANE, OpKind, Program};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// The time of an event that has not happened.
pub const NEVER_PS: u64 = u64::MAX;

/// What the executor wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a message; answer with `handle_sent(op)`.
    Post {
        /// The SEND.
        op: u32,
        /// Rank that receives.
        peer: u32,
        /// Message size.
        size_bytes: u64,
        /// The RECV of the peer, which travels as immediate data.
        peer_op: u32,
    },
    /// Answer with `handle_delay_end(op)` at `at_ps`.
    Delay {
        /// The DELAY.
        op: u32,
        /// When it ends.
        at_ps: u64,
    },
}

/// An operation that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The operation.
    pub op: u32,
    /// When its dependencies were complete (and, for a DELAY, its lane free).
    pub start_ps: u64,
    /// When it was complete.
    pub end_ps: u64,
}

/// A serial resource: one delay at a time, lowest ready index first.
#[derive(Debug, Default)]
struct Lane {
    is_busy: bool,
    ready: BinaryHeap<Reverse<u32>>,
}

/// The state of one program under execution.
#[derive(Debug)]
pub struct Executor {
    program: Arc<Program>,
    dependents: (Vec<u32>, Vec<u32>),
    /// Dependencies of each operation that are not complete.
    waiting: Vec<u32>,
    has_arrived: Vec<bool>,
    start_ps: Vec<u64>,
    end_ps: Vec<u64>,
    lanes: Vec<Lane>,
    /// Lanes that may start a delay.
    stirred_lanes: Vec<u32>,
    /// Operations whose dependencies are complete and that were not looked at.
    ready: VecDeque<u32>,
    actions: VecDeque<Action>,
    completions: Vec<Completion>,
    done: usize,
}

impl Executor {
    /// An executor that has started nothing; `program` was checked.
    pub fn new(program: Arc<Program>) -> Self {
        let lanes = program.lane.iter().copied().max().map_or(0, |lane| (lane + 1).max(0));
        Self {
            dependents: program.dependents(),
            waiting: program.dep_offsets.windows(2).map(|pair| pair[1] - pair[0]).collect(),
            has_arrived: vec![false; program.len()],
            start_ps: vec![NEVER_PS; program.len()],
            end_ps: vec![NEVER_PS; program.len()],
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            stirred_lanes: Vec::new(),
            ready: VecDeque::new(),
            actions: VecDeque::new(),
            completions: Vec::new(),
            done: 0,
            program,
        }
    }

    /// Start every operation without dependencies.
    pub fn start(&mut self, now_ps: u64) {
        let waiting = &self.waiting;
        self.ready.extend((0..waiting.len() as u32).filter(|&op| waiting[op as usize] == 0));
        self.run_ready(now_ps);
    }

    /// The message of RECV `op` has arrived whole. False if there is no such RECV or its message
    /// has arrived before.
    pub fn handle_message(&mut self, now_ps: u64, op: u32) -> bool {
        let index = op as usize;
        let expected = index < self.program.len()
            && self.program.op_kind(op) == OpKind::Receive
            && !self.has_arrived[index];
        if expected {
            self.has_arrived[index] = true;
            if self.start_ps[index] != NEVER_PS {
                self.complete(now_ps, op);
                self.run_ready(now_ps);
            }
        }
        expected
    }

    /// The last byte of SEND `op` is acknowledged.
    pub fn handle_sent(&mut self, now_ps: u64, op: u32) {
        self.complete(now_ps, op);
        self.run_ready(now_ps);
    }

    /// The time of DELAY `op` is over.
    pub fn handle_delay_end(&mut self, now_ps: u64, op: u32) {
        self.end_delay(now_ps, op);
        self.run_ready(now_ps);
    }

    /// The next thing to do for the executor.
    #[inline]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Move what completed since the last call to the end of `into`.
    pub fn take_completions(&mut self, into: &mut Vec<Completion>) {
        into.append(&mut self.completions);
    }

    /// Operations that are complete.
    pub fn ops_done(&self) -> usize {
        self.done
    }

    /// Every operation is complete.
    pub fn is_done(&self) -> bool {
        self.done == self.program.len()
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// When each operation started; [`NEVER_PS`] if it has not.
    pub fn start_ps(&self) -> &[u64] {
        &self.start_ps
    }

    /// When each operation was complete; [`NEVER_PS`] if it is not.
    pub fn end_ps(&self) -> &[u64] {
        &self.end_ps
    }

    /// Operations that have started and are not complete, ascending.
    pub fn pending(&self) -> impl Iterator<Item = u32> + '_ {
        let is_pending = |&op: &usize| self.start_ps[op] != NEVER_PS && self.end_ps[op] == NEVER_PS;
        (0..self.program.len()).filter(is_pending).map(|op| op as u32)
    }

    fn run_ready(&mut self, now_ps: u64) {
        loop {
            while let Some(op) = self.ready.pop_front() {
                self.begin(now_ps, op);
            }
            let Some(lane) = self.stirred_lanes.pop() else {
                return;
            };
            self.start_next_on_lane(now_ps, lane);
        }
    }

    fn begin(&mut self, now_ps: u64, op: u32) {
        let index = op as usize;
        match self.program.op_kind(op) {
            OpKind::Join => self.complete_at_once(now_ps, op),
            OpKind::Receive if self.has_arrived[index] => self.complete_at_once(now_ps, op),
            OpKind::Receive => self.start_ps[index] = now_ps,
            OpKind::Send => {
                self.start_ps[index] = now_ps;
                self.actions.push_back(Action::Post {
                    op,
                    peer: self.program.peer[index],
                    size_bytes: self.program.size_bytes[index],
                    peer_op: self.program.peer_op[index],
                });
            }
            OpKind::Delay if self.program.lane[index] == NO_LANE => self.start_delay(now_ps, op),
            OpKind::Delay => {
                let lane = self.program.lane[index] as u32;
                self.lanes[lane as usize].ready.push(Reverse(op));
                self.stirred_lanes.push(lane);
            }
        }
    }

    fn start_next_on_lane(&mut self, now_ps: u64, lane: u32) {
        let lane = &mut self.lanes[lane as usize];
        if lane.is_busy {
            return;
        }
        if let Some(Reverse(op)) = lane.ready.pop() {
            lane.is_busy = true;
            self.start_delay(now_ps, op);
        }
    }

    fn start_delay(&mut self, now_ps: u64, op: u32) {
        let duration_ps = self.program.duration_ps[op as usize];
        self.start_ps[op as usize] = now_ps;
        if duration_ps == 0 {
            self.end_delay(now_ps, op);
        } else {
            self.actions.push_back(Action::Delay { op, at_ps: now_ps.saturating_add(duration_ps) });
        }
    }

    fn end_delay(&mut self, now_ps: u64, op: u32) {
        self.complete(now_ps, op);
        let lane = self.program.lane[op as usize];
        if lane != NO_LANE {
            self.lanes[lane as usize].is_busy = false;
            self.stirred_lanes.push(lane as u32);
        }
    }

    fn complete_at_once(&mut self, now_ps: u64, op: u32) {
        self.start_ps[op as usize] = now_ps;
        self.complete(now_ps, op);
    }

    fn complete(&mut self, now_ps: u64, op: u32) {
        let index = op as usize;
        self.end_ps[index] = now_ps;
        self.done += 1;
        self.completions.push(Completion { op, start_ps: self.start_ps[index], end_ps: now_ps });
        let (offsets, members) = &self.dependents;
        for &dependent in &members[offsets[index] as usize..offsets[index + 1] as usize] {
            let waiting = &mut self.waiting[dependent as usize];
            *waiting -= 1;
            if *waiting == 0 {
                self.ready.push_back(dependent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ProgramBuilder;
    use super::*;

    fn started(builder: ProgramBuilder) -> Executor {
        let mut executor = Executor::new(Arc::new(builder.finish()));
        executor.start(0);
        executor
    }

    fn actions(executor: &mut Executor) -> Vec<Action> {
        std::iter::from_fn(|| executor.poll_action()).collect()
    }

    #[test]
    fn joins_complete_at_once_in_dependency_order() {
        let mut builder = ProgramBuilder::new(0);
        builder.join(&[2]);
        builder.join(&[]);
        builder.join(&[1]);
        let mut executor = started(builder);
        assert!(executor.is_done());
        let mut completions = Vec::new();
        executor.take_completions(&mut completions);
        assert_eq!(completions.iter().map(|c| c.op).collect::<Vec<_>>(), [1, 2, 0]);
    }

    #[test]
    fn a_lane_runs_one_delay_at_a_time_lowest_ready_index_first() {
        let mut builder = ProgramBuilder::new(0);
        builder.delay(10, 0, &[2]);
        builder.delay(20, 0, &[]);
        builder.join(&[]);
        let mut executor = started(builder);
        assert_eq!(actions(&mut executor), [Action::Delay { op: 0, at_ps: 10 }]);
        executor.handle_delay_end(10, 0);
        assert_eq!(actions(&mut executor), [Action::Delay { op: 1, at_ps: 30 }]);
        executor.handle_delay_end(30, 1);
        assert!(executor.is_done());
    }

    #[test]
    fn delays_without_a_lane_run_side_by_side() {
        let mut builder = ProgramBuilder::new(0);
        builder.delay(10, NO_LANE, &[]);
        builder.delay(20, NO_LANE, &[]);
        assert_eq!(actions(&mut started(builder)).len(), 2);
    }

    #[test]
    fn delays_of_no_time_pass_a_lane_at_once() {
        let mut builder = ProgramBuilder::new(0);
        for _ in 0..3 {
            builder.delay(0, 0, &[]);
        }
        assert!(started(builder).is_done());
    }

    #[test]
    fn a_message_may_arrive_before_its_receive_starts() {
        let mut builder = ProgramBuilder::new(0);
        builder.delay(50, 0, &[]);
        builder.receive(1, 8, 3, &[0]);
        let mut executor = started(builder);
        assert!(executor.handle_message(5, 1));
        assert_eq!(executor.ops_done(), 0);
        executor.handle_delay_end(50, 0);
        assert!(executor.is_done());
        assert_eq!((executor.start_ps()[1], executor.end_ps()[1]), (50, 50));
    }

    #[test]
    fn a_receive_waits_for_its_message() {
        let mut builder = ProgramBuilder::new(0);
        builder.receive(1, 8, 3, &[]);
        let mut executor = started(builder);
        assert_eq!(executor.pending().collect::<Vec<_>>(), [0]);
        assert!(executor.handle_message(70, 0));
        assert_eq!((executor.start_ps()[0], executor.end_ps()[0]), (0, 70));
    }

    #[test]
    fn a_second_message_for_one_receive_is_refused() {
        let mut builder = ProgramBuilder::new(0);
        builder.receive(1, 8, 3, &[]);
        let mut executor = started(builder);
        assert!(executor.handle_message(70, 0));
        assert!(!executor.handle_message(80, 0));
        assert!(!executor.handle_message(80, 99));
    }

    #[test]
    fn a_send_is_posted_with_the_peers_operation_as_immediate() {
        let mut builder = ProgramBuilder::new(0);
        builder.send(4, 1000, 17, &[]);
        let mut executor = started(builder);
        let post = Action::Post { op: 0, peer: 4, size_bytes: 1000, peer_op: 17 };
        assert_eq!(actions(&mut executor), [post]);
        executor.handle_sent(9, 0);
        assert!(executor.is_done());
    }
}
