//! The answering half of a queue pair: which packet is taken when, and what is acknowledged.

use super::counters::QpCounters;
use super::event::{FailureReason, Notes, QpEvent};
use super::held::Held;
use super::incoming::{Incoming, Taken};
use super::opcode::{OpcodeRow, Operation};
use super::outgoing::MAX_REQUEST_BYTES;
use super::packet::Packet;
use super::psn;
use super::read_replies::{ReadReplies, Response};
use super::syndrome::Syndrome;
use crate::config::{LossRecovery, TransportConfig};

/// An acknowledgement before it has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub syndrome: Syndrome,
    pub psn: u32,
    /// The message sequence number; with selective repeat, in a NAK for a sequence error, the packet
    /// that came ahead of its turn.
    pub msn: u32,
}

/// A NAK to be sent.
#[derive(Clone, Copy, Debug)]
struct Nak {
    syndrome: Syndrome,
    /// The packet that came ahead of its turn, with selective repeat.
    arrived_psn: Option<u32>,
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub(super) struct Responder {
    ack_every_packets: u32,
    ack_delay_ps: u64,
    expected_psn: u32,
    /// Requests executed, modulo 2^24.
    msn: u32,
    incoming: Incoming,
    reads: ReadReplies,
    /// Packets ahead of their turn, with selective repeat; `None` drops them.
    held: Option<Held>,
    /// Accepted packets that no acknowledgement covers yet.
    unacknowledged_packets: u32,
    deadline_ps: Option<u64>,
    acknowledge_due: bool,
    nak_due: Option<Nak>,
    /// The gap in front of `expected_psn` has been reported; silence until it is filled.
    gap_reported: bool,
    /// The packet behind the last one that was dropped and has not come again.
    dropped_end: Option<u32>,
    /// The last packet was a duplicate, and answered.
    in_duplicates: bool,
    failed: bool,
}

impl Responder {
    pub fn new(transport: &TransportConfig, expected_psn: u32) -> Self {
        Self {
            ack_every_packets: transport.ack_every_packets.max(1),
            ack_delay_ps: transport.ack_delay_ps,
            expected_psn: expected_psn & psn::MASK_24,
            msn: 0,
            incoming: Incoming::new(transport.mtu_bytes),
            reads: ReadReplies::new(transport.mtu_bytes, transport.window_packets),
            held: (transport.loss_recovery == LossRecovery::SelectiveRepeat)
                .then(|| Held::new(transport.window_packets)),
            unacknowledged_packets: 0,
            deadline_ps: None,
            acknowledge_due: false,
            nak_due: None,
            gap_reported: false,
            dropped_end: None,
            in_duplicates: false,
            failed: false,
        }
    }

    pub fn incoming(&self) -> &Incoming {
        &self.incoming
    }

    pub fn incoming_mut(&mut self) -> &mut Incoming {
        &mut self.incoming
    }

    /// See [`QueuePair::glance`](super::queue_pair::QueuePair::glance).
    #[inline]
    pub fn glance(&self) -> u64 {
        u64::from(self.expected_psn)
            ^ self.deadline_ps.unwrap_or(0)
            ^ self.incoming.received_bytes()
            ^ u64::from(self.reads.is_empty())
    }

    pub fn poll_timeout(&self) -> Option<u64> {
        self.deadline_ps
    }

    /// Stops holding an acknowledgement back if its time has come.
    pub fn handle_timeout(&mut self, now_ps: u64) {
        if self.deadline_ps.take_if(|deadline| *deadline <= now_ps).is_some() {
            self.acknowledge_due = true;
        }
    }

    pub fn reads(&self) -> &ReadReplies {
        &self.reads
    }

    /// Takes the next READ response and the message number to send with it.
    pub fn poll_response(&mut self, counters: &mut QpCounters) -> Option<(Response, u32)> {
        let response = self.reads.poll()?;
        counters.data_packets_sent += 1;
        counters.data_payload_bytes_sent += u64::from(response.payload.length_bytes());
        Some((response, self.msn))
    }

