//! One end of a reliable connection: a requester for own messages and a responder for the peer's.
//!
//! It knows neither a clock nor a rate: when a packet may leave is decided outside, from
//! [`QueuePair::next_data_bytes`] and congestion control. Loss, marks and time-outs are events, never
//! errors. All work per packet is constant, and nothing is allocated once the queues have grown to
//! what the traffic needs.

use super::counters::QpCounters;
use super::event::Notes;
pub use super::event::{FailureReason, QpEvent};
use super::opcode::{Opcode, Operation};
use super::outgoing::{RemoteMemory, WorkRequest};
use super::packet::{Aeth, Bth, Ecn, Packet, Payload, wire_bytes};
use super::psn::MASK_24;
use super::requester::Requester;
use super::responder::Responder;
use super::round_trip::Acknowledged;
use super::syndrome::Syndrome;
use crate::config::{ClassConfig, TransportConfig};
use std::collections::VecDeque;

/// Where a queue pair and its peer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePairAddress {
    /// Own IPv4 address, host byte order.
    pub local_address: u32,
    /// The peer's IPv4 address, host byte order.
    pub remote_address: u32,
    /// Own queue pair number, 24 bits.
    pub local_qp: u32,
    /// The peer's queue pair number, 24 bits.
    pub remote_qp: u32,
    /// UDP source port of packets sent.
    pub source_port: u16,
}

impl QueuePairAddress {
    /// A packet from here to the peer, otherwise empty.
    #[inline]
    pub fn packet(&self) -> Packet {
        let mut packet = Packet {
            source_address: self.local_address,
            destination_address: self.remote_address,
            source_port: self.source_port,
            ..Packet::default()
        };
        packet.bth.destination_qp = self.remote_qp;
        packet
    }
}

/// A message to send: an RDMA WRITE with immediate data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Comes back in [`QpEvent::SendCompleted`].
    pub id: u64,
    /// Size; more than 2^31 bytes go as several RDMA WRITEs.
    pub size_bytes: u64,
    /// Immediate data, which completes the message at the peer.
    pub immediate: u32,
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct QueuePair {
    address: QueuePairAddress,
    data_dscp: u8,
    data_ecn: Ecn,
    ack_dscp: u8,
    ack_ecn: Ecn,
    requester: Requester,
    responder: Responder,
    events: VecDeque<QpEvent>,
    counters: QpCounters,
}

impl QueuePair {
    /// A connected queue pair; `send_psn` numbers the first packet sent, `receive_psn` the first one
    /// expected.
    pub fn new(
        transport: &TransportConfig,
        classes: &ClassConfig,
        address: QueuePairAddress,
        send_psn: u32,
        receive_psn: u32,
    ) -> Self {
        Self {
            address,
            data_dscp: classes.data_dscp,
            data_ecn: codepoint(classes.data_ecn_capable),
            ack_dscp: classes.ack_dscp,
            ack_ecn: codepoint(classes.ack_ecn_capable),
            requester: Requester::new(transport, send_psn, seed(&address)),
            responder: Responder::new(transport, receive_psn),
            events: VecDeque::new(),
            counters: QpCounters::default(),
        }
    }

    /// Where the queue pair and its peer are.
    pub fn address(&self) -> &QueuePairAddress {
        &self.address
    }

    /// Totals so far.
    pub fn counters(&self) -> &QpCounters {
        &self.counters
    }

    /// A message has been posted and is not wholly acknowledged.
    pub fn has_unacknowledged(&self) -> bool {
        self.requester.has_unacknowledged()
    }

    /// The `id` of the oldest request that is not complete: after a failure, the one that failed.
    pub fn oldest_request(&self) -> Option<u64> {
        self.requester.oldest_request()
    }

    /// Payload bytes sent and not acknowledged; packets that are to be sent again do not count.
    pub fn in_flight_bytes(&self) -> u64 {
        self.requester.in_flight_bytes()
    }

    /// Bytes that have arrived of the message that is not yet complete.
    pub fn receiving_bytes(&self) -> u64 {
        self.responder.incoming().received_bytes()
    }

    /// Adds a message behind all others.
    pub fn post_write(&mut self, message: Message) {
        let Message { id, size_bytes, immediate } = message;
        self.post(id, WorkRequest::Write { size_bytes, immediate: Some(immediate) });
    }

    /// Adds a request behind all others; `id` comes back when it is complete.
    pub fn post(&mut self, id: u64, request: WorkRequest) {
        self.requester.post(id, request);
    }

