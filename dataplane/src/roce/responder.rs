//! The answering half of a queue pair: packets into messages, and the acknowledgements for them.

use super::counters::QpCounters;
use super::opcode::{OpcodeRow, Operation, Position};
use super::outgoing::MAX_REQUEST_BYTES;
use super::packet::{Ecn, Packet};
use super::queue_pair::{FailureReason, QpEvent};
use super::read_replies::{ReadReplies, Response};
use super::requester::Notes;
use super::syndrome::Syndrome;
use super::{pattern, psn};
use crate::config::TransportConfig;

/// An acknowledgement before it has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub syndrome: Syndrome,
    pub psn: u32,
    pub msn: u32,
}

/// The message whose packets are arriving.
#[derive(Clone, Copy, Debug, Default)]
struct Incoming {
    /// The running request; `None` between two of them.
    running: Option<Running>,
    /// Where the running request's next byte belongs: a WRITE starts at its address, a SEND at 0.
    place_bytes: u64,
    /// Bytes of the message so far, over all its WRITEs.
    received_bytes: u64,
    /// Packets of the message that arrived with congestion experienced.
    marked_packets: u32,
}

/// A WRITE or SEND of which the first packet has arrived and the last has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Running {
    operation: Operation,
    /// Bytes that a WRITE still lacks; a SEND does not say.
    missing_bytes: u32,
}

/// Receives that are posted for SENDs and immediate data.
#[derive(Clone, Copy, Debug)]
struct Receives {
    posted: u32,
    /// Code of the time that the peer is asked to wait for one.
    timer: u8,
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub(super) struct Responder {
    mtu_bytes: u32,
    ack_every_packets: u32,
    ack_delay_ps: u64,
    expected_psn: u32,
    /// Requests executed, modulo 2^24.
    msn: u32,
    incoming: Incoming,
    /// `None` while there are always enough.
    receives: Option<Receives>,
    reads: ReadReplies,
    /// Accepted packets that no acknowledgement covers yet.
    unacknowledged_packets: u32,
    deadline_ps: Option<u64>,
    acknowledge_due: bool,
    nak_due: Option<Syndrome>,
    /// The gap in front of `expected_psn` has been reported; silence until it is filled.
    gap_reported: bool,
    /// The last packet was a duplicate, and answered.
    in_duplicates: bool,
    failed: bool,
}

impl Responder {
    pub fn new(transport: &TransportConfig, expected_psn: u32) -> Self {
        Self {
            mtu_bytes: transport.mtu_bytes,
            ack_every_packets: transport.ack_every_packets.max(1),
            ack_delay_ps: transport.ack_delay_ps,
            expected_psn: expected_psn & psn::MASK_24,
            msn: 0,
            incoming: Incoming::default(),
            receives: None,
            reads: ReadReplies::new(transport.mtu_bytes),
            unacknowledged_packets: 0,
            deadline_ps: None,
            acknowledge_due: false,
            nak_due: None,
            gap_reported: false,
            in_duplicates: false,
            failed: false,
        }
    }

    pub fn limit_receives(&mut self, posted: u32, timer: u8) {
        self.receives = Some(Receives { posted, timer });
    }

    pub fn post_receive(&mut self) {
        if let Some(receives) = &mut self.receives {
            receives.posted += 1;
        }
    }

    /// Bytes that have arrived of the message that is not complete.
    pub fn receiving_bytes(&self) -> u64 {
        self.incoming.received_bytes
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
        let (syndrome, psn) = match self.nak_due.take() {
            Some(syndrome) => (syndrome, self.expected_psn),
            None if self.acknowledge_due => {
                (Syndrome::Acknowledge, psn::previous(self.expected_psn))
            }
            None => return None,
        };
        match syndrome {
            Syndrome::Acknowledge => counters.acks_sent += 1,
            Syndrome::ReceiverNotReady { .. } => counters.rnr_naks_sent += 1,
            _ => counters.naks_sent += 1,
        }
        self.forget_acknowledgement();
        Some(Reply { syndrome, psn, msn: self.msn })
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
            0 => self.handle_expected(now_ps, packet, row, notes),
            ahead if ahead > 0 => self.handle_gap(notes),
            _ => self.handle_duplicate(now_ps, packet, row, notes.counters),
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
        self.nak_due = None;
        self.in_duplicates = false;
        match row.operation {
            Operation::ReadRequest => self.handle_read(packet, notes),
            _ => self.handle_data(now_ps, packet, row, notes),
        }
    }

