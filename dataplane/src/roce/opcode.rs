//! The opcode table of the base transport header: one row per operation that an endpoint speaks.
//!
//! Everything that depends on an opcode (headers, payload, position in its message) is read from
//! here; nothing else in the crate lists opcodes.

/// Operation of a packet. Source: IBTA volume 1, table 38.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Opcode(pub u8);

/// What a packet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Part of a SEND request.
    Send,
    /// Part of an RDMA WRITE request.
    Write,
    /// An RDMA READ request.
    ReadRequest,
    /// Part of the answer to an RDMA READ request.
    ReadResponse,
    /// ACK, NAK or RNR NAK.
    Acknowledge,
    /// RoCEv2 congestion notification (CNP).
    CongestionNotification,
}

/// Where a packet stands in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The first of several packets.
    First,
    /// Neither first nor last.
    Middle,
    /// The last of several packets.
    Last,
    /// The whole message.
    Only,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpcodeRow {
    /// The opcode.
    pub opcode: Opcode,
    /// Name as in the specification, upper case with underscores.
    pub name: &'static str,
    /// What the packet does.
    pub operation: Operation,
    /// Where it stands in its message.
    pub position: Position,
    /// An RDMA extended transport header follows.
    pub has_reth: bool,
    /// Immediate data follows.
    pub has_immediate: bool,
    /// An ACK extended transport header follows.
    pub has_aeth: bool,
    /// A payload may follow.
    pub has_payload: bool,
    /// Bytes between the base transport header and the payload.
    pub extension_bytes: u8,
}

/// Reserved bytes behind the base transport header of a CNP. Source: IBTA annex A17.9.3.
pub const CNP_RESERVED_BYTES: usize = 16;

const RETH_BYTES: u8 = 16;
const IMMEDIATE_BYTES: u8 = 4;
const AETH_BYTES: u8 = 4;

/// The headers that may follow the base transport header, in their order on the wire.
#[derive(Clone, Copy)]
enum Headers {
    None,
    Reth,
    Immediate,
    RethImmediate,
    Aeth,
    CnpReserved,
}

const fn row(
    code: u8,
    name: &'static str,
    operation: Operation,
    position: Position,
    headers: Headers,
) -> OpcodeRow {
    let has_reth = matches!(headers, Headers::Reth | Headers::RethImmediate);
    let has_immediate = matches!(headers, Headers::Immediate | Headers::RethImmediate);
    let has_aeth = matches!(headers, Headers::Aeth);
    let extension_bytes = match headers {
        Headers::None => 0,
        Headers::Reth => RETH_BYTES,
        Headers::Immediate => IMMEDIATE_BYTES,
        Headers::RethImmediate => RETH_BYTES + IMMEDIATE_BYTES,
        Headers::Aeth => AETH_BYTES,
        Headers::CnpReserved => CNP_RESERVED_BYTES as u8,
    };
    let has_payload =
        matches!(operation, Operation::Send | Operation::Write | Operation::ReadResponse);
    OpcodeRow {
        opcode: Opcode(code),
        name,
        operation,
        position,
        has_reth,
        has_immediate,
        has_aeth,
        has_payload,
        extension_bytes,
    }
}

/// The reliable connection's requests and responses, and the CNP. Source: IBTA volume 1, table 38
/// and annex A17.
pub static OPCODES: [OpcodeRow; 19] = ROWS;

const ROWS: [OpcodeRow; 19] = {
    use Headers as H;
    use Operation::*;
    use Position::*;
    [
        row(0x00, "RC_SEND_FIRST", Send, First, H::None),
        row(0x01, "RC_SEND_MIDDLE", Send, Middle, H::None),
        row(0x02, "RC_SEND_LAST", Send, Last, H::None),
        row(0x03, "RC_SEND_LAST_WITH_IMMEDIATE", Send, Last, H::Immediate),
        row(0x04, "RC_SEND_ONLY", Send, Only, H::None),
        row(0x05, "RC_SEND_ONLY_WITH_IMMEDIATE", Send, Only, H::Immediate),
        row(0x06, "RC_RDMA_WRITE_FIRST", Write, First, H::Reth),
        row(0x07, "RC_RDMA_WRITE_MIDDLE", Write, Middle, H::None),
        row(0x08, "RC_RDMA_WRITE_LAST", Write, Last, H::None),
        row(0x09, "RC_RDMA_WRITE_LAST_WITH_IMMEDIATE", Write, Last, H::Immediate),
        row(0x0A, "RC_RDMA_WRITE_ONLY", Write, Only, H::Reth),
        row(0x0B, "RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", Write, Only, H::RethImmediate),
        row(0x0C, "RC_RDMA_READ_REQUEST", ReadRequest, Only, H::Reth),
        row(0x0D, "RC_RDMA_READ_RESPONSE_FIRST", ReadResponse, First, H::Aeth),
        row(0x0E, "RC_RDMA_READ_RESPONSE_MIDDLE", ReadResponse, Middle, H::None),
        row(0x0F, "RC_RDMA_READ_RESPONSE_LAST", ReadResponse, Last, H::Aeth),
        row(0x10, "RC_RDMA_READ_RESPONSE_ONLY", ReadResponse, Only, H::Aeth),
        row(0x11, "RC_ACKNOWLEDGE", Acknowledge, Only, H::Aeth),
        row(0x81, "CNP", CongestionNotification, Only, H::CnpReserved),
    ]
};

