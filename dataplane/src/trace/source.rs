//! Opening a trace file: plain, or gzip found by its magic number.

use super::error::Fault;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// First two bytes of a gzip member. Source: RFC 1952 section 2.3.1.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The decompressed bytes of a trace.
pub(super) enum Source<R> {
    Plain(R),
    Gzip(Box<MultiGzDecoder<R>>),
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
        }
    }
}

/// Open `path`; the content decides whether it is decompressed.
pub(super) fn open(path: &Path) -> Result<Source<File>, Fault> {
    File::open(path).map_err(|error| Fault::io(0, &error)).and_then(decompressed)
}

/// Decompress `input` if it is gzip.
pub(super) fn decompressed<R: Read + Seek>(mut input: R) -> Result<Source<R>, Fault> {
    let mut magic = Vec::with_capacity(GZIP_MAGIC.len());
    let mut sniff = || -> io::Result<()> {
        input.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut magic)?;
        input.seek(SeekFrom::Start(0)).map(drop)
    };
    sniff().map_err(|error| Fault::io(0, &error))?;
    if magic == GZIP_MAGIC {
        return Ok(Source::Gzip(Box::new(MultiGzDecoder::new(input))));
    }
    Ok(Source::Plain(input))
}
