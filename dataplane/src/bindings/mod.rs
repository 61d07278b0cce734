//! The Python module: conversion between numpy arrays, JSON documents and the crate's types.

use pyo3::prelude::*;

mod capture;
mod courier;
mod emulation;
mod endpoint;
mod fluid;
mod port;
mod program;
mod roce;
mod tables;
mod trace;
mod wall_emulation;
mod yardsticks;

#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::capture::write_capture;

    #[pymodule_export]
    use super::courier::Courier;

    #[pymodule_export]
    use super::emulation::{ConfigError, Emulation};

    #[pymodule_export]
    use super::endpoint::{Endpoint, payload_pattern};

    #[pymodule_export]
    use super::fluid::FluidEmulation;

    #[pymodule_export]
    use super::port::{Port, PortError};

    #[pymodule_export]
    use super::program::PyProgram;

    #[pymodule_export]
    use super::roce::{decode_roce, encode_pause, encode_roce, icrc, roce_opcodes};

    #[pymodule_export]
    use super::trace::{TraceError, find_cycle, read_trace, topological_order};

    #[pymodule_export]
    use super::wall_emulation::{WallEmulation, WireError};

    #[pymodule_export]
    use super::yardsticks::{
        ArrivalLog, loopback_datagrams_per_s, pump_ports, send_paced_datagrams,
    };

    /// Version of the native crate.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
