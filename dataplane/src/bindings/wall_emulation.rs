//! Some nodes of a job under the wall clock.

use super::emulation::parse_config;
use super::port::{PortError, capabilities_into_dict};
use super::program::{PyProgram, shared};
use super::tables::{blocked_into_list, snapshot_into_dict, table_into_dict, tables_into_dict};
use crate::engine::records::completion_table;
use crate::io;
use crate::io::WallEmulationError;
use crate::io::port::PortSpec;
use crate::io::verbs::DeviceEnds;
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

create_exception!(
    dataplane,
    WireError,
    PyOSError,
    "A wire that cannot be opened or used; the message names the wire end, the port and the remedy."
);

impl From<WallEmulationError> for PyErr {
    fn from(error: WallEmulationError) -> Self {
        match error {
            WallEmulationError::Config(error) => error.into(),
            WallEmulationError::Wire(io::WireError::Port(error)) => {
                PortError::new_err(error.to_string())
            }
            WallEmulationError::Wire(error) => WireError::new_err(error.to_string()),
            WallEmulationError::State(error) => PyRuntimeError::new_err(error.to_string()),
        }
    }
}

/// See `_native.pyi`.
#[pyclass(frozen, module = "dataplane")]
pub struct WallEmulation {
    emulation: io::WallEmulation,
}

#[pymethods]
impl WallEmulation {
    #[new]
    #[pyo3(signature = (config_json, programs, local_nodes, time_dilation,
        bind_address = "127.0.0.1", ports_json = None))]
    fn new(
        py: Python<'_>,
        config_json: &str,
        programs: Vec<PyRef<'_, PyProgram>>,
        local_nodes: Vec<String>,
        time_dilation: u64,
        bind_address: &str,
        ports_json: Option<&str>,
    ) -> PyResult<Self> {
        let config = parse_config(config_json)?;
        let ports: Option<BTreeMap<String, PortSpec>> =
            ports_json.map(serde_json::from_str).transpose().map_err(wrong_ports)?;
        let programs = shared(&programs);
        let address = ipv4(bind_address)?;
        let emulation = py.detach(|| {
            let (nodes, ports) = (&local_nodes, ports.as_ref());
            io::WallEmulation::new(config, &programs, nodes, time_dilation, address, ports)
        })?;
        Ok(Self { emulation })
    }

    #[pyo3(signature = (fixed_ports = None))]
    fn bind<'py>(
        &self,
        py: Python<'py>,
        fixed_ports: Option<BTreeMap<String, u16>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let fixed_ports = fixed_ports.unwrap_or_default();
        let bound = py.detach(|| self.emulation.bind(&fixed_ports))?;
        let ports = PyDict::new(py);
        for (end, port) in bound {
            ports.set_item(end, port)?;
        }
        Ok(ports)
    }

    fn device_ends(&self) -> PyResult<String> {
        let ends = self.emulation.device_ends()?;
        serde_json::to_string(&ends).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[pyo3(signature = (peers, devices_json = None))]
    fn connect(
        &self,
        py: Python<'_>,
        peers: BTreeMap<String, (String, u16)>,
        devices_json: Option<&str>,
    ) -> PyResult<()> {
        let mut addresses = BTreeMap::new();
        for (end, (host, port)) in peers {
            addresses.insert(end, SocketAddrV4::new(ipv4(&host)?, port));
        }
        let devices: Option<DeviceEnds> =
            devices_json.map(serde_json::from_str).transpose().map_err(wrong_ports)?;
        let devices = devices.unwrap_or_default();
        Ok(py.detach(|| self.emulation.connect(&addresses, &devices))?)
    }

    fn start(&self, start_monotonic_ns: u64) -> PyResult<()> {
        Ok(self.emulation.start(start_monotonic_ns)?)
    }

    fn stop(&self) {
        self.emulation.stop();
    }

    fn join(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let timeout = Duration::try_from_secs_f64(timeout_s.max(0.0)).unwrap_or(Duration::MAX);
        let joined = py.detach(|| self.emulation.join(timeout));
        Ok(joined.map_err(WallEmulationError::from)?)
    }

    #[getter]
    fn is_running(&self) -> bool {
        self.emulation.is_running()
    }

    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        snapshot_into_dict(py, self.emulation.snapshot())
    }

    fn completed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        table_into_dict(py, completion_table(&self.emulation.completed()))
    }

    fn moments(&self) -> Vec<(u32, u64)> {
        self.emulation.moments().into_iter().map(|moment| (moment.event, moment.time_ps)).collect()
    }

    fn order_event(&self, event: u32, base_ps: u64) {
        self.emulation.order_event(event, base_ps);
    }

    fn blocked<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Bound<'py, PyList>> {
        blocked_into_list(py, py.detach(|| self.emulation.blocked(limit)))
    }

    fn records<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = py.detach(|| self.emulation.records());
        let (records, counters) = tables.map_err(WallEmulationError::from)?;
        let dict = tables_into_dict(py, records)?;
        dict.set_item("counters", tables_into_dict(py, counters)?)?;
        Ok(dict)
    }

    fn ports<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ports = self.emulation.open_ports().map_err(WallEmulationError::from)?;
        let dict = PyDict::new(py);
        for (nic, spec, can) in ports {
            let port = capabilities_into_dict(py, &can)?;
            port.set_item("driver", spec.driver.to_string())?;
            port.set_item("interface", spec.interface.unwrap_or_default())?;
            dict.set_item(nic, port)?;
        }
        Ok(dict)
    }

    fn lateness<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (events, frames) = (self.emulation.lateness(), self.emulation.frame_lateness());
        let dict = PyDict::new(py);
        dict.set_item("events", events.count())?;
        dict.set_item("mean_ns", events.mean_ns())?;
        for (name, share) in
            [("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99), ("p999_ns", 0.999)]
        {
            dict.set_item(name, events.quantile_ns(share))?;
        }
        dict.set_item("max_ns", events.max_ns())?;
        dict.set_item("frames", frames.count())?;
        dict.set_item("late_frames", frames.positive_count())?;
        dict.set_item("frame_p999_ns", frames.quantile_ns(0.999))?;
        dict.set_item("frame_max_ns", frames.max_ns())?;
        Ok(dict)
    }
}

fn wrong_ports(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(format!("the ports: {error}"))
}

fn ipv4(text: &str) -> PyResult<Ipv4Addr> {
    text.parse().map_err(|_| PyValueError::new_err(format!("{text:?} is not an IPv4 address")))
}
