//! Drives programs whose messages are flows, in virtual time.

use super::loads::{Loads, Mix};
use super::message::{Framing, Message, acknowledgement_line_bytes};
use super::posting::whole;
use super::queue_pair::{NO_WAKE_PS, QueuePair, Sent};
use super::rank::{Rank, connections};
use super::route::Router;
use super::sharing::{Change, Sharing};
use crate::config::JobConfig;
use crate::engine::ConfigError;
use crate::engine::connections::Connection;
use crate::engine::event_queue::EventQueue;
use crate::engine::executor::{Action, Completion, Executor};
use crate::engine::link_events::LinkEvents;
use crate::engine::nic::striping;
use crate::engine::program::{Program, check_programs};
use crate::engine::topology::Topology;
use crate::engine::virtual_clock::Progress;
use crate::units::transfer_ps;
use std::collections::BTreeMap;
use std::sync::Arc;

/// No flow.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The first message of a flow may have left.
    Drained { flow: u32 },
    /// A message, or a stripe of it, has arrived whole.
    Arrived { flow: u32, peer_op: u32, size_bytes: u64 },
    /// Its acknowledgement has arrived.
    Acknowledged { nic: u32, op: u32 },
    /// A receiver's readiness has arrived at the sender.
    Cleared { nic: u32, op: u32 },
    /// A delay of a program ends.
    DelayEnd { nic: u32, op: u32 },
    /// Bandwidth is shared anew.
    Share,
    /// Links change.
    LinkChange { event: u32, change: u32 },
    /// The switches at the links of an event see how they are.
    LinkNotice { event: u32 },
    /// All switches learn of it.
    LinkWithdrawal { event: u32 },
    /// A flow whose way was cut goes on.
    Resumption { flow: u32 },
}

/// See the module documentation of [`crate::fluid`].
#[derive(Debug)]
pub struct Emulation {
    pub(super) config: JobConfig,
    pub(super) topology: Topology,
    pub(super) router: Router,
    deferral_ratio: f64,
    /// By NIC index.
    pub(super) ranks: Vec<Option<Rank>>,
    pub(super) connections: Vec<Connection>,
    /// Flow of each connection; `NONE` until it sends.
    pub(super) flow_of_connection: Vec<u32>,
    pub(super) flows: Vec<QueuePair>,
    pub(super) sharing: Sharing,
    pub(super) loads: Loads,
    pub(super) link_events: Option<Box<LinkEvents>>,
    /// What flows sent over directions that they have left: by flow and direction.
    pub(super) past: BTreeMap<(u32, u32), Sent>,
    pub(super) events: EventQueue<Event>,
    /// When bandwidth is shared anew; later and earlier events for it are stale.
    share_ps: u64,
    changes: Vec<Change>,
    pub(super) completions: Vec<Completion>,
    is_started: bool,
    pub(super) now_ps: u64,
    pub(super) events_handled: u64,
    pub(super) bytes_arrived: u64,
    pub(super) ops_done: usize,
    pub(super) ops_total: usize,
}

impl Emulation {
    /// A job at time 0. `deferral_ratio` is that of the module documentation, 0 to 1.
    pub fn new(
        config: JobConfig,
        programs: &[Arc<Program>],
        deferral_ratio: f64,
    ) -> Result<Self, ConfigError> {
        if !(0.0..=1.0).contains(&deferral_ratio) {
            return Err(ConfigError::new("deferral_ratio out of range"));
        }
        let topology = Topology::new(&config)?;
        check_programs(programs, true)?;
        let lengths = programs.iter().map(|program| (program.rank, program.len())).collect();
        let link_events = LinkEvents::new(&config, &topology, &lengths, true)?;
        let connections = connections(&config, &topology, programs)?;
        let mut ranks: Vec<Option<Rank>> = config.nics.iter().map(|_| None).collect();
        for program in programs {
            let nic = topology.nic_of(program.rank)?;
            ranks[nic as usize] = Some(Rank::new(&config, program, &connections));
        }
        let rates = || topology.directions.iter().map(|direction| direction.rate_bps);
        let telemetry = config.telemetry;
        Ok(Self {
            router: Router::new(&config),
            deferral_ratio,
            flow_of_connection: vec![NONE; connections.len()],
            connections,
            flows: Vec::new(),
            sharing: Sharing::new(rates()),
            loads: Loads::new(rates(), telemetry.sample_interval_ps, telemetry.max_samples),
            link_events,
            past: BTreeMap::new(),
            events: EventQueue::new(),
            share_ps: u64::MAX,
            changes: Vec::new(),
            completions: Vec::new(),
            is_started: false,
            now_ps: 0,
            events_handled: 0,
            bytes_arrived: 0,
            ops_done: 0,
            ops_total: programs.iter().map(|program| program.len()).sum(),
            ranks,
            topology,
            config,
        })
    }

