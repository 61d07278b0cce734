//! A medium that keeps what passes chosen directions, as bytes with emulated times, up to a limit, and
//! hands everything on unchanged to the medium that it wraps.

use super::medium::Medium;
use super::nic::DeviceRequest;
use crate::config::{CaptureConfig, JobConfig};
use crate::roce::{Frame, encode};

/// Frames in the order in which they reached the end of their link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    /// Arrival of the last bit.
    pub time_ps: Vec<u64>,
    /// Direction.
    pub direction: Vec<u32>,
    /// Length, without FCS.
    pub length_bytes: Vec<u32>,
    /// Their bytes, one frame after the other.
    pub bytes: Vec<u8>,
}

/// What was kept, and what passed.
#[derive(Debug, Default)]
pub struct Capture {
    max_packets: u64,
    /// By direction: MAC addresses of its two ends; `None` where nothing is kept.
    ends: Vec<Option<([u8; 6], [u8; 6])>>,
    frames: Frames,
    /// By direction: frames that came when the limit was reached.
    left_out: Vec<u64>,
}

impl Capture {
    fn new(config: &JobConfig, capture: &CaptureConfig) -> Self {
        let pairs = config.links.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
        let ends: Vec<_> = pairs
            .enumerate()
            .map(|(direction, (from, to))| {
                let is_kept = capture.directions.contains(&(direction as u32));
                is_kept.then(|| (config.mac(from.node), config.mac(to.node)))
            })
            .collect();
        let left_out = vec![0; ends.len()];
        Self { max_packets: capture.max_packets, ends, frames: Frames::default(), left_out }
    }

    fn keep(&mut self, at_ps: u64, direction: u32, frame: &Frame) {
        let Some((source, destination)) = self.ends[direction as usize] else {
            return;
        };
        let frames = &mut self.frames;
        if frames.time_ps.len() as u64 >= self.max_packets {
            self.left_out[direction as usize] += 1;
            return;
        }
        let before = frames.bytes.len();
        encode(frame, source, destination, &mut frames.bytes);
        frames.time_ps.push(at_ps);
        frames.direction.push(direction);
        frames.length_bytes.push((frames.bytes.len() - before) as u32);
    }

    /// What was kept.
    pub fn frames(&self) -> &Frames {
        &self.frames
    }

    /// Direction, frames kept and frames left out, of every direction that was to be kept.
    pub fn counts(&self) -> Vec<(u32, u64, u64)> {
        let mut kept = vec![0; self.ends.len()];
        for &direction in &self.frames.direction {
            kept[direction as usize] += 1;
        }
        let is_kept = |&index: &usize| self.ends[index].is_some();
        let indices = (0..self.ends.len()).filter(is_kept);
        indices.map(|index| (index as u32, kept[index], self.left_out[index])).collect()
    }
}

/// See the module documentation.
#[derive(Debug)]
pub struct Captured<M> {
    inner: M,
    capture: Option<Box<Capture>>,
}

impl<M: Medium> Captured<M> {
    /// The medium of a job, with the job's capture.
    pub fn new(config: &JobConfig, inner: M) -> Self {
        let capture = config.capture.as_ref();
        Self { inner, capture: capture.map(|capture| Box::new(Capture::new(config, capture))) }
    }

    /// The medium inside.
    pub fn inner(&self) -> &M {
        &self.inner
    }

    /// The medium inside.
    pub fn inner_mut(&mut self) -> &mut M {
        &mut self.inner
    }
}

impl<M: Medium> Medium for Captured<M> {
    #[inline]
    fn takes_ahead(&self) -> bool {
        self.inner.takes_ahead()
    }

    #[inline]
    fn carry(&mut self, at_ps: u64, direction: u32, frame: Frame) -> Option<Frame> {
        if let Some(capture) = &mut self.capture {
            capture.keep(at_ps, direction, &frame);
        }
        self.inner.carry(at_ps, direction, frame)
    }

    fn post(&mut self, nic: u32, request: DeviceRequest) {
        self.inner.post(nic, request);
    }

    fn icrc_errors(&self, direction: u32) -> u64 {
        self.inner.icrc_errors(direction)
    }

    fn capture(&self) -> Option<&Capture> {
        self.capture.as_deref()
    }
}
