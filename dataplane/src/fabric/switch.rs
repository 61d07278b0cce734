//! A switch: routing, admission, queues, marking and flow control together.

use super::buffer::{Passage, SharedBuffer, Verdict};
use super::counters::{DropCause, PortTotals, QueueSample, QueueTotals};
use super::early_drop::EarlyDrops;
use super::ecmp::EcmpHash;
use super::marking::mark;
use super::path::PathSelector;
use super::pause_log::PauseLog;
use super::port::{Departure, Queued, bits};
use super::priorities::priority_of_dscp;
use super::routes::{Addresses, Routes};
use super::switch_port::{Port, disciplines};
use super::watchdog::{Finding, Watchdog};
use super::{Output, PRIORITIES};
use crate::config::{EcnConfig, JobConfig, StormAction};
use crate::random::Random;
use crate::roce::packet::PauseFrame;
use crate::roce::{Frame, Packet};
use std::sync::Arc;

/// The link at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLink {
    /// Line rate; 0 where the port has no link.
    pub rate_bps: u64,
    /// Propagation delay.
    pub delay_ps: u64,
}

/// Bit of a wake token that asks for pauses to be refreshed; the low 16 bits are the port.
const REFRESH_TOKEN: u32 = 1 << 16;
/// Bit of a wake token that asks for a queue to be checked for a storm; its priority stands in the
/// three bits above.
const CHECK_TOKEN: u32 = 1 << 17;
/// Where the priority stands.
const PRIORITY_SHIFT: u32 = 18;

/// See the module documentation.
#[derive(Debug)]
pub struct Switch {
    mac: [u8; 6],
    pub(super) ports: Vec<Port>,
    pub(super) buffer: SharedBuffer,
    pub(super) routes: Routes,
    pub(super) paths: PathSelector,
    pub(super) priority_of_dscp: [u8; 64],
    ecn: [Option<EcnConfig>; PRIORITIES],
    /// Seed of the random number that each packet has at this switch.
    marking_seed: u64,
    early_drops: EarlyDrops,
    watchdog: Option<Watchdog>,
    pub(super) pauses: PauseLog,
    /// Ports whose pause frames became due while another port was served.
    owing_ports: Vec<u16>,
}

impl Switch {
    /// Switch number `index` of the job, empty; `links[port]` is the link at each of its ports.
    pub fn new(job: &JobConfig, index: usize, links: &[PortLink]) -> Self {
        Self::with_addresses(job, index, links, Arc::new(Addresses::new(&job.nics)))
    }

    /// The same, with the addresses of the job's NICs.
    pub fn with_addresses(
        job: &JobConfig,
        index: usize,
        links: &[PortLink],
        addresses: Arc<Addresses>,
    ) -> Self {
        let config = &job.switches[index];
        let disciplines = disciplines(&config.priorities);
        let mut ecn = [None; PRIORITIES];
        for (profile, priority) in ecn.iter_mut().zip(&config.priorities) {
            *profile = priority.ecn;
        }
        let marking_seed = Random::new(job.seed, index as u64).next_u64();
        Self {
            mac: config.mac,
            ports: links.iter().map(|link| Port::new(link.rate_bps, &disciplines)).collect(),
            buffer: SharedBuffer::new(config),
            routes: Routes::new(addresses, &config.routes),
            paths: PathSelector::new(
                config.path_selection,
                config.failure_hashing,
                EcmpHash::of_switch(config),
                job.seed,
            ),
            priority_of_dscp: priority_of_dscp(job),
            ecn,
            marking_seed,
            early_drops: EarlyDrops::new(marking_seed),
            watchdog: config
                .pfc_watchdog
                .map(|guard| Watchdog::new(guard, links.len(), &config.priorities)),
            pauses: PauseLog::new(links.len(), job.telemetry.max_pauses),
            owing_ports: Vec::new(),
        }
    }

    /// The last bit of a frame has arrived at a port.
    #[inline]
    pub fn handle_frame(
        &mut self,
        now_ps: u64,
        ingress_port: u16,
        frame: Frame,
        outputs: &mut Vec<Output>,
    ) {
        match frame {
            Frame::Pause(pause) => self.handle_pause(now_ps, ingress_port, &pause, outputs),
            Frame::Roce(packet) => self.forward(now_ps, ingress_port, packet, outputs),
        }
        self.serve_owing(now_ps, outputs);
        debug_assert_eq!(self.buffer.used_bytes(), self.queued_bytes());
    }