    fn handle_read(&mut self, packet: &Packet, notes: &mut Notes<'_>) {
        let length_bytes = packet.reth.length_bytes;
        if self.incoming.running.is_some() || u64::from(length_bytes) > MAX_REQUEST_BYTES {
            return self.refuse(notes);
        }
        self.reads.answer(packet.bth.psn, &packet.reth);
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
        let Some(running) = self.running_after(packet, row) else { return self.refuse(notes) };
        if !self.take_receive(row) {
            return;
        }
        self.expected_psn = psn::add(self.expected_psn, 1);
        self.start_request(packet, row);
        self.receive(packet, notes.counters);
        self.incoming.running = running;
        if running.is_none() {
            self.msn = psn::add(self.msn, 1);
            self.deliver(packet, row, notes);
        }
        self.schedule_acknowledgement(now_ps, packet.bth.ack_request);
    }

    /// What runs once `packet` is taken: `Some(None)` if it ends its request, `None` if it breaks the
    /// protocol. Source: IBTA volume 1, sections 9.7.4.1.2 and 9.7.4.1.6.
    fn running_after(&self, packet: &Packet, row: &OpcodeRow) -> Option<Option<Running>> {
        let (operation, length_bytes) = (row.operation, packet.payload.length_bytes());
        let is_write = operation == Operation::Write;
        let before_bytes = match (row.position, self.incoming.running) {
            (Position::First | Position::Only, None) if is_write => packet.reth.length_bytes,
            (Position::First | Position::Only, None) => MAX_REQUEST_BYTES as u32,
            (Position::Middle | Position::Last, Some(running))
                if running.operation == operation =>
            {
                running.missing_bytes
            }
            _ => return None,
        };
        let missing_bytes = before_bytes.checked_sub(length_bytes)?;
        let ends_well = length_bytes <= self.mtu_bytes && (missing_bytes == 0 || !is_write);
        match row.position {
            Position::First | Position::Middle => {
                let goes_on = length_bytes == self.mtu_bytes && missing_bytes > 0;
                goes_on.then_some(Some(Running { operation, missing_bytes }))
            }
            Position::Last => (ends_well && length_bytes > 0).then_some(None),
            Position::Only => ends_well.then_some(None),
        }
    }

    /// Takes a posted receive for a packet that needs one: the first of a SEND, and the one that
    /// carries a WRITE's immediate data. Without one the peer is asked to wait. Source: IBTA volume 1,
    /// section 9.7.5.2.8.
    fn take_receive(&mut self, row: &OpcodeRow) -> bool {
        let Some(receives) = &mut self.receives else { return true };
        let starts = matches!(row.position, Position::First | Position::Only);
        let needed = match row.operation {
            Operation::Send => starts,
            _ => row.has_immediate,
        };
        if !needed {
            return true;
        }
        if receives.posted == 0 {
            self.nak_due = Some(Syndrome::ReceiverNotReady { timer: receives.timer });
            self.gap_reported = true;
            return false;
        }
        receives.posted -= 1;
        true
    }

    fn start_request(&mut self, packet: &Packet, row: &OpcodeRow) {
        if !matches!(row.position, Position::First | Position::Only) {
            return;
        }
        match row.operation {
            Operation::Write => self.incoming.place_bytes = packet.reth.virtual_address,
            // A SEND is a message of its own, whatever was written before.
            _ => self.incoming = Incoming::default(),
        }
    }

    fn receive(&mut self, packet: &Packet, counters: &mut QpCounters) {
        if !pattern::matches(self.incoming.place_bytes, &packet.payload) {
            counters.payload_mismatches += 1;
        }
        let length_bytes = u64::from(packet.payload.length_bytes());
        self.incoming.place_bytes = self.incoming.place_bytes.wrapping_add(length_bytes);
        counters.data_payload_bytes_received += length_bytes;
        self.incoming.received_bytes += length_bytes;
        self.incoming.marked_packets += u32::from(packet.ecn == Ecn::Ce);
    }

    /// A request is complete. A WRITE without immediate data is a part of the message that the next
    /// immediate data complete.
    fn deliver(&mut self, packet: &Packet, row: &OpcodeRow, notes: &mut Notes<'_>) {
        let Incoming { received_bytes: size_bytes, marked_packets, .. } = self.incoming;
        let immediate = row.has_immediate.then_some(packet.immediate);
        let event = match (row.operation, immediate) {
            (Operation::Send, _) => QpEvent::SendReceived { immediate, size_bytes, marked_packets },
            (_, Some(immediate)) => {
                QpEvent::MessageReceived { immediate, size_bytes, marked_packets }
            }
            (_, None) => return,
        };
        self.incoming = Incoming::default();
        notes.events.push_back(event);
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
    /// 9.7.5.1.1.
    fn handle_gap(&mut self, notes: &mut Notes<'_>) {
        notes.counters.out_of_sequence += 1;
        if !self.gap_reported {
            self.gap_reported = true;
            self.nak_due = Some(Syndrome::SequenceError);
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

    fn refuse(&mut self, notes: &mut Notes<'_>) {
        notes.counters.invalid_requests += 1;
        self.failed = true;
        self.nak_due = Some(Syndrome::InvalidRequest);
        notes.events.push_back(QpEvent::Failed { reason: FailureReason::InvalidRequest });
    }
}
