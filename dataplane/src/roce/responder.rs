//! The receiving half of a queue pair: packets into messages, and the acknowledgements for them.

use super::counters::QpCounters;
use super::opcode::{OpcodeRow, Operation, Position};
use super::packet::{Ecn, Packet};
use super::queue_pair::{FailureReason, QpEvent};
use super::syndrome::Syndrome;
use super::{pattern, psn};
use crate::config::TransportConfig;
use std::collections::VecDeque;

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
    /// Bytes that the running RDMA WRITE still lacks; `None` between two of them.
    missing_bytes: Option<u32>,
    /// Bytes of the message so far, over all its RDMA WRITEs.
    received_bytes: u64,
    /// Packets of the message that arrived with congestion experienced.
    marked_packets: u32,
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
            unacknowledged_packets: 0,
            deadline_ps: None,
            acknowledge_due: false,
            nak_due: None,
            gap_reported: false,
            in_duplicates: false,
            failed: false,
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
        if self.deadline_ps.is_some_and(|deadline| deadline <= now_ps) {
            self.deadline_ps = None;
            self.acknowledge_due = true;
        }
    }

    /// Takes the acknowledgement that is due. A NAK acknowledges everything before it as well.
    pub fn poll(&mut self, counters: &mut QpCounters) -> Option<Reply> {
        let (syndrome, psn) = match self.nak_due.take() {
            Some(syndrome) => {
                counters.naks_sent += 1;
                (syndrome, self.expected_psn)
            }
            None if self.acknowledge_due => {
                counters.acks_sent += 1;
                (Syndrome::Acknowledge, psn::previous(self.expected_psn))
            }
            None => return None,
        };
        self.acknowledge_due = false;
        self.unacknowledged_packets = 0;
        self.deadline_ps = None;
        Some(Reply { syndrome, psn, msn: self.msn })
    }

    /// Takes a packet of a request.
    pub fn handle_request(
        &mut self,
        now_ps: u64,
        packet: &Packet,
        row: &OpcodeRow,
        counters: &mut QpCounters,
        events: &mut VecDeque<QpEvent>,
    ) {
        if self.failed {
            return;
        }
        match psn::difference(packet.bth.psn, self.expected_psn) {
            0 => self.handle_expected(now_ps, packet, row, counters, events),
            ahead if ahead > 0 => self.handle_gap(counters, events),
            _ => self.handle_duplicate(now_ps, packet, counters),
        }
    }

    fn handle_expected(
        &mut self,
        now_ps: u64,
        packet: &Packet,
        row: &OpcodeRow,
        counters: &mut QpCounters,
        events: &mut VecDeque<QpEvent>,
    ) {
        let Some(missing_bytes) = self.bytes_missing_after(packet, row) else {
            return self.refuse(counters, events);
        };
        self.gap_reported = false;
        self.nak_due = None;
        self.in_duplicates = false;
        self.expected_psn = psn::add(self.expected_psn, 1);
        self.receive(packet, counters);
        self.incoming.missing_bytes = missing_bytes;
        if missing_bytes.is_none() {
            self.msn = psn::add(self.msn, 1);
        }
        if row.has_immediate {
            self.deliver(packet.immediate, events);
        }
        self.schedule_acknowledgement(now_ps, packet.bth.ack_request);
    }

    /// What the running request lacks once `packet` is taken: `Some(None)` if nothing, `None` if the
    /// packet breaks the protocol. Source: IBTA volume 1, sections 9.7.4.1.2 and 9.7.4.1.6.
    fn bytes_missing_after(&self, packet: &Packet, row: &OpcodeRow) -> Option<Option<u32>> {
        if row.operation != Operation::Write {
            return None;
        }
        let length_bytes = packet.payload.length_bytes();
        let declared_bytes = if row.has_reth { Some(packet.reth.length_bytes) } else { None };
        let before = match row.position {
            Position::First | Position::Only if self.incoming.missing_bytes.is_none() => {
                declared_bytes?
            }
            Position::Middle | Position::Last => self.incoming.missing_bytes?,
            _ => return None,
        };
        let after = before.checked_sub(length_bytes)?;
        match row.position {
            Position::First | Position::Middle => {
                (length_bytes == self.mtu_bytes && after > 0).then_some(Some(after))
            }
            Position::Last => {
                (after == 0 && (1..=self.mtu_bytes).contains(&length_bytes)).then_some(None)
            }
            Position::Only => (after == 0 && length_bytes <= self.mtu_bytes).then_some(None),
        }
    }

    fn receive(&mut self, packet: &Packet, counters: &mut QpCounters) {
        if !pattern::matches(self.incoming.received_bytes, &packet.payload) {
            counters.payload_mismatches += 1;
        }
        let length_bytes = u64::from(packet.payload.length_bytes());
        counters.data_payload_bytes_received += length_bytes;
        self.incoming.received_bytes += length_bytes;
        self.incoming.marked_packets += u32::from(packet.ecn == Ecn::Ce);
    }

    /// The message is complete: only its last RDMA WRITE has immediate data.
    fn deliver(&mut self, immediate: u32, events: &mut VecDeque<QpEvent>) {
        let Incoming { received_bytes: size_bytes, marked_packets, .. } = self.incoming;
        self.incoming = Incoming::default();
        events.push_back(QpEvent::MessageReceived { immediate, size_bytes, marked_packets });
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
    fn handle_gap(&mut self, counters: &mut QpCounters, events: &mut VecDeque<QpEvent>) {
        counters.out_of_sequence += 1;
        if !self.gap_reported {
            self.gap_reported = true;
            self.nak_due = Some(Syndrome::SequenceError);
            events.push_back(QpEvent::SequenceError);
        }
    }

    /// A packet came again, because its acknowledgement was lost or late: the first of a run of them
    /// is answered at once, the others as if they were new. Source: IBTA volume 1, section 9.7.5.1.4.
    fn handle_duplicate(&mut self, now_ps: u64, packet: &Packet, counters: &mut QpCounters) {
        counters.duplicate_requests += 1;
        let first = !std::mem::replace(&mut self.in_duplicates, true);
        self.schedule_acknowledgement(now_ps, packet.bth.ack_request || first);
    }

    fn refuse(&mut self, counters: &mut QpCounters, events: &mut VecDeque<QpEvent>) {
        counters.invalid_requests += 1;
        self.failed = true;
        self.nak_due = Some(Syndrome::InvalidRequest);
        events.push_back(QpEvent::Failed { reason: FailureReason::InvalidRequest });
    }
}
