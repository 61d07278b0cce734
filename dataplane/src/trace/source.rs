//! Opening a trace file: plain, or gzip found by its magic number.

use super::error::Fault;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// First two bytes of a gzip member. Source: RFC 1952 section 2.3.1.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The decompressed bytes of a trace file.
pub(super) enum Source {
    Plain(File),
    Gzip(Box<MultiGzDecoder<File>>),
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
        }
    }
}

/// Open `path`; the content decides whether it is decompressed.
pub(super) fn open(path: &Path) -> Result<Source, Fault> {
    let open = || -> io::Result<Source> {
        let mut file = File::open(path)?;
        let mut magic = Vec::with_capacity(GZIP_MAGIC.len());
        file.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut magic)?;
        file.seek(SeekFrom::Start(0))?;
        if magic == GZIP_MAGIC {
            return Ok(Source::Gzip(Box::new(MultiGzDecoder::new(file))));
        }
        Ok(Source::Plain(file))
    };
    open().map_err(|error| Fault::io(0, &error))
}
