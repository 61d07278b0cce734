//! Sockets that carry frames, and the wall clock.
//!
//! * [`wire`]: links as UDP datagrams on loopback.
//! * [`port`], [`ports`]: RoCEv2 packets on interfaces of the operating system, by drivers.
//! * [`verbs`]: RDMA devices, which carry whole messages.
//! * [`affinity`], [`batch`], [`poll`], [`socket`]: the system calls under them. `unsafe` code is
//!   here and in `port` and `verbs` alone.
//! * [`clock`], [`lateness`]: the wall clock, dilated time, and how far behind it the loop was.
//! * [`wall_clock`]: nodes in real time.
//! * [`minimal_loop`], [`paced_loop`], [`arrival_log`], [`pump`]: the yardsticks that wires and ports are
//!   measured with.
//!
//! Nothing here knows a program, a queue pair or a rate.

pub mod affinity;
pub mod arrival_log;
pub mod batch;
mod carrier;
pub mod clock;
pub mod lateness;
mod live_links;
pub mod minimal_loop;
pub mod paced_loop;
pub mod poll;
pub mod port;
pub mod ports;
pub mod pump;
mod receive_call;
pub mod socket;
mod tables;
pub mod verbs;
pub mod wall_clock;
mod wall_loop;
pub mod wire;

pub use wall_clock::{WallEmulation, WallEmulationError};
pub use wire::{WireError, Wires};