    /// Handle events up to `until_ps` until every operation is complete, or until work like that
    /// of `max_events` events is done: a sharing counts as one for every flow that it looks at.
    pub fn advance(&mut self, until_ps: Option<u64>, max_events: u64) -> Progress {
        if !self.is_started {
            self.start();
        }
        let until_ps = until_ps.unwrap_or(u64::MAX);
        let mut work = 0;
        while self.ops_done < self.ops_total {
            let Some(next_ps) = self.events.next_ps() else {
                return Progress::Stalled;
            };
            if work >= max_events {
                return Progress::Paused;
            }
            if next_ps > until_ps {
                self.advance_to(until_ps);
                return Progress::Paused;
            }
            if let Some((at_ps, event)) = self.events.pop() {
                self.advance_to(at_ps);
                work += self.dispatch(event);
            }
        }
        Progress::Done
    }

    fn start(&mut self) {
        self.is_started = true;
        self.schedule_link_events();
        for nic in 0..self.ranks.len() as u32 {
            if let Some(rank) = &mut self.ranks[nic as usize] {
                rank.executor.start(0);
                self.settle(nic);
            }
        }
    }

    fn advance_to(&mut self, now_ps: u64) {
        self.now_ps = self.now_ps.max(now_ps);
        if self.now_ps >= self.loads.next_sample_ps() {
            self.loads.advance_to(self.now_ps);
        }
    }

    /// Returns how much work it was.
    fn dispatch(&mut self, event: Event) -> u64 {
        self.events_handled += 1;
        match event {
            Event::Drained { flow } => self.handle_drained(flow),
            Event::Arrived { flow, peer_op, size_bytes } => {
                self.handle_arrival(flow, peer_op, size_bytes);
            }
            Event::Acknowledged { nic, op } => self.handle_acknowledged(nic, op),
            Event::Cleared { nic, op } => self.on_rank(nic, |executor, _| {
                executor.handle_cleared(op);
            }),
            Event::DelayEnd { nic, op } => self.on_rank(nic, |executor, now_ps| {
                executor.handle_delay_end(now_ps, op);
            }),
            Event::Share if self.share_ps <= self.now_ps => return 1 + self.share() as u64,
            Event::Share => {}
            Event::LinkChange { event, change } => self.change_links(event, change),
            Event::LinkNotice { event } => self.notice_links(event),
            Event::LinkWithdrawal { event } => self.withdraw_links(event),
            Event::Resumption { flow } => self.handle_resumption(flow),
        }
        1
    }

    fn on_rank(&mut self, nic: u32, act: impl FnOnce(&mut Executor, u64)) {
        if let Some(rank) = &mut self.ranks[nic as usize] {
            act(&mut rank.executor, self.now_ps);
            self.settle(nic);
        }
    }

    /// Carry out what a program wants.
    fn settle(&mut self, nic: u32) {
        loop {
            let Some(rank) = &mut self.ranks[nic as usize] else { return };
            let Some(action) = rank.executor.poll_action() else {
                let done = rank.executor.ops_done();
                self.ops_done += done - std::mem::replace(&mut rank.reported_done, done);
                self.poll_moments(nic);
                return;
            };
            match action {
                Action::Delay { op, at_ps } => {
                    self.events.push(at_ps, Event::DelayEnd { nic, op });
                }
                Action::Post { op, peer, size_bytes, peer_op } => {
                    self.post(nic, peer, Message { op, peer_op, size_bytes });
                }
                Action::Clear { op, peer, peer_op } => {
                    let class = rank.executor.program().class_of(op);
                    self.clear(nic, (peer, class), peer_op);
                }
            }
        }
    }

    pub(super) fn activate(&mut self, flow: u32, size_bytes: u64) {
        let framing = Framing::new(size_bytes, self.config.transport.mtu_bytes);
        let pair = &mut self.flows[flow as usize];
        pair.begin(self.now_ps, &framing, size_bytes);
        if pair.cut.is_some() {
            self.begin_outage(flow, 0.0);
        } else {
            self.join_links(flow, framing.line_bytes);
        }
    }

    /// The flow sends from now on; its first message has so many bytes on the line.
    pub(super) fn join_links(&mut self, flow: u32, line_bytes: u64) {
        self.sharing.hops(flow).for_each(|(d, _)| self.loads.enter(self.now_ps, d));
        let activation = self.sharing.activate(flow);
        self.set_rate(flow, activation.rate_bps);
        if !activation.is_final {
            self.want_sharing(transfer_ps(line_bytes, activation.least_bps as u64));
        }
    }

    fn deactivate(&mut self, flow: u32) {
        if self.leave_links(flow) {
            self.want_sharing(self.now_ps - self.flows[flow as usize].begun_ps);
        }
    }

    /// The flow sends nothing from now on. Whether others may get what it leaves.
    pub(super) fn leave_links(&mut self, flow: u32) -> bool {
        self.set_rate(flow, 0.0);
        self.sharing.hops(flow).for_each(|(d, _)| self.loads.leave(self.now_ps, d));
        self.sharing.deactivate(flow)
    }

