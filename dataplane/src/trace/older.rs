//! Nodes of v0.0.1, v0.0.2 and v0.0.3 into rows with the numbers of v0.0.4.
//!
//! Source: mlcommons/chakra `eg_def.proto` and `et_def.proto` at ec3832c (v0.0.1), 2719463
//! (v0.0.2), 9d917e3 and 7bab792 (v0.0.3): field numbers and enumerations.

use super::attribute::Attributes;
use super::columns::Columns;
use super::error::{Fault, Stop};
use super::frames::Frame;
use super::node::{self, Node};
use super::sniff::Dialect;
use super::wire::{Fields, Malformed, Taken, Value};

/// Ticks of `simulated_run_time` in a microsecond: v0.0.1 counts simulated nanoseconds.
const TICKS_PER_US: u64 = 1000;

/// Collective types of v0.0.2 and v0.0.3 in v0.0.4's numbers: all-reduce, all-to-all, all-gather,
/// reduce-scatter, broadcast.
const COLLECTIVE_TYPES: [i8; 5] = [0, 6, 2, 7, 5];

/// Append the node in `frame`, written in `dialect`.
pub(super) fn decode(
    frame: &Frame<'_>,
    dialect: Dialect,
    columns: &mut Columns,
) -> Result<(), Stop> {
    let mut node = Node::default();
    let result = match dialect {
        Dialect::V1 => take_flat_node(frame.bytes, &mut node, columns),
        _ => take_node(frame.bytes, dialect, &mut node, columns),
    };
    result.map_err(|Malformed(what)| Fault::malformed(frame.offset, what))?;
    node::push(frame.offset, &node, columns);
    Ok(())
}

/// A node type of v0.0.1 or v0.0.2, which have no metadata nodes.
fn with_metadata_type(number: u64) -> u64 {
    number.saturating_add(u64::from(number > 0))
}

/// v0.0.1: attributes are fields 5 to 20 of the node.
fn take_flat_node<'a>(message: &'a [u8], node: &mut Node<'a>, columns: &mut Columns) -> Taken<()> {
    let mut communicator = None;
    for field in Fields(message) {
        match field? {
            (1, Value::Varint(id)) => node.id = id,
            (2, Value::Bytes(name)) => node.name = name,
            (3, Value::Varint(number)) => node.node_type = with_metadata_type(number),
            (4, Value::Varint(parent)) => columns.data_deps.push(parent),
            (4, Value::Bytes(parents)) => node::take_packed(parents, &mut columns.data_deps)?,
            (7, Value::Varint(ticks)) => {
                node.duration_us = ticks.saturating_add(TICKS_PER_US / 2) / TICKS_PER_US;
            }
            (13, Value::Varint(number)) => {
                let index = usize::try_from(number.wrapping_sub(1)).unwrap_or(usize::MAX);
                node.attributes.comm_type = collective_type(index);
            }
            (14, Value::Varint(involved)) => node.attributes.in_some_dimensions |= involved == 0,
            (15, Value::Varint(number)) => communicator = Some(number),
            (field, Value::Varint(number)) => put_flat(&mut node.attributes, field, number),
            _ => {}
        }
    }
    if let Some(number) = communicator {
        node.attributes.put_number(b"comm_group", clamp(number));
    }
    Ok(())
}

/// A scalar field of v0.0.1 that is an attribute since.
fn put_flat(attributes: &mut Attributes<'_>, field: u32, number: u64) {
    let name: &[u8] = match field {
        6 => b"tensor_size",
        12 => b"num_ops",
        16 => b"comm_src",
        17 => b"comm_dst",
        18 => b"comm_size",
        19 => b"comm_tag",
        _ => return,
    };
    attributes.put_number(name, clamp(number));
}

/// v0.0.2 and v0.0.3: attributes are messages in field 11.
fn take_node<'a>(
    message: &'a [u8],
    dialect: Dialect,
    node: &mut Node<'a>,
    columns: &mut Columns,
) -> Taken<()> {
    for field in Fields(message) {
        match field? {
            (1, Value::Varint(id)) => node.id = id,
            (2, Value::Bytes(name)) => node.name = name,
            (3, Value::Varint(number)) if dialect == Dialect::V2 => {
                node.node_type = with_metadata_type(number);
            }
            (3, Value::Varint(number)) => node.node_type = number,
            (4, Value::Varint(parent)) => columns.data_deps.push(parent),
            (4, Value::Bytes(parents)) => node::take_packed(parents, &mut columns.data_deps)?,
            (11, Value::Bytes(attribute)) => take_typed_attribute(attribute, node)?,
            _ => {}
        }
    }
    Ok(())
}

/// An attribute with a name, a type and a value; lists are passed over.
fn take_typed_attribute<'a>(message: &'a [u8], node: &mut Node<'a>) -> Taken<()> {
    let mut name: &[u8] = &[];
    for field in Fields(message) {
        match field? {
            (1, Value::Bytes(text)) => name = text,
            (4.., Value::Varint(number)) => put_typed(node, name, number as i64),
            (4.., Value::Fixed32(bits)) => put_typed(node, name, f32::from_bits(bits) as i64),
            (4.., Value::Bytes(text)) => {
                node.attributes.put_text(name, String::from_utf8_lossy(text));
            }
            _ => {}
        }
    }
    Ok(())
}

fn put_typed(node: &mut Node<'_>, name: &[u8], number: i64) {
    match name {
        b"runtime" => node.duration_us = u64::try_from(number).unwrap_or(0),
        b"is_host_op" => node.attributes.put_number(b"is_cpu_op", number),
        b"comm_type" => {
            let index = usize::try_from(number).unwrap_or(usize::MAX);
            node.attributes.comm_type = collective_type(index);
        }
        // Items of a list of Booleans, each a field of its own.
        b"involved_dim" => node.attributes.in_some_dimensions |= number == 0,
        _ => node.attributes.put_number(name, number),
    }
}

/// v0.0.4's number, or the largest for a type that there never was.
fn collective_type(index: usize) -> i8 {
    COLLECTIVE_TYPES.get(index).copied().unwrap_or(i8::MAX)
}

fn clamp(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
