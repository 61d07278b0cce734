//! The plainest switch and sender, until `fabric` and `congestion` take their place.

pub mod congestion;
pub mod fabric;
