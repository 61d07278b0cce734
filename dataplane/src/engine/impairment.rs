//! A medium that loses, damages, repeats, reorders and delays frames by chance, as a rule of its
//! direction says, and passes the rest to the medium that it wraps.
//!
//! Chance is seeded per direction: what happens to the n-th frame of a direction is the same whichever
//! process carries it. Nodes and the wrapped medium know nothing of it.

use super::capture::Capture;
use super::medium::Medium;
use super::nic::DeviceRequest;
use crate::config::{ImpairmentConfig, JobConfig, PacketKind};
use crate::random::Random;
use crate::roce::opcode::Operation;
use crate::roce::{Frame, Packet, Payload, decode_forwarding, encode};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keeps this generator's sequences apart from those of other state machines of the same seed.
const STREAM: u64 = 0x696D_7061_6972;

/// What was done to the frames of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpairmentCounters {
    /// Frames that a rule applied to.
    pub packets: u64,
    /// Frames that vanished.
    pub lost: u64,
    /// Frames of which one bit was flipped.
    pub corrupted: u64,
    /// Frames that arrived twice.
    pub duplicated: u64,
    /// Frames that others could overtake.
    pub reordered: u64,
    /// Frames that came later than the link makes them, in their order.
    pub delayed: u64,
}

/// What happens to a frame.
struct Fate {
    at_ps: u64,
    copy_ps: Option<u64>,
    is_corrupted: bool,
}

/// Rules and state of one direction.
#[derive(Debug)]
struct Direction {
    rules: Vec<ImpairmentConfig>,
    random: Random,
    /// Frames that keep their order arrive no earlier.
    last_ps: u64,
    counters: ImpairmentCounters,
}

impl Direction {
    /// `None` is a loss.
    fn judge(&mut self, now_ps: u64, frame: &Frame) -> Option<Fate> {
        let Some(rule) = self.rules.iter().find(|rule| applies(rule, frame)) else {
            self.last_ps = self.last_ps.max(now_ps);
            return Some(Fate { at_ps: self.last_ps, copy_ps: None, is_corrupted: false });
        };
        let (random, counters) = (&mut self.random, &mut self.counters);
        let mut hits = |ratio: f64| random.next_ratio() < ratio;
        counters.packets += 1;
        // Always the same number of draws: a changed ratio changes no other misfortune.
        let is_lost = hits(rule.loss_ratio);
        let is_corrupted = hits(rule.corruption_ratio);
        let is_duplicated = hits(rule.duplication_ratio);
        let is_reordered = hits(rule.reordering_ratio);
        let jitter_ps = (random.next_ratio() * rule.jitter_ps as f64) as u64;
        if is_lost {
            counters.lost += 1;
            return None;
        }
        let mut at_ps = now_ps + rule.delay_ps + jitter_ps;
        if is_reordered {
            at_ps += rule.reordering_ps;
        } else {
            at_ps = at_ps.max(self.last_ps);
            self.last_ps = at_ps;
        }
        counters.corrupted += u64::from(is_corrupted);
        counters.duplicated += u64::from(is_duplicated);
        counters.reordered += u64::from(is_reordered);
        counters.delayed += u64::from(!is_reordered && at_ps > now_ps);
        Some(Fate { at_ps, copy_ps: is_duplicated.then_some(at_ps), is_corrupted })
    }
}

/// See the module documentation.
#[derive(Debug)]
pub struct Impaired<M> {
    inner: M,
    /// By direction; empty when nothing is impaired.
    directions: Vec<Option<Box<Direction>>>,
    /// By time, direction and order: frames held back.
    held: BTreeMap<(u64, u32, u64), Frame>,
    held_total: u64,
    /// Releases that nobody has been told of.
    releases: Vec<(u64, u32)>,
}

impl<M: Medium> Impaired<M> {
    /// The medium of a job, with the job's impairments.
    pub fn new(config: &JobConfig, inner: M) -> Self {
        let count = if config.impairments.is_empty() { 0 } else { 2 * config.links.len() as u32 };
        let directions = (0..count).map(|direction| direction_of(config, direction)).collect();
        Self { inner, directions, held: BTreeMap::new(), held_total: 0, releases: Vec::new() }
    }

    /// The medium inside.
    pub fn inner(&self) -> &M {
        &self.inner
    }

    /// The medium inside.
    pub fn inner_mut(&mut self) -> &mut M {
        &mut self.inner
    }

    /// Carry the frame at a later time.
    fn hold(&mut self, at_ps: u64, direction: u32, frame: Frame) {
        if self.inner.takes_ahead() {
            self.inner.carry(at_ps, direction, frame);
            return;
        }
        self.held.insert((at_ps, direction, self.held_total), frame);
        self.held_total += 1;
        self.releases.push((at_ps, direction));
    }

