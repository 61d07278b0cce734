//! See the crate documentation.
pub mod opcode;
pub mod packet;
