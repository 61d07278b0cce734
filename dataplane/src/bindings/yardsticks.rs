//! What benchmarks measure wires with: loops that do nothing else, and the times of arrival.

use super::port::PortError;
use crate::io;
use crate::io::port::PortSpec;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Datagrams per second of a loop that does nothing else; see `_native.pyi`.
#[pyfunction]
pub fn loopback_datagrams_per_s(
    py: Python<'_>,
    datagram_bytes: usize,
    seconds: f64,
) -> PyResult<f64> {
    check(datagram_bytes, seconds)?;
    let time = Duration::from_secs_f64(seconds);
    let rate = py.detach(|| io::minimal_loop::measure(datagram_bytes, time))?;
    Ok(rate.received_per_s)
}

/// Datagrams at equal intervals by a loop that does nothing else; see `_native.pyi`.
#[pyfunction]
pub fn send_paced_datagrams(
    py: Python<'_>,
    port: u16,
    datagram_bytes: usize,
    interval_ns: u64,
    count: u64,
) -> PyResult<()> {
    let seconds = interval_ns as f64 * count as f64 * 1e-9;
    check(datagram_bytes, seconds)?;
    Ok(py.detach(|| io::paced_loop::send(port, datagram_bytes, interval_ns, count))?)
}

/// What two ports carry with nothing else to do; see `_native.pyi`.
#[pyfunction]
pub fn pump_ports<'py>(
    py: Python<'py>,
    from_json: &str,
    to_json: &str,
    payload_bytes: u16,
    seconds: f64,
    processors: [usize; 2],
) -> PyResult<Bound<'py, PyDict>> {
    check(payload_bytes.into(), seconds)?;
    let spec = |text: &str| -> PyResult<PortSpec> {
        serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))
    };
    let (from, to) = (spec(from_json)?, spec(to_json)?);
    let time = Duration::from_secs_f64(seconds);
    let pumped = py
        .detach(|| io::pump::measure(&from, &to, payload_bytes, time, processors))
        .map_err(|error| PortError::new_err(error.to_string()))?;
    let dict = PyDict::new(py);
    dict.set_item("sent_frames", pumped.sent_frames)?;
    dict.set_item("received_frames", pumped.received_frames)?;
    dict.set_item("sending_s", pumped.sending_s)?;
    dict.set_item("receiving_s", pumped.receiving_s)?;
    dict.set_item("sender_processor_s", pumped.sender_processor_s)?;
    dict.set_item("receiver_processor_s", pumped.receiver_processor_s)?;
    Ok(dict)
}

fn check(datagram_bytes: usize, seconds: f64) -> PyResult<()> {
    if !(1..=65_000).contains(&datagram_bytes) || !(0.0..=60.0).contains(&seconds) {
        return Err(PyValueError::new_err("1 to 65000 bytes, at most 60 seconds"));
    }
    Ok(())
}

/// See `_native.pyi`.
#[pyclass(frozen, module = "dataplane")]
pub struct ArrivalLog {
    port: u16,
    log: Mutex<Option<io::arrival_log::ArrivalLog>>,
}

#[pymethods]
impl ArrivalLog {
    #[new]
    fn new() -> PyResult<Self> {
        let log = io::arrival_log::ArrivalLog::start()?;
        Ok(Self { port: log.port(), log: Mutex::new(Some(log)) })
    }

    #[getter]
    fn port(&self) -> u16 {
        self.port
    }

    fn stop<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyArray1<u64>>, u64)> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner).take();
        let log = log.ok_or_else(|| PyRuntimeError::new_err("it was stopped before"))?;
        let arrivals = py.detach(|| log.stop());
        Ok((arrivals.times_ns.into_pyarray(py), arrivals.overflows))
    }
}
