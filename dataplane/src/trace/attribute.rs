//! The attributes of a v0.0.4 node that become columns.
//!
//! Writers disagree on which alternative of `AttributeProto.value` holds a number (`comm_size` is
//! int64 here, uint64 there; `is_cpu_op` bool or int32), so any numeric one is taken.

use super::wire::{self, Fields, Malformed, Taken, Value};
use std::borrow::Cow;

/// Field of `AttributeProto` that holds its name.
const NAME: u32 = 1;

/// What one node's attributes say; -1 where they say nothing.
pub(super) struct Attributes<'a> {
    pub is_cpu_op: i8,
    pub stream: i64,
    pub tid: i64,
    pub ts_us: i64,
    pub comm_type: i8,
    pub comm_size: i64,
    pub comm_src: i64,
    pub comm_dst: i64,
    pub comm_tag: i64,
    pub num_ops: i64,
    pub tensor_size: i64,
    pub group: Option<Cow<'a, str>>,
    /// `involved_dim` leaves out a dimension of the topology.
    pub in_some_dimensions: bool,
}

impl Default for Attributes<'_> {
    #[inline]
    fn default() -> Self {
        Self {
            is_cpu_op: -1,
            stream: -1,
            tid: -1,
            ts_us: -1,
            comm_type: -1,
            comm_size: -1,
            comm_src: -1,
            comm_dst: -1,
            comm_tag: -1,
            num_ops: -1,
            tensor_size: -1,
            group: None,
            in_some_dimensions: false,
        }
    }
}

/// An attribute that becomes a column.
#[derive(Clone, Copy)]
enum Known {
    IsCpuOp,
    Stream,
    Tid,
    Timestamp,
    CommType,
    CommSize,
    CommSource,
    CommDestination,
    CommTag,
    Group,
    NumOps,
    TensorSize,
    InvolvedDimensions,
}

impl Known {
    /// The attribute with this name; the length alone rules out most others.
    #[inline]
    fn named(name: &[u8]) -> Option<Self> {
        let known = match name.len() {
            2 if name == b"ts" => Self::Timestamp,
            3 if name == b"tid" => Self::Tid,
            6 if name == b"stream" => Self::Stream,
            7 if name == b"pg_name" => Self::Group,
            7 if name == b"num_ops" => Self::NumOps,
            8 if name == b"comm_src" => Self::CommSource,
            8 if name == b"comm_dst" => Self::CommDestination,
            8 if name == b"comm_tag" => Self::CommTag,
            9 if name == b"is_cpu_op" => Self::IsCpuOp,
            9 if name == b"comm_size" => Self::CommSize,
            9 if name == b"comm_type" => Self::CommType,
            10 if name == b"comm_group" => Self::Group,
            11 if name == b"tensor_size" => Self::TensorSize,
            12 if name == b"involved_dim" => Self::InvolvedDimensions,
            _ => return None,
        };
        Some(known)
    }
}

impl<'a> Attributes<'a> {
    /// Take over one `AttributeProto`, when it is one that becomes a column.
    #[inline]
    pub fn take(&mut self, message: &'a [u8]) -> Taken<()> {
        let mut input = message;
        // Every writer puts the name first; then an unknown attribute costs nothing more.
        if let [0x0a, rest @ ..] = input {
            input = rest;
            return match Known::named(wire::delimited(&mut input)?) {
                None => Ok(()),
                Some(known) => self.take_value(known, input),
            };
        }
        self.take_unordered(message)
    }

    /// An attribute whose name does not stand first.
    #[cold]
    fn take_unordered(&mut self, message: &'a [u8]) -> Taken<()> {
        for field in Fields(message) {
            if let (NAME, Value::Bytes(name)) = field? {
                return match Known::named(name) {
                    None => Ok(()),
                    Some(known) => self.take_value(known, message),
                };
            }
        }
        Ok(())
    }

