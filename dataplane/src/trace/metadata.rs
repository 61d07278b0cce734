//! The `GlobalMetadata` message: a version and free attributes.

use super::attribute;
use super::error::Fault;
use super::frames::Frame;
use super::wire::{Fields, Malformed, Taken, Value};

/// A metadata attribute's value.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataValue {
    /// Any integer or Boolean alternative.
    Integer(i64),
    /// Double or float.
    Float(f64),
    /// String or bytes.
    Text(String),
}

/// Attributes in the order of the file; `version` is among them when it is given.
pub(super) type Metadata = Vec<(String, MetadataValue)>;

/// Decode a v0.0.4 `GlobalMetadata`.
pub(super) fn decode(frame: &Frame<'_>) -> Result<Metadata, Fault> {
    let fields = || -> Taken<Metadata> {
        let mut metadata = Metadata::new();
        for field in Fields(frame.bytes) {
            match field? {
                (1, Value::Bytes(version)) => {
                    metadata.push(("version".to_owned(), text(version)));
                }
                (2, Value::Bytes(message)) => metadata.extend(attribute_of(message)?),
                _ => {}
            }
        }
        Ok(metadata)
    };
    fields().map_err(|Malformed(what)| Fault::malformed(frame.offset, what))
}

/// Name and value of an `AttributeProto`; None when it has no value, or a list.
fn attribute_of(message: &[u8]) -> Taken<Option<(String, MetadataValue)>> {
    let mut name = String::new();
    let mut value = None;
    for field in Fields(message) {
        match field? {
            (1, Value::Bytes(bytes)) => name = String::from_utf8_lossy(bytes).into_owned(),
            (3, Value::Fixed64(bits)) => value = Some(MetadataValue::Float(f64::from_bits(bits))),
            (5, Value::Fixed32(bits)) => {
                value = Some(MetadataValue::Float(f64::from(f32::from_bits(bits))));
            }
            (29 | 31, Value::Bytes(bytes)) => value = Some(text(bytes)),
            (field, item) => {
                if let Some(number) = attribute::number(field, item)? {
                    value = Some(MetadataValue::Integer(number));
                }
            }
        }
    }
    Ok(value.map(|value| (name, value)))
}

fn text(bytes: &[u8]) -> MetadataValue {
    MetadataValue::Text(String::from_utf8_lossy(bytes).into_owned())
}