    /// The time of an [`Output::Wake`] has come.
    #[inline]
    pub fn handle_wake(&mut self, now_ps: u64, token: u32, outputs: &mut Vec<Output>) {
        let port = token as u16;
        if token & REFRESH_TOKEN != 0 {
            self.refresh_pauses(now_ps, port, outputs);
        } else if token & CHECK_TOKEN != 0 {
            self.check_storm(now_ps, port, (token >> PRIORITY_SHIFT) as u8 & 7, outputs);
        } else {
            self.ports[usize::from(port)].handle_wake(now_ps);
        }
        self.serve(now_ps, port, outputs);
        self.serve_owing(now_ps, outputs);
        debug_assert_eq!(self.buffer.used_bytes(), self.queued_bytes());
    }

    fn handle_pause(
        &mut self,
        now_ps: u64,
        index: u16,
        pause: &PauseFrame,
        outputs: &mut Vec<Output>,
    ) {
        self.serve(now_ps, index, outputs);
        let port = &mut self.ports[usize::from(index)];
        port.totals.pause_frames_received += 1;
        port.touched |= pause.class_enable;
        bits(pause.class_enable).for_each(|n| port.queues[n].pause_frames_received += 1);
        port.scheduler.handle_pause(now_ps, pause);
        self.serve(now_ps, index, outputs);
        for priority in bits(pause.class_enable) {
            self.watch(now_ps, index, priority as u8, outputs);
        }
    }

    #[inline]
    fn forward(
        &mut self,
        now_ps: u64,
        ingress_port: u16,
        mut packet: Box<Packet>,
        outputs: &mut Vec<Output>,
    ) {
        let priority = self.priority_of_dscp[usize::from(packet.dscp & 63)];
        let Some(egress_port) = self.route(now_ps, priority, &packet) else {
            self.ports[usize::from(ingress_port)].totals.unroutable_packets += 1;
            return;
        };
        if packet.ttl <= 1 {
            self.ports[usize::from(ingress_port)].totals.expired_packets += 1;
            return;
        }
        packet.ttl -= 1;
        let passage = Passage { ingress_port, egress_port, priority };
        if self.enqueue(now_ps, passage, packet, outputs) {
            self.serve(now_ps, egress_port, outputs);
        }
    }

    #[inline]
    fn route(&mut self, now_ps: u64, priority: u8, packet: &Packet) -> Option<u16> {
        let choices = self.routes.towards(packet.destination_address);
        match choices.ports {
            [] => None,
            [port] => Some(*port),
            _ => {
                let ports = &self.ports;
                let depth_bytes =
                    |port: u16| ports[usize::from(port)].scheduler.depth_bytes(priority);
                Some(self.paths.choose(now_ps, packet.flow(), choices, depth_bytes))
            }
        }
    }

    /// Store a packet and queue it, or drop it. Returns whether it is queued.
    #[inline]
    fn enqueue(
        &mut self,
        now_ps: u64,
        passage: Passage,
        packet: Box<Packet>,
        outputs: &mut Vec<Output>,
    ) -> bool {
        let Passage { ingress_port, egress_port, priority } = passage;
        let wire_bytes = packet.wire_bytes();
        let verdict = match self.admit(passage, &packet, wire_bytes) {
            Ok(verdict) => verdict,
            Err(cause) => {
                let port = &mut self.ports[usize::from(egress_port)];
                port.touched |= 1 << priority;
                port.queues[usize::from(priority)].count_drop(cause, wire_bytes);
                return false;
            }
        };
        let frame = Frame::Roce(packet);
        let queued = Queued { frame, wire_bytes, ingress_port, enqueued_ps: now_ps };
        let port = &mut self.ports[usize::from(egress_port)];
        port.touched |= 1 << priority;
        port.scheduler.push(priority, queued);
        if self.buffer.is_lossless(priority) {
            let held_bytes = self.buffer.ingress_bytes(ingress_port, priority);
            self.pauses.stored(passage, wire_bytes, held_bytes);
        }
        if verdict == Verdict::StoredPause {
            self.pause_ingress(now_ps, ingress_port, priority, outputs);
        }
        self.watch(now_ps, egress_port, priority, outputs);
        true
    }

