//! The native dataplane of rankwire.
//!
//! Modules, lowest first; a module uses only those above it in this list:
//!
//! * [`units`]: time, size and rate arithmetic in integers.
//! * [`config`]: the passive description of one job's fabric, endpoints and parameters.
//! * [`roce`]: frames, packets and the RoCEv2 reliable connection, without IO or clock.
//! * [`congestion`]: congestion-control algorithms of a sender and the notification point of a receiver.
//! * [`fabric`]: virtual switches.
//! * [`engine`]: programs, their executor, the network interface, and the event loop that drives them.
//! * [`fluid`]: the same programs with flows instead of packets; stands beside [`io`].
//! * [`io`]: sockets that carry frames, and the wall clock.
//! * [`pcapng`]: capture files; stands beside the others.
//! * [`trace`]: Chakra execution traces into columns; stands beside the others.
//! * `bindings`: the Python module; the only place that knows Python.
//!
//! Protocol modules never read a clock, open a socket or draw from global randomness: time is an
//! argument, packets are values, random numbers come from a seeded generator in their state.

pub mod config;
pub mod congestion;
pub mod engine;
pub mod fabric;
pub mod fluid;
pub mod io;
pub mod pcapng;
pub mod random;
pub mod roce;
pub mod trace;
pub mod units;

#[cfg(feature = "python")]
mod bindings;
