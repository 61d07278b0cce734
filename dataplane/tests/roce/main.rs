//! The RoCEv2 modules through their public interface.

mod properties;
mod vectors;