    /// Whether a packet may be stored.
    #[inline]
    fn admit(
        &mut self,
        passage: Passage,
        packet: &Packet,
        wire_bytes: u32,
    ) -> Result<Verdict, DropCause> {
        let Passage { egress_port, priority, .. } = passage;
        if self.ports[usize::from(egress_port)].is_down {
            return Err(DropCause::LinkDown);
        }
        if self.drops_for_storm(egress_port, priority) {
            return Err(DropCause::Storm);
        }
        let depth_bytes = self.depth_bytes(egress_port, priority);
        if let Some(profile) = &self.ecn[usize::from(priority)] {
            if self.early_drops.drops(profile, depth_bytes, packet) {
                return Err(DropCause::Wred);
            }
        }
        match self.buffer.admit(passage, wire_bytes) {
            Verdict::Dropped => Err(DropCause::QueueFull),
            Verdict::HeadroomExceeded => Err(DropCause::HeadroomFull),
            stored => Ok(stored),
        }
    }

    #[inline]
    fn drops_for_storm(&self, port: u16, priority: u8) -> bool {
        self.watchdog.as_ref().is_some_and(|watchdog| {
            watchdog.action() == StormAction::Drop && watchdog.is_storm(port, usize::from(priority))
        })
    }

    /// Have the watchdog look at a queue that may be paused.
    #[inline]
    fn watch(&mut self, now_ps: u64, index: u16, priority: u8, outputs: &mut Vec<Output>) {
        let Some(watchdog) = &mut self.watchdog else { return };
        if watchdog.guards(priority) {
            let scheduler = &self.ports[usize::from(index)].scheduler;
            let queue = scheduler.queue(usize::from(priority));
            let check_ps = watchdog.watch(now_ps, index, usize::from(priority), queue);
            outputs.extend(check_ps.map(|at_ps| check_wake(index, priority, at_ps)));
        }
    }

    fn check_storm(&mut self, now_ps: u64, index: u16, priority: u8, outputs: &mut Vec<Output>) {
        let Some(watchdog) = &mut self.watchdog else { return };
        let action = watchdog.action();
        let port = &mut self.ports[usize::from(index)];
        let queue = port.scheduler.queue(usize::from(priority));
        match watchdog.check(now_ps, index, usize::from(priority), queue) {
            Finding::Unchanged(check_ps) => {
                outputs.extend(check_ps.map(|at_ps| check_wake(index, priority, at_ps)));
            }
            Finding::StormBegins(check_ps) => {
                port.queues[usize::from(priority)].storms += 1;
                outputs.push(check_wake(index, priority, check_ps));
                match action {
                    StormAction::Forward => port.scheduler.ignore_pauses(priority, true),
                    StormAction::Drop => {
                        self.discard_queue(now_ps, index, priority, DropCause::Storm);
                    }
                }
            }
            Finding::StormEnds => port.scheduler.ignore_pauses(priority, false),
        }
    }

    /// Drop all that is queued.
    pub(super) fn discard_queue(
        &mut self,
        now_ps: u64,
        index: u16,
        priority: u8,
        cause: DropCause,
    ) {
        loop {
            let port = &mut self.ports[usize::from(index)];
            let Some(queued) = port.scheduler.discard(now_ps, priority) else { return };
            let Queued { wire_bytes, ingress_port, .. } = queued;
            let passage = Passage { ingress_port, egress_port: index, priority };
            port.queues[usize::from(priority)].count_drop(cause, wire_bytes);
            self.release(now_ps, passage, wire_bytes);
        }
    }

    /// Free the buffer of a packet that is gone, and let its ingress resume if that suffices.
    #[inline]
    fn release(&mut self, now_ps: u64, passage: Passage, wire_bytes: u32) {
        let Passage { ingress_port, priority, .. } = passage;
        if self.buffer.is_lossless(priority) {
            self.pauses.released(passage, wire_bytes);
        }
        if self.buffer.release(passage, wire_bytes) {
            self.pauses.end(now_ps, ingress_port, priority);
            self.ports[usize::from(ingress_port)].pause.release(now_ps, priority);
            self.owing_ports.push(ingress_port);
        }
    }

    pub(super) fn pause_ingress(
        &mut self,
        now_ps: u64,
        port: u16,
        priority: u8,
        outputs: &mut Vec<Output>,
    ) {
        let held_bytes = self.buffer.ingress_bytes(port, priority);
        let schedulers = self.ports.iter().map(|port| &port.scheduler);
        self.pauses.begin(now_ps, (port, priority), held_bytes, schedulers);
        if let Some(at_ps) = self.ports[usize::from(port)].pause.assert(now_ps, priority) {
            outputs.push(Output::Wake { token: REFRESH_TOKEN | u32::from(port), at_ps });
        }
        self.owing_ports.push(port);
    }

