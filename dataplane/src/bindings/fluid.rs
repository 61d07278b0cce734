//! Jobs as flows, in virtual time.

use super::emulation::parse_config;
use super::program::{PyProgram, shared};
use super::tables::{blocked_into_list, snapshot_into_dict, table_into_dict, tables_into_dict};
use crate::engine::Progress;
use crate::engine::records::completion_table;
use crate::fluid::Emulation;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// A whole job as flows; see `_native.pyi`.
#[pyclass(module = "dataplane")]
pub struct FluidEmulation {
    emulation: Emulation,
}

#[pymethods]
impl FluidEmulation {
    #[new]
    #[pyo3(signature = (config_json, programs, deferral_ratio = 0.01))]
    fn new(
        py: Python<'_>,
        config_json: &str,
        programs: Vec<PyRef<'_, PyProgram>>,
        deferral_ratio: f64,
    ) -> PyResult<Self> {
        let config = parse_config(config_json)?;
        let programs = shared(&programs);
        let emulation = py.detach(|| Emulation::new(config, &programs, deferral_ratio))?;
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
        self.emulation.now_ps()
    }

    /// Every operation is complete.
    #[getter]
    fn is_done(&self) -> bool {
        self.emulation.is_done()
    }

    /// Where the job is, in a few numbers; see `_native.pyi`.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("now_ps", self.emulation.now_ps())?;
        dict.set_item("ops_done", self.emulation.ops_done())?;
        dict.set_item("ops_total", self.emulation.ops_total())?;
        dict.set_item("bytes_arrived", self.emulation.bytes_arrived())?;
        dict.set_item("events", self.emulation.events_handled())?;
        Ok(dict)
    }

    /// Cumulative totals; see `_native.pyi`.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        snapshot_into_dict(py, self.emulation.snapshot())
    }

    /// Operations completed since the last call; see `_native.pyi`.
    fn completed<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut completions = Vec::new();
        self.emulation.take_completions(&mut completions);
        table_into_dict(py, completion_table(&completions))
    }

    /// Operations that wait; see `_native.pyi`.
    fn blocked<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Bound<'py, PyList>> {
        blocked_into_list(py, self.emulation.blocked(limit))
    }

    /// Final columns; see `_native.pyi`.
    fn records<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (records, counters) = py.detach(|| {
            self.emulation.finish_telemetry();
            (self.emulation.record_tables(), self.emulation.counter_tables())
        });
        let dict = tables_into_dict(py, records)?;
        dict.set_item("counters", tables_into_dict(py, counters)?)?;
        Ok(dict)
    }
}
