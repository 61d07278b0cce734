//! Jobs in virtual time.

use super::program::{PyProgram, shared};
use super::tables::{blocked_into_list, snapshot_into_dict, table_into_dict, tables_into_dict};
use crate::config::JobConfig;
use crate::engine;
use crate::engine::records::completion_table;
use crate::engine::{ConfigError as EngineConfigError, Progress};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

create_exception!(
    dataplane,
    ConfigError,
    PyValueError,
    "A job configuration or a program that cannot be executed; the message names the place."
);

impl From<EngineConfigError> for PyErr {
    fn from(error: EngineConfigError) -> Self {
        ConfigError::new_err(error.to_string())
    }
}

/// The job configuration in a JSON document.
pub fn parse_config(json: &str) -> PyResult<JobConfig> {
    serde_json::from_str(json).map_err(|error| ConfigError::new_err(error.to_string()))
}

/// A whole job in virtual time; see `_native.pyi`.
#[pyclass(module = "dataplane")]
pub struct Emulation {
    emulation: engine::Emulation,
}

#[pymethods]
impl Emulation {
    #[new]
    fn new(
        py: Python<'_>,
        config_json: &str,
        programs: Vec<PyRef<'_, PyProgram>>,
    ) -> PyResult<Self> {
        let config = parse_config(config_json)?;
        let programs = shared(&programs);
        let emulation = py.detach(|| engine::Emulation::new(config, &programs))?;
        Ok(Self { emulation })
    }

    /// Handle events; see `_native.pyi`.
    #[pyo3(signature = (until_ps = None, max_events = u64::MAX))]
    fn advance(&mut self, py: Python<'_>, until_ps: Option<u64>, max_events: u64) -> bool {
        let progress = py.detach(|| self.emulation.advance(until_ps, max_events));
        progress != Progress::Paused
    }

    /// Emulated time.
    #[getter]
    fn now_ps(&self) -> u64 {
        self.emulation.world().now_ps()
    }

    /// Every operation is complete.
    #[getter]
    fn is_done(&self) -> bool {
        self.emulation.world().is_done()
    }

    /// Where the job is, in a few numbers; see `_native.pyi`.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let world = self.emulation.world();
        let dict = PyDict::new(py);
        dict.set_item("now_ps", world.now_ps())?;
        dict.set_item("ops_done", world.ops_done())?;
        dict.set_item("ops_total", world.ops_total())?;
        dict.set_item("bytes_arrived", world.bytes_arrived())?;
        dict.set_item("events", world.events_handled())?;
        Ok(dict)
    }

    /// Cumulative totals; see `_native.pyi`.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        snapshot_into_dict(py, self.emulation.world().snapshot())
    }

    /// Operations completed since the last call; see `_native.pyi`.
    fn completed<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut completions = Vec::new();
        self.emulation.world_mut().take_completions(&mut completions);
        table_into_dict(py, completion_table(&completions))
    }

    /// Operations that wait; see `_native.pyi`.
    fn blocked<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Bound<'py, PyList>> {
        blocked_into_list(py, self.emulation.world().blocked(limit))
    }

    /// Final columns; see `_native.pyi`.
    fn records<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (records, counters) = py.detach(|| {
            self.emulation.world_mut().finish_telemetry();
            let world = self.emulation.world();
            (world.record_tables(), world.counter_tables())
        });
        let dict = tables_into_dict(py, records)?;
        dict.set_item("counters", tables_into_dict(py, counters)?)?;
        Ok(dict)
    }
}
