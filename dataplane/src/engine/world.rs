//! The event loop over hosts, switches and links: the same for the virtual and the wall clock.
//!
//! What happens to a frame at the end of its link is the [`Medium`]'s: within one process it is
//! handed to the node at the other end; otherwise it goes on a wire when its transmission begins,
//! and is an event of the other process at the time of its arrival.
//!
//! Events of one time are ordered by what they are, so that the history of a node is the same
//! whichever processes the others are in.

use super::assembly::{HostBuilder, build_switches};
use super::calendar::Calendar;
use super::error::ConfigError;
use super::executor::Completion;
use super::flow_links::FlowLinks;
use super::host::{Host, HostOutput};
use super::line::{FrameSize, Line};
use super::link_events::LinkEvents;
use super::links::schedule_changes;
use super::nic::DeviceEvent;
use super::program::{Program, check_programs};
use super::telemetry::Telemetry;
use super::topology::Topology;
use crate::config::{JobConfig, NodeId};
use crate::fabric::{Output, Switch};
use crate::roce::Frame;
use std::collections::VecDeque;
use std::sync::Arc;

pub use super::medium::{Internal, Medium};

/// What happens at a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The first frame under way in a direction arrives.
    Arrival { direction: u32 },
    /// A frame came over a wire.
    Injected { direction: u32 },
    /// A frame that its medium held back arrives.
    Release,
    /// An adapter reports something.
    Device,
    /// A host wants to be called.
    HostWake { nic: u32 },
    /// A delay of a host's program ends.
    DelayEnd { nic: u32, op: u32 },
    /// A switch wants to be called.
    SwitchWake { switch: u32, token: u32 },
    /// Links change.
    LinkChange { event: u32, change: u32 },
    /// The switches at links that have changed learn of it.
    LinkNotice { event: u32 },
    /// All switches learn of it.
    LinkWithdrawal { event: u32 },
}

/// An operation that is complete, with its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankCompletion {
    /// The rank.
    pub rank: u32,
    /// The operation and its times.
    pub completion: Completion,
}

/// See the module documentation.
#[derive(Debug)]
pub struct World<M> {
    pub(super) config: Arc<JobConfig>,
    pub(super) topology: Topology,
    pub(super) medium: M,
    /// By NIC index; `None` for a node of another process.
    pub(super) hosts: Vec<Option<Box<Host>>>,
    /// By switch index; likewise.
    pub(super) switches: Vec<Option<Box<Switch>>>,
    pub(super) lines: Vec<Line>,
    /// What happens to links; `None` if nothing does.
    pub(super) link_events: Option<Box<LinkEvents>>,
    /// By direction: frames from wires that wait for their event, by time.
    pub(super) inbound: Vec<VecDeque<(u64, Frame)>>,
    /// Reports of adapters that wait for their event: NIC, queue pair, report.
    pub(super) device_events: VecDeque<(u32, u32, DeviceEvent)>,
    pub(super) events: Calendar<Event>,
    /// Next events that were looked at.
    seen: usize,
    pub(super) now_ps: u64,
    pub(super) events_handled: u64,
    pub(super) frames_delivered: u64,
    pub(super) bytes_arrived: u64,
    pub(super) ops_total: usize,
    pub(super) ops_done: usize,
    pub(super) telemetry: Telemetry,
    pub(super) flow_links: FlowLinks,
    completions: Vec<Completion>,
    pub(super) host_outputs: Vec<HostOutput>,
    pub(super) switch_outputs: Vec<Output>,
}

impl<M: Medium> World<M> {
    /// The part of the job whose nodes `is_local` accepts, at time 0, not started.
    ///
    /// `programs` are those of the local ranks at least; programs of other ranks are only checked.
    pub fn new(
        config: Arc<JobConfig>,
        programs: &[Arc<Program>],
        medium: M,
        is_local: impl Fn(NodeId) -> bool,
    ) -> Result<Self, ConfigError> {
        let topology = Topology::new(&config)?;
        let mut all = (0..config.nics.len()).map(|nic| NodeId::Nic(nic as u32));
        let has_all_nics = all.all(&is_local);
        check_programs(programs, has_all_nics)?;
        let mut all = (0..config.switches.len()).map(|switch| NodeId::Switch(switch as u32));
        let is_whole = has_all_nics && all.all(&is_local);
        let lengths = programs.iter().map(|program| (program.rank, program.len())).collect();
        let link_events = LinkEvents::new(&config, &topology, &lengths, is_whole)?;
        let hosts =
            HostBuilder::new(&config, &topology, programs)?.build_local(programs, &is_local)?;
        let switches = build_switches(&config, &topology, &is_local);
        let lines: Vec<Line> =
            topology.directions.iter().map(|d| Line::new(d.rate_bps, d.delay_ps)).collect();
        let ops_total = hosts.iter().flatten().map(|h| h.executor().program().len()).sum();
        Ok(Self {
            telemetry: Telemetry::new(&config, &topology),
            flow_links: FlowLinks::new(if config.telemetry.flow_paths { lines.len() } else { 0 }),
            config,
            topology,
            medium,
            hosts,
            switches,
            link_events,
            inbound: lines.iter().map(|_| VecDeque::new()).collect(),
            lines,
            device_events: VecDeque::new(),
            events: Calendar::new(),
            seen: 0,
            now_ps: 0,
            events_handled: 0,
            frames_delivered: 0,
            bytes_arrived: 0,
            ops_total,
            ops_done: 0,
            completions: Vec::new(),
            host_outputs: Vec::new(),
            switch_outputs: Vec::new(),
        })
    }