    /// Takes the acknowledgement that is due. A NAK acknowledges everything before it as well; none
    /// of both overtakes a READ response.
    pub fn poll(&mut self, counters: &mut QpCounters) -> Option<Reply> {
        if !self.reads.is_empty() {
            return None;
        }
        let (syndrome, psn, msn) = match self.nak_due.take() {
            Some(nak) => (nak.syndrome, self.expected_psn, nak.arrived_psn.unwrap_or(self.msn)),
            None if self.acknowledge_due => {
                (Syndrome::Acknowledge, psn::previous(self.expected_psn), self.msn)
            }
            None => return None,
        };
        match syndrome {
            Syndrome::Acknowledge => counters.acks_sent += 1,
            Syndrome::ReceiverNotReady { .. } => counters.rnr_naks_sent += 1,
            _ => counters.naks_sent += 1,
        }
        self.forget_acknowledgement();
        Some(Reply { syndrome, psn, msn })
    }

    /// What was accepted is acknowledged, or about to be.
    fn forget_acknowledgement(&mut self) {
        self.acknowledge_due = false;
        self.unacknowledged_packets = 0;
        self.deadline_ps = None;
    }

    /// Takes a packet of a request.
    pub fn handle_request(
        &mut self,
        now_ps: u64,
        packet: &Packet,
        row: &OpcodeRow,
        notes: &mut Notes<'_>,
    ) {
        if self.failed {
            return;
        }
        match psn::difference(packet.bth.psn, self.expected_psn) {
            0 => {
                self.handle_expected(now_ps, packet, row, notes);
                self.release_held(now_ps, notes);
            }
            ahead if ahead > 0 => self.handle_gap(packet, row, ahead as u32, notes),
            _ => self.handle_duplicate(now_ps, packet, row, notes.counters),
        }
    }

    /// Takes the packets that waited for the one just taken.
    fn release_held(&mut self, now_ps: u64, notes: &mut Notes<'_>) {
        if self.held.as_ref().is_none_or(Held::is_empty) {
            return;
        }
        // Tell the requester how far the gap is closed.
        self.acknowledge_due = true;
        while !self.failed
            && let Some(packet) = self.held.as_mut().and_then(|held| held.take(self.expected_psn))
            && let Some(row) = packet.bth.opcode.row()
        {
            self.handle_expected(now_ps, &packet, row, notes);
        }
    }

    fn handle_expected(
        &mut self,
        now_ps: u64,
        packet: &Packet,
        row: &OpcodeRow,
        notes: &mut Notes<'_>,
    ) {
        self.gap_reported = false;
        self.in_duplicates = false;
        let unsent_nak = self.nak_due.take();
        match row.operation {
            Operation::ReadRequest => self.handle_read(packet, notes),
            _ => self.handle_data(now_ps, packet, row, notes),
        }
        self.dropped_end.take_if(|end| psn::difference(*end, self.expected_psn) <= 0);
        self.ask_for_dropped(unsent_nak);
    }

    /// A NAK that was not sent before the missing packet came still asks for what was dropped behind
    /// that packet: nothing else would bring it back before the requester's timer.
    fn ask_for_dropped(&mut self, unsent_nak: Option<Nak>) {
        if self.dropped_end.is_some() && self.nak_due.is_none() {
            self.nak_due = unsent_nak.filter(|nak| nak.syndrome == Syndrome::SequenceError);
            self.gap_reported = self.nak_due.is_some();
        }
    }

    fn handle_read(&mut self, packet: &Packet, notes: &mut Notes<'_>) {
        let length_bytes = packet.reth.length_bytes;
        if self.incoming.is_running() || u64::from(length_bytes) > MAX_REQUEST_BYTES {
            return self.refuse(notes);
        }
        if !self.reads.answer(packet.bth.psn, &packet.reth) {
            // As if it had been lost.
            return;
        }
        let responses = self.reads.responses(length_bytes);
        self.expected_psn = psn::add(self.expected_psn, u64::from(responses));
        self.msn = psn::add(self.msn, 1);
        // The responses acknowledge everything before them.
        self.forget_acknowledgement();
    }

