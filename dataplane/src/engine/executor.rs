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
    /// Tell the sender of a message that it may be sent.
    Clear {
        /// The RECV.
        op: u32,
        /// Rank that sends.
        peer: u32,
        /// The SEND of the peer, which travels as immediate data.
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
    /// RECV: the message has arrived. SEND: the receiver is ready.
    has_arrived: Vec<bool>,
    clear_to_send: bool,
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
            clear_to_send: false,
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

    /// The same, but a SEND waits for its receiver: RECVs announce themselves when they start, and
    /// `handle_cleared` is called at the other end.
    pub fn with_clear_to_send(mut self, clear_to_send: bool) -> Self {
        self.clear_to_send = clear_to_send;
        self
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

    /// The receiver of SEND `op` is ready. False if there is no such SEND or that was known.
    pub fn handle_cleared(&mut self, op: u32) -> bool {
        let index = op as usize;
        let expected = index < self.program.len()
            && self.program.op_kind(op) == OpKind::Send
            && !self.has_arrived[index];
        if expected {
            self.has_arrived[index] = true;
            if self.start_ps[index] != NEVER_PS {
                self.post(op);
            }
        }
        expected
    }

    /// SEND `op` may be posted as soon as it starts.
    pub fn is_cleared(&self, op: u32) -> bool {
        !self.clear_to_send || self.has_arrived[op as usize]
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

    /// A glance at what asking for actions needs.
    #[inline]
    pub(super) fn glance(&self) -> u64 {
        (self.actions.len() ^ self.done) as u64
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
            OpKind::Receive => {
                self.start_ps[index] = now_ps;
                if self.clear_to_send {
                    let (peer, peer_op) = (self.program.peer[index], self.program.peer_op[index]);
                    self.actions.push_back(Action::Clear { op, peer, peer_op });
                }
            }
            OpKind::Send => {
                self.start_ps[index] = now_ps;
                if self.is_cleared(op) {
                    self.post(op);
                }
            }
            OpKind::Delay if self.program.lane[index] == NO_LANE => self.start_delay(now_ps, op),
            OpKind::Delay => {
                let lane = self.program.lane[index] as u32;
                self.lanes[lane as usize].ready.push(Reverse(op));
                self.stirred_lanes.push(lane);
            }
        }
    }

    fn post(&mut self, op: u32) {
        let index = op as usize;
        self.actions.push_back(Action::Post {
            op,
            peer: self.program.peer[index],
            size_bytes: self.program.size_bytes[index],
            peer_op: self.program.peer_op[index],
        });
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
