//! Programs, their executor, the network interface, and the event loop that drives them.

mod error;
pub mod event_queue;
pub mod executor;
pub mod program;
pub mod testing;

pub use error::ConfigError;
