//! Flows against packets, and against what can be computed by hand.

mod against_packets;
mod link_events;
