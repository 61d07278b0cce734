//! What can be wrong with a trace file.

use super::sniff::Dialect;
use thiserror::Error;

/// A trace file that cannot be read: where, what, and what would be right.
#[derive(Debug, Error)]
#[error("{file}: byte {offset}: {what}; {remedy}")]
pub struct TraceError {
    /// The file.
    pub file: String,
    /// Byte offset in the decompressed file.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub remedy: String,
}

/// A [`TraceError`] that does not know its file yet.
#[derive(Debug)]
pub(super) struct Fault {
    pub offset: u64,
    pub what: String,
    pub remedy: String,
}

/// Why decoding in one dialect ends early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The file is wrong.
    Fault(Fault),
    /// The file is written in an older dialect: decode it again in that one.
    Older(Dialect),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// What to do about a file that is damaged.
const COPY_AGAIN: &str = "copy or write the file again";
/// What to do about a file whose very beginning is wrong.
const NO_TRACE: &str = "give a Chakra trace (.et); if it is one, copy or write the file again";

impl Fault {
    pub fn new(offset: u64, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { offset, what: what.into(), remedy: remedy.into() }
    }

    /// A message whose bytes are no message.
    pub fn malformed(offset: u64, what: &str) -> Self {
        Self::new(offset, format!("the message is damaged: {what}"), COPY_AGAIN)
    }

    /// A file that ends inside a message.
    pub fn truncated(offset: u64, announced_bytes: u64, present_bytes: u64) -> Self {
        let what = format!(
            "the file is truncated: the message that begins here announces {announced_bytes} bytes, \
             {present_bytes} are there"
        );
        Self::new(offset, what, if offset == 0 { NO_TRACE } else { COPY_AGAIN })
    }

    pub fn io(offset: u64, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                Self::new(offset, "the gzip data is truncated", COPY_AGAIN)
            }
            std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData => {
                Self::new(offset, format!("the gzip data is damaged: {error}"), COPY_AGAIN)
            }
            std::io::ErrorKind::NotFound => {
                Self::new(offset, "there is no such file", "name a file that exists")
            }
            _ => Self::new(offset, error.to_string(), "make the file readable"),
        }
    }

    pub fn in_file(self, file: &str) -> TraceError {
        let Self { offset, what, remedy } = self;
        TraceError { file: file.to_owned(), offset, what, remedy }
    }
}
