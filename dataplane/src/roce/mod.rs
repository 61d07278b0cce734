//! RoCEv2: frames and packets as values and as bytes, and the reliable connection.
//!
//! * [`opcode`], [`packet`]: what a frame can say.
//! * [`psn`]: arithmetic of sequence numbers.
//! * [`pattern`]: the payload of every message.
//! * [`layout`], [`icrc`](mod@icrc), [`encode`](mod@encode), [`decode`](mod@decode): values to bytes
//!   and back.
//! * [`cnp`](mod@cnp): the congestion notification packet.
//! * [`queue_pair`]: one end of a reliable connection, of a requester and a responder; [`syndrome`]:
//!   what they say to each other; [`counters`]: what they count.
//!
//! Nothing here knows a socket, a clock, a queue or a rate.

pub mod cnp;
pub mod counters;
pub mod decode;
pub mod encode;
pub mod event;
mod held;
pub mod icrc;
mod incoming;
pub mod layout;
mod losses;
pub mod opcode;
mod outgoing;
pub mod packet;
pub mod pattern;
mod pattern_crc;
pub mod psn;
pub mod queue_pair;
mod read_replies;
mod requester;
mod responder;
mod retransmission_timer;
mod round_trip;
pub mod syndrome;

pub use cnp::cnp;
pub use counters::QpCounters;
pub use decode::{DecodeError, decode, decode_forwarding, decode_unidentified};
pub use encode::{Headers, encode, encode_datagram};

pub use event::{FailureReason, QpEvent};
pub use icrc::icrc;
pub use outgoing::{MAX_REQUEST_BYTES, RemoteMemory, WorkRequest};
pub use packet::{Frame, Packet, Payload};
pub use queue_pair::{Message, QueuePair, QueuePairAddress, udp_source_port};
pub use round_trip::Acknowledged;
