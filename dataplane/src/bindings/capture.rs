//! Capture files.

use crate::pcapng::CaptureWriter;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

/// Write frames as pcapng; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (path, interfaces, *, time_ps, interface, length_bytes, frames, max_packets))]
#[allow(clippy::too_many_arguments)]
pub fn write_capture(
    py: Python<'_>,
    path: PathBuf,
    interfaces: Vec<String>,
    time_ps: PyReadonlyArray1<'_, u64>,
    interface: PyReadonlyArray1<'_, u32>,
    length_bytes: PyReadonlyArray1<'_, u32>,
    frames: PyReadonlyArray1<'_, u8>,
    max_packets: usize,
) -> PyResult<usize> {
    let (time_ps, interface) = (time_ps.as_slice()?, interface.as_slice()?);
    let (length_bytes, frames) = (length_bytes.as_slice()?, frames.as_slice()?);
    let offsets = offsets(length_bytes);
    let is_whole = offsets.last() == Some(&frames.len());
    if !is_whole || time_ps.len() != length_bytes.len() || interface.len() != length_bytes.len() {
        return Err(PyValueError::new_err("columns of different lengths"));
    }
    if interface.iter().any(|&index| index as usize >= interfaces.len()) {
        return Err(PyValueError::new_err("an interface that is not named"));
    }
    py.detach(|| {
        let mut order: Vec<usize> = (0..time_ps.len()).collect();
        order.sort_by_key(|&index| time_ps[index]);
        order.truncate(max_packets);
        let mut writer = CaptureWriter::new(BufWriter::new(File::create(path)?), &interfaces)?;
        for &index in &order {
            let frame = &frames[offsets[index]..offsets[index + 1]];
            writer.packet(interface[index], time_ps[index] / 1000, frame)?;
        }
        writer.finish()?;
        Ok(order.len())
    })
}

/// Where each frame begins, and the end of the last.
fn offsets(length_bytes: &[u32]) -> Vec<usize> {
    let mut offsets = vec![0];
    let mut end = 0;
    for &length in length_bytes {
        end += length as usize;
        offsets.push(end);
    }
    offsets
}
