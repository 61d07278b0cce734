//! The opcode table of the base transport header.

/// Operation of a packet. Source: IBTA volume 1, table 38.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opcode(pub u8);