    /// Sets the peer's queue pair number and memory, which an adapter chooses itself; to be called
    /// before the first message.
    pub fn set_remote(&mut self, remote_qp: u32, memory: RemoteMemory) {
        self.address.remote_qp = remote_qp;
        self.set_remote_memory(memory);
    }

    /// Sets where the peer's memory lies; at first it starts at address 0 with key 0.
    pub fn set_remote_memory(&mut self, memory: RemoteMemory) {
        self.requester.set_memory(memory);
    }

    /// From now on SENDs and immediate data need a posted receive, of which there are `posted`; the
    /// peer of one without is told to wait as the 5-bit code `timer` says. At first there is no limit.
    pub fn limit_receives(&mut self, posted: u32, timer: u8) {
        self.responder.incoming_mut().limit_receives(posted, timer);
    }

    /// Posts one more receive.
    pub fn post_receive(&mut self) {
        self.responder.incoming_mut().post_receive();
    }

    /// Takes a packet that arrived for this queue pair at `now_ps`.
    pub fn handle_packet(&mut self, now_ps: u64, packet: &Packet) {
        let Some(row) = packet.bth.opcode.row() else { return };
        if row.has_payload {
            self.counters.data_packets_received += 1;
            self.counters.ecn_marked_packets += u64::from(packet.ecn == Ecn::Ce);
        }
        let notes = &mut Notes { counters: &mut self.counters, events: &mut self.events };
        match row.operation {
            Operation::Acknowledge => {
                handle_acknowledge(&mut self.requester, now_ps, packet, notes);
            }
            Operation::CongestionNotification => notes.counters.cnps_received += 1,
            Operation::Send | Operation::Write | Operation::ReadRequest => {
                self.responder.handle_request(now_ps, packet, row, notes);
            }
            Operation::ReadResponse => {
                self.requester.handle_read_response(now_ps, packet, notes);
            }
        }
        self.spread_failure();
    }

    /// When one half has failed the other stops as well. Source: IBTA volume 1, section 10.3.1 (error
    /// state).
    fn spread_failure(&mut self) {
        if self.requester.has_failed() || self.responder.has_failed() {
            self.requester.stop();
            self.responder.stop();
        }
    }