    /// Start the programs of all local ranks.
    pub fn start(&mut self) {
        self.schedule_link_events();
        for nic in 0..self.hosts.len() as u32 {
            if let Some(host) = &mut self.hosts[nic as usize] {
                host.start(self.now_ps, &mut self.host_outputs);
                self.after_host(nic);
            }
        }
    }

    /// Time of the next event.
    #[inline]
    pub fn next_ps(&self) -> Option<u64> {
        self.events.next_ps()
    }

    /// Handle the next event if it is not later than `until_ps`. Returns its time.
    #[inline]
    pub fn step(&mut self, until_ps: u64) -> Option<u64> {
        let (at_ps, event) = self.events.pop_until(until_ps)?;
        self.advance_to(at_ps);
        self.seen = if self.seen > 0 { self.seen - 1 } else { self.look_ahead(event) };
        self.dispatch(event);
        Some(at_ps)
    }

    /// A frame has come over a wire for the node at the end of `direction`, where its last bit
    /// arrives at `at_ps`, or now if that has passed. It is an event like any other: what was due
    /// before is handled before.
    pub fn inject(&mut self, at_ps: u64, direction: u32, frame: Frame) {
        let line = &mut self.lines[direction as usize];
        if line.has_lost(at_ps, &frame) {
            line.count_lost(&frame);
            return;
        }
        let at_ps = at_ps.max(self.now_ps);
        let inbound = &mut self.inbound[direction as usize];
        let behind = inbound.iter().rev().take_while(|(later_ps, _)| *later_ps > at_ps).count();
        inbound.insert(inbound.len() - behind, (at_ps, frame));
        let key = self.events.key(at_ps, rank(direction));
        self.events.push_key(key, Event::Injected { direction });
    }

    /// Move the clock without an event; it never goes back.
    #[inline]
    pub fn advance_to(&mut self, now_ps: u64) {
        if now_ps >= self.telemetry.next_sample_ps() {
            self.sample(now_ps);
        }
        self.now_ps = self.now_ps.max(now_ps);
    }

    #[inline]
    fn dispatch(&mut self, event: Event) {
        self.events_handled += 1;
        self.telemetry.note_activity();
        match event {
            Event::Arrival { direction } => self.arrive(direction),
            Event::Injected { direction } => {
                if let Some(frame) = self.pop_inbound(direction) {
                    self.deliver(direction, frame);
                }
            }
            Event::Release => {
                if let Some((direction, frame)) = self.medium.release(self.now_ps) {
                    self.deliver(direction, frame);
                }
            }
            Event::Device => self.handle_device_event(),
            Event::HostWake { nic } => self.wake_host(nic),
            Event::SwitchWake { switch, token } => self.wake_switch(switch, token),
            Event::LinkChange { event, change } => self.change_links(event, change),
            Event::LinkNotice { event } => self.notice_links(event),
            Event::LinkWithdrawal { event } => self.withdraw_links(event),
            Event::DelayEnd { nic, op } => {
                if let Some(host) = &mut self.hosts[nic as usize] {
                    host.handle_delay_end(self.now_ps, op, &mut self.host_outputs);
                    self.after_host(nic);
                }
            }
        }
    }

    /// The frame that has come by now; none if it was lost after its event was made.
    #[inline]
    fn pop_inbound(&mut self, direction: u32) -> Option<Frame> {
        let inbound = &mut self.inbound[direction as usize];
        if inbound.front()?.0 > self.now_ps {
            return None;
        }
        inbound.pop_front().map(|(_, frame)| frame)
    }

    #[inline]
    fn arrive(&mut self, direction: u32) {
        let Some((frame, next)) = self.lines[direction as usize].pop(self.now_ps) else {
            return;
        };
        if let Some(key) = next {
            self.events.push_key(key, Event::Arrival { direction });
        }
        if let Some(frame) = self.medium.carry(self.now_ps, direction, frame) {
            self.deliver(direction, frame);
        }
        while let Some((at_ps, direction)) = self.medium.poll_release() {
            let key = self.events.key(at_ps.max(self.now_ps), rank(direction));
            self.events.push_key(key, Event::Release);
        }
    }