    fn handle_data(
        &mut self,
        now_ps: u64,
        packet: &Packet,
        row: &OpcodeRow,
        notes: &mut Notes<'_>,
    ) {
        match self.incoming.take(packet, row, notes) {
            Taken::Invalid => return self.refuse(notes),
            Taken::NotReady { timer } => {
                let syndrome = Syndrome::ReceiverNotReady { timer };
                self.nak_due = Some(Nak { syndrome, arrived_psn: None });
                self.gap_reported = true;
                return;
            }
            Taken::Continues => {}
            Taken::Ends => self.msn = psn::add(self.msn, 1),
        }
        self.expected_psn = psn::add(self.expected_psn, 1);
        self.schedule_acknowledgement(now_ps, packet.bth.ack_request);
    }

    fn schedule_acknowledgement(&mut self, now_ps: u64, asked: bool) {
        self.unacknowledged_packets += 1;
        if asked || self.unacknowledged_packets >= self.ack_every_packets {
            self.acknowledge_due = true;
            self.deadline_ps = None;
        } else if self.deadline_ps.is_none() {
            self.deadline_ps = Some(now_ps.saturating_add(self.ack_delay_ps));
        }
    }

    /// A packet is missing: one NAK, then silence until it comes. Source: IBTA volume 1, section
    /// 9.7.5.1.1. With selective repeat, one for each packet that can be kept.
    fn handle_gap(&mut self, packet: &Packet, row: &OpcodeRow, ahead: u32, notes: &mut Notes<'_>) {
        notes.counters.out_of_sequence += 1;
        let keeps = row.operation != Operation::ReadRequest;
        let kept = self.held.as_mut().is_some_and(|held| keeps && held.keep(packet, ahead));
        if kept || !self.gap_reported {
            let arrived_psn = kept.then_some(packet.bth.psn);
            self.nak_due = Some(Nak { syndrome: Syndrome::SequenceError, arrived_psn });
        }
        if !kept {
            let end = psn::add(packet.bth.psn, 1);
            let behind = |known: u32| if psn::difference(end, known) > 0 { end } else { known };
            self.dropped_end = Some(self.dropped_end.map_or(end, behind));
        }
        if !std::mem::replace(&mut self.gap_reported, true) {
            notes.events.push_back(QpEvent::SequenceError);
        }
    }

    /// A packet came again, because its acknowledgement was lost or late: the first of a run of them
    /// is acknowledged at once, the others as if they were new; a READ is executed again. Source: IBTA
    /// volume 1, section 9.7.5.1.4.
    fn handle_duplicate(
        &mut self,
        now_ps: u64,
        packet: &Packet,
        row: &OpcodeRow,
        counters: &mut QpCounters,
    ) {
        counters.duplicate_requests += 1;
        if row.operation == Operation::ReadRequest {
            return self.answer_again(packet);
        }
        let first = !std::mem::replace(&mut self.in_duplicates, true);
        self.schedule_acknowledgement(now_ps, packet.bth.ack_request || first);
    }

    /// Answers a READ that came before, unless it claims numbers that nobody has used yet.
    fn answer_again(&mut self, packet: &Packet) {
        let responses = self.reads.responses(packet.reth.length_bytes);
        let end = psn::add(packet.bth.psn, u64::from(responses));
        if psn::difference(end, self.expected_psn) <= 0 {
            self.reads.answer(packet.bth.psn, &packet.reth);
        }
    }

    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Takes no request any more; what is due for those before is still sent.
    pub fn stop(&mut self) {
        self.failed = true;
    }

    fn refuse(&mut self, notes: &mut Notes<'_>) {
        notes.counters.invalid_requests += 1;
        self.stop();
        self.nak_due = Some(Nak { syndrome: Syndrome::InvalidRequest, arrived_psn: None });
        notes.events.push_back(QpEvent::Failed { reason: FailureReason::InvalidRequest });
    }
}
