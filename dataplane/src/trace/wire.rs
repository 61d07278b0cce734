//! The protobuf wire format: varints, tags and skipping.
//!
//! Functions take bytes off the front of a slice. Source: protobuf.dev, "Encoding".

/// Bytes that are not what the wire format allows; the text says what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub &'static str);

/// Result of taking something off the front of a message.
pub(super) type Taken<T> = Result<T, Malformed>;

const CUT_SHORT: Malformed = Malformed("a field is cut short");
const LONG_VARINT: Malformed = Malformed("a varint is longer than ten bytes");

/// A field's value, not interpreted yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// Take a varint.
#[inline(always)]
pub(super) fn varint(input: &mut &[u8]) -> Taken<u64> {
    match *input {
        [byte, rest @ ..] if *byte < 0x80 => {
            *input = rest;
            Ok(u64::from(*byte))
        }
        _ => long_varint(input),
    }
}

/// Take a varint of more than one byte; bits beyond 64 are dropped, as protobuf does.
fn long_varint(input: &mut &[u8]) -> Taken<u64> {
    let mut value = 0u64;
    for (index, byte) in input.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if *byte < 0x80 {
            *input = &input[index + 1..];
            return Ok(value);
        }
    }
    Err(if input.len() < 10 { CUT_SHORT } else { LONG_VARINT })
}

/// Take `count` bytes.
#[inline(always)]
pub(super) fn bytes<'a>(input: &mut &'a [u8], count: u64) -> Taken<&'a [u8]> {
    if count > input.len() as u64 {
        return Err(CUT_SHORT);
    }
    let (taken, rest) = input.split_at(count as usize);
    *input = rest;
    Ok(taken)
}

/// Take the length and the bytes of a length-delimited field.
#[inline(always)]
pub(super) fn delimited<'a>(input: &mut &'a [u8]) -> Taken<&'a [u8]> {
    let count = varint(input)?;
    bytes(input, count)
}

/// Take a tag: field number and wire type.
#[inline(always)]
pub(super) fn tag(input: &mut &[u8]) -> Taken<(u32, u8)> {
    let tag = varint(input)?;
    let field = tag >> 3;
    if field == 0 || field > 0x1fff_ffff {
        return Err(Malformed("a field number is out of range"));
    }
    Ok((field as u32, (tag & 7) as u8))
}

/// Take the value that follows a tag with `wire_type`.
#[inline]
pub(super) fn value<'a>(input: &mut &'a [u8], wire_type: u8) -> Taken<Value<'a>> {
    match wire_type {
        0 => varint(input).map(Value::Varint),
        1 => fixed(input).map(|octets| Value::Fixed64(u64::from_le_bytes(octets))),
        2 => delimited(input).map(Value::Bytes),
        5 => fixed(input).map(|octets| Value::Fixed32(u32::from_le_bytes(octets))),
        3 | 4 => Err(Malformed("a group field, which no trace has")),
        _ => Err(Malformed("an unknown wire type")),
    }
}

fn fixed<const N: usize>(input: &mut &[u8]) -> Taken<[u8; N]> {
    let Some((octets, rest)) = input.split_first_chunk::<N>() else {
        return Err(CUT_SHORT);
    };
    *input = rest;
    Ok(*octets)
}

/// The fields of a message, one after the other; ends after the first malformed one.
pub(super) struct Fields<'a>(pub &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Taken<(u32, Value<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let input = &mut self.0;
        let field = tag(input).and_then(|(field, wire_type)| Ok((field, value(input, wire_type)?)));
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_varint_of_ten_bytes_is_a_negative_number() {
        let mut input: &[u8] = &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 7];
        assert_eq!(varint(&mut input), Ok(u64::MAX));
        assert_eq!(input, [7]);
    }

    #[test]
    fn an_endless_varint_and_a_cut_one_are_told_apart() {
        assert_eq!(varint(&mut &[0x80; 11][..]), Err(LONG_VARINT));
        assert_eq!(varint(&mut &[0x80; 3][..]), Err(CUT_SHORT));
    }

    #[test]
    fn a_field_that_announces_more_than_there_is_is_cut_short() {
        assert_eq!(Fields(&[0x0a, 5, 1, 2]).next(), Some(Err(CUT_SHORT)));
    }
}
