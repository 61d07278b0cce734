//! Frames as bytes and dictionaries, so that other implementations can be asked about ours.

use crate::roce::opcode::{OPCODES, Opcode};
use crate::roce::packet::{Ecn, PauseFrame};
use crate::roce::psn::MASK_24;
use crate::roce::{self, Frame, Packet, Payload};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use std::net::Ipv4Addr;

type Mac = [u8; 6];

/// Sets the field of `packet` that the keyword names.
fn set_field(packet: &mut Packet, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    match name {
        "source_address" => packet.source_address = address(value.extract()?)?,
        "destination_address" => packet.destination_address = address(value.extract()?)?,
        "source_port" => packet.source_port = value.extract()?,
        "dscp" => packet.dscp = below(name, value, 0x3F)? as u8,
        "ecn" => packet.ecn = Ecn::from_bits(below(name, value, 0b11)? as u8),
        "ttl" => packet.ttl = value.extract()?,
        "identification" => packet.identification = value.extract()?,
        "opcode" => packet.bth.opcode = spoken(value.extract()?)?,
        "solicited" => packet.bth.solicited = value.extract()?,
        "migration_request" => packet.bth.migration_request = value.extract()?,
        "fecn" => packet.bth.fecn = value.extract()?,
        "becn" => packet.bth.becn = value.extract()?,
        "partition_key" => packet.bth.partition_key = value.extract()?,
        "destination_qp" => packet.bth.destination_qp = below(name, value, MASK_24)?,
        "ack_request" => packet.bth.ack_request = value.extract()?,
        "psn" => packet.bth.psn = below(name, value, MASK_24)?,
        "virtual_address" => packet.reth.virtual_address = value.extract()?,
        "remote_key" => packet.reth.remote_key = value.extract()?,
        "length_bytes" => packet.reth.length_bytes = value.extract()?,
        "immediate" => packet.immediate = value.extract()?,
        "syndrome" => packet.aeth.syndrome = value.extract()?,
        "msn" => packet.aeth.msn = below(name, value, MASK_24)?,
        "payload" => packet.payload = Payload::Bytes(payload(value.extract()?)?.into()),
        _ => return Err(PyTypeError::new_err(format!("a packet has no field {name:?}"))),
    }
    Ok(())
}

/// An IPv4 address in host byte order.
pub fn address(text: &str) -> PyResult<u32> {
    let address: Result<Ipv4Addr, _> = text.parse();
    address.map(u32::from).map_err(|error| PyValueError::new_err(format!("{text:?}: {error}")))
}

/// An integer of at most `max`.
fn below(name: &str, value: &Bound<'_, PyAny>, max: u32) -> PyResult<u32> {
    let number: u32 = value.extract()?;
    if number > max {
        return Err(PyValueError::new_err(format!("{name} {number} is above {max}")));
    }
    Ok(number)
}

fn spoken(code: u8) -> PyResult<Opcode> {
    let row = Opcode(code).row();
    row.map(|row| row.opcode)
        .ok_or_else(|| PyValueError::new_err(format!("opcode {code:#04x} is not spoken")))
}

/// Longest payload of a packet. Source: IBTA volume 1, section 9.8.2.2 (the largest path MTU).
const MAX_PAYLOAD_BYTES: usize = 4096;

fn payload(bytes: &[u8]) -> PyResult<&[u8]> {
    if bytes.len() > MAX_PAYLOAD_BYTES {
        let what = format!("payload of {} bytes, at most {MAX_PAYLOAD_BYTES}", bytes.len());
        return Err(PyValueError::new_err(what));
    }
    Ok(bytes)
}

fn encoded<'py>(
    py: Python<'py>,
    frame: &Frame,
    source: Mac,
    destination: Mac,
) -> Bound<'py, PyBytes> {
    let mut out = Vec::new();
    roce::encode(frame, source, destination, &mut out);
    PyBytes::new(py, &out)
}

/// Encode a RoCEv2 packet as an Ethernet frame; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (*, source_mac = [0; 6], destination_mac = [0; 6], **fields))]
pub fn encode_roce<'py>(
    py: Python<'py>,
    source_mac: Mac,
    destination_mac: Mac,
    fields: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut packet = Packet::default();
    for (name, value) in fields.into_iter().flatten() {
        set_field(&mut packet, name.cast::<PyString>()?.to_str()?, &value)?;
    }
    if !packet.is_data() && packet.payload.length_bytes() > 0 {
        return Err(PyValueError::new_err("this opcode carries no payload"));
    }
    Ok(encoded(py, &Frame::Roce(Box::new(packet)), source_mac, destination_mac))
}

