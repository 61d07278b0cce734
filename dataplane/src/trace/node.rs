//! One v0.0.4 `Node` message into one row.

use super::attribute::Attributes;
use super::columns::Columns;
use super::error::{Fault, Stop};
use super::frames::Frame;
use super::sniff;
use super::wire::{self, Fields, Malformed, Taken, Value};

/// Part of the name of the node whose inputs list the process groups. Source: PyTorch's
/// execution trace observer.
const PROCESS_GROUP_INIT: &[u8] = b"process_group:init";

/// The fields of a node that are not repeated, in the numbering of v0.0.4.
#[derive(Default)]
pub(super) struct Node<'a> {
    pub id: u64,
    pub node_type: u64,
    pub name: &'a [u8],
    pub start_us: u64,
    pub duration_us: u64,
    /// `IOInfo` message.
    pub inputs: &'a [u8],
    pub attributes: Attributes<'a>,
    /// A field that v0.0.4 does not have was seen.
    pub has_unknown_field: bool,
}

/// Append the node in `frame` to `columns`; on error they are left with half a row.
pub(super) fn decode(frame: &Frame<'_>, columns: &mut Columns) -> Result<(), Stop> {
    let mut node = Node::default();
    let result = take_fields(frame.bytes, &mut node, columns);
    if result.is_err() || node.has_unknown_field {
        if let Some(older) = sniff::older_dialect(frame) {
            return Err(Stop::Older(older));
        }
    }
    result.map_err(|Malformed(what)| Fault::malformed(frame.offset, what))?;
    push(frame.offset, &node, columns);
    Ok(())
}

#[inline]
fn take_fields<'a>(message: &'a [u8], node: &mut Node<'a>, columns: &mut Columns) -> Taken<()> {
    let mut input = message;
    while !input.is_empty() {
        // Tags of the fields that every node has are one byte: number << 3 | wire type.
        let (field, wire_type) = wire::tag(&mut input)?;
        match (field, wire_type) {
            (10, 2) => node.attributes.take(wire::delimited(&mut input)?)?,
            (1, 0) => node.id = wire::varint(&mut input)?,
            (2, 2) => node.name = wire::delimited(&mut input)?,
            (3, 0) => node.node_type = wire::varint(&mut input)?,
            (4, 2) => take_packed(wire::delimited(&mut input)?, &mut columns.ctrl_deps)?,
            (5, 2) => take_packed(wire::delimited(&mut input)?, &mut columns.data_deps)?,
            (4, 0) => columns.ctrl_deps.push(wire::varint(&mut input)?),
            (5, 0) => columns.data_deps.push(wire::varint(&mut input)?),
            (6, 0) => node.start_us = wire::varint(&mut input)?,
            (7, 0) => node.duration_us = wire::varint(&mut input)?,
            (8, 2) => node.inputs = wire::delimited(&mut input)?,
            (9, 2) => drop(wire::delimited(&mut input)?),
            _ => {
                node.has_unknown_field = true;
                wire::value(&mut input, wire_type)?;
            }
        }
    }
    Ok(())
}

/// Take the items of a packed repeated field.
#[inline]
pub(super) fn take_packed(mut input: &[u8], items: &mut Vec<u64>) -> Taken<()> {
    while !input.is_empty() {
        items.push(wire::varint(&mut input)?);
    }
    Ok(())
}

/// Append a node whose dependencies are in `columns` already.
#[inline]
pub(super) fn push(offset: u64, node: &Node<'_>, columns: &mut Columns) {
    columns.id.push(node.id);
    columns.node_type.push(u8::try_from(node.node_type).unwrap_or(u8::MAX));
    columns.name_bytes.extend_from_slice(node.name);
    columns.name_offsets.push(columns.name_bytes.len() as u64);
    columns.data_dep_offsets.push(columns.data_deps.len() as u64);
    columns.ctrl_dep_offsets.push(columns.ctrl_deps.len() as u64);
    columns.duration_us.push(node.duration_us);
    columns.start_us.push(node.start_us);
    columns.frame_offsets.push(offset);
    if node.attributes.in_some_dimensions {
        columns.rows_in_some_dimensions.push(columns.id.len() as u64 - 1);
    }
    columns.push_attributes(&node.attributes);
    if node.node_type <= 4 && !node.inputs.is_empty() {
        keep_process_groups(node, columns);
    }
}

/// Keep the inputs of the node that lists the process groups; the first such node counts.
#[inline]
fn keep_process_groups(node: &Node<'_>, columns: &mut Columns) {
    if columns.process_groups_json.is_none() && names_process_groups(node.name) {
        columns.process_groups_json = input_values(node.inputs);
    }
}

/// Whether a node's name says that its inputs list the process groups.
#[inline]
pub(super) fn names_process_groups(name: &[u8]) -> bool {
    // All spellings seen are "## process_group:init ##"; few names begin with '#' or 'p'.
    matches!(name.first(), Some(b'#' | b'p' | b' '))
        && name.windows(PROCESS_GROUP_INIT.len()).any(|part| part == PROCESS_GROUP_INIT)
}

/// `IOInfo.values`.
fn input_values(message: &[u8]) -> Option<String> {
    Fields(message).find_map(|field| match field {
        Ok((1, Value::Bytes(text))) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    })
}
