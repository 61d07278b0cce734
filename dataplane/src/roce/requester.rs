//! The sending half of a queue pair: messages into packets, acknowledgements into completions.
//!
//! Packets are numbered from 0 in 64 bits as long as the queue pair lives; the 24 bits of a packet
//! sequence number exist only on the wire. Loss recovery is go-back-N.

use super::counters::QpCounters;
use super::opcode::{Opcode, Position};
use super::packet::{Payload, Reth};
use super::psn;
use super::queue_pair::{FailureReason, Message, QpEvent};
use crate::config::TransportConfig;
use std::collections::VecDeque;

/// Longest RDMA WRITE; longer messages are split. Source: IBTA volume 1, section 9.7.8.
pub const MAX_WRITE_BYTES: u64 = 1 << 31;

/// A message from its posting to its last acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    message: Message,
    /// Number of its first packet.
    first: u64,
    /// How many packets it has, at least 1.
    packets: u64,
    /// Packets sent again.
    retransmitted_packets: u32,
}

impl Outgoing {
    /// Number of the packet behind its last.
    fn end(&self) -> u64 {
        self.first + self.packets
    }

    /// Bytes of the message in front of packet `number`.
    fn bytes_before(&self, number: u64, mtu_bytes: u64) -> u64 {
        ((number - self.first) * mtu_bytes).min(self.message.size_bytes)
    }
}

/// One packet of a message, before it has an address.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub opcode: Opcode,
    pub psn: u32,
    pub ack_request: bool,
    pub reth: Reth,
    pub immediate: u32,
    pub payload: Payload,
}

/// What acknowledgements said since the last question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Payload bytes newly acknowledged.
    pub payload_bytes: u64,
    /// Time from sending a packet to its acknowledgement, if one was measured. Packets sent twice
    /// are never measured. Source: Karn and Partridge, SIGCOMM 1987.
    pub round_trip_ps: Option<u64>,
}

/// The packet whose round trip is being measured.
#[derive(Clone, Copy, Debug)]
struct Probe {
    number: u64,
    sent_ps: u64,
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub(super) struct Requester {
    mtu_bytes: u64,
    window_packets: u64,
    timeout_ps: u64,
    retry_count: u32,
    first_psn: u32,
    /// Messages not yet wholly acknowledged, oldest first.
    messages: VecDeque<Outgoing>,
    /// Index of the message that holds packet `next`; `messages.len()` when all are sent.
    cursor: usize,
    /// The oldest packet not acknowledged.
    unacknowledged: u64,
    /// The packet to send next.
    next: u64,
    /// The packet behind the last one ever sent.
    highest: u64,
    /// The packet behind the last one posted.
    posted: u64,
    /// Bytes of all messages wholly acknowledged.
    completed_bytes: u64,
    /// Bytes of all messages in front of `unacknowledged`.
    acknowledged_bytes: u64,
    /// Bytes of all messages in front of `next`.
    sent_bytes: u64,
    deadline_ps: Option<u64>,
    /// Expired timers since the last progress.
    timeouts: u32,
    probe: Option<Probe>,
    acknowledged: Acknowledged,
    failed: bool,
}

impl Requester {
    pub fn new(transport: &TransportConfig, first_psn: u32) -> Self {
        Self {
            mtu_bytes: u64::from(transport.mtu_bytes),
            window_packets: u64::from(transport.window_packets.clamp(1, psn::MAX_OUTSTANDING)),
            timeout_ps: transport.retransmission_timeout_ps,
            retry_count: transport.retry_count,
            first_psn,
            messages: VecDeque::new(),
            cursor: 0,
            unacknowledged: 0,
            next: 0,
            highest: 0,
            posted: 0,
            completed_bytes: 0,
            acknowledged_bytes: 0,
            sent_bytes: 0,
            deadline_ps: None,
            timeouts: 0,
            probe: None,
            acknowledged: Acknowledged::default(),
            failed: false,
        }
    }

    /// Adds a message behind all others.
    pub fn post(&mut self, message: Message) {
        let packets = message.size_bytes.div_ceil(self.mtu_bytes).max(1);
        let first = self.posted;
        self.posted += packets;
        self.messages.push_back(Outgoing { message, first, packets, retransmitted_packets: 0 });
    }

