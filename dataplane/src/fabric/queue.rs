//! One priority's egress queue and its pause state.

use super::pause::pause_ps;
use crate::roce::Frame;
use std::collections::VecDeque;
use std::hint::black_box;

/// A frame in an egress queue.
#[derive(Clone, Debug)]
pub struct Queued {
    /// The frame.
    pub frame: Frame,
    /// Its length, FCS included.
    pub wire_bytes: u32,
    /// Port that it came in at.
    pub ingress_port: u16,
    /// When it was queued.
    pub enqueued_ps: u64,
}

/// Frames of a queue so long that the first one has probably left the processor's caches since it came:
/// some ten kilobytes of packets, and what else was done meanwhile.
const DEEP_FRAMES: usize = 64;
/// Frames that are fetched back together.
const FETCHED_FRAMES: usize = 12;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    frames: VecDeque<Queued>,
    /// Frames behind the first one that have been fetched into the processor's caches.
    fetched_frames: usize,
    depth_bytes: u64,
    max_depth_bytes: u64,
    /// Start of the pause that ended last or holds.
    pause_start_ps: u64,
    pause_end_ps: u64,
    /// Length of the pauses before that.
    paused_ps: u64,
    /// Pauses have no effect.
    ignores_pauses: bool,
    /// When a frame last left, or came into the empty queue.
    progress_ps: u64,
}

impl Queue {
    #[inline]
    pub fn push(&mut self, queued: Queued) {
        if self.frames.is_empty() {
            self.progress_ps = queued.enqueued_ps;
        }
        self.depth_bytes += u64::from(queued.wire_bytes);
        self.max_depth_bytes = self.max_depth_bytes.max(self.depth_bytes);
        self.frames.push_back(queued);
    }

    /// Take the first frame, which leaves at `now_ps`.
    #[inline]
    pub fn pop(&mut self, now_ps: u64) -> Option<Queued> {
        let queued = self.frames.pop_front()?;
        self.progress_ps = now_ps;
        self.depth_bytes -= u64::from(queued.wire_bytes);
        if self.frames.len() >= DEEP_FRAMES {
            self.fetch_ahead();
        }
        Some(queued)
    }

    /// Bring the next frames back into the processor's caches, several at a time: it waits for all
    /// of them no longer than for one.
    #[inline]
    fn fetch_ahead(&mut self) {
        if self.fetched_frames > 0 {
            self.fetched_frames -= 1;
            return;
        }
        self.fetched_frames = FETCHED_FRAMES - 1;
        let next = self.frames.iter().take(FETCHED_FRAMES);
        black_box(next.fold(0, |sum, queued| sum ^ queued.frame.glance()));
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    #[inline]
    pub fn depth_bytes(&self) -> u64 {
        self.depth_bytes
    }

    /// Bytes of the frames that came in at a port.
    pub fn bytes_from(&self, ingress_port: u16) -> u64 {
        let frames = self.frames.iter().filter(|queued| queued.ingress_port == ingress_port);
        frames.map(|queued| u64::from(queued.wire_bytes)).sum()
    }

    /// When the first frame was queued; `None` while there is none.
    pub fn oldest_ps(&self) -> Option<u64> {
        self.frames.front().map(|queued| queued.enqueued_ps)
    }

    /// Most bytes queued at once since the last call.
    pub fn take_max_depth_bytes(&mut self) -> u64 {
        std::mem::replace(&mut self.max_depth_bytes, self.depth_bytes)
    }

    /// A glance at what the first and the next frame need.
    #[inline]
    pub fn glance(&self) -> u64 {
        let first = self.frames.front().map_or(0, |queued| queued.frame.glance());
        let last_ps = self.frames.back().map_or(0, |queued| queued.enqueued_ps);
        first ^ last_ps ^ self.depth_bytes ^ self.pause_end_ps ^ self.progress_ps
    }

    /// Length of the first frame; 0 if there is none.
    #[inline]
    pub fn head_bytes(&self) -> u32 {
        self.frames.front().map_or(0, |queued| queued.wire_bytes)
    }

    /// When the first frame could have gone on an idle line; `None` while there is none.
    #[inline]
    pub fn ready_ps(&self) -> Option<u64> {
        let head = self.frames.front()?;
        let free_ps = if self.ignores_pauses { 0 } else { self.pause_end_ps };
        Some(head.enqueued_ps.max(free_ps))
    }

    /// Stop from `now_ps` for `quanta`, whatever held before; 0 resumes.
    pub fn pause(&mut self, now_ps: u64, quanta: u16, rate_bps: u64) {
        self.paused_ps = self.paused_ps(now_ps);
        self.pause_start_ps = now_ps;
        self.pause_end_ps = now_ps.saturating_add(pause_ps(quanta, rate_bps));
    }

    /// End a pause that holds.
    pub fn resume(&mut self, now_ps: u64) {
        self.paused_ps = self.paused_ps(now_ps);
        self.pause_start_ps = now_ps;
        self.pause_end_ps = now_ps;
    }

    /// Time spent paused up to `now_ps`.
    pub fn paused_ps(&self, now_ps: u64) -> u64 {
        let end_ps = now_ps.min(self.pause_end_ps);
        self.paused_ps + end_ps.saturating_sub(self.pause_start_ps)
    }

    /// When the last pause ends or ended.
    #[inline]
    pub fn pause_end_ps(&self) -> u64 {
        self.pause_end_ps
    }

    /// A pause holds.
    #[inline]
    pub fn is_paused(&self, now_ps: u64) -> bool {
        now_ps < self.pause_end_ps
    }

    /// When the last pause frame came.
    pub fn pause_start_ps(&self) -> u64 {
        self.pause_start_ps
    }

    /// When a frame last left, or came into the empty queue.
    pub fn progress_ps(&self) -> u64 {
        self.progress_ps
    }

    /// Let pauses have no effect, or have it again.
    pub fn ignore_pauses(&mut self, ignores_pauses: bool) {
        self.ignores_pauses = ignores_pauses;
    }
}
