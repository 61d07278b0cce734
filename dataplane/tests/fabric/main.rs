//! Virtual switches: scheduling, buffers, flow control, and DCQCN over them.

mod buffer;
mod forwarding;
mod hosts;
mod pauses;
mod port;
mod world;