/// Encode a priority-based pause frame; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (*, source_mac, class_enable, quanta))]
pub fn encode_pause(
    py: Python<'_>,
    source_mac: Mac,
    class_enable: u8,
    quanta: [u16; 8],
) -> Bound<'_, PyBytes> {
    let frame = Frame::Pause(Box::new(PauseFrame { source_mac, class_enable, quanta }));
    encoded(py, &frame, source_mac, source_mac)
}

/// Decode and verify an Ethernet frame; see `_native.pyi`.
#[pyfunction]
pub fn decode_roce<'py>(py: Python<'py>, frame: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let frame = roce::decode(frame).map_err(|error| PyValueError::new_err(error.to_string()))?;
    match frame {
        Frame::Roce(packet) => packet_into_dict(py, &packet),
        Frame::Pause(pause) => {
            let fields = PyDict::new(py);
            fields.set_item("source_mac", PyBytes::new(py, &pause.source_mac))?;
            fields.set_item("class_enable", pause.class_enable)?;
            fields.set_item("quanta", pause.quanta)?;
            Ok(fields)
        }
    }
}

fn packet_into_dict<'py>(py: Python<'py>, packet: &Packet) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("source_address", Ipv4Addr::from(packet.source_address).to_string())?;
    fields
        .set_item("destination_address", Ipv4Addr::from(packet.destination_address).to_string())?;
    fields.set_item("source_port", packet.source_port)?;
    fields.set_item("dscp", packet.dscp)?;
    fields.set_item("ecn", packet.ecn as u8)?;
    fields.set_item("ttl", packet.ttl)?;
    fields.set_item("identification", packet.identification)?;
    transport_into_dict(&fields, packet)?;
    fields.set_item("payload", payload_bytes(py, &packet.payload))?;
    Ok(fields)
}

/// The transport headers that the packet has.
fn transport_into_dict(fields: &Bound<'_, PyDict>, packet: &Packet) -> PyResult<()> {
    let bth = &packet.bth;
    fields.set_item("opcode", bth.opcode.0)?;
    fields.set_item("solicited", bth.solicited)?;
    fields.set_item("migration_request", bth.migration_request)?;
    fields.set_item("fecn", bth.fecn)?;
    fields.set_item("becn", bth.becn)?;
    fields.set_item("partition_key", bth.partition_key)?;
    fields.set_item("destination_qp", bth.destination_qp)?;
    fields.set_item("ack_request", bth.ack_request)?;
    fields.set_item("psn", bth.psn)?;
    let row = bth.opcode.row();
    if row.is_some_and(|row| row.has_reth) {
        fields.set_item("virtual_address", packet.reth.virtual_address)?;
        fields.set_item("remote_key", packet.reth.remote_key)?;
        fields.set_item("length_bytes", packet.reth.length_bytes)?;
    }
    if row.is_some_and(|row| row.has_immediate) {
        fields.set_item("immediate", packet.immediate)?;
    }
    if row.is_some_and(|row| row.has_aeth) {
        fields.set_item("syndrome", packet.aeth.syndrome)?;
        fields.set_item("msn", packet.aeth.msn)?;
    }
    Ok(())
}

fn payload_bytes<'py>(py: Python<'py>, payload: &Payload) -> Bound<'py, PyBytes> {
    match payload {
        Payload::Pattern { offset_bytes, length_bytes } => {
            PyBytes::new(py, roce::pattern::slice(*offset_bytes, *length_bytes))
        }
        Payload::Bytes(bytes) | Payload::Forwarded { bytes, .. } => PyBytes::new(py, bytes),
    }
}

/// ICRC of an IP packet given without it; see `_native.pyi`.
#[pyfunction]
pub fn icrc(ip_packet: &[u8]) -> PyResult<u32> {
    roce::icrc(ip_packet).ok_or_else(|| PyValueError::new_err("not a RoCEv2 packet over IP"))
}

/// Names of the opcodes; see `_native.pyi`.
#[pyfunction]
pub fn roce_opcodes(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let names = PyDict::new(py);
    for row in &OPCODES {
        names.set_item(row.opcode.0, row.name)?;
    }
    Ok(names)
}
