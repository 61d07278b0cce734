//! The RoCEv2 modules through their public interface.

mod connection;
mod frames;
mod pair;
mod properties;
mod refusals;
mod requests;
mod selective;
mod soak;
mod unidentified;
mod vectors;
