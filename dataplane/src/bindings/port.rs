//! A port on an interface of the operating system, for tools and tests in Python.

use crate::io::clock::realtime_offset_ns;
use crate::io::port::view::ViewError;
use crate::io::port::{self, PortCapabilities, PortCounters, PortSpec, XdpMode};
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

create_exception!(
    dataplane,
    PortError,
    PyOSError,
    "A port that cannot be opened; the message names driver, address, reason and remedy."
);

/// A frame and its CLOCK_MONOTONIC in nanoseconds.
type TimedFrame<'py> = (Bound<'py, PyBytes>, Option<u64>);

/// See `_native.pyi`.
#[pyclass(frozen, module = "dataplane")]
pub struct Port {
    open: Mutex<Option<Open>>,
}

struct Open {
    port: Box<dyn port::Port>,
    /// Frames that came in one call with others and were not asked for yet, and when they came.
    received: VecDeque<(Vec<u8>, Option<u64>)>,
}

impl Port {
    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Open) -> PyResult<T>) -> PyResult<T> {
        work(self.lock().as_mut().ok_or_else(|| PyRuntimeError::new_err("the port is closed"))?)
    }
}

#[pymethods]
impl Port {
    #[new]
    fn new(py: Python<'_>, spec_json: &str) -> PyResult<Self> {
        let spec: PortSpec = serde_json::from_str(spec_json)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let port = py
            .detach(|| port::open(&spec))
            .map_err(|error| PortError::new_err(error.to_string()))?;
        Ok(Self { open: Mutex::new(Some(Open { port, received: VecDeque::new() })) })
    }

    fn capabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let can = self.with(|open| Ok(open.port.capabilities()))?;
        capabilities_into_dict(py, &can)
    }

    fn send(&self, frames: Vec<Vec<u8>>) -> PyResult<usize> {
        let refused = |error: ViewError| PyValueError::new_err(error.to_string());
        self.with(|open| {
            for frame in &frames {
                open.port.check(frame).map_err(refused)?;
            }
            let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
            open.port.send(&frames).map_err(refused)
        })
    }

    fn receive<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Vec<TimedFrame<'py>>> {
        self.with(|open| {
            open.port.flush();
            let Open { port, received } = open;
            let offset_ns = realtime_offset_ns();
            let mut known = received.len();
            let mut keep = |frame: port::Received<'_>| {
                let monotonic_ns = frame.kernel_time.map(|time| time.monotonic_ns(offset_ns));
                received.push_back((frame.bytes.to_vec(), monotonic_ns));
            };
            while known < limit {
                match port.receive(&mut keep) {
                    0 => break,
                    more => known += more,
                }
            }
            let count = received.len().min(limit);
            let taken = received.drain(..count);
            Ok(taken.map(|(bytes, time_ns)| (PyBytes::new(py, &bytes), time_ns)).collect())
        })
    }

    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.with(|open| Ok(open.port.counters()))?;
        counters_into_dict(py, &counters)
    }

    fn close(&self) {
        *self.lock() = None;
    }
}

/// What a port can do, for `run.json` too.
pub fn capabilities_into_dict<'py>(
    py: Python<'py>,
    can: &PortCapabilities,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("max_frame_bytes", can.max_frame_bytes)?;
    dict.set_item("has_segmentation", can.has_segmentation)?;
    dict.set_item("has_coalescing", can.has_coalescing)?;
    dict.set_item("max_burst_packets", can.max_burst_packets)?;
    dict.set_item("has_ecn", can.has_ecn)?;
    dict.set_item("carries_ethernet_header", can.carries_ethernet_header)?;
    dict.set_item("invariant_crc", can.invariant_crc.name())?;
    dict.set_item("timestamps", can.timestamps.name())?;
    dict.set_item("has_identification", can.has_identification)?;
    dict.set_item("queues", can.queues)?;
    dict.set_item("xdp_mode", can.xdp_mode.map_or("", XdpMode::name))?;
    dict.set_item("has_zero_copy", can.has_zero_copy)?;
    if !can.device.is_empty() {
        dict.set_item("device", &can.device)?;
        dict.set_item("port_rate_bps", can.port_rate_bps)?;
    }
    Ok(dict)
}

fn counters_into_dict<'py>(
    py: Python<'py>,
    counters: &PortCounters,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("frames_sent", counters.frames_sent)?;
    dict.set_item("bytes_sent", counters.bytes_sent)?;
    dict.set_item("bursts_sent", counters.bursts_sent)?;
    dict.set_item("send_errors", counters.send_errors)?;
    dict.set_item("send_stalls", counters.send_stalls)?;
    dict.set_item("frames_received", counters.frames_received)?;
    dict.set_item("bytes_received", counters.bytes_received)?;
    dict.set_item("bursts_received", counters.bursts_received)?;
    dict.set_item("receive_overflows", counters.receive_overflows)?;
    dict.set_item("misaddressed", counters.misaddressed)?;
    dict.set_item("untimed_frames", counters.untimed_frames)?;
    dict.set_item("queues_used", counters.queues_used)?;
    Ok(dict)
}
