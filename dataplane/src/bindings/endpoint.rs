//! One end of a reliable connection, so that other implementations can be talked to. Time and frames
//! come from the caller.

use super::roce::address;
use crate::roce::psn::MASK_24;
use crate::roce::{
    DecodeError, Frame, Message, Packet, QpEvent, QueuePair, QueuePairAddress, RemoteMemory,
    WorkRequest, decode, encode, pattern, udp_source_port,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::de::DeserializeOwned;

/// One end of a reliable connection; see `_native.pyi`.
#[pyclass(module = "dataplane")]
pub struct Endpoint {
    queue_pair: QueuePair,
    local_mac: [u8; 6],
    remote_mac: [u8; 6],
    dropped: Dropped,
}

/// Frames that were not for the queue pair.
#[derive(Clone, Copy, Debug, Default)]
struct Dropped {
    icrc_errors: u64,
    undecodable: u64,
    misaddressed: u64,
}

#[pymethods]
impl Endpoint {
    #[new]
    #[pyo3(signature = (*, transport_json, classes_json, local_address, remote_address, local_mac,
        remote_mac, local_qp, remote_qp, send_psn, receive_psn))]
    #[allow(clippy::too_many_arguments)] // Keywords of a Python constructor.
    fn new(
        transport_json: &str,
        classes_json: &str,
        local_address: &str,
        remote_address: &str,
        local_mac: [u8; 6],
        remote_mac: [u8; 6],
        local_qp: u32,
        remote_qp: u32,
        send_psn: u32,
        receive_psn: u32,
    ) -> PyResult<Self> {
        for (name, value) in [
            ("local_qp", local_qp),
            ("remote_qp", remote_qp),
            ("send_psn", send_psn),
            ("receive_psn", receive_psn),
        ] {
            if value > MASK_24 {
                return Err(PyValueError::new_err(format!("{name} {value} is above {MASK_24}")));
            }
        }
        let ends = QueuePairAddress {
            local_address: address(local_address)?,
            remote_address: address(remote_address)?,
            local_qp,
            remote_qp,
            source_port: udp_source_port(local_qp, remote_qp),
        };
        let (transport, classes) = (parsed(transport_json)?, parsed(classes_json)?);
        let queue_pair = QueuePair::new(&transport, &classes, ends, send_psn, receive_psn);
        Ok(Self { queue_pair, local_mac, remote_mac, dropped: Dropped::default() })
    }

    /// Set where the peer's memory lies; see `_native.pyi`.
    fn set_remote_memory(&mut self, virtual_address: u64, remote_key: u32) {
        self.queue_pair.set_remote_memory(RemoteMemory {
            virtual_address,
            remote_key,
            size_bytes: None,
        });
    }

    /// Post a WRITE; see `_native.pyi`.
    #[pyo3(signature = (id, size_bytes, immediate = None))]
    fn post_write(&mut self, id: u64, size_bytes: u64, immediate: Option<u32>) {
        match immediate {
            Some(immediate) => self.queue_pair.post_write(Message { id, size_bytes, immediate }),
            None => self.queue_pair.post(id, WorkRequest::Write { size_bytes, immediate }),
        }
    }

    /// Post a SEND; see `_native.pyi`.
    #[pyo3(signature = (id, size_bytes, immediate = None))]
    fn post_send(&mut self, id: u64, size_bytes: u64, immediate: Option<u32>) {
        self.queue_pair.post(id, WorkRequest::Send { size_bytes, immediate });
    }

    /// Post a READ; see `_native.pyi`.
    #[pyo3(signature = (id, size_bytes, offset_bytes = 0))]
    fn post_read(&mut self, id: u64, size_bytes: u64, offset_bytes: u64) {
        self.queue_pair.post(id, WorkRequest::Read { size_bytes, offset_bytes });
    }

    /// Limit the posted receives; see `_native.pyi`.
    fn limit_receives(&mut self, posted: u32, timer: u8) {
        self.queue_pair.limit_receives(posted, timer);
    }

    /// Post a receive; see `_native.pyi`.
    fn post_receive(&mut self) {
        self.queue_pair.post_receive();
    }

    /// Take a frame from the wire; see `_native.pyi`.
    fn handle_frame(&mut self, now_ps: u64, frame: &[u8]) {
        match decode(frame) {
            Ok(Frame::Roce(packet)) if self.is_addressed(&packet) => {
                self.queue_pair.handle_packet(now_ps, &packet);
            }
            Ok(_) => self.dropped.misaddressed += 1,
            Err(DecodeError::Icrc { .. }) => self.dropped.icrc_errors += 1,
            Err(_) => self.dropped.undecodable += 1,
        }
    }

    /// Take the frames that are to be sent; see `_native.pyi`.
    #[pyo3(signature = (now_ps, max_frames = 64))]
    fn poll_frames<'py>(
        &mut self,
        py: Python<'py>,
        now_ps: u64,
        max_frames: usize,
    ) -> Vec<Bound<'py, PyBytes>> {
        let mut frames = Vec::new();
        while frames.len() < max_frames
            && let Some(packet) = self.next_packet(now_ps)
        {
            let mut bytes = Vec::new();
            let frame = Frame::Roce(Box::new(packet));
            encode(&frame, self.local_mac, self.remote_mac, &mut bytes);
            frames.push(PyBytes::new(py, &bytes));
        }
        frames
    }

    /// When a timer is due; see `_native.pyi`.
    fn poll_timeout(&self) -> Option<u64> {
        self.queue_pair.poll_timeout()
    }

    /// Fire the timers that are due; see `_native.pyi`.
    fn handle_timeout(&mut self, now_ps: u64) {
        self.queue_pair.handle_timeout(now_ps);
    }

    /// Take what happened; see `_native.pyi`.
    fn events<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        std::iter::from_fn(|| self.queue_pair.poll_event())
            .map(|event| event_into_dict(py, event))
            .collect()
    }

    /// A request is not complete; see `_native.pyi`.
    #[getter]
    fn has_unacknowledged(&self) -> bool {
        self.queue_pair.has_unacknowledged()
    }

    /// Totals; see `_native.pyi`.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Dropped { icrc_errors, undecodable, misaddressed } = self.dropped;
        let dict = PyDict::new(py);
        for (name, value) in self.queue_pair.counters().named() {
            dict.set_item(name, value)?;
        }
        dict.set_item("rx_icrc_errors", icrc_errors)?;
        dict.set_item("undecodable_frames", undecodable)?;
        dict.set_item("misaddressed_frames", misaddressed)?;
        Ok(dict)
    }
}

