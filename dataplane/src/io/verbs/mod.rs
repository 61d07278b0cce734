//! RDMA devices through libibverbs: NICs whose messages an adapter carries.
//!
//! * [`devices`]: all of them in a process, and what their peers must know.
//! * `nic`, `flow`: one of them; its messages as WRITEs.
//! * [`courier`]: single payloads, for tools and tests.
//! * `device`, `limits`, `memory`, `queue_pair`: an open device, what it can do, its memory, its
//!   connections.
//! * `discovery`, `counters`, [`sampler`]: what the kernel shows of devices.
//! * `abi`, `library`: the library, opened at run time, and what of its interface is used.
//! * [`error`]: what can be wrong, and what to do about it.
//!
//! The adapter cuts messages into packets, paces, acknowledges and sends them again; nothing of that
//! is done here.

mod abi;
mod counters;
pub mod courier;
mod device;
pub mod devices;
mod discovery;
pub mod error;
mod flow;
mod library;
mod limits;
mod memory;
pub mod nic;
mod queue_pair;
pub mod sampler;

pub use devices::{DeviceEnd, DeviceEnds, Devices};
pub use error::VerbsError;