    pub fn has_unacknowledged(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Payload bytes sent and not acknowledged.
    pub fn in_flight_bytes(&self) -> u64 {
        self.sent_bytes - self.acknowledged_bytes
    }

    pub fn take_acknowledged(&mut self) -> Acknowledged {
        std::mem::take(&mut self.acknowledged)
    }

    pub fn poll_timeout(&self) -> Option<u64> {
        self.deadline_ps
    }

    /// Opcode and payload bytes of the next packet; `None` if there is none to send or the window is
    /// closed.
    #[inline]
    pub fn next_packet(&self) -> Option<(Opcode, u32)> {
        let open = self.next - self.unacknowledged < self.window_packets && !self.failed;
        let outgoing = self.messages.get(self.cursor).filter(|_| open)?;
        let start = outgoing.bytes_before(self.next, self.mtu_bytes);
        let end = outgoing.bytes_before(self.next + 1, self.mtu_bytes);
        Some((self.opcode(outgoing), (end - start) as u32))
    }

    /// Opcode of packet `next`, which belongs to `outgoing`.
    fn opcode(&self, outgoing: &Outgoing) -> Opcode {
        let packets_per_write = MAX_WRITE_BYTES / self.mtu_bytes;
        let index = self.next - outgoing.first;
        let ends_message = index + 1 == outgoing.packets;
        let starts = index % packets_per_write == 0;
        let ends = ends_message || (index + 1) % packets_per_write == 0;
        match (starts, ends, ends_message) {
            (true, true, true) => Opcode::WRITE_ONLY_IMMEDIATE,
            (true, true, false) => Opcode::WRITE_ONLY,
            (true, false, _) => Opcode::WRITE_FIRST,
            (false, false, _) => Opcode::WRITE_MIDDLE,
            (false, true, true) => Opcode::WRITE_LAST_IMMEDIATE,
            (false, true, false) => Opcode::WRITE_LAST,
        }
    }

    /// Takes the next packet.
    pub fn poll(&mut self, now_ps: u64, counters: &mut QpCounters) -> Option<Part> {
        let (opcode, length_bytes) = self.next_packet()?;
        let outgoing = self.messages[self.cursor];
        let offset_bytes = outgoing.bytes_before(self.next, self.mtu_bytes);
        let part = Part {
            opcode,
            psn: psn::add(self.first_psn, self.next),
            ack_request: self.asks_for_acknowledgement(opcode),
            reth: reth(&outgoing.message, offset_bytes),
            immediate: outgoing.message.immediate,
            payload: Payload::Pattern { offset_bytes, length_bytes: length_bytes as u16 },
        };
        self.count_sent(u64::from(length_bytes), counters);
        self.advance_next(now_ps, &outgoing, u64::from(length_bytes));
        Some(part)
    }

    /// The last packet of a request does, and the one that closes the window.
    fn asks_for_acknowledgement(&self, opcode: Opcode) -> bool {
        let ends =
            opcode.row().is_some_and(|row| matches!(row.position, Position::Last | Position::Only));
        ends || self.next + 1 - self.unacknowledged == self.window_packets
    }

    fn count_sent(&mut self, length_bytes: u64, counters: &mut QpCounters) {
        counters.data_packets_sent += 1;
        counters.data_payload_bytes_sent += length_bytes;
        if self.next < self.highest {
            counters.retransmitted_packets += 1;
            counters.data_payload_bytes_retransmitted += length_bytes;
            self.messages[self.cursor].retransmitted_packets += 1;
        }
    }

    fn advance_next(&mut self, now_ps: u64, outgoing: &Outgoing, length_bytes: u64) {
        let is_new = self.next == self.highest;
        if is_new && self.probe.is_none() {
            self.probe = Some(Probe { number: self.next, sent_ps: now_ps });
        }
        if self.deadline_ps.is_none() {
            self.deadline_ps = Some(now_ps.saturating_add(self.timeout_ps));
        }
        self.next += 1;
        self.sent_bytes += length_bytes;
        self.highest = self.highest.max(self.next);
        if self.next == outgoing.end() {
            self.cursor += 1;
        }
    }

    /// The packet that a packet sequence number from the peer names: one that was sent and is not
    /// acknowledged. Anything else is old or was never sent.
    fn outstanding(&self, psn: u32) -> Option<u64> {
        let oldest = psn::add(self.first_psn, self.unacknowledged);
        let distance = u64::try_from(psn::difference(psn, oldest)).ok()?;
        let number = self.unacknowledged + distance;
        (number < self.highest).then_some(number)
    }

    /// Everything up to `psn` has been executed.
    pub fn handle_acknowledge(&mut self, now_ps: u64, psn: u32, events: &mut VecDeque<QpEvent>) {
        if let Some(number) = self.outstanding(psn) {
            self.acknowledge(now_ps, number + 1, events);
        }
    }

    /// The packet `psn` is missing, everything before has been executed.
    pub fn handle_sequence_error(
        &mut self,
        now_ps: u64,
        psn: u32,
        counters: &mut QpCounters,
        events: &mut VecDeque<QpEvent>,
    ) {
        if let Some(number) = self.outstanding(psn) {
            counters.packet_seq_err += 1;
            self.acknowledge(now_ps, number, events);
            self.go_back();
        }
    }

    /// The peer refused the request `psn` for good.
    pub fn handle_refusal(
        &mut self,
        psn: u32,
        reason: FailureReason,
        events: &mut VecDeque<QpEvent>,
    ) {
        if self.outstanding(psn).is_some() {
            self.fail(reason, events);
        }
    }

    /// Fires the retransmission timer if it is due.
    pub fn handle_timeout(
        &mut self,
        now_ps: u64,
        counters: &mut QpCounters,
        events: &mut VecDeque<QpEvent>,
    ) {
        if self.deadline_ps.is_none_or(|deadline| now_ps < deadline) {
            return;
        }
        counters.local_ack_timeout_err += 1;
        self.timeouts += 1;
        if self.timeouts > self.retry_count {
            return self.fail(FailureReason::RetriesExhausted, events);
        }
        events.push_back(QpEvent::TimedOut);
        self.go_back();
    }

    /// Everything in front of packet `number` has been executed.
    fn acknowledge(&mut self, now_ps: u64, number: u64, events: &mut VecDeque<QpEvent>) {
        if number == self.unacknowledged {
            return;
        }
        self.unacknowledged = number;
        self.timeouts = 0;
        self.complete(number, events);
        self.count_acknowledged(number);
        self.measure_round_trip(now_ps, number);
        if self.next < number {
            // What was about to be sent again had arrived the first time.
            self.restart_from_unacknowledged();
        }
        let in_flight = self.next > self.unacknowledged;
        self.deadline_ps = in_flight.then(|| now_ps.saturating_add(self.timeout_ps));
    }

    /// Completes the messages that end before or at packet `number`.
    fn complete(&mut self, number: u64, events: &mut VecDeque<QpEvent>) {
        while let Some(outgoing) = self.messages.front().filter(|front| front.end() <= number) {
            events.push_back(QpEvent::SendCompleted {
                id: outgoing.message.id,
                retransmitted_packets: outgoing.retransmitted_packets,
            });
            self.completed_bytes += outgoing.message.size_bytes;
            self.messages.pop_front();
            self.cursor = self.cursor.saturating_sub(1);
        }
    }

    fn count_acknowledged(&mut self, number: u64) {
        let partial = self.messages.front();
        let partial_bytes = partial.map_or(0, |front| front.bytes_before(number, self.mtu_bytes));
        let acknowledged_bytes = self.completed_bytes + partial_bytes;
        self.acknowledged.payload_bytes += acknowledged_bytes - self.acknowledged_bytes;
        self.acknowledged_bytes = acknowledged_bytes;
    }

    fn measure_round_trip(&mut self, now_ps: u64, number: u64) {
        if let Some(probe) = self.probe.take_if(|probe| probe.number < number) {
            self.acknowledged.round_trip_ps = Some(now_ps.saturating_sub(probe.sent_ps));
        }
    }

    /// Sends everything not acknowledged again. The timer starts with the first of these packets.
    fn go_back(&mut self) {
        self.restart_from_unacknowledged();
        self.probe = None;
        self.deadline_ps = None;
    }

    fn restart_from_unacknowledged(&mut self) {
        // The oldest unacknowledged packet is always in the oldest message.
        self.next = self.unacknowledged;
        self.sent_bytes = self.acknowledged_bytes;
        self.cursor = 0;
    }

    fn fail(&mut self, reason: FailureReason, events: &mut VecDeque<QpEvent>) {
        self.failed = true;
        self.deadline_ps = None;
        events.push_back(QpEvent::Failed { reason });
    }
}

/// The header of the RDMA WRITE that starts at `offset_bytes` of the message. Memory is addressed by
/// the offset in the message.
fn reth(message: &Message, offset_bytes: u64) -> Reth {
    let length = (message.size_bytes - offset_bytes).min(MAX_WRITE_BYTES);
    Reth { virtual_address: offset_bytes, remote_key: 0, length_bytes: length as u32 }
}