impl Endpoint {
    fn is_addressed(&self, packet: &Packet) -> bool {
        let ends = self.queue_pair.address();
        packet.destination_address == ends.local_address
            && packet.source_address == ends.remote_address
            && packet.bth.destination_qp == ends.local_qp
    }

    /// Acknowledgements go before data.
    fn next_packet(&mut self, now_ps: u64) -> Option<Packet> {
        let control = self.queue_pair.poll_control(now_ps);
        control.or_else(|| self.queue_pair.poll_data(now_ps))
    }
}

fn parsed<T: DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn event_into_dict(py: Python<'_>, event: QpEvent) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    let kind = match event {
        QpEvent::SendCompleted { id, retransmitted_packets } => {
            dict.set_item("id", id)?;
            dict.set_item("retransmitted_packets", retransmitted_packets)?;
            "send_completed"
        }
        QpEvent::ReadCompleted { id, size_bytes, retransmitted_packets, marked_packets } => {
            dict.set_item("id", id)?;
            dict.set_item("size_bytes", size_bytes)?;
            dict.set_item("retransmitted_packets", retransmitted_packets)?;
            dict.set_item("marked_packets", marked_packets)?;
            "read_completed"
        }
        QpEvent::MessageReceived { immediate, size_bytes, marked_packets } => {
            dict.set_item("immediate", immediate)?;
            dict.set_item("size_bytes", size_bytes)?;
            dict.set_item("marked_packets", marked_packets)?;
            "write_received"
        }
        QpEvent::SendReceived { immediate, size_bytes, marked_packets } => {
            dict.set_item("immediate", immediate)?;
            dict.set_item("size_bytes", size_bytes)?;
            dict.set_item("marked_packets", marked_packets)?;
            "send_received"
        }
        QpEvent::SequenceError => "sequence_error",
        QpEvent::TimedOut => "timed_out",
        QpEvent::Failed { reason } => {
            dict.set_item("reason", reason.to_string())?;
            "failed"
        }
    };
    dict.set_item("event", kind)?;
    Ok(dict)
}

/// Bytes of the payload pattern; see `_native.pyi`.
#[pyfunction]
pub fn payload_pattern(py: Python<'_>, offset_bytes: u64, length_bytes: u64) -> Bound<'_, PyBytes> {
    let end = offset_bytes + length_bytes;
    let mut bytes = Vec::with_capacity(length_bytes as usize);
    let mut offset = offset_bytes;
    while offset < end {
        let part = (end - offset).min(u64::from(u16::MAX)) as u16;
        bytes.extend_from_slice(pattern::slice(offset, part));
        offset += u64::from(part);
    }
    PyBytes::new(py, &bytes)
}