    #[inline]
    fn deliver(&mut self, direction: u32, frame: Frame) {
        self.frames_delivered += 1;
        let size = FrameSize::of(&frame);
        self.lines[direction as usize].count_delivered(size);
        let end = self.topology.directions[direction as usize].to;
        match end.node {
            NodeId::Nic(nic) => {
                if let Some(host) = &mut self.hosts[nic as usize] {
                    self.bytes_arrived += size.data_bytes;
                    host.handle_frame(self.now_ps, &frame, &mut self.host_outputs);
                    self.after_host(nic);
                }
            }
            NodeId::Switch(switch) => {
                if let Some(node) = &mut self.switches[switch as usize] {
                    node.handle_frame(self.now_ps, end.port, frame, &mut self.switch_outputs);
                    self.after_switch(switch);
                }
            }
        }
    }

    #[inline]
    fn wake_host(&mut self, nic: u32) {
        if let Some(host) = &mut self.hosts[nic as usize] {
            if host.wake_ps <= self.now_ps {
                host.wake_ps = u64::MAX;
                host.handle_timeout(self.now_ps, &mut self.host_outputs);
                self.after_host(nic);
            }
        }
    }

    #[inline]
    fn wake_switch(&mut self, switch: u32, token: u32) {
        if let Some(node) = &mut self.switches[switch as usize] {
            node.handle_wake(self.now_ps, token, &mut self.switch_outputs);
            self.after_switch(switch);
        }
    }

    /// Carry out what a host asked for, and arm its next call.
    #[inline]
    pub(super) fn after_host(&mut self, nic: u32) {
        let mut outputs = std::mem::take(&mut self.host_outputs);
        for output in outputs.drain(..) {
            match output {
                HostOutput::Delay { op, at_ps } => {
                    self.events.push(at_ps, Event::DelayEnd { nic, op });
                }
                HostOutput::Departure(departure) => {
                    if let Some(direction) = self.topology.nic_egress[nic as usize] {
                        self.transmit(direction, departure.end_ps, departure.frame);
                    }
                }
            }
        }
        self.host_outputs = outputs;
        if let Some(host) = &mut self.hosts[nic as usize] {
            self.ops_done += host.take_newly_done();
            while let Some(request) = host.nic_mut().poll_request() {
                self.medium.post(nic, request);
            }
            if let Some(events) = &mut self.link_events {
                while let Some(event) = events.poll_due(nic, self.now_ps, host.executor()) {
                    schedule_changes(&self.config, &mut self.events, self.now_ps, event);
                }
            }
            if let Some(at_ps) = host.poll_timeout() {
                let at_ps = at_ps.max(self.now_ps + 1);
                if at_ps < host.wake_ps {
                    host.wake_ps = at_ps;
                    self.events.push(at_ps, Event::HostWake { nic });
                }
            }
        }
    }

    #[inline]
    pub(super) fn after_switch(&mut self, switch: u32) {
        let mut outputs = std::mem::take(&mut self.switch_outputs);
        for output in outputs.drain(..) {
            match output {
                Output::Wake { token, at_ps } => {
                    self.events.push(at_ps, Event::SwitchWake { switch, token });
                }
                Output::Transmit { port, frame, end_ps } => {
                    let egress = &self.topology.switch_egress[switch as usize];
                    if let Some(direction) = egress[usize::from(port)] {
                        self.transmit(direction, end_ps, frame);
                    }
                }
            }
        }
        self.switch_outputs = outputs;
    }

    #[inline]
    fn transmit(&mut self, direction: u32, end_ps: u64, frame: Frame) {
        let size = FrameSize::of(&frame);
        self.flow_links.count(direction, &frame, size);
        let line = &mut self.lines[direction as usize];
        let arrival_ps = line.arrival_ps(end_ps);
        if self.medium.takes_ahead() {
            line.count(end_ps, size);
            self.medium.carry(arrival_ps, direction, frame);
            return;
        }
        let key = self.events.key(arrival_ps, rank(direction));
        if line.push(end_ps, key, frame, size) {
            self.events.push_key(key, Event::Arrival { direction });
        }
    }

    /// Take a sample of every series that is due before `now_ps`.
    #[cold]
    fn sample(&mut self, now_ps: u64) {
        self.telemetry.advance_to(now_ps, &mut self.hosts, &mut self.switches, &self.lines);
    }

    /// Take the last samples; the series are complete up to now.
    pub fn finish_telemetry(&mut self) {
        self.telemetry.finish(self.now_ps, &mut self.hosts, &mut self.switches, &self.lines);
    }

    /// Move what completed since the last call to the end of `into`.
    pub fn take_completions(&mut self, into: &mut Vec<RankCompletion>) {
        for host in self.hosts.iter_mut().flatten() {
            host.take_completions(&mut self.completions);
            let rank = host.executor().program().rank;
            into.extend(
                self.completions.drain(..).map(|completion| RankCompletion { rank, completion }),
            );
        }
    }
}

/// Rank of an arrival among events of its time: behind what nodes do by themselves, by direction.
#[inline]
fn rank(direction: u32) -> u32 {
    direction + 1
}
