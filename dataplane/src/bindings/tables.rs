//! Tables of the engine as dictionaries of numpy arrays.

use crate::engine::blocked::Blocked;
use crate::engine::records::{Column, Snapshot, Table, Tables};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

fn column(py: Python<'_>, column: Column) -> PyResult<Bound<'_, PyAny>> {
    Ok(match column {
        Column::Bool(values) => values.into_pyarray(py).into_any(),
        Column::U8(values) => values.into_pyarray(py).into_any(),
        Column::U16(values) => values.into_pyarray(py).into_any(),
        Column::U32(values) => values.into_pyarray(py).into_any(),
        Column::U64(values) => values.into_pyarray(py).into_any(),
        Column::F64(values) => values.into_pyarray(py).into_any(),
        Column::Text(values) => PyList::new(py, values)?.into_any(),
    })
}

/// One table.
pub fn table_into_dict(py: Python<'_>, table: Table) -> PyResult<Bound<'_, PyDict>> {
    let columns = PyDict::new(py);
    for (name, values) in table {
        columns.set_item(name, column(py, values)?)?;
    }
    Ok(columns)
}

/// Several tables.
pub fn tables_into_dict(py: Python<'_>, tables: Tables) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, table) in tables {
        dict.set_item(name, table_into_dict(py, table)?)?;
    }
    Ok(dict)
}

/// Totals and tables side by side.
pub fn snapshot_into_dict(py: Python<'_>, snapshot: Snapshot) -> PyResult<Bound<'_, PyDict>> {
    let dict = tables_into_dict(py, snapshot.tables)?;
    for (name, total) in snapshot.totals {
        dict.set_item(name, total)?;
    }
    Ok(dict)
}

/// One dictionary for each operation.
pub fn blocked_into_list(py: Python<'_>, blocked: Vec<Blocked>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for operation in blocked {
        let entry = PyDict::new(py);
        entry.set_item("rank", operation.rank)?;
        entry.set_item("op", operation.op)?;
        entry.set_item("kind", operation.kind.name())?;
        entry.set_item("peer", operation.peer)?;
        entry.set_item("size_bytes", operation.size_bytes)?;
        entry.set_item("received_bytes", operation.received_bytes)?;
        entry.set_item("waiting_for", operation.waiting_for)?;
        list.append(entry)?;
    }
    Ok(list)
}
