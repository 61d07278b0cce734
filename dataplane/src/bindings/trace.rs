//! Traces as numpy columns, and the graph algorithms over them.

use crate::trace::graph::Parents;
use crate::trace::{self, Columns, MetadataValue};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

create_exception!(
    dataplane,
    TraceError,
    PyException,
    "A trace file that cannot be read; args: file, byte offset, what is wrong, what would be right."
);

/// Read a trace file into columns; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (path, *, limit_bytes = None))]
pub fn read_trace<'py>(
    py: Python<'py>,
    path: PathBuf,
    limit_bytes: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let columns = py.detach(|| trace::read(&path, limit_bytes));
    let columns = columns.map_err(|error| {
        TraceError::new_err((error.file, error.offset, error.what, error.remedy))
    })?;
    into_dict(py, columns)
}

/// Hand every column over to numpy without a copy.
fn into_dict(py: Python<'_>, columns: Columns) -> PyResult<Bound<'_, PyDict>> {
    let table = PyDict::new(py);
    table.set_item("type", columns.node_type.into_pyarray(py))?;
    macro_rules! hand_over {
        ($($column:ident)*) => {
            $(table.set_item(stringify!($column), columns.$column.into_pyarray(py))?;)*
        };
    }
    hand_over!(id name_offsets name_bytes data_dep_offsets data_deps ctrl_dep_offsets ctrl_deps);
    hand_over!(duration_us start_us is_cpu_op stream tid ts_us comm_type comm_size comm_src);
    hand_over!(comm_dst comm_tag group num_ops tensor_size frame_offsets);
    hand_over!(rows_in_some_dimensions);
    table.set_item("groups", columns.groups)?;
    table.set_item("process_groups_json", columns.process_groups_json)?;
    table.set_item("dialect", columns.dialect.to_string())?;
    let metadata = PyDict::new(py);
    for (name, value) in columns.metadata {
        match value {
            MetadataValue::Integer(number) => metadata.set_item(name, number)?,
            MetadataValue::Float(number) => metadata.set_item(name, number)?,
            MetadataValue::Text(text) => metadata.set_item(name, text)?,
        }
    }
    table.set_item("metadata", metadata)?;
    Ok(table)
}

/// A graph over numpy arrays, or a `ValueError`.
fn graph<'a>(offsets: &'a [u64], parents: &'a [u32]) -> PyResult<Parents<'a>> {
    Parents::new(offsets, parents)
        .ok_or_else(|| PyValueError::new_err("offsets and parents are no graph"))
}

/// Vertices in topological order, smallest key first; see `_native.pyi`.
#[pyfunction]
pub fn topological_order<'py>(
    py: Python<'py>,
    offsets: PyReadonlyArray1<'py, u64>,
    parents: PyReadonlyArray1<'py, u32>,
    keys: PyReadonlyArray1<'py, i64>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let (graph, keys) = (graph(offsets.as_slice()?, parents.as_slice()?)?, keys.as_slice()?);
    if keys.len() != graph.vertices() {
        return Err(PyValueError::new_err("there must be one key for each vertex"));
    }
    Ok(py.detach(|| graph.topological_order(keys)).into_pyarray(py))
}

/// One cycle among the vertices that `order` leaves out; see `_native.pyi`.
#[pyfunction]
pub fn find_cycle(
    offsets: PyReadonlyArray1<'_, u64>,
    parents: PyReadonlyArray1<'_, u32>,
    order: PyReadonlyArray1<'_, u32>,
) -> PyResult<Vec<u32>> {
    let (graph, order) = (graph(offsets.as_slice()?, parents.as_slice()?)?, order.as_slice()?);
    if order.iter().any(|vertex| *vertex as usize >= graph.vertices()) {
        return Err(PyValueError::new_err("the order names a vertex that is not in the graph"));
    }
    Ok(graph.cycle(order))
}
