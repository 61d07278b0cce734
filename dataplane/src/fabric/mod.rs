//! Virtual switches: output-queued, with a shared buffer, marking, priority flow control and ECMP.
//!
//! * [`port`]: one transmitter with its eight queues; strict priorities, weighted ones, pauses.
//! * [`buffer`]: what may be stored, and when an ingress must be paused or may resume.
//! * [`pause`]: the pause frames that one port owes its neighbour.
//! * [`pause_log`]: which ingresses were paused, when, and which queues had filled.
//! * [`marking`]: which packets leave with congestion experienced.
//! * [`ecmp`], [`path`]: which of several ports a flow, a flowlet or a packet takes.
//! * `link_state`: links that go down, come up or change their rate, and the ways around them.
//! * [`counters`]: what a port and a queue count.
//! * `watchdog`: what happens about a neighbour that pauses for good.
//! * [`switch`]: all of them together.
//!
//! A switch is a state machine: frames and wake-ups in, [`Output`]s out. It knows no link, no clock
//! and no event queue. Store and forward: a frame arrives when its last bit does.

pub mod buffer;
pub mod counters;
pub mod early_drop;
mod ecmp;
mod glance;
mod link_state;
pub mod marking;
pub mod path;
pub mod pause;
pub mod pause_log;
pub mod port;
mod priorities;
mod queue;
mod routes;
pub mod switch;
mod switch_port;
mod watchdog;

pub use counters::{PortTotals, QueueSample, QueueTotals};
pub use ecmp::EcmpHash;
pub(crate) use path::port_of_flow;
pub use pause_log::{PauseCause, PauseEvent, PauseLog};
pub use port::{Departure, PortScheduler, QueueDiscipline, Queued};
pub use routes::Addresses;
pub(crate) use routes::{Choices, Routes};
pub use switch::{PortLink, Switch};

use crate::roce::Frame;

/// Priorities of IEEE 802.1Q.
pub const PRIORITIES: usize = 8;

/// What a switch asks of its surroundings.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// The frame leaves a port.
    Transmit {
        /// The port.
        port: u16,
        /// The frame.
        frame: Frame,
        /// When its last bit leaves.
        end_ps: u64,
    },
    /// Call [`Switch::handle_wake`] with this token. Calls too many or too late are harmless.
    Wake {
        /// To be given back.
        token: u32,
        /// When.
        at_ps: u64,
    },
}
