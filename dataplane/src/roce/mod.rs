//! RoCEv2: frames and packets as values and as bytes, and the reliable connection.
//!
//! * [`opcode`], [`packet`]: what a frame can say.
//!
//! Nothing here knows a socket, a clock, a queue or a rate.

pub mod opcode;
pub mod packet;