    fn take_value(&mut self, known: Known, fields: &'a [u8]) -> Taken<()> {
        for field in Fields(fields) {
            let (field, value) = field?;
            match known {
                Known::Group => {
                    if let Some(name) = text(field, value)? {
                        self.group = Some(name);
                    }
                }
                Known::InvolvedDimensions => self.in_some_dimensions |= has_false(field, value)?,
                _ => {
                    if let Some(number) = number(field, value)? {
                        self.set(known, number);
                    }
                }
            }
        }
        Ok(())
    }

    fn set(&mut self, known: Known, number: i64) {
        match known {
            Known::IsCpuOp => self.is_cpu_op = i8::from(number != 0),
            Known::Stream => self.stream = number,
            Known::Tid => self.tid = number,
            Known::Timestamp => self.ts_us = number,
            Known::CommType => self.comm_type = i8::try_from(number).unwrap_or(i8::MAX),
            Known::CommSize => self.comm_size = number,
            Known::CommSource => self.comm_src = number,
            Known::CommDestination => self.comm_dst = number,
            Known::CommTag => self.comm_tag = number,
            Known::NumOps => self.num_ops = number,
            Known::TensorSize => self.tensor_size = number,
            Known::Group => self.group = Some(Cow::Owned(number.to_string())),
            Known::InvolvedDimensions => self.in_some_dimensions |= number == 0,
        }
    }

    /// Take over a number that is not in a v0.0.4 attribute, by its attribute's name.
    pub fn put_number(&mut self, name: &[u8], number: i64) {
        if let Some(known) = Known::named(name) {
            self.set(known, number);
        }
    }

    /// Take over a text that is not in a v0.0.4 attribute, by its attribute's name.
    pub fn put_text(&mut self, name: &[u8], text: Cow<'a, str>) {
        if matches!(Known::named(name), Some(Known::Group)) {
            self.group = Some(text);
        }
    }
}

/// Whether a field of `AttributeProto` is a list of Booleans with a false one.
fn has_false(field: u32, value: Value<'_>) -> Taken<bool> {
    let (28, Value::Bytes(list)) = (field, value) else {
        return Ok(false);
    };
    for item in Fields(list) {
        match item? {
            (1, Value::Bytes(packed)) if packed.contains(&0) => return Ok(true),
            (1, Value::Varint(0)) => return Ok(true),
            _ => {}
        }
    }
    Ok(false)
}

/// The number that a field of `AttributeProto` holds, whichever alternative it is; None for a
/// field that holds none. Numbers beyond an `i64` become its largest value.
#[inline]
pub(super) fn number(field: u32, value: Value<'_>) -> Taken<Option<i64>> {
    let number = match (field, value) {
        (3, Value::Fixed64(bits)) => f64::from_bits(bits) as i64,
        (5, Value::Fixed32(bits)) => f32::from_bits(bits) as i64,
        (7 | 9 | 27, Value::Varint(bits)) => bits as i64,
        (11 | 13, Value::Varint(bits)) => i64::try_from(bits).unwrap_or(i64::MAX),
        (15 | 17, Value::Varint(bits)) => (bits >> 1) as i64 ^ -((bits & 1) as i64),
        (19, Value::Fixed32(bits)) => i64::from(bits),
        (21, Value::Fixed64(bits)) => i64::try_from(bits).unwrap_or(i64::MAX),
        (23, Value::Fixed32(bits)) => i64::from(bits as i32),
        (25, Value::Fixed64(bits)) => bits as i64,
        (3..=28, Value::Bytes(_)) if field % 2 == 0 => return Ok(None), // a list
        (3..=28, _) => return Err(Malformed("an attribute's value has the wrong wire type")),
        _ => return Ok(None),
    };
    Ok(Some(number))
}

/// The text of a field of `AttributeProto`: a string, bytes, or a number in decimal.
fn text<'a>(field: u32, value: Value<'a>) -> Taken<Option<Cow<'a, str>>> {
    match (field, value) {
        (29 | 31, Value::Bytes(bytes)) => Ok(Some(String::from_utf8_lossy(bytes))),
        _ => Ok(number(field, value)?.map(|number| Cow::Owned(number.to_string()))),
    }
}