    /// Share anew after the deferred part of `scale_ps`, or earlier.
    pub(super) fn want_sharing(&mut self, scale_ps: u64) {
        let after_ps = (scale_ps as f64 * self.deferral_ratio) as u64;
        let at_ps = self.now_ps.saturating_add(after_ps);
        if at_ps < self.share_ps {
            self.share_ps = at_ps;
            self.events.push(at_ps, Event::Share);
        }
    }

    fn share(&mut self) -> usize {
        self.share_ps = u64::MAX;
        let mut changes = std::mem::take(&mut self.changes);
        let reached = self.sharing.share(&mut changes);
        for change in changes.drain(..) {
            self.set_rate(change.flow, change.rate_bps);
        }
        self.changes = changes;
        reached
    }

    fn set_rate(&mut self, flow: u32, rate_bps: f64) {
        let pair = &mut self.flows[flow as usize];
        let (from, to) = ((pair.rate_bps, pair.mix), (rate_bps, pair.mix));
        pair.set_rate(self.now_ps, rate_bps);
        self.change_loads(flow, from, to);
        self.arm(flow);
    }

    fn change_loads(&mut self, flow: u32, from: (f64, Mix), to: (f64, Mix)) {
        for (direction, fraction) in self.sharing.hops(flow) {
            let part = |(rate_bps, mix): (f64, Mix)| (fraction * rate_bps, mix);
            self.loads.change(self.now_ps, direction, part(from), part(to));
        }
    }

    /// See to a wake-up that is not later than the end of the first message.
    fn arm(&mut self, flow: u32) {
        let pair = &mut self.flows[flow as usize];
        if pair.finish_ps < pair.wake_ps {
            pair.wake_ps = pair.finish_ps;
            self.events.push(pair.finish_ps, Event::Drained { flow });
        }
    }

    fn handle_drained(&mut self, flow: u32) {
        let pair = &mut self.flows[flow as usize];
        if pair.wake_ps != self.now_ps {
            return;
        }
        pair.wake_ps = NO_WAKE_PS;
        if pair.finish_ps > self.now_ps {
            self.arm(flow);
            return;
        }
        if let Some(message) = pair.messages.pop_front() {
            self.depart(flow, message);
        }
        match self.flows[flow as usize].messages.front() {
            Some(&next) => self.go_on(flow, next.size_bytes),
            None => self.deactivate(flow),
        }
    }

    /// The next message follows at the same rate.
    fn go_on(&mut self, flow: u32, size_bytes: u64) {
        let framing = Framing::new(size_bytes, self.config.transport.mtu_bytes);
        let pair = &mut self.flows[flow as usize];
        let before = (pair.rate_bps, pair.mix);
        pair.begin(self.now_ps, &framing, size_bytes);
        let after = (pair.rate_bps, pair.mix);
        if before != after {
            self.change_loads(flow, before, after);
        }
        self.arm(flow);
    }

    /// The last bit of a message has left its NIC.
    fn depart(&mut self, flow: u32, message: Message) {
        let framing = Framing::new(message.size_bytes, self.config.transport.mtu_bytes);
        let pair = &mut self.flows[flow as usize];
        let nic = pair.source_nic;
        pair.count_sent(whole(&framing, message.size_bytes));
        let arrival_ps = self.now_ps + pair.forward.beyond_first_ps(framing.packet_line_bytes);
        let end_ps = arrival_ps + pair.back.whole_ps(acknowledgement_line_bytes());
        let Message { op, peer_op, size_bytes } = message;
        self.events.push(arrival_ps, Event::Arrived { flow, peer_op, size_bytes });
        self.events.push(end_ps, Event::Acknowledged { nic, op });
        if let Some(rank) = &mut self.ranks[nic as usize] {
            rank.totals.tx_packets += framing.packets;
            rank.totals.tx_bytes += framing.frame_bytes();
            rank.totals.sent_bytes += size_bytes;
        }
    }

    fn handle_arrival(&mut self, flow: u32, peer_op: u32, size_bytes: u64) {
        let framing = Framing::new(size_bytes, self.config.transport.mtu_bytes);
        let pair = &self.flows[flow as usize];
        let source_rank = self.config.nics[pair.source_nic as usize].rank;
        let nic = pair.destination_nic;
        self.bytes_arrived += size_bytes;
        let Some(rank) = &mut self.ranks[nic as usize] else { return };
        rank.totals.rx_packets += framing.packets;
        rank.totals.rx_bytes += framing.frame_bytes();
        rank.totals.received_bytes += size_bytes;
        if rank.striping.handle_received(source_rank, peer_op, size_bytes, 0).is_some() {
            self.on_rank(nic, |executor, now_ps| {
                executor.handle_message(now_ps, peer_op);
            });
        }
    }

    fn handle_acknowledged(&mut self, nic: u32, op: u32) {
        let Some(rank) = &mut self.ranks[nic as usize] else { return };
        if rank.striping.handle_sent(op, striping::Sent::default()).is_some() {
            self.on_rank(nic, |executor, now_ps| executor.handle_sent(now_ps, op));
        }
    }
}