    /// When [`QueuePair::handle_timeout`] wants to be called; changes with every other call.
    #[inline]
    pub fn poll_timeout(&self) -> Option<u64> {
        match (self.requester.poll_timeout(), self.responder.poll_timeout()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Fires the timers that are due at `now_ps`; harmless when none is.
    pub fn handle_timeout(&mut self, now_ps: u64) {
        self.responder.handle_timeout(now_ps);
        let notes = &mut Notes { counters: &mut self.counters, events: &mut self.events };
        self.requester.handle_timeout(now_ps, notes);
        self.spread_failure();
    }

    /// Takes the acknowledgement that is to be sent now. It may be due after any other call; none
    /// overtakes the responses to a READ.
    pub fn poll_control(&mut self, _now_ps: u64) -> Option<Packet> {
        let reply = self.responder.poll(&mut self.counters)?;
        let mut packet = self.address.packet();
        packet.dscp = self.ack_dscp;
        packet.ecn = self.ack_ecn;
        packet.bth.opcode = Opcode::ACKNOWLEDGE;
        packet.bth.psn = reply.psn;
        packet.aeth = Aeth { syndrome: reply.syndrome.code(), msn: reply.msn };
        Some(packet)
    }

    /// Frame length of the next data packet ([`Packet::wire_bytes`]); `None` if there is nothing to
    /// send or the window is closed.
    #[inline]
    pub fn next_data_bytes(&self) -> Option<u32> {
        if let Some((opcode, length_bytes)) = self.responder.reads().next() {
            return Some(wire_bytes(opcode, length_bytes));
        }
        let step = self.requester.next_step()?;
        Some(wire_bytes(step.opcode, u32::from(step.length_bytes)))
    }

    /// Takes the next data packet, sent at `now_ps`. Responses go before requests.
    #[inline]
    pub fn poll_data(&mut self, now_ps: u64) -> Option<Packet> {
        if let Some((response, msn)) = self.responder.poll_response(&mut self.counters) {
            let mut packet = self.data_packet(response.opcode, response.psn, response.payload);
            packet.aeth = Aeth { syndrome: Syndrome::Acknowledge.code(), msn };
            return Some(packet);
        }
        let part = self.requester.poll(now_ps, &mut self.counters)?;
        let mut packet = self.data_packet(part.opcode, part.psn, part.payload);
        packet.bth.ack_request = part.ack_request;
        packet.reth = part.reth;
        packet.immediate = part.immediate;
        Some(packet)
    }

    #[inline]
    fn data_packet(&self, opcode: Opcode, psn: u32, payload: Payload) -> Packet {
        let destination_qp = self.address.remote_qp;
        let bth = Bth { opcode, destination_qp, psn, ..Bth::default() };
        let (dscp, ecn) = (self.data_dscp, self.data_ecn);
        Packet { dscp, ecn, bth, payload, ..self.address.packet() }
    }

    /// A number of no meaning, read from where a packet's handling will read: for having that fetched
    /// before it is needed.
    #[inline]
    pub fn glance(&self) -> u64 {
        let own = u64::from(self.address.local_qp) ^ self.counters.data_packets_sent;
        own ^ self.requester.glance() ^ self.responder.glance()
    }

    /// Takes the oldest event.
    #[inline]
    pub fn poll_event(&mut self) -> Option<QpEvent> {
        self.events.pop_front()
    }

    /// Takes what was acknowledged since the last call, for congestion control.
    #[inline]
    pub fn take_acknowledged(&mut self) -> Acknowledged {
        self.requester.take_acknowledged()
    }
}

/// Something that differs between queue pairs and is the same in every run.
fn seed(address: &QueuePairAddress) -> u64 {
    u64::from(address.local_address) << 32 | u64::from(address.local_qp)
}

fn handle_acknowledge(
    requester: &mut Requester,
    now_ps: u64,
    packet: &Packet,
    notes: &mut Notes<'_>,
) {
    let psn = packet.bth.psn;
    let refusal = match Syndrome::from_code(packet.aeth.syndrome) {
        Syndrome::Acknowledge => {
            notes.counters.acks_received += 1;
            return requester.handle_acknowledge(now_ps, psn, notes);
        }
        Syndrome::SequenceError => {
            return requester.handle_sequence_error(now_ps, psn, packet.aeth.msn, notes);
        }
        Syndrome::ReceiverNotReady { timer } => {
            return requester.handle_not_ready(now_ps, psn, timer, notes);
        }
        Syndrome::InvalidRequest => FailureReason::RefusedAsInvalid,
        Syndrome::RemoteAccessError => FailureReason::RefusedAccess,
        Syndrome::RemoteOperationalError => FailureReason::RefusedOperation,
        // The retransmission timer covers what is not spoken.
        Syndrome::Reserved(_) => return,
    };
    requester.handle_refusal(psn, refusal, notes);
}

/// The UDP source port that drivers give a connection whose flow label is not set, the same at both
/// ends. Source: Linux `include/rdma/ib_verbs.h` (`rdma_calc_flow_label`,
/// `rdma_flow_label_to_udp_sport`) and rdma-core's `ibv_flow_label_to_udp_sport`: a 20-bit label
/// folded from the product of the queue pair numbers, then folded to 14 bits.
pub fn udp_source_port(local_qp: u32, remote_qp: u32) -> u16 {
    let product = u64::from(local_qp & MASK_24) * u64::from(remote_qp & MASK_24);
    let folded = product ^ product >> 20;
    let flow_label = (folded ^ folded >> 40) & 0xF_FFFF;
    0xC000 | (flow_label & 0x3FFF) as u16 ^ (flow_label >> 14) as u16
}

fn codepoint(is_capable: bool) -> Ecn {
    if is_capable { Ecn::Ect0 } else { Ecn::NotEct }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_port_is_in_the_dynamic_range_and_the_same_at_both_ends() {
        for (a, b) in [(0, 0), (17, 17), (0xFF_FFFF, 0xFF_FFFF), (0x11, 0xABCDEF)] {
            assert!(udp_source_port(a, b) >= 0xC000);
            assert_eq!(udp_source_port(a, b), udp_source_port(b, a));
        }
    }

    #[test]
    fn the_source_port_follows_the_published_folding() {
        // The Linux software RNIC was seen to send from this port between queue pairs 17 and 17.
        assert_eq!(udp_source_port(17, 17), 49_441);
        // 0x123456 * 0x654321 folds to the label 0xA77AE.
        assert_eq!(udp_source_port(0x12_3456, 0x65_4321), 0xC000 | (0x37AE ^ 0x29));
    }
}
