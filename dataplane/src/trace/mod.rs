//! Chakra execution traces into columns.
//!
//! A trace file is a stream of length-prefixed protobuf messages: a metadata message (which some
//! writers leave out), then one message for each node. The file is read in bounded windows and
//! decoded straight into columns, one row for each node in the order of the file; no message
//! object is ever built. Structure decides what a file is, never its name or version string.
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
mod metadata;
mod node;
mod sniff;
mod source;
mod wire;

pub use columns::Columns;
pub use error::TraceError;
pub use metadata::MetadataValue;

use frames::Frames;
use std::io::Read;
use std::path::Path;

/// Read a whole trace file, plain or gzip.
///
/// `limit_bytes` bounds the decompressed size; a larger file is an error.
pub fn read(path: &Path, limit_bytes: Option<u64>) -> Result<Columns, TraceError> {
    let name = path.display().to_string();
    let input = source::open(path).map_err(|problem| problem.in_file(&name))?;
    decode(input, limit_bytes.unwrap_or(u64::MAX)).map_err(|problem| problem.in_file(&name))
}

/// Decode the (decompressed) bytes of one trace.
fn decode(input: impl Read, limit_bytes: u64) -> Result<Columns, error::Fault> {
    let mut frames = Frames::new(input, limit_bytes);
    sniff::refuse_other_forms(frames.peek(sniff::PEEK_BYTES)?)?;
    let mut columns = Columns::default();
    let mut first = true;
    while let Some(frame) = frames.next()? {
        if std::mem::take(&mut first) {
            columns.dialect = sniff::dialect(&frame)?;
            if columns.dialect.has_metadata() {
                columns.metadata = metadata::decode(&frame)?;
                continue;
            }
        }
        node::decode(&frame, &mut columns)?;
    }
    columns.shrink();
    Ok(columns)
}

#[cfg(test)]
mod tests;
