//! Capture files that Wireshark opens: the few blocks of pcapng that a list of Ethernet frames needs.
//!
//! Source: draft-ietf-opsawg-pcapng, sections 4.1 (section header), 4.2 (interface description) and
//! 4.3 (enhanced packet). Little-endian, times in nanoseconds.

use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
/// Major 1, minor 0.
const VERSION: u32 = 1;
const LINK_TYPE_ETHERNET: u32 = 1;
const OPTION_INTERFACE_NAME: u16 = 2;
const OPTION_APPLICATION: u16 = 4;
const OPTION_TIME_RESOLUTION: u16 = 9;
/// Times count units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Writes one section.
#[derive(Debug)]
pub struct CaptureWriter<W> {
    out: W,
    body: Vec<u8>,
}

impl<W: Write> CaptureWriter<W> {
    /// Begin a section with these interfaces; packets name them by index.
    pub fn new(out: W, interfaces: &[String]) -> io::Result<Self> {
        let mut writer = Self { out, body: Vec::new() };
        writer.word(BYTE_ORDER_MAGIC);
        writer.word(VERSION);
        // The section's length is not told.
        writer.body.extend_from_slice(&u64::MAX.to_le_bytes());
        writer.option(OPTION_APPLICATION, b"rankwire");
        writer.end_of_options();
        writer.block(SECTION_HEADER)?;
        for name in interfaces {
            writer.word(LINK_TYPE_ETHERNET);
            // Packets are never cut.
            writer.word(0);
            writer.option(OPTION_INTERFACE_NAME, name.as_bytes());
            writer.option(OPTION_TIME_RESOLUTION, &[NANOSECONDS]);
            writer.end_of_options();
            writer.block(INTERFACE_DESCRIPTION)?;
        }
        Ok(writer)
    }

    /// Append an Ethernet frame without FCS.
    pub fn packet(&mut self, interface: u32, time_ns: u64, frame: &[u8]) -> io::Result<()> {
        self.word(interface);
        self.word((time_ns >> 32) as u32);
        self.word(time_ns as u32);
        self.word(frame.len() as u32);
        self.word(frame.len() as u32);
        self.padded(frame);
        self.block(ENHANCED_PACKET)
    }

    /// Bring everything to the output.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn word(&mut self, value: u32) {
        self.body.extend_from_slice(&value.to_le_bytes());
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.body.extend_from_slice(&code.to_le_bytes());
        self.body.extend_from_slice(&(value.len() as u16).to_le_bytes());
        self.padded(value);
    }

    fn end_of_options(&mut self) {
        self.word(0);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    /// Write the body as a block: its length stands before and behind it.
    fn block(&mut self, kind: u32) -> io::Result<()> {
        let length = (self.body.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.body)?;
        self.out.write_all(&length)?;
        self.body.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole_words_and_end_with_their_length() {
        let mut out = Vec::new();
        let mut writer =
            CaptureWriter::new(&mut out, &["link0/0".into(), "l".into()]).expect("memory");
        writer.packet(1, (7 << 32) + 9, &[1, 2, 3, 4, 5]).expect("memory");
        writer.finish().expect("memory");
        let word = |at: usize| u32::from_le_bytes(out[at..at + 4].try_into().expect("four"));
        let (mut at, mut kinds) = (0, Vec::new());
        while at < out.len() {
            let length = word(at + 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(at + length - 4) as usize, length);
            kinds.push(word(at));
            at += length;
        }
        let expected = [SECTION_HEADER, INTERFACE_DESCRIPTION, INTERFACE_DESCRIPTION];
        assert_eq!(kinds, [&expected[..], &[ENHANCED_PACKET]].concat());
        let packet = out.len() - 12 - 20 - 8;
        let fields: Vec<u32> = (2..7).map(|n| word(packet + 4 * n)).collect();
        assert_eq!(fields, [1, 7, 9, 5, 5]);
        assert_eq!(out[packet + 28..packet + 36], [1, 2, 3, 4, 5, 0, 0, 0]);
    }
}