    fn refresh_pauses(&mut self, now_ps: u64, port: u16, outputs: &mut Vec<Output>) {
        if let Some(at_ps) = self.ports[usize::from(port)].pause.refresh(now_ps) {
            outputs.push(Output::Wake { token: REFRESH_TOKEN | u32::from(port), at_ps });
        }
    }

    /// Send what a port could have sent by now, and ask to be called for the rest.
    #[inline]
    pub(super) fn serve(&mut self, now_ps: u64, index: u16, outputs: &mut Vec<Output>) {
        let port = &self.ports[usize::from(index)];
        if port.is_down || port.is_served_later(now_ps) {
            return;
        }
        loop {
            let port = &mut self.ports[usize::from(index)];
            if let Some(output) = port.poll_pause(now_ps, index, self.mac) {
                outputs.push(output);
            } else if let Some(departure) = port.scheduler.poll(now_ps) {
                let output = self.depart(now_ps, index, departure);
                outputs.push(output);
            } else {
                break;
            }
        }
        outputs.extend(self.ports[usize::from(index)].next_wake(index));
    }

    /// A frame leaves: mark it, count it, free its buffer.
    #[inline]
    fn depart(&mut self, now_ps: u64, index: u16, departure: Departure) -> Output {
        let Departure { queued, priority, end_ps, .. } = departure;
        let Queued { mut frame, wire_bytes, ingress_port, .. } = queued;
        let port = &mut self.ports[usize::from(index)];
        let totals = &mut port.queues[usize::from(priority)];
        if let (Some(profile), Frame::Roce(packet)) = (&self.ecn[usize::from(priority)], &mut frame)
        {
            let behind_bytes = port.scheduler.depth_bytes(priority);
            let is_marked = mark(profile, behind_bytes, self.marking_seed, packet);
            totals.marked_packets += u64::from(is_marked);
        }
        totals.tx_packets += 1;
        totals.tx_bytes += u64::from(wire_bytes);
        let passage = Passage { ingress_port, egress_port: index, priority };
        self.release(now_ps, passage, wire_bytes);
        Output::Transmit { port: index, frame, end_ps }
    }

    /// Send the pause frames that became due at other ports, and what follows from that.
    #[inline]
    pub(super) fn serve_owing(&mut self, now_ps: u64, outputs: &mut Vec<Output>) {
        while let Some(port) = self.owing_ports.pop() {
            self.serve(now_ps, port, outputs);
        }
    }

    fn queued_bytes(&self) -> u64 {
        self.ports.iter().map(|port| port.scheduler.total_depth_bytes()).sum()
    }

    /// Number of ports.
    pub fn ports(&self) -> u16 {
        self.ports.len() as u16
    }

    /// The buffer.
    pub fn buffer(&self) -> &SharedBuffer {
        &self.buffer
    }

    /// The pauses that it asked for.
    pub fn pauses(&self) -> &PauseLog {
        &self.pauses
    }

    /// Bytes in an egress queue.
    pub fn depth_bytes(&self, port: u16, priority: u8) -> u64 {
        self.ports[usize::from(port)].scheduler.depth_bytes(priority)
    }

    /// Totals of a port.
    pub fn port_totals(&self, port: u16) -> PortTotals {
        self.ports[usize::from(port)].totals()
    }

    /// Totals of an egress queue.
    pub fn queue_totals(&self, port: u16, priority: u8) -> QueueTotals {
        self.ports[usize::from(port)].queues[usize::from(priority)]
    }

    /// Time that a priority of a port has been paused by its neighbour, up to `now_ps`.
    pub fn paused_ps(&self, now_ps: u64, port: u16, priority: u8) -> u64 {
        self.ports[usize::from(port)].scheduler.paused_ps(now_ps, priority)
    }

    /// The priorities of a port (bit n: n) of which something may have changed between the last call and
    /// `now_ps`; the others' samples are empty.
    pub fn take_touched(&mut self, now_ps: u64, port: u16) -> u8 {
        self.ports[usize::from(port)].take_touched(now_ps)
    }

    /// What an egress queue counted since the last call.
    pub fn take_queue_sample(&mut self, port: u16, priority: u8) -> QueueSample {
        self.ports[usize::from(port)].take_queue_sample(priority)
    }
}

fn check_wake(port: u16, priority: u8, at_ps: u64) -> Output {
    let token = CHECK_TOKEN | u32::from(priority) << PRIORITY_SHIFT | u32::from(port);
    Output::Wake { token, at_ps }
}
