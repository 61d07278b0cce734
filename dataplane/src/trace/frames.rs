//! Length-prefixed messages from a stream, through one bounded window.

use super::error::Fault;
use super::wire;
use std::io::Read;

/// Initial size of the window; it grows only for a message that does not fit.
const WINDOW_BYTES: usize = 256 * 1024;
/// Largest message that protobuf allows. Source: protobuf.dev, "Proto Limits".
const MESSAGE_LIMIT_BYTES: u64 = (1 << 31) - 1;
/// Longest prefix: a varint of 32 bits.
const PREFIX_BYTES: usize = 5;

/// One message and where its bytes begin in the file.
pub(super) struct Frame<'a> {
    /// Offset of the message's length prefix.
    pub offset: u64,
    /// The message without its prefix.
    pub bytes: &'a [u8],
}

/// Reads messages one after the other; memory is one window, or the largest message.
pub(super) struct Frames<R> {
    source: R,
    window: Vec<u8>,
    begin: usize,
    end: usize,
    /// File offset of `window[begin]`.
    offset: u64,
    limit_bytes: u64,
    exhausted: bool,
}

impl<R: Read> Frames<R> {
    pub fn new(source: R, limit_bytes: u64) -> Self {
        let window = vec![0; WINDOW_BYTES];
        Self { source, window, begin: 0, end: 0, offset: 0, limit_bytes, exhausted: false }
    }

    /// Up to `count` bytes from where the next message begins, without taking them.
    pub fn peek(&mut self, count: usize) -> Result<&[u8], Fault> {
        self.fill(count)?;
        let end = self.end.min(self.begin + count);
        Ok(&self.window[self.begin..end])
    }

    /// The next message, or None at the end of the file.
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, Fault> {
        if self.end - self.begin < PREFIX_BYTES {
            self.fill(PREFIX_BYTES)?;
            if self.begin == self.end {
                return Ok(None);
            }
        }
        let offset = self.offset;
        let (prefix, length) = self.prefix()?;
        let needed = prefix + length;
        if self.end - self.begin < needed {
            self.fill(needed)?;
            let present = self.end - self.begin;
            if present < needed {
                return Err(Fault::truncated(offset, length as u64, (present - prefix) as u64));
            }
        }
        let begin = self.begin + prefix;
        self.begin += needed;
        self.offset += needed as u64;
        Ok(Some(Frame { offset, bytes: &self.window[begin..begin + length] }))
    }

    /// Sizes of the length prefix at the front of the window and of the message that it announces.
    fn prefix(&self) -> Result<(usize, usize), Fault> {
        let available = &self.window[self.begin..self.end];
        let head = &available[..available.len().min(PREFIX_BYTES)];
        let mut rest = head;
        match wire::varint(&mut rest) {
            Ok(length) if length <= MESSAGE_LIMIT_BYTES => {
                Ok((head.len() - rest.len(), length as usize))
            }
            Err(_) if head.len() < PREFIX_BYTES => Err(Fault::truncated(self.offset, 0, 0)),
            _ => Err(Fault::new(
                self.offset,
                "no message can begin here: its length is impossible",
                "give a Chakra trace; if it is one, copy or write the file again",
            )),
        }
    }

    /// Read until `count` bytes are in the window, or the file ends.
    fn fill(&mut self, count: usize) -> Result<(), Fault> {
        while self.end - self.begin < count && !self.exhausted {
            self.make_room();
            let space = &mut self.window[self.end..];
            match self.source.read(space) {
                Ok(0) => self.exhausted = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::io(self.read_bytes(), &error)),
            }
            if self.read_bytes() > self.limit_bytes {
                let what = format!("the trace is larger than {} bytes", self.limit_bytes);
                return Err(Fault::new(self.limit_bytes, what, "raise the limit"));
            }
        }
        Ok(())
    }

    /// Move what is left to the front; double the window when a message fills it. It grows with
    /// the bytes that have arrived, never with the size that a prefix announces.
    fn make_room(&mut self) {
        if self.begin > 0 {
            self.window.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
        }
        if self.end == self.window.len() {
            self.window.resize(self.window.len() * 2, 0);
        }
    }

    fn read_bytes(&self) -> u64 {
        self.offset + (self.end - self.begin) as u64
    }
}
