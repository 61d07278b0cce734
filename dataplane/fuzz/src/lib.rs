//! What the fuzz targets do with their input: one function for each, and the properties that it
//! checks. A property that does not hold is a panic.

pub mod connection;
pub mod endpoints;
pub mod frames;
pub mod hostile_peer;
pub mod input;
pub mod job;
pub mod trace;
