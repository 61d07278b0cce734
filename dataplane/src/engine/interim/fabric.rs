//! A switch with one queue per port and tail drop.

use crate::config::SwitchConfig;
use crate::random::Random;
use crate::roce::Frame;
use crate::units::{PREAMBLE_AND_GAP_BYTES, transfer_ps};
use std::collections::{BTreeMap, VecDeque};

/// What a switch wants done.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Output {
    Transmit { port: u16, frame: Frame, end_ps: u64 },
    Wake { token: u32, at_ps: u64 },
}

/// The link of a port.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct PortLink {
    pub rate_bps: u64,
    pub delay_ps: u64,
}

/// What a queue counted since the last sample.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct QueueSample {
    pub depth_bytes: u64,
    pub max_depth_bytes: u64,
    pub marked_packets: u64,
    pub dropped_packets: u64,
    pub dropped_bytes: u64,
    pub pause_frames_sent: u64,
    pub pause_frames_received: u64,
}

#[derive(Debug)]
struct Port {
    rate_bps: u64,
    busy_until_ps: u64,
    queue: VecDeque<Frame>,
    sample: QueueSample,
    has_wake: bool,
}

/// See the module documentation.
#[derive(Debug)]
pub struct Switch {
    ports: Vec<Port>,
    routes: BTreeMap<u32, Vec<u16>>,
    ecmp_seed: u64,
    buffer_bytes: u64,
    held_bytes: u64,
}

#[allow(missing_docs)]
impl Switch {
    pub fn new(config: &SwitchConfig, links: &[PortLink], addresses: &[u32], _seed: u64) -> Self {
        let port = |link: &PortLink| Port {
            rate_bps: link.rate_bps,
            busy_until_ps: 0,
            queue: VecDeque::new(),
            sample: QueueSample::default(),
            has_wake: false,
        };
        Self {
            ports: links.iter().map(port).collect(),
            routes: addresses.iter().copied().zip(config.routes.iter().cloned()).collect(),
            ecmp_seed: config.ecmp_seed,
            buffer_bytes: config.buffer_bytes,
            held_bytes: 0,
        }
    }

    pub fn ports(&self) -> u16 {
        self.ports.len() as u16
    }

    pub fn paused_ps(&mut self, _now_ps: u64, _port: u16, _priority: u8) -> u64 {
        0
    }

    pub fn take_queue_sample(&mut self, port: u16, priority: u8) -> QueueSample {
        if priority != 0 {
            return QueueSample::default();
        }
        let sample = &mut self.ports[usize::from(port)].sample;
        let depth_bytes = sample.depth_bytes;
        let kept = QueueSample { depth_bytes, max_depth_bytes: depth_bytes, ..Default::default() };
        std::mem::replace(sample, kept)
    }

    pub fn handle_frame(&mut self, now_ps: u64, _port: u16, frame: Frame, out: &mut Vec<Output>) {
        let Some(egress) = self.route(&frame) else { return };
        let bytes = u64::from(frame.wire_bytes());
        let port = &mut self.ports[usize::from(egress)];
        if self.held_bytes + bytes > self.buffer_bytes {
            port.sample.dropped_packets += 1;
            port.sample.dropped_bytes += bytes;
            return;
        }
        self.held_bytes += bytes;
        port.sample.depth_bytes += bytes;
        port.sample.max_depth_bytes = port.sample.max_depth_bytes.max(port.sample.depth_bytes);
        port.queue.push_back(frame);
        self.send(now_ps, egress, out);
    }

    fn route(&self, frame: &Frame) -> Option<u16> {
        let Frame::Roce(packet) = frame else { return None };
        let (source, destination, source_port) = packet.flow();
        let ports = self.routes.get(&destination)?;
        let seed = self.ecmp_seed ^ u64::from(source) << 32 ^ u64::from(destination);
        let hash = Random::new(seed, source_port.into()).next_u64();
        ports.get((hash % ports.len().max(1) as u64) as usize).copied()
    }

    pub fn handle_wake(&mut self, now_ps: u64, token: u32, out: &mut Vec<Output>) {
        self.ports[token as usize].has_wake = false;
        self.send(now_ps, token as u16, out);
    }

    fn send(&mut self, now_ps: u64, index: u16, out: &mut Vec<Output>) {
        let port = &mut self.ports[usize::from(index)];
        if now_ps >= port.busy_until_ps {
            let Some(frame) = port.queue.pop_front() else { return };
            let bytes = u64::from(frame.wire_bytes());
            self.held_bytes -= bytes;
            port.sample.depth_bytes -= bytes;
            let end_ps = now_ps + transfer_ps(bytes, port.rate_bps);
            port.busy_until_ps =
                now_ps + transfer_ps(bytes + PREAMBLE_AND_GAP_BYTES, port.rate_bps);
            out.push(Output::Transmit { port: index, frame, end_ps });
        }
        if !port.queue.is_empty() && !port.has_wake {
            port.has_wake = true;
            out.push(Output::Wake { token: index.into(), at_ps: port.busy_until_ps });
        }
    }
}