/// Index into `ROWS` by opcode; `ABSENT` where there is no row.
const INDEX: [u8; 256] = {
    let mut index = [ABSENT; 256];
    let mut n = 0;
    while n < ROWS.len() {
        index[ROWS[n].opcode.0 as usize] = n as u8;
        n += 1;
    }
    index
};
const ABSENT: u8 = u8::MAX;

impl Opcode {
    /// First packet of a SEND.
    pub const SEND_FIRST: Opcode = Opcode(0x00);
    /// Middle packet of a SEND.
    pub const SEND_MIDDLE: Opcode = Opcode(0x01);
    /// Last packet of a SEND.
    pub const SEND_LAST: Opcode = Opcode(0x02);
    /// Last packet of a SEND, with immediate data.
    pub const SEND_LAST_IMMEDIATE: Opcode = Opcode(0x03);
    /// A SEND of one packet.
    pub const SEND_ONLY: Opcode = Opcode(0x04);
    /// A SEND of one packet, with immediate data.
    pub const SEND_ONLY_IMMEDIATE: Opcode = Opcode(0x05);
    /// First packet of a WRITE.
    pub const WRITE_FIRST: Opcode = Opcode(0x06);
    /// Middle packet of a WRITE.
    pub const WRITE_MIDDLE: Opcode = Opcode(0x07);
    /// Last packet of a WRITE.
    pub const WRITE_LAST: Opcode = Opcode(0x08);
    /// Last packet of a WRITE, with immediate data.
    pub const WRITE_LAST_IMMEDIATE: Opcode = Opcode(0x09);
    /// A WRITE of one packet.
    pub const WRITE_ONLY: Opcode = Opcode(0x0A);
    /// A WRITE of one packet, with immediate data.
    pub const WRITE_ONLY_IMMEDIATE: Opcode = Opcode(0x0B);
    /// A READ request.
    pub const READ_REQUEST: Opcode = Opcode(0x0C);
    /// First packet of a READ response.
    pub const READ_RESPONSE_FIRST: Opcode = Opcode(0x0D);
    /// Middle packet of a READ response.
    pub const READ_RESPONSE_MIDDLE: Opcode = Opcode(0x0E);
    /// Last packet of a READ response.
    pub const READ_RESPONSE_LAST: Opcode = Opcode(0x0F);
    /// A READ response of one packet.
    pub const READ_RESPONSE_ONLY: Opcode = Opcode(0x10);
    /// ACK, NAK or RNR NAK.
    pub const ACKNOWLEDGE: Opcode = Opcode(0x11);
    /// Congestion notification packet.
    pub const CNP: Opcode = Opcode(0x81);

    /// The table's row, or `None` for an operation that endpoints here do not speak.
    #[inline]
    pub fn row(self) -> Option<&'static OpcodeRow> {
        OPCODES.get(usize::from(INDEX[usize::from(self.0)]))
    }

    /// Bytes between the base transport header and the payload; 0 for an unknown opcode.
    #[inline]
    pub fn extension_bytes(self) -> u32 {
        self.row().map_or(0, |row| u32::from(row.extension_bytes))
    }

    /// The packet carries a request's or response's data: what congestion control paces and
    /// switches mark.
    #[inline]
    pub fn has_payload(self) -> bool {
        self.row().is_some_and(|row| row.has_payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_by_its_opcode() {
        for row in &OPCODES {
            assert_eq!(row.opcode.row(), Some(row));
        }
        assert_eq!(OPCODES.iter().filter(|row| row.has_reth).count(), 4);
    }

    #[test]
    fn an_opcode_outside_the_table_has_no_row() {
        for code in [0x12, 0x16, 0x24, 0x64, 0x80, 0xFF] {
            assert_eq!(Opcode(code).row(), None);
        }
    }

    #[test]
    fn extension_headers_have_the_lengths_of_the_specification() {
        assert_eq!(Opcode::WRITE_MIDDLE.extension_bytes(), 0);
        assert_eq!(Opcode::WRITE_FIRST.extension_bytes(), 16);
        assert_eq!(Opcode::WRITE_ONLY_IMMEDIATE.extension_bytes(), 20);
        assert_eq!(Opcode::ACKNOWLEDGE.extension_bytes(), 4);
        assert_eq!(Opcode::CNP.extension_bytes(), 16);
    }
}
