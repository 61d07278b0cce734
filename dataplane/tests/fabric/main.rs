//! Virtual switches: scheduling, buffers, flow control, and DCQCN over them.

mod buffer;
mod forwarding;
mod hosts;
mod links;
mod pauses;
mod port;
#[path = "../congestion/profiles.rs"]
#[allow(dead_code)]
mod profiles;
mod properties;
mod steady_state;
mod swift;
mod watchdog;
mod world;
