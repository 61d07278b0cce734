//! The asking half of a queue pair: requests into packets, acknowledgements into completions.
//!
//! Packets are numbered from 0 in 64 bits as long as the queue pair lives; the 24 bits of a packet
//! sequence number exist only on the wire. A READ takes the numbers of its responses. A loss is
//! recovered from by go-back-N, or by selective repeat; with the latter a READ waits until everything
//! before it is complete, and holds up what is behind it.

use super::counters::QpCounters;
use super::event::{FailureReason, Notes, QpEvent};
use super::losses::Losses;
use super::opcode::{Opcode, Position};
use super::outgoing::{Outgoing, RemoteMemory, Step, WorkRequest};
use super::packet::{Ecn, Packet, Payload, Reth};
use super::retransmission_timer::{Expiry, RetransmissionTimer};
use super::round_trip::{Acknowledged, RoundTrip};
use super::syndrome::receiver_not_ready_ps;
use super::{pattern, psn};
use crate::config::{ENDLESS_RETRIES, LossRecovery, TransportConfig};
use std::collections::VecDeque;

/// One packet of a request, before it has an address.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub opcode: Opcode,
    pub psn: u32,
    pub ack_request: bool,
    pub reth: Reth,
    pub immediate: u32,
    pub payload: Payload,
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub(super) struct Requester {
    mtu_bytes: u64,
    window_packets: u64,
    max_outstanding_reads: u32,
    /// READs in front of `cursor`.
    outstanding_reads: u32,
    first_psn: u32,
    memory: RemoteMemory,
    /// Requests not yet complete, oldest first.
    requests: VecDeque<Outgoing>,
    /// Index of the request that holds packet `next`; `requests.len()` when all are sent.
    cursor: usize,
    /// The oldest packet not acknowledged.
    unacknowledged: u64,
    /// The packet to send next.
    next: u64,
    /// The packet behind the last one ever sent.
    highest: u64,
    /// The packet behind the last one posted.
    posted: u64,
    /// Bytes of all requests completed.
    completed_bytes: u64,
    /// Bytes of all requests in front of `unacknowledged`.
    acknowledged_bytes: u64,
    /// Bytes of all requests in front of `next`.
    sent_bytes: u64,
    timer: RetransmissionTimer,
    /// Selective repeat; `None` is go-back-N.
    losses: Option<Losses>,
    /// The peer was not ready: nothing is sent before.
    resume_ps: Option<u64>,
    rnr_retry_count: u32,
    /// How often the peer was not ready since the last progress.
    not_ready: u32,
    /// A missing READ response has been asked for again; no more often until it comes.
    gap_reported: bool,
    round_trip: RoundTrip,
    failed: bool,
}

impl Requester {
    pub fn new(transport: &TransportConfig, first_psn: u32, seed: u64) -> Self {
        let window_packets = u64::from(transport.window_packets.clamp(1, psn::MAX_OUTSTANDING));
        let selective = transport.loss_recovery == LossRecovery::SelectiveRepeat;
        Self {
            mtu_bytes: u64::from(transport.mtu_bytes),
            window_packets,
            max_outstanding_reads: transport.max_outstanding_reads.max(1),
            outstanding_reads: 0,
            first_psn,
            memory: RemoteMemory::default(),
            requests: VecDeque::new(),
            cursor: 0,
            unacknowledged: 0,
            next: 0,
            highest: 0,
            posted: 0,
            completed_bytes: 0,
            acknowledged_bytes: 0,
            sent_bytes: 0,
            timer: RetransmissionTimer::new(transport, seed),
            losses: selective.then(|| Losses::new(window_packets, transport.reordering_packets)),
            resume_ps: None,
            rnr_retry_count: transport.rnr_retry_count,
            not_ready: 0,
            gap_reported: false,
            round_trip: RoundTrip::default(),
            failed: false,
        }
    }

    pub fn set_memory(&mut self, memory: RemoteMemory) {
        self.memory = memory;
    }

    /// Adds a request behind all others.
    pub fn post(&mut self, id: u64, request: WorkRequest) {
        let outgoing = Outgoing::new(id, request, self.posted, self.mtu_bytes);
        self.posted = outgoing.end();
        self.requests.push_back(outgoing);
    }

