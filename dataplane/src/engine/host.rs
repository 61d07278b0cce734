//! One rank on its NIC: the program's messages go to the NIC, the NIC's events to the program.

use super::executor::{Action, Completion, Executor};
use super::nic::{Departure, DeviceEvent, Nic, NicEvent, NicPort, Route};
use crate::roce::queue_pair::FailureReason;
use crate::roce::{Frame, Packet};

/// What the records say about one message beyond its times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageRecord {
    /// SEND: packets sent again.
    pub retransmitted_packets: u32,
    /// RECV: packets that arrived with congestion experienced.
    pub marked_packets: u32,
    /// SEND: notifications that came while it was the oldest of its queue pair.
    pub cnps: u32,
}

/// A queue pair that stopped for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// When.
    pub time_ps: u64,
    /// Rank of the end that failed.
    pub rank: u32,
    /// Rank of the other end.
    pub peer_rank: u32,
    /// Queue pair number.
    pub qp: u32,
    /// Why.
    pub reason: FailureReason,
    /// The SEND that could not be completed.
    pub op: Option<u32>,
}

/// What a host wants done.
#[derive(Debug)]
pub enum HostOutput {
    /// Carry a frame over the NIC's link.
    Departure(Departure),
    /// Call [`Host::handle_delay_end`] at that time.
    Delay {
        /// The operation.
        op: u32,
        /// When it ends.
        at_ps: u64,
    },
}

/// See the module documentation.
#[derive(Debug)]
pub struct Host {
    executor: Executor,
    nic: Nic,
    messages: Vec<MessageRecord>,
    failures: Vec<Failure>,
    unexpected_messages: u64,
    reported_done: usize,
    /// The wake-up that counts; later and earlier ones are stale.
    pub(super) wake_ps: u64,
}

impl Host {
    /// A host that has not started.
    pub fn new(executor: Executor, nic: Nic) -> Self {
        let messages = vec![MessageRecord::default(); executor.program().len()];
        let wake_ps = u64::MAX;
        Self {
            executor,
            nic,
            messages,
            failures: Vec::new(),
            unexpected_messages: 0,
            reported_done: 0,
            wake_ps,
        }
    }

    /// Start the program.
    pub fn start(&mut self, now_ps: u64, outputs: &mut Vec<HostOutput>) {
        self.executor.start(now_ps);
        self.settle(now_ps, outputs);
    }

    /// A frame has arrived.
    #[inline]
    pub fn handle_frame(&mut self, now_ps: u64, frame: &Frame, outputs: &mut Vec<HostOutput>) {
        self.nic.handle_frame(now_ps, frame);
        self.settle(now_ps, outputs);
    }

    /// The adapter that carries the NIC's messages reports something.
    pub fn handle_device_event(
        &mut self,
        now_ps: u64,
        pair: u32,
        event: DeviceEvent,
        outputs: &mut Vec<HostOutput>,
    ) {
        self.nic.handle_device_event(now_ps, pair, event);
        self.settle(now_ps, outputs);
    }

    /// The time that [`Host::poll_timeout`] named has come.
    #[inline]
    pub fn handle_timeout(&mut self, now_ps: u64, outputs: &mut Vec<HostOutput>) {
        self.nic.handle_timeout(now_ps);
        self.settle(now_ps, outputs);
    }

    /// A delay is over.
    pub fn handle_delay_end(&mut self, now_ps: u64, op: u32, outputs: &mut Vec<HostOutput>) {
        self.executor.handle_delay_end(now_ps, op);
        self.settle(now_ps, outputs);
    }

    /// The NIC's link has changed as `change` does it to its port.
    pub(super) fn handle_link(
        &mut self,
        now_ps: u64,
        outputs: &mut Vec<HostOutput>,
        change: impl FnOnce(&mut NicPort),
    ) {
        change(self.nic.port_mut());
        self.settle(now_ps, outputs);
    }

