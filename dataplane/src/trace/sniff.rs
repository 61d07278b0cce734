//! What a file is, found by its structure.
//!
//! Four wire dialects and several JSON forms go by the same names; field numbers and enumeration
//! values moved between them, so what a file is must be known before a value of it is believed.

use super::error::Fault;
use super::frames::Frame;
use super::wire::{Fields, Value};
use std::fmt;

/// Bytes that [`form`] wants to see.
pub(super) const PEEK_BYTES: usize = 4096;

/// What a trace is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// v0.0.4 (or 1.0.0, the same wire schema) with its metadata message.
    #[default]
    V4,
    /// v0.0.4 nodes from the first message on.
    V4WithoutMetadata,
    /// v0.0.1: every attribute is a field of the node.
    V1,
    /// v0.0.2: attributes with a type, the first numbering of node types.
    V2,
    /// v0.0.3: attributes with a type, the numbering of node types that still holds.
    V3,
    /// v0.0.3 with a metadata message.
    V3WithMetadata,
    /// JSON objects one after the other, as chakra_jsonizer writes them.
    JsonizerJson,
    /// One JSON document with a `workload_graph`, as the C++ feeder reads it.
    FeederJson,
    /// One JSON document with `nodes` that have a `node_type`, as the STAGE generator writes it.
    StageJson,
}

impl Dialect {
    pub(super) fn has_metadata(self) -> bool {
        matches!(self, Self::V4 | Self::V3WithMetadata)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::V4 => "v0.0.4",
            Self::V4WithoutMetadata => "v0.0.4 without metadata",
            Self::V1 => "v0.0.1",
            Self::V2 => "v0.0.2",
            Self::V3 => "v0.0.3 without metadata",
            Self::V3WithMetadata => "v0.0.3",
            Self::JsonizerJson => "JSON of chakra_jsonizer",
            Self::FeederJson => "JSON with workload_graph",
            Self::StageJson => "JSON of STAGE",
        })
    }
}

/// What the first bytes show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Messages with length prefixes.
    Messages,
    /// A JSON dialect.
    Json(Dialect),
}

/// What to do about a trace in a form that is not read.
const CONVERT: &str = "convert it to a Chakra trace, one for each rank";

/// Form of a file by its first bytes; files that cannot be a trace are refused.
pub(super) fn form(start: &[u8]) -> Result<Form, Fault> {
    let refuse = |what: &str, remedy: &str| Err(Fault::new(0, what, remedy));
    if start.is_empty() {
        return refuse("the file is empty", "give a Chakra trace");
    }
    if start.starts_with(b"PK\x03\x04") || start.get(257..262) == Some(b"ustar") {
        return refuse("the file is an archive", "unpack it and name the traces in it");
    }
    if !looks_like_json(start) {
        return Ok(Form::Messages);
    }
    let holds = |key: &str| start.windows(key.len()).any(|part| part == key.as_bytes());
    if holds("\"workload_graph\"") {
        Ok(Form::Json(Dialect::FeederJson))
    } else if holds("\"traceEvents\"") || holds("\"deviceProperties\"") {
        refuse("the file is a Kineto (PyTorch profiler) trace", CONVERT)
    } else if holds("\"node_type\"") {
        Ok(Form::Json(Dialect::StageJson))
    } else if holds("\"schema\"") && holds("\"nodes\"") {
        refuse("the file is a PyTorch host execution trace", CONVERT)
    } else if holds("\"version\"") || holds("\"attr\"") || holds("\"id\"") {
        Ok(Form::Json(Dialect::JsonizerJson))
    } else {
        refuse("the file is JSON, but no trace in a known form", CONVERT)
    }
}

fn looks_like_json(start: &[u8]) -> bool {
    let mut significant = start.iter().filter(|byte| !byte.is_ascii_whitespace());
    matches!(
        (significant.next(), significant.next()),
        (Some(b'{'), Some(b'"' | b'}')) | (Some(b'['), Some(b'{' | b'"' | b']'))
    )
}

/// Dialect of a file of messages by its first one: metadata has no field above 2 and no varint
/// field 1.
pub(super) fn dialect(first: &Frame<'_>) -> Result<Dialect, Fault> {
    if let Some(older) = older_dialect(first) {
        return Ok(older);
    }
    for field in Fields(first.bytes) {
        match field {
            Ok((1, Value::Bytes(attribute))) if is_typed_attribute(attribute) => {
                return Ok(Dialect::V3WithMetadata);
            }
            Ok((1, Value::Varint(_)) | (3.., _)) => return Ok(Dialect::V4WithoutMetadata),
            Ok(_) => {}
            Err(_) => {
                return Err(Fault::new(
                    first.offset,
                    "the first message is no protobuf message: this is no Chakra trace",
                    "give a Chakra trace (.et), plain or gzip",
                ));
            }
        }
    }
    Ok(Dialect::V4)
}

/// The dialect of a node that only an older dialect can have written.
pub(super) fn older_dialect(node: &Frame<'_>) -> Option<Dialect> {
    for field in Fields(node.bytes) {
        match field {
            Ok((8..=20, Value::Varint(_))) => return Some(Dialect::V1),
            Ok((11, Value::Bytes(message))) if is_typed_attribute(message) => {
                if let Some(dialect) = dialect_of_attribute(message) {
                    return Some(dialect);
                }
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    None
}

/// Whether `message` is an attribute of v0.0.2 or v0.0.3: a name, then its type as a number.
fn is_typed_attribute(message: &[u8]) -> bool {
    let mut fields = Fields(message);
    matches!(fields.next(), Some(Ok((1, Value::Bytes(_)))))
        && matches!(fields.next(), Some(Ok((2, Value::Varint(_)))))
}

/// v0.0.2 or v0.0.3, by the numbers of types that these two give to other kinds of value.
///
/// | type | v0.0.2 | v0.0.3 |
/// |---|---|---|
/// | 0 | float | bool |
/// | 1 | int | float |
/// | 2 | string | int (uint since August 2023) |
/// | 3 | floats | string (int) |
fn dialect_of_attribute(message: &[u8]) -> Option<Dialect> {
    let mut kind = None;
    for field in Fields(message) {
        match (kind, field.ok()?) {
            (None, (2, Value::Varint(number))) => kind = Some(number),
            (Some(0), (4.., Value::Fixed32(_)))
            | (Some(1), (4.., Value::Varint(_)))
            | (Some(2), (4.., Value::Bytes(_))) => return Some(Dialect::V2),
            (Some(0), (4.., Value::Varint(_)))
            | (Some(1), (4.., Value::Fixed32(_)))
            | (Some(2), (4.., Value::Varint(_)))
            | (Some(3), (4.., Value::Bytes(_) | Value::Varint(_)))
            | (Some(4), (4.., Value::Bytes(_))) => return Some(Dialect::V3),
            _ => {}
        }
    }
    None
}
