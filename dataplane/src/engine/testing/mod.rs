//! Programs and fabrics for tests and benchmarks.

mod fabric_builder;
mod program_builder;
pub mod workloads;

pub use fabric_builder::{DELAY_PS, FabricBuilder, clos, pair, star};
pub use program_builder::ProgramBuilder;
