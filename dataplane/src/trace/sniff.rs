//! What a file is, found by its structure.
//!
//! Four wire dialects and several JSON forms go by the same names. v0.0.4 (and 1.0.0, the same
//! wire schema) is decoded, with or without its metadata message; the others are told apart so
//! that the message can say what the file is.

use super::error::Fault;
use super::frames::Frame;
use super::wire::{Fields, Value};
use std::fmt;

/// Bytes that [`refuse_other_forms`] wants to see.
pub(super) const PEEK_BYTES: usize = 4096;

/// A wire dialect that is decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// v0.0.4 with its metadata message.
    #[default]
    V4,
    /// v0.0.4 nodes from the first message on.
    V4WithoutMetadata,
}

impl Dialect {
    pub(super) fn has_metadata(self) -> bool {
        self == Self::V4
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::V4 => "v0.0.4",
            Self::V4WithoutMetadata => "v0.0.4 without metadata",
        })
    }
}

/// What to do about a trace in a form that is not read.
const CONVERT: &str = "convert it to a Chakra v0.0.4 protobuf trace";

/// Refuse files that are no stream of messages, by their first bytes.
pub(super) fn refuse_other_forms(start: &[u8]) -> Result<(), Fault> {
    let refuse = |what: &str, remedy: &str| Err(Fault::new(0, what, remedy));
    if start.is_empty() {
        return refuse("the file is empty", "give a Chakra trace");
    }
    if start.starts_with(b"PK\x03\x04") || start.get(257..262) == Some(b"ustar") {
        return refuse("the file is an archive", "unpack it and name the traces in it");
    }
    match json_form(start) {
        None => Ok(()),
        Some(form) => refuse(&format!("the file is {form}"), CONVERT),
    }
}

/// Which JSON form the file is, if it is JSON.
fn json_form(start: &[u8]) -> Option<&'static str> {
    let mut significant = start.iter().filter(|byte| !byte.is_ascii_whitespace());
    let (first, second) = (significant.next()?, significant.next()?);
    if !matches!((first, second), (b'{', b'"' | b'}') | (b'[', b'{' | b'"' | b']')) {
        return None;
    }
    let holds = |key: &str| start.windows(key.len()).any(|part| part == key.as_bytes());
    let form = if holds("\"workload_graph\"") {
        "JSON of the C++ feeder (workload_graph)"
    } else if holds("\"traceEvents\"") || holds("\"deviceProperties\"") {
        "a Kineto (PyTorch profiler) trace"
    } else if holds("\"node_type\"") {
        "JSON of the STAGE generator (nodes, node_type)"
    } else if holds("\"schema\": \"") && holds("\"nodes\"") {
        "a PyTorch host execution trace"
    } else if holds("\"version\"") || holds("\"attr\"") || holds("\"id\"") {
        "JSON of chakra_jsonizer"
    } else {
        "JSON, but no trace in a known form"
    };
    Some(form)
}

/// Dialect of a file by its first message: metadata has no field above 2 and no varint field 1.
pub(super) fn dialect(first: &Frame<'_>) -> Result<Dialect, Fault> {
    refuse_older_dialects(first)?;
    for field in Fields(first.bytes) {
        match field {
            Ok((1, Value::Bytes(version))) if is_typed_attribute(version) => {
                return Err(older(first, "v0.0.3"));
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

/// Refuse a node that only an older dialect can have written.
pub(super) fn refuse_older_dialects(frame: &Frame<'_>) -> Result<(), Fault> {
    for field in Fields(frame.bytes) {
        match field {
            Ok((8..=20, Value::Varint(_))) => return Err(older(frame, "v0.0.1")),
            Ok((11, Value::Bytes(message))) if is_typed_attribute(message) => {
                return Err(older(frame, "v0.0.2 or v0.0.3"));
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    Ok(())
}

fn older(frame: &Frame<'_>, dialect: &str) -> Fault {
    Fault::new(frame.offset, format!("the trace is written in Chakra {dialect}"), CONVERT)
}

/// Whether `message` is an attribute of v0.0.2 or v0.0.3: a name, then its type as a number.
fn is_typed_attribute(message: &[u8]) -> bool {
    let mut fields = Fields(message);
    matches!(fields.next(), Some(Ok((1, Value::Bytes(_)))))
        && matches!(fields.next(), Some(Ok((2, Value::Varint(_)))))
}