    /// When [`Host::handle_timeout`] wants to be called.
    #[inline]
    pub fn poll_timeout(&self) -> Option<u64> {
        self.nic.poll_timeout()
    }

    #[inline]
    fn settle(&mut self, now_ps: u64, outputs: &mut Vec<HostOutput>) {
        loop {
            if let Some(event) = self.nic.poll_event() {
                self.handle_nic_event(now_ps, event);
            } else if let Some(action) = self.executor.poll_action() {
                self.act(now_ps, action, outputs);
            } else {
                break;
            }
        }
        while let Some(departure) = self.nic.poll_departure(now_ps) {
            outputs.push(HostOutput::Departure(departure));
        }
    }

    fn act(&mut self, now_ps: u64, action: Action, outputs: &mut Vec<HostOutput>) {
        match action {
            Action::Delay { op, at_ps } => outputs.push(HostOutput::Delay { op, at_ps }),
            Action::Post { op, peer, size_bytes, peer_op } => {
                self.nic.post(now_ps, self.route(op, peer), op, size_bytes, peer_op);
            }
            Action::Clear { op, peer, peer_op } => {
                self.nic.clear_to_send(now_ps, self.route(op, peer), op, peer_op);
            }
        }
    }

    fn route(&self, op: u32, peer_rank: u32) -> Route {
        let program = self.executor.program();
        Route { peer_rank, class: program.class_of(op), channel: program.channel_of(op) }
    }

    fn handle_nic_event(&mut self, now_ps: u64, event: NicEvent) {
        match event {
            NicEvent::Sent { id, retransmitted_packets, cnps } => {
                let record = &mut self.messages[id as usize];
                record.retransmitted_packets = retransmitted_packets;
                record.cnps = cnps;
                self.executor.handle_sent(now_ps, id);
            }
            NicEvent::Received { immediate, marked_packets } => {
                if self.executor.handle_message(now_ps, immediate) {
                    self.messages[immediate as usize].marked_packets = marked_packets;
                    self.nic.count_received(self.executor.program().size_bytes[immediate as usize]);
                } else {
                    self.unexpected_messages += 1;
                }
            }
            NicEvent::Cleared { id } => {
                if !self.executor.handle_cleared(id) {
                    self.unexpected_messages += 1;
                }
            }
            NicEvent::Failed { peer_rank, qp, reason, id } => {
                let rank = self.executor.program().rank;
                self.failures.push(Failure {
                    time_ps: now_ps,
                    rank,
                    peer_rank,
                    qp,
                    reason,
                    op: id,
                });
            }
        }
    }

    /// Move what completed since the last call to the end of `into`.
    pub fn take_completions(&mut self, into: &mut Vec<Completion>) {
        self.executor.take_completions(into);
    }

    /// Operations that completed since the last call.
    #[inline]
    pub(super) fn take_newly_done(&mut self) -> usize {
        let done = self.executor.ops_done();
        done - std::mem::replace(&mut self.reported_done, done)
    }

    /// A glance at what a wake-up needs.
    #[inline]
    pub(super) fn glance(&self) -> u64 {
        self.wake_ps ^ self.executor.glance() ^ self.nic.glance()
    }

    /// A glance at what an arriving packet needs.
    #[inline]
    pub(super) fn glance_for(&self, packet: &Packet) -> u64 {
        self.glance() ^ self.nic.glance_for(packet)
    }

    /// The program's execution.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// The NIC.
    pub fn nic(&self) -> &Nic {
        &self.nic
    }

    /// The NIC.
    pub fn nic_mut(&mut self) -> &mut Nic {
        &mut self.nic
    }

    /// One record per operation.
    pub fn messages(&self) -> &[MessageRecord] {
        &self.messages
    }

    /// Queue pairs that stopped for good.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Messages that no receive expected.
    pub fn unexpected_messages(&self) -> u64 {
        self.unexpected_messages
    }
}