    /// See [`QueuePair::glance`](super::queue_pair::QueuePair::glance).
    #[inline]
    pub fn glance(&self) -> u64 {
        let request = self.requests.get(self.cursor).map_or(0, |outgoing| outgoing.first);
        let timers = self.timer.poll().unwrap_or(0) ^ self.resume_ps.unwrap_or(0);
        request ^ self.mtu_bytes ^ self.next ^ timers ^ u64::from(self.losses.is_some())
    }

    /// The `id` of the oldest request that is not complete.
    pub fn oldest_request(&self) -> Option<u64> {
        self.requests.front().map(|outgoing| outgoing.id)
    }

    pub fn has_unacknowledged(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Payload bytes sent and not acknowledged.
    pub fn in_flight_bytes(&self) -> u64 {
        self.sent_bytes - self.acknowledged_bytes
    }

    pub fn take_acknowledged(&mut self) -> Acknowledged {
        self.round_trip.take()
    }

    pub fn poll_timeout(&self) -> Option<u64> {
        match (self.timer.poll(), self.resume_ps) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The packet to send: its request's index, its number, and what it is. `None` if there is none or
    /// the window is closed.
    #[inline]
    fn next_send(&self) -> Option<(usize, u64, Step)> {
        if self.resume_ps.is_some() || self.failed {
            return None;
        }
        if let Some(number) = self.losses.as_ref().and_then(Losses::next) {
            let index = self.requests.partition_point(|outgoing| outgoing.end() <= number);
            let step = self.requests.get(index)?.step(number, self.mtu_bytes, &self.memory);
            return Some((index, number, step));
        }
        let open = self.next - self.unacknowledged < self.window_packets && !self.is_held_up();
        let outgoing = self.requests.get(self.cursor).filter(|_| open)?;
        if outgoing.is_read() && self.outstanding_reads >= self.max_outstanding_reads {
            return None;
        }
        let step = outgoing.step(self.next, self.mtu_bytes, &self.memory);
        // A READ may be longer than the window, but old and new must stay apart.
        let outstanding = self.next - self.unacknowledged + step.numbers;
        (outstanding <= u64::from(psn::MAX_OUTSTANDING)).then_some((self.cursor, self.next, step))
    }

    /// With selective repeat, the next request is a READ or behind one, and waits.
    fn is_held_up(&self) -> bool {
        let is_read = |index| self.requests.get(index).is_some_and(Outgoing::is_read);
        self.losses.is_some() && self.cursor > 0 && (is_read(0) || is_read(self.cursor))
    }

    /// The next packet; `None` if there is none to send or the window is closed.
    #[inline]
    pub fn next_step(&self) -> Option<Step> {
        self.next_send().map(|(_, _, step)| step)
    }

    /// Takes the next packet.
    pub fn poll(&mut self, now_ps: u64, counters: &mut QpCounters) -> Option<Part> {
        let (index, number, step) = self.next_send()?;
        let outgoing = &self.requests[index];
        let part = Part {
            opcode: step.opcode,
            psn: psn::add(self.first_psn, number),
            ack_request: self.asks_for_acknowledgement(number, step.opcode),
            reth: outgoing.reth(number, self.mtu_bytes, &self.memory),
            immediate: outgoing.immediate(),
            payload: outgoing.payload(number, step.length_bytes, self.mtu_bytes, &self.memory),
        };
        self.count_sent(index, number, step, counters);
        self.timer.start(now_ps);
        match &mut self.losses {
            Some(losses) if number < self.next => losses.sent(number),
            _ => self.advance(now_ps, step),
        }
        Some(part)
    }

    /// The last packet of a request does, and the one that closes the window.
    fn asks_for_acknowledgement(&self, number: u64, opcode: Opcode) -> bool {
        let ends =
            opcode.row().is_some_and(|row| matches!(row.position, Position::Last | Position::Only));
        ends || number + 1 - self.unacknowledged == self.window_packets
    }

    fn count_sent(&mut self, index: usize, number: u64, step: Step, counters: &mut QpCounters) {
        let length_bytes = u64::from(step.length_bytes);
        counters.data_packets_sent += u64::from(step.opcode.has_payload());
        counters.data_payload_bytes_sent += length_bytes;
        if number < self.highest {
            counters.retransmitted_packets += 1;
            counters.data_payload_bytes_retransmitted += length_bytes;
            self.requests[index].retransmitted_packets += 1;
        }
    }

    fn advance(&mut self, now_ps: u64, step: Step) {
        if self.next == self.highest {
            self.round_trip.sent(self.next, now_ps);
        }
        self.next += step.numbers;
        self.sent_bytes += u64::from(step.length_bytes);
        self.highest = self.highest.max(self.next);
        if self.next == self.requests[self.cursor].end() {
            self.outstanding_reads += u32::from(self.requests[self.cursor].is_read());
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
    pub fn handle_acknowledge(&mut self, now_ps: u64, psn: u32, notes: &mut Notes<'_>) {
        if let Some(number) = self.outstanding(psn)
            && !self.acknowledge(now_ps, number + 1, notes)
        {
            self.handle_missing_response(notes);
        }
    }

    /// The packet `psn` is missing, everything before has been executed. With selective repeat,
    /// `arrived_psn` is the packet that has come instead.
    pub fn handle_sequence_error(
        &mut self,
        now_ps: u64,
        psn: u32,
        arrived_psn: u32,
        notes: &mut Notes<'_>,
    ) {
        let Some(number) = self.outstanding(psn) else { return };
        notes.counters.packet_seq_err += 1;
        self.acknowledge(now_ps, number, notes);
        let arrived = self.outstanding(arrived_psn).filter(|arrived| *arrived > number);
        match &mut self.losses {
            None => self.send_again(),
            Some(losses) => {
                self.round_trip.lost();
                if let Some(arrived) = arrived {
                    losses.arrive(arrived);
                }
            }
        }
    }

    /// The packet `psn` cannot be taken yet, everything before has been executed.
    pub fn handle_not_ready(&mut self, now_ps: u64, psn: u32, timer: u8, notes: &mut Notes<'_>) {
        if let Some(number) = self.outstanding(psn) {
            notes.counters.rnr_naks_received += 1;
            self.acknowledge(now_ps, number, notes);
            self.not_ready += 1;
            if self.rnr_retry_count != ENDLESS_RETRIES && self.not_ready > self.rnr_retry_count {
                notes.counters.rnr_nak_retry_err += 1;
                return self.fail(FailureReason::ReceiverNotReady, notes);
            }
            self.send_again();
            self.resume_ps = Some(now_ps.saturating_add(receiver_not_ready_ps(timer)));
        }
    }

    /// The peer refused the request `psn` for good.
    pub fn handle_refusal(&mut self, psn: u32, reason: FailureReason, notes: &mut Notes<'_>) {
        if self.outstanding(psn).is_some() {
            self.fail(reason, notes);
        }
    }

    /// A response to a READ has come; it acknowledges everything before the READ as well.
    pub fn handle_read_response(&mut self, now_ps: u64, packet: &Packet, notes: &mut Notes<'_>) {
        let Some(number) = self.outstanding(packet.bth.psn) else { return };
        self.acknowledge(now_ps, number, notes);
        let Some(read) = self.requests.front_mut().filter(|front| front.is_read()) else { return };
        if number != self.unacknowledged || number < read.first {
            return self.handle_missing_response(notes);
        }
        let length_bytes = read.length_bytes(number, self.mtu_bytes);
        if packet.payload.length_bytes() != u32::from(length_bytes) {
            return self.fail(FailureReason::InvalidResponse, notes);
        }
        let WorkRequest::Read { offset_bytes, .. } = read.request else { return };
        let place = offset_bytes + read.offset_bytes(number, self.mtu_bytes);
        let matches = pattern::matches(place, &packet.payload);
        read.marked_packets += u32::from(packet.ecn == Ecn::Ce);
        notes.counters.payload_mismatches += u64::from(!matches);
        notes.counters.data_payload_bytes_received += u64::from(length_bytes);
        self.progress(now_ps, number + 1, notes);
    }

    /// A READ response is missing, since something behind it has come: ask again, once. Source: IBTA
    /// volume 1, section 9.7.5.2.8 (implied NAK).
    fn handle_missing_response(&mut self, notes: &mut Notes<'_>) {
        if !self.gap_reported {
            self.gap_reported = true;
            notes.counters.implied_nak_seq_err += 1;
            self.send_again();
        }
    }

    /// Fires the timers that are due.
    pub fn handle_timeout(&mut self, now_ps: u64, notes: &mut Notes<'_>) {
        self.resume_ps.take_if(|resume_ps| *resume_ps <= now_ps);
        let Some(expiry) = self.timer.expire(now_ps) else { return };
        notes.counters.local_ack_timeout_err += 1;
        match expiry {
            Expiry::Retry => {
                notes.events.push_back(QpEvent::TimedOut);
                self.gap_reported = false;
                self.send_again();
            }
            Expiry::Exhausted => self.fail(FailureReason::RetriesExhausted, notes),
        }
    }

    /// Everything in front of packet `number` has been executed; of a READ that says nothing about
    /// the responses. Returns whether `number` was reached.
    fn acknowledge(&mut self, now_ps: u64, number: u64, notes: &mut Notes<'_>) -> bool {
        let read =
            self.requests.iter().find(|outgoing| outgoing.is_read() || outgoing.end() > number);
        let bound = match read {
            Some(outgoing) if outgoing.is_read() => outgoing.first.max(self.unacknowledged),
            _ => number,
        };
        self.progress(now_ps, number.min(bound), notes);
        number <= bound
    }

    /// Everything in front of packet `number` is done.
    fn progress(&mut self, now_ps: u64, number: u64, notes: &mut Notes<'_>) {
        if number <= self.unacknowledged {
            return;
        }
        if let Some(losses) = &mut self.losses {
            losses.acknowledge(self.unacknowledged..number);
        }
        self.unacknowledged = number;
        self.not_ready = 0;
        self.gap_reported = false;
        self.complete(number, notes);
        self.count_acknowledged(now_ps, number);
        if self.next < number {
            // What was about to be sent again had arrived the first time.
            self.restart_from_unacknowledged();
        }
        self.timer.progress(now_ps, self.next > self.unacknowledged);
    }

    /// Completes the requests that end before or at packet `number`.
    fn complete(&mut self, number: u64, notes: &mut Notes<'_>) {
        while let Some(outgoing) = self.requests.front().filter(|front| front.end() <= number) {
            notes.events.push_back(outgoing.completion());
            self.completed_bytes += outgoing.sent_bytes(outgoing.end(), self.mtu_bytes);
            if self.cursor > 0 {
                self.cursor -= 1;
                self.outstanding_reads -= u32::from(outgoing.is_read());
            }
            self.requests.pop_front();
        }
    }

    fn count_acknowledged(&mut self, now_ps: u64, number: u64) {
        let partial = self.requests.front().filter(|front| front.first < number);
        let partial_bytes = partial.map_or(0, |front| front.sent_bytes(number, self.mtu_bytes));
        let acknowledged_bytes = self.completed_bytes + partial_bytes;
        let payload_bytes = acknowledged_bytes - self.acknowledged_bytes;
        self.round_trip.acknowledged(number, now_ps, payload_bytes);
        self.acknowledged_bytes = acknowledged_bytes;
    }

    /// Sends everything again that is not known to have arrived. The timer starts with the first of
    /// these packets.
    fn send_again(&mut self) {
        self.round_trip.lost();
        self.timer.stop();
        let at_read = self.requests.front().is_some_and(Outgoing::is_read);
        match &mut self.losses {
            Some(losses) if !at_read => losses.lose(self.unacknowledged..self.next),
            _ => self.restart_from_unacknowledged(),
        }
    }

    fn restart_from_unacknowledged(&mut self) {
        // The oldest unacknowledged packet is always in the oldest request.
        self.next = self.unacknowledged;
        self.sent_bytes = self.acknowledged_bytes;
        self.cursor = 0;
        self.outstanding_reads = 0;
    }

    fn fail(&mut self, reason: FailureReason, notes: &mut Notes<'_>) {
        self.stop();
        notes.events.push_back(QpEvent::Failed { reason });
    }

    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Sends nothing any more and waits for nothing.
    pub fn stop(&mut self) {
        self.failed = true;
        self.timer.stop();
        self.resume_ps = None;
    }
}
