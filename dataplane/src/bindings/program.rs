//! Programs from numpy arrays.

use crate::engine::program::Program;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// One rank's program; see `_native.pyi`.
#[pyclass(name = "Program", frozen, module = "dataplane")]
pub struct PyProgram(pub Arc<Program>);

#[pymethods]
impl PyProgram {
    #[new]
    #[pyo3(signature = (
        *, rank, kind, peer, size_bytes, duration_ps, lane, peer_op, instance, row, dep_offsets, deps,
        channel=None, traffic_class=None
    ))]
    #[allow(clippy::too_many_arguments)] // The columns of a program.
    fn new(
        rank: u32,
        kind: PyReadonlyArray1<'_, u8>,
        peer: PyReadonlyArray1<'_, u32>,
        size_bytes: PyReadonlyArray1<'_, u64>,
        duration_ps: PyReadonlyArray1<'_, u64>,
        lane: PyReadonlyArray1<'_, i32>,
        peer_op: PyReadonlyArray1<'_, u32>,
        instance: PyReadonlyArray1<'_, u32>,
        row: PyReadonlyArray1<'_, u32>,
        dep_offsets: PyReadonlyArray1<'_, u32>,
        deps: PyReadonlyArray1<'_, u32>,
        channel: Option<PyReadonlyArray1<'_, u16>>,
        traffic_class: Option<PyReadonlyArray1<'_, u8>>,
    ) -> PyResult<Self> {
        if instance.len()? != kind.len()? || row.len()? != kind.len()? {
            return Err(PyValueError::new_err("instance and row must be as long as kind"));
        }
        Ok(Self(Arc::new(Program {
            rank,
            kind: kind.as_array().to_vec(),
            peer: peer.as_array().to_vec(),
            size_bytes: size_bytes.as_array().to_vec(),
            duration_ps: duration_ps.as_array().to_vec(),
            lane: lane.as_array().to_vec(),
            peer_op: peer_op.as_array().to_vec(),
            dep_offsets: dep_offsets.as_array().to_vec(),
            deps: deps.as_array().to_vec(),
            channel: channel.map_or_else(Vec::new, |channel| channel.as_array().to_vec()),
            class: traffic_class.map_or_else(Vec::new, |class| class.as_array().to_vec()),
        })))
    }

    /// The rank that executes it.
    #[getter]
    fn rank(&self) -> u32 {
        self.0.rank
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }
}

/// The programs behind the Python objects.
pub fn shared(programs: &[PyRef<'_, PyProgram>]) -> Vec<Arc<Program>> {
    programs.iter().map(|program| program.0.clone()).collect()
}
