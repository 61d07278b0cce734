//! Chakra execution traces into columns.
//!
//! A trace file is a stream of length-prefixed protobuf messages: a metadata message (which some
//! writers leave out), then one message for each node. The file is read in bounded windows and
//! decoded straight into columns, one row for each node in the order of the file; no message
//! object is ever built. Structure decides what a file is, never its name or version string; three
//! older dialects and three JSON forms are decoded into the same columns.
//!
//! Everything here is input from strangers: every length is checked, nothing is allocated because
//! a file announces it, and a wrong file gives a [`TraceError`] with a byte offset.
//!
//! What the columns mean across ranks is decided elsewhere; [`graph`] has the graph algorithms
//! that must be native to be fast.

mod attribute;
mod columns;
mod error;
mod frames;
pub mod graph;
mod json;
mod metadata;
mod node;
mod older;
mod sniff;
mod source;
mod wire;

pub use columns::Columns;
pub use error::TraceError;
pub use metadata::MetadataValue;

use error::{Fault, Stop};
use frames::Frames;
use sniff::{Dialect, Form};
use std::io::{Cursor, Read};
use std::path::Path;

/// Read a whole trace file, plain or gzip.
///
/// `limit_bytes` bounds the decompressed size; a larger file is an error.
pub fn read(path: &Path, limit_bytes: Option<u64>) -> Result<Columns, TraceError> {
    let limit_bytes = limit_bytes.unwrap_or(u64::MAX);
    decode(|| source::open(path), limit_bytes)
        .map_err(|fault| fault.in_file(&path.display().to_string()))
}

/// Read a trace that is in memory, plain or gzip; errors call it `name`.
///
/// `limit_bytes` bounds the decompressed size; a larger trace is an error.
pub fn read_bytes(
    bytes: &[u8],
    name: &str,
    limit_bytes: Option<u64>,
) -> Result<Columns, TraceError> {
    decode(|| source::decompressed(Cursor::new(bytes)), limit_bytes.unwrap_or(u64::MAX))
        .map_err(|fault| fault.in_file(name))
}

/// Decode the (decompressed) bytes that `open` gives; they may be read twice.
fn decode<R: Read>(
    open: impl Fn() -> Result<R, Fault>,
    limit_bytes: u64,
) -> Result<Columns, Fault> {
    let mut frames = Frames::new(open()?, limit_bytes);
    if let Form::Json(dialect) = sniff::form(frames.peek(sniff::PEEK_BYTES)?)? {
        return json::decode(open()?, dialect, limit_bytes);
    }
    match decode_messages(frames, None) {
        Err(Stop::Older(dialect)) => {
            match decode_messages(Frames::new(open()?, limit_bytes), Some(dialect)) {
                Err(Stop::Older(_)) => unreachable!("only v0.0.4 nodes are taken for older ones"),
                Err(Stop::Fault(fault)) => Err(fault),
                Ok(columns) => Ok(columns),
            }
        }
        Err(Stop::Fault(fault)) => Err(fault),
        Ok(columns) => Ok(columns),
    }
}

/// Decode messages in a dialect, or in the one that the first message shows.
///
/// The first nodes of an older dialect may look like v0.0.4; then a later one tells.
fn decode_messages(mut frames: Frames<impl Read>, known: Option<Dialect>) -> Result<Columns, Stop> {
    let mut columns = Columns::default();
    let mut first = true;
    while let Some(frame) = frames.next()? {
        if std::mem::take(&mut first) {
            columns.dialect = known.map_or_else(|| sniff::dialect(&frame), Ok)?;
            if columns.dialect.has_metadata() {
                if columns.dialect == Dialect::V4 {
                    columns.metadata = metadata::decode(&frame)?;
                }
                continue;
            }
        }
        match columns.dialect {
            Dialect::V4 | Dialect::V4WithoutMetadata => node::decode(&frame, &mut columns)?,
            older => older::decode(&frame, older, &mut columns)?,
        }
    }
    columns.shrink();
    Ok(columns)
}

#[cfg(test)]
mod tests;
