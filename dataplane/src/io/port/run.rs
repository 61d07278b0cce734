//! Frames that are there as bytes, given to the kernel at once.
//!
//! Frames in a row that are of one flow and equally long are a burst. Only the first is looked at;
//! those behind it are compared with it. The datagrams are put together before they go: that costs
//! less than it costs the kernel to gather them.

use super::PortCounters;
use super::burst::{Burst, Flow, MAX_BURST_BYTES, MAX_SEGMENTS, give};
use super::view::{View, ViewError};
use crate::roce::icrc::IdentificationEffect;
use crate::roce::layout::{ETHERNET_BYTES, HEADERS_BYTES, ICRC_BYTES};
use std::io::{self, IoSlice};

/// What is kept from frame to frame, since most have the same length.
#[derive(Debug)]
pub struct Runs {
    /// The burst that is on its way.
    bytes: Vec<u8>,
    effect: IdentificationEffect,
}

impl Runs {
    /// Nothing yet.
    pub fn new() -> Self {
        Self { bytes: Vec::new(), effect: IdentificationEffect::new(0) }
    }

    /// Give bursts of at most `max_segments` frames to `send` until the kernel is full; how many
    /// frames went or were refused for good. A frame that `check` does not let pass ends them, and is
    /// an error if it is the first.
    pub fn send<'a>(
        &mut self,
        mut frames: &[&'a [u8]],
        max_segments: usize,
        counters: &mut PortCounters,
        check: impl Fn(&'a [u8]) -> Result<View<'a>, ViewError>,
        mut send: impl FnMut(&Burst, &[IoSlice<'_>]) -> io::Result<()>,
    ) -> Result<usize, ViewError> {
        let given = frames.len();
        while let Some(first) = frames.first() {
            let view = match check(first) {
                Err(error) if frames.len() == given => return Err(error),
                Err(_) => break,
                Ok(view) => view,
            };
            let run = run(frames, view.datagram.len(), max_segments);
            if !self.give(run, &view, counters, &mut send) {
                break;
            }
            frames = &frames[run.len()..];
        }
        Ok(given - frames.len())
    }

    /// Give one burst, with the ICRCs that its datagrams have with the identifications 0, 1, 2, ...
    /// that the kernel gives them.
    fn give(
        &mut self,
        run: &[&[u8]],
        view: &View<'_>,
        counters: &mut PortCounters,
        send: &mut impl FnMut(&Burst, &[IoSlice<'_>]) -> io::Result<()>,
    ) -> bool {
        self.put_together(run, view.datagram.len());
        let flow = Flow {
            source_port: view.source_port,
            destination: view.destination,
            traffic_class: view.traffic_class,
        };
        let burst = Burst {
            flow,
            segment_bytes: view.datagram.len(),
            bytes: self.bytes.len(),
            segments: run.len(),
        };
        give(&burst, &[IoSlice::new(&self.bytes)], counters, send)
    }

    fn put_together(&mut self, run: &[&[u8]], segment_bytes: usize) {
        let covered_bytes = segment_bytes + HEADERS_BYTES - ETHERNET_BYTES - ICRC_BYTES;
        if self.effect.covered_bytes() != covered_bytes {
            self.effect = IdentificationEffect::new(covered_bytes);
        }
        self.bytes.resize(run.len() * segment_bytes, 0);
        let places = self.bytes.chunks_exact_mut(segment_bytes);
        for (place, (datagram, frame)) in places.zip(run).enumerate() {
            datagram.copy_from_slice(&frame[HEADERS_BYTES..HEADERS_BYTES + segment_bytes]);
            let at = HEADERS_BYTES + segment_bytes - ICRC_BYTES;
            let icrc = u32::from_le_bytes(std::array::from_fn(|octet| frame[at + octet]));
            let identification = u16::from_be_bytes([frame[18], frame[19]]);
            let icrc = self.effect.replace(icrc, identification, place as u16);
            datagram[segment_bytes - ICRC_BYTES..].copy_from_slice(&icrc.to_le_bytes());
        }
    }
}

/// The frames from the first on that can go as one burst.
fn run<'a, 'b>(
    frames: &'b [&'a [u8]],
    datagram_bytes: usize,
    max_segments: usize,
) -> &'b [&'a [u8]] {
    let most = max_segments.min(MAX_SEGMENTS).min(MAX_BURST_BYTES / datagram_bytes).max(1);
    let count = frames.iter().take(most).take_while(|frame| are_alike(frames[0], frame)).count();
    &frames[..count]
}

/// Whether frames are equally long and have all in common that a flow has. Addresses of the link,
/// identification and checksums may differ.
#[inline]
fn are_alike(first: &[u8], other: &[u8]) -> bool {
    let (Some(a), Some(b)) =
        (first.first_chunk::<HEADERS_BYTES>(), other.first_chunk::<HEADERS_BYTES>())
    else {
        return false;
    };
    first.len() == other.len()
        && a[12..18] == b[12..18]
        && a[20..24] == b[20..24]
        && a[26..40] == b[26..40]
}

#[cfg(test)]
mod tests {
    use super::super::view::view;
    use super::*;
    use crate::roce::packet::Bth;
    use crate::roce::{Frame, Packet, Payload, encode, opcode::Opcode};

    fn frame(source_port: u16, length_bytes: u16, identification: u16) -> Vec<u8> {
        let packet = Packet {
            source_port,
            identification,
            bth: Bth { opcode: Opcode::WRITE_MIDDLE, ..Bth::default() },
            payload: Payload::Pattern { offset_bytes: 0, length_bytes },
            ..Packet::default()
        };
        let mut bytes = Vec::new();
        encode(&Frame::Roce(Box::new(packet)), [1; 6], [2; 6], &mut bytes);
        bytes
    }

    /// Number of datagrams and bytes of each burst, and how many frames went.
    fn bursts(frames: &[Vec<u8>], max_segments: usize) -> (Vec<(usize, Vec<u8>)>, usize) {
        let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let (mut bursts, mut counters) = (Vec::new(), PortCounters::default());
        let check = |frame| view(frame).ok_or(ViewError::NotRoce);
        let sent =
            Runs::new().send(&frames, max_segments, &mut counters, check, |burst, slices| {
                let bytes: Vec<u8> =
                    slices.iter().flat_map(|slice| slice.iter().copied()).collect();
                bursts.push((burst.segments, bytes));
                Ok(())
            });
        (bursts, sent.expect("the first frame passes"))
    }

    #[test]
    fn datagrams_have_the_icrcs_of_their_places() {
        let sent: Vec<_> = (0..60).map(|n| frame(0xC000, 1024, 3 * n)).collect();
        let (bursts, count) = bursts(&sent, 64);
        let places = (0..60).flat_map(|place| frame(0xC000, 1024, place).split_off(HEADERS_BYTES));
        assert_eq!((bursts.len(), bursts[0].0, count), (1, 60, 60));
        assert!(places.eq(bursts[0].1.iter().copied()));
    }

    #[test]
    fn another_flow_or_length_is_another_burst() {
        let sent: Vec<_> = [(0xC000, 1024), (0xC000, 1024), (0xC001, 1024), (0xC001, 1028)]
            .map(|(port, length)| frame(port, length, 0))
            .into();
        let (bursts, count) = bursts(&sent, 64);
        assert_eq!(bursts.iter().map(|burst| burst.0).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(count, 4);
    }

    #[test]
    fn a_burst_is_no_longer_than_said_nor_than_an_ip_packet_can_be() {
        let lengths = |sent: &[Vec<u8>], most| {
            bursts(sent, most).0.iter().map(|burst| burst.0).collect::<Vec<_>>()
        };
        assert_eq!(lengths(&vec![frame(0xC000, 256, 0); 5], 2), [2, 2, 1]);
        assert_eq!(lengths(&vec![frame(0xC000, 4096, 0); 17], 64), [15, 2]);
    }

    #[test]
    fn what_is_no_frame_ends_the_batch_before_it() {
        let sent = [frame(0xC000, 256, 0), vec![0; 60], frame(0xC000, 256, 0)];
        assert_eq!(bursts(&sent, 64).1, 1);
    }
}
