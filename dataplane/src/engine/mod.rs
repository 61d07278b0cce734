//! Programs, their executor, the network interface, and the event loop that drives them.

mod adapters;
mod assembly;
pub mod blocked;
pub mod calendar;
pub mod capture;
pub mod connections;
mod counter_records;
mod error;
pub mod event_queue;
pub mod executor;
pub mod flow_links;
pub mod host;
pub mod impairment;
pub mod lazy_timers;
pub mod line;
pub mod link_events;
mod links;
mod lookahead;
pub mod medium;
pub mod nic;
pub mod program;
mod propagation_records;
pub mod records;
pub(crate) mod rerouting;
pub mod rows;
pub mod series;
pub mod telemetry;
pub mod testing;
pub mod topology;
mod view;
pub mod virtual_clock;
pub mod world;

pub use error::ConfigError;
pub use virtual_clock::{Emulation, Progress};
pub use world::World;
