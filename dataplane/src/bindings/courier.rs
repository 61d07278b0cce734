//! Payloads over one connection of an RDMA device, for tools and tests in Python.

use super::port::PortError;
use crate::io::port;
use crate::io::verbs::VerbsError;
use crate::io::verbs::courier::{self, CourierEnd};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::net::Ipv4Addr;
use std::sync::{Mutex, PoisonError};

/// See `_native.pyi`.
#[pyclass(frozen, module = "dataplane")]
pub struct Courier {
    address: Ipv4Addr,
    open: Mutex<Option<courier::Courier>>,
}

impl Courier {
    fn with<T>(&self, work: impl FnOnce(&mut courier::Courier) -> PyResult<T>) -> PyResult<T> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        work(open.as_mut().ok_or_else(|| PyRuntimeError::new_err("the courier is closed"))?)
    }
}

fn refused(address: Ipv4Addr) -> impl Fn(VerbsError) -> PyErr {
    move |error| PortError::new_err(port::PortError::Device { address, error }.to_string())
}

fn ipv4(text: &str) -> PyResult<Ipv4Addr> {
    text.parse().map_err(|_| PyValueError::new_err(format!("{text:?} is not an IPv4 address")))
}

#[pymethods]
impl Courier {
    #[new]
    #[pyo3(signature = (address, interface = None, mtu_bytes = 1024))]
    fn new(
        py: Python<'_>,
        address: &str,
        interface: Option<&str>,
        mtu_bytes: u32,
    ) -> PyResult<Self> {
        let address = ipv4(address)?;
        let opened = py.detach(|| courier::Courier::open(address, interface, mtu_bytes));
        Ok(Self { address, open: Mutex::new(Some(opened.map_err(refused(address))?)) })
    }

    /// Address, queue pair, memory address and key.
    fn local(&self) -> PyResult<(String, u32, u64, u32)> {
        self.with(|open| {
            let end = open.local();
            Ok((end.address.to_string(), end.qp, end.memory_address, end.remote_key))
        })
    }

    fn connect(
        &self,
        py: Python<'_>,
        address: &str,
        qp: u32,
        memory_address: u64,
        remote_key: u32,
    ) -> PyResult<()> {
        let peer = CourierEnd { address: ipv4(address)?, qp, memory_address, remote_key };
        py.detach(|| self.with(|open| open.connect(peer).map_err(refused(self.address))))
    }

    #[getter]
    fn max_payload_bytes(&self) -> PyResult<usize> {
        self.with(|open| Ok(open.max_payload_bytes()))
    }

    fn send(&self, payload: &[u8], immediate: u32) -> PyResult<bool> {
        self.with(|open| Ok(open.send(payload, immediate)))
    }

    fn receive<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyBytes>, u32)>> {
        let arrived = self.with(|open| Ok(open.receive()))?;
        Ok(arrived.map(|(payload, immediate)| (PyBytes::new(py, &payload), immediate)))
    }

    /// Why the connection ended; `None` while it lives.
    #[getter]
    fn failure(&self) -> PyResult<Option<String>> {
        self.with(|open| Ok(open.failure().map(|reason| reason.to_string())))
    }

    fn close(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