    fn impair(&mut self, at_ps: u64, direction: u32, frame: Frame) -> Option<Frame> {
        let Some(state) = &mut self.directions[direction as usize] else {
            return self.inner.carry(at_ps, direction, frame);
        };
        let fate = state.judge(at_ps, &frame)?;
        let frame = if fate.is_corrupted { corrupt(&frame, &mut state.random)? } else { frame };
        if fate.copy_ps.is_none() && fate.at_ps <= at_ps {
            return self.inner.carry(at_ps, direction, frame);
        }
        if let Some(copy_ps) = fate.copy_ps {
            self.hold(copy_ps, direction, frame.clone());
        }
        self.hold(fate.at_ps, direction, frame);
        None
    }
}

impl<M: Medium> Medium for Impaired<M> {
    #[inline]
    fn takes_ahead(&self) -> bool {
        self.inner.takes_ahead()
    }

    #[inline]
    fn carry(&mut self, at_ps: u64, direction: u32, frame: Frame) -> Option<Frame> {
        if self.directions.is_empty() {
            return self.inner.carry(at_ps, direction, frame);
        }
        self.impair(at_ps, direction, frame)
    }

    fn post(&mut self, nic: u32, request: DeviceRequest) {
        self.inner.post(nic, request);
    }

    fn icrc_errors(&self, direction: u32) -> u64 {
        self.inner.icrc_errors(direction)
    }

    #[inline]
    fn poll_release(&mut self) -> Option<(u64, u32)> {
        self.releases.pop()
    }

    fn release(&mut self, now_ps: u64) -> Option<(u32, Frame)> {
        let first = self.held.first_entry()?;
        let (at_ps, direction, _) = *first.key();
        if at_ps > now_ps {
            return None;
        }
        let frame = first.remove();
        Some((direction, self.inner.carry(now_ps, direction, frame)?))
    }

    fn discard(&mut self, direction: u32) -> Option<Frame> {
        let key = *self.held.keys().find(|key| key.1 == direction)?;
        self.held.remove(&key)
    }

    fn capture(&self) -> Option<&Capture> {
        self.inner.capture()
    }

    fn impairments(&self) -> Vec<(u32, ImpairmentCounters)> {
        let indexed = self.directions.iter().enumerate();
        let counted = indexed.filter_map(|(index, d)| Some((index as u32, d.as_ref()?.counters)));
        counted.filter(|(_, counters)| counters.packets > 0).collect()
    }
}

fn direction_of(config: &JobConfig, direction: u32) -> Option<Box<Direction>> {
    let of_direction = config.impairments.iter().filter(|r| r.directions.contains(&direction));
    let rules: Vec<ImpairmentConfig> = of_direction.cloned().collect();
    if rules.is_empty() {
        return None;
    }
    Some(Box::new(Direction {
        rules,
        random: Random::new(config.seed, STREAM + u64::from(direction)),
        last_ps: 0,
        counters: ImpairmentCounters::default(),
    }))
}

fn applies(rule: &ImpairmentConfig, frame: &Frame) -> bool {
    let kind = kind_of(frame);
    if rule.packets.is_empty() && rule.opcodes.is_empty() {
        return kind != PacketKind::Pause;
    }
    let has_opcode =
        matches!(frame, Frame::Roce(packet) if rule.opcodes.contains(&packet.bth.opcode.0));
    has_opcode || rule.packets.contains(&kind)
}

fn kind_of(frame: &Frame) -> PacketKind {
    let Frame::Roce(packet) = frame else {
        return PacketKind::Pause;
    };
    match packet.bth.opcode.row().map(|row| row.operation) {
        Some(Operation::Write) => PacketKind::Write,
        Some(Operation::ReadRequest) => PacketKind::ReadRequest,
        Some(Operation::ReadResponse) => PacketKind::ReadResponse,
        Some(Operation::Acknowledge) => PacketKind::Acknowledge,
        Some(Operation::CongestionNotification) => PacketKind::Cnp,
        Some(Operation::Send) | None => PacketKind::Send,
    }
}

/// The frame as bytes with one bit flipped behind the headers: in payload, pad or invariant CRC. A
/// switch carries it on; the endpoint refuses it. `None` for a pause frame, which the next node's FCS
/// check would drop.
fn corrupt(frame: &Frame, random: &mut Random) -> Option<Frame> {
    let mut encoded = Vec::new();
    encode(frame, [0; 6], [0; 6], &mut encoded);
    let Ok(Frame::Roce(packet)) = decode_forwarding(&encoded) else {
        return None;
    };
    let Payload::Forwarded { bytes, pad_bytes } = &packet.payload else {
        return None;
    };
    let mut damaged = bytes.to_vec();
    let bit = random.next_u64() as usize % (8 * damaged.len());
    damaged[bit / 8] ^= 1 << (bit % 8);
    let payload = Payload::Forwarded { bytes: Arc::from(damaged), pad_bytes: *pad_bytes };
    Some(Frame::Roce(Box::new(Packet { payload, ..*packet })))
}
