//! What happens to links, and what flows do then.
//!
//! A flow whose way is cut, there or back, sends nothing until the way is whole again: the link has
//! come up, or the switches have learned to avoid it. Then it goes on at once if window and messages
//! have lasted, for packets that are sent now tell by their numbers what is missing. Otherwise its
//! sender has fallen silent, and goes on when its retransmission timer runs out next, counted from the
//! outage, or when it gets another message, whose packets tell as well. Only what its own NIC could not
//! send is not lost: then it goes on with the link.

use super::emulation::{Emulation, Event};
use super::message::Framing;
use super::posting::whole;
use super::queue_pair::{Outage, lasting_ps, limit_bps, timer_ps};
use super::route::Route;
use crate::config::{EventTrigger, LinkChange};
use crate::engine::link_events::{Happened, LinkEventRow, LinkEvents};
use crate::units::transfer_ps;

impl Emulation {
    /// Have the events happen whose time is given.
    pub(super) fn schedule_link_events(&mut self) {
        for index in 0..self.config.events.len() {
            if let EventTrigger::Time { at_ps } = self.config.events[index].trigger {
                self.schedule_changes(at_ps, index as u32);
            }
        }
    }

    fn schedule_changes(&mut self, moment_ps: u64, event: u32) {
        for (change, config) in self.config.events[event as usize].changes.iter().enumerate() {
            let at_ps = moment_ps.saturating_add(config.after_ps);
            self.events.push(at_ps, Event::LinkChange { event, change: change as u32 });
        }
    }

    /// Have the events happen whose moment has come, as the program of a NIC shows.
    pub(super) fn poll_moments(&mut self, nic: u32) {
        while let Some(event) = self.poll_moment(nic) {
            self.schedule_changes(self.now_ps, event);
        }
    }

    fn poll_moment(&mut self, nic: u32) -> Option<u32> {
        let rank = self.ranks[nic as usize].as_ref()?;
        self.link_events.as_mut()?.poll_due(nic, self.now_ps, &rank.executor)
    }

    /// Change the links of an event. What switches do about it comes after their delay.
    pub(super) fn change_links(&mut self, event: u32, change: u32) {
        let links = self.config.events[event as usize].links.clone();
        let change = self.config.events[event as usize].changes[change as usize].change;
        for link in &links {
            let Some(events) = &mut self.link_events else { return };
            if events.is_news(*link, change) {
                let happened = events.note_change(self.now_ps, *link, change);
                if let LinkChange::Rate { rate_bps } = change {
                    self.set_link_rate(*link, rate_bps);
                }
                self.record_link(event, *link, happened);
            }
        }
        if matches!(change, LinkChange::Rate { .. }) {
            self.review_flows(&links);
        } else {
            self.review_flows(&[]);
            let after_ps = self.config.rerouting.detection_delay_ps;
            self.events.push(self.now_ps.saturating_add(after_ps), Event::LinkNotice { event });
        }
    }

    fn set_link_rate(&mut self, link: u32, rate_bps: u64) {
        for direction in [2 * link, 2 * link + 1] {
            self.topology.directions[direction as usize].rate_bps = rate_bps;
            self.sharing.set_capacity(direction, rate_bps);
            self.loads.set_rate(self.now_ps, direction, rate_bps);
        }
    }

    fn record_link(&mut self, event: u32, link: u32, happened: Happened) {
        let rate_bps = self.topology.directions[2 * link as usize].rate_bps;
        let time_ps = self.now_ps;
        if let Some(events) = &mut self.link_events {
            events.record(LinkEventRow { time_ps, event, link, happened, rate_bps });
        }
    }

    /// The switches at the links of an event see how they are now.
    pub(super) fn notice_links(&mut self, event: u32) {
        let mut has_news = false;
        for link in self.config.events[event as usize].links.clone() {
            let learned = self.link_events.as_mut().and_then(|events| events.notice(link));
            if let Some(happened) = learned {
                has_news = true;
                self.record_link(event, link, happened);
            }
        }
        if has_news {
            self.reroute();
            let after_ps = self.config.rerouting.convergence_delay_ps;
            self.events.push(self.now_ps.saturating_add(after_ps), Event::LinkWithdrawal { event });
        }
    }

    /// All switches learn how the links of an event are.
    pub(super) fn withdraw_links(&mut self, event: u32) {
        let Some(events) = &mut self.link_events else { return };
        let links = &self.config.events[event as usize].links;
        if links.iter().filter(|link| events.withdraw(**link)).count() > 0 {
            self.reroute();
        }
    }

    fn reroute(&mut self) {
        let Some(events) = &self.link_events else { return };
        self.router.reroute(&self.config, &self.topology, events);
        self.review_flows(&[]);
    }

    /// Bring every flow on the way that it has now; `changed` are links with another rate.
    fn review_flows(&mut self, changed: &[u32]) {
        for flow in 0..self.flows.len() as u32 {
            self.review(flow, changed);
        }
        self.want_sharing(0);
    }

