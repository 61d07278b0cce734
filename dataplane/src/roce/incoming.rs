//! Packets in order into messages.

use super::event::{Notes, QpEvent};
use super::opcode::{OpcodeRow, Operation, Position};
use super::outgoing::MAX_REQUEST_BYTES;
use super::packet::{Ecn, Packet};
use super::pattern;

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

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It was taken and its request goes on.
    Continues,
    /// It was taken and ends its request.
    Ends,
    /// It was not taken: a receive must be posted first.
    NotReady {
        /// Code of the time that the peer is to wait.
        timer: u8,
    },
    /// It was not taken: it breaks the protocol.
    Invalid,
}

/// The message whose packets are arriving.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    mtu_bytes: u32,
    /// The running request; `None` between two of them.
    running: Option<Running>,
    /// Where the running request's next byte belongs: a WRITE starts at its address, a SEND at 0.
    place_bytes: u64,
    /// Bytes of the message so far, over all its WRITEs.
    received_bytes: u64,
    /// Packets of the message that arrived with congestion experienced.
    marked_packets: u32,
    /// `None` while there are always enough.
    receives: Option<Receives>,
}

impl Incoming {
    pub fn new(mtu_bytes: u32) -> Self {
        Self {
            mtu_bytes,
            running: None,
            place_bytes: 0,
            received_bytes: 0,
            marked_packets: 0,
            receives: None,
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

    /// A request has begun and not ended.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Bytes that have arrived of the message that is not complete.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Takes a packet of a WRITE or SEND, the next in order.
    pub fn take(&mut self, packet: &Packet, row: &OpcodeRow, notes: &mut Notes<'_>) -> Taken {
        let Some(running) = self.running_after(packet, row) else { return Taken::Invalid };
        if let Err(timer) = self.take_receive(row) {
            return Taken::NotReady { timer };
        }
        self.start_request(packet, row);
        self.receive(packet, notes);
        self.running = running;
        if running.is_some() {
            return Taken::Continues;
        }
        self.deliver(packet, row, notes);
        Taken::Ends
    }

    /// What runs once `packet` is taken: `Some(None)` if it ends its request, `None` if it breaks the
    /// protocol. Source: IBTA volume 1, sections 9.7.4.1.2 and 9.7.4.1.6.
    fn running_after(&self, packet: &Packet, row: &OpcodeRow) -> Option<Option<Running>> {
        let (operation, length_bytes) = (row.operation, packet.payload.length_bytes());
        let is_write = operation == Operation::Write;
        let before_bytes = match (row.position, self.running) {
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
    fn take_receive(&mut self, row: &OpcodeRow) -> Result<(), u8> {
        let Some(receives) = &mut self.receives else { return Ok(()) };
        let needed = match row.operation {
            Operation::Send => matches!(row.position, Position::First | Position::Only),
            _ => row.has_immediate,
        };
        if needed {
            receives.posted = receives.posted.checked_sub(1).ok_or(receives.timer)?;
        }
        Ok(())
    }

    fn start_request(&mut self, packet: &Packet, row: &OpcodeRow) {
        if !matches!(row.position, Position::First | Position::Only) {
            return;
        }
        match row.operation {
            Operation::Write => self.place_bytes = packet.reth.virtual_address,
            // A SEND is a message of its own, whatever was written before.
            _ => self.start_message(),
        }
    }

    fn start_message(&mut self) {
        self.place_bytes = 0;
        self.received_bytes = 0;
        self.marked_packets = 0;
    }

    fn receive(&mut self, packet: &Packet, notes: &mut Notes<'_>) {
        if !pattern::matches(self.place_bytes, &packet.payload) {
            notes.counters.payload_mismatches += 1;
        }
        let length_bytes = u64::from(packet.payload.length_bytes());
        self.place_bytes = self.place_bytes.wrapping_add(length_bytes);
        notes.counters.data_payload_bytes_received += length_bytes;
        self.received_bytes += length_bytes;
        self.marked_packets += u32::from(packet.ecn == Ecn::Ce);
    }

    /// A request is complete. A WRITE without immediate data is a part of the message that the next
    /// immediate data complete.
    fn deliver(&mut self, packet: &Packet, row: &OpcodeRow, notes: &mut Notes<'_>) {
        let (size_bytes, marked_packets) = (self.received_bytes, self.marked_packets);
        let immediate = row.has_immediate.then_some(packet.immediate);
        let event = match (row.operation, immediate) {
            (Operation::Send, _) => QpEvent::SendReceived { immediate, size_bytes, marked_packets },
            (_, Some(immediate)) => {
                QpEvent::MessageReceived { immediate, size_bytes, marked_packets }
            }
            (_, None) => return,
        };
        self.start_message();
        notes.events.push_back(event);
    }
}
