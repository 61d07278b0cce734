//! A job as flows instead of packets: for jobs that are too large to step packet by packet.
//!
//! Programs, placement, queue pairs and their source ports, and so the paths that the switches' hash
//! chooses, are those of the packet engine. What differs is a message on its way:
//!
//! * A queue pair sends its messages one after the other. While it has one it is a *flow*, and flows
//!   share links max-min fairly: no flow can get more but at the expense of one that has no more.
//!   Source: Bertsekas, Gallager, "Data Networks", section 6.5.2.
//! * A message occupies the links with every byte that its packets would: headers, preambles, gaps.
//! * Its last byte arrives after the propagation of every link, and after the store-and-forward of
//!   one packet at every hop behind the first; the acknowledgement takes the way back alone.
//! * A flow is never faster than its NIC, a constant rate of congestion control, and one window of
//!   packets per round trip.
//! * Where switches spread the packets of a flow, it takes an equal share of each equal-cost path.
//!
//! All classes of data share alike, whatever their priorities and weights.
//!
//! * Links go down, come up and change their rate as in the packet engine, and switches route around them
//!   by the same rules; see `links`.
//!
//! There are no queues, marks, pauses, losses, retransmissions, nor the time that congestion control
//! takes to find the fair rates; acknowledgements take no bandwidth. Freed or wanted bandwidth is shared
//! anew a little late: by `deferral_ratio` of the time that the message which caused it has taken or
//! will take at most, so that changes that come close together are one.

pub mod emulation;
mod links;
pub mod loads;
mod message;
mod posting;
mod queue_pair;
mod rank;
mod records;
pub mod route;
pub mod sharing;
mod state;

pub use emulation::Emulation;
pub use rank::NicTotals;