    fn review(&mut self, flow: u32, changed: &[u32]) {
        let pair = &self.flows[flow as usize];
        let ends = (pair.source_nic, pair.destination_nic);
        let Some((forward, back)) = self.ways((ends, pair.source_port)) else { return };
        let cut = self.cut(&forward, &back);
        let has_changed = !self.has_way(flow, &forward, &back)
            || self.sharing.hops(flow).any(|(d, _)| changed.contains(&(d / 2)));
        if !has_changed && cut == self.flows[flow as usize].cut {
            return;
        }
        let pair = &self.flows[flow as usize];
        let (is_sending, rate_bps) = (pair.is_sending(), pair.rate_bps);
        if is_sending {
            self.leave_links(flow);
        }
        if has_changed {
            self.change_way(flow, &forward, &back);
        }
        self.flows[flow as usize].cut = cut;
        match (cut, self.flows[flow as usize].outage) {
            (Some(_), None) if is_sending => self.begin_outage(flow, rate_bps),
            (Some(is_lossy), Some(outage)) => {
                let is_lossy = is_lossy || outage.is_lossy;
                let outage = Outage { is_lossy, resume_ps: None, ..outage };
                self.flows[flow as usize].outage = Some(outage);
            }
            (None, Some(outage)) => self.end_outage(flow, outage),
            (None, None) if is_sending => self.rejoin_links(flow),
            _ => {}
        }
    }

    /// Whether a flow has these ways already.
    fn has_way(&self, flow: u32, forward: &Route, back: &Route) -> bool {
        let pair = &self.flows[flow as usize];
        let hops = forward.hops.iter().map(|hop| (hop.direction, hop.fraction));
        (pair.forward, pair.back) == (forward.latency, back.latency)
            && self.sharing.hops(flow).eq(hops)
    }

    /// Put a flow that sends nothing on other ways; what it sent so far stays with the ones before.
    fn change_way(&mut self, flow: u32, forward: &Route, back: &Route) {
        let mtu_bytes = self.config.transport.mtu_bytes;
        let pair = &mut self.flows[flow as usize];
        let first = pair.messages.front().map(|message| message.size_bytes);
        let sent = pair.take_sent(first.map(|size| whole(&Framing::new(size, mtu_bytes), size)));
        for (direction, fraction) in self.sharing.hops(flow) {
            self.past.entry((flow, direction)).or_default().add(sent.part(fraction));
        }
        pair.forward = forward.latency;
        pair.back = back.latency;
        let limit_bps = limit_bps(&self.config, pair.class, &forward.latency, &back.latency);
        self.sharing.place(flow, &forward.hops, limit_bps);
    }

    /// Whether a way there and back leads over links that are down, and if so, whether what is sent is
    /// lost.
    pub(super) fn cut(&self, forward: &Route, back: &Route) -> Option<bool> {
        let events: &LinkEvents = self.link_events.as_deref()?;
        events.down().next()?;
        let own = forward.hops.first().map(|hop| hop.direction / 2);
        let links = forward.hops.iter().chain(&back.hops).map(|hop| hop.direction / 2);
        let down: Vec<u32> = links.filter(|link| events.is_down(*link)).collect();
        (!down.is_empty()).then(|| down.iter().any(|link| Some(*link) != own))
    }

    /// A flow whose way is cut has something to send; it sent at `rate_bps` until now.
    pub(super) fn begin_outage(&mut self, flow: u32, rate_bps: f64) {
        let peak_bps = self.sharing.peak_bps(flow) as f64;
        let rate_bps = if rate_bps > 0.0 { rate_bps } else { peak_bps };
        let pair = &mut self.flows[flow as usize];
        let lasting_ps = lasting_ps(&self.config, pair, rate_bps);
        pair.outage = Some(Outage {
            since_ps: self.now_ps,
            silent_ps: self.now_ps.saturating_add(lasting_ps),
            is_lossy: pair.cut.unwrap_or_default(),
            resume_ps: None,
        });
    }

    /// The way of a flow is whole again.
    fn end_outage(&mut self, flow: u32, outage: Outage) {
        let timer_ps = timer_ps(&self.config);
        let has_fallen_silent = outage.is_lossy && self.now_ps > outage.silent_ps;
        let at_ps = match has_fallen_silent {
            true => {
                let timers = (self.now_ps - outage.since_ps).div_ceil(timer_ps);
                outage.since_ps.saturating_add(timers.saturating_mul(timer_ps))
            }
            false => self.now_ps,
        };
        self.flows[flow as usize].outage = Some(Outage { resume_ps: Some(at_ps), ..outage });
        self.events.push(at_ps, Event::Resumption { flow });
    }

    /// A flow that waits gets one more message: its packets tell what is missing if they arrive, and
    /// keep it from falling silent if not.
    pub(super) fn break_silence(&mut self, flow: u32, size_bytes: u64) {
        let peak_bps = self.sharing.peak_bps(flow);
        let framing = Framing::new(size_bytes, self.config.transport.mtu_bytes);
        let pair = &mut self.flows[flow as usize];
        let Some(outage) = &mut pair.outage else { return };
        if outage.resume_ps.is_some() {
            outage.resume_ps = Some(self.now_ps);
            self.events.push(self.now_ps, Event::Resumption { flow });
        } else {
            let lasting_ps = transfer_ps(framing.line_bytes, peak_bps);
            outage.silent_ps = outage.silent_ps.max(self.now_ps).saturating_add(lasting_ps);
        }
    }

    pub(super) fn handle_resumption(&mut self, flow: u32) {
        let pair = &mut self.flows[flow as usize];
        if pair.outage.and_then(|outage| outage.resume_ps) == Some(self.now_ps) {
            pair.outage = None;
            self.rejoin_links(flow);
        }
    }

    fn rejoin_links(&mut self, flow: u32) {
        let Some(first) = self.flows[flow as usize].messages.front() else { return };
        let framing = Framing::new(first.size_bytes, self.config.transport.mtu_bytes);
        self.join_links(flow, framing.line_bytes);
        self.want_sharing(0);
    }

    /// The links that are down, in words; empty if there are none.
    pub(super) fn outages(&self) -> String {
        let events = self.link_events.as_deref();
        events.map_or_else(String::new, |events| events.outages(&self.config, |_| true))
    }
}
