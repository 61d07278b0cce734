//! How a world carries out what happens to its links.

use super::calendar::Calendar;
use super::link_events::{EndRow, Happened, LinkEventRow, Moment};
use super::medium::Medium;
use super::rerouting::{Ways, is_usable};
use super::world::{Event, World};
use crate::config::{EventTrigger, JobConfig, LinkChange, NodeId};

/// Have the changes of an event happen, counted from `moment_ps`.
#[cold]
pub(super) fn schedule_changes(
    config: &JobConfig,
    events: &mut Calendar<Event>,
    moment_ps: u64,
    event: u32,
) {
    for (change, config) in config.events[event as usize].changes.iter().enumerate() {
        let at_ps = moment_ps.saturating_add(config.after_ps);
        events.push(at_ps, Event::LinkChange { event, change: change as u32 });
    }
}

impl<M: Medium> World<M> {
    /// Have the events happen whose time is given.
    pub(super) fn schedule_link_events(&mut self) {
        for (index, event) in self.config.events.iter().enumerate() {
            if let EventTrigger::Time { at_ps } = event.trigger {
                schedule_changes(&self.config, &mut self.events, at_ps, index as u32);
            }
        }
    }

    /// Have an event happen whose moment came in another part of the job: its changes are counted from
    /// `base_ps`, and those that are due already happen now. Each event is ordered once, and none that
    /// has a time of its own.
    pub fn order_event(&mut self, event: u32, base_ps: u64) {
        let trigger = self.config.events.get(event as usize).map(|event| &event.trigger);
        let (Some(events), Some(trigger)) = (&mut self.link_events, trigger) else { return };
        if matches!(trigger, EventTrigger::Time { .. }) {
            return;
        }
        if events.take_order(event, base_ps, self.now_ps) {
            let changes = &self.config.events[event as usize].changes;
            for (change, config) in changes.iter().enumerate() {
                let at_ps = base_ps.saturating_add(config.after_ps).max(self.now_ps);
                self.events.push(at_ps, Event::LinkChange { event, change: change as u32 });
            }
        }
    }

    /// Moments of events that have come in this part of the job since the last call.
    pub fn take_moments(&mut self) -> Vec<Moment> {
        self.link_events.as_mut().map(|events| events.take_moments()).unwrap_or_default()
    }

    /// Change the links of an event. What switches do about it comes after their delay.
    #[cold]
    pub(super) fn change_links(&mut self, event: u32, change: u32) {
        let config = self.config.clone();
        let event_config = &config.events[event as usize];
        let change = event_config.changes[change as usize].change;
        for link in &event_config.links {
            self.change_link(event, *link, change);
        }
        if !matches!(change, LinkChange::Rate { .. }) {
            let at_ps = self.now_ps.saturating_add(config.rerouting.detection_delay_ps);
            self.events.push(at_ps, Event::LinkNotice { event });
        }
    }

    fn change_link(&mut self, event: u32, link: u32, change: LinkChange) {
        let Some(events) = &mut self.link_events else { return };
        if !events.is_news(link, change) {
            return;
        }
        let happened = events.note_change(self.now_ps, link, change);
        for direction in [2 * link, 2 * link + 1] {
            self.change_line(direction, change);
            self.change_port(direction, change);
            self.note_end(event, direction, happened);
        }
        self.record_link(event, link, happened);
    }

    fn change_line(&mut self, direction: u32, change: LinkChange) {
        let line = &mut self.lines[direction as usize];
        match change {
            LinkChange::Down => {
                line.cut(self.now_ps);
                for (_, frame) in self.inbound[direction as usize].drain(..) {
                    line.count_lost(&frame);
                }
                while let Some(frame) = self.medium.discard(direction) {
                    line.count_lost(&frame);
                }
            }
            LinkChange::Up => {}
            LinkChange::Rate { rate_bps } => line.set_rate(rate_bps),
        }
    }

    /// Tell the node at the sending end, if it is here.
    fn change_port(&mut self, direction: u32, change: LinkChange) {
        let end = self.topology.directions[direction as usize].from;
        let now_ps = self.now_ps;
        match end.node {
            NodeId::Nic(nic) => {
                let Some(host) = &mut self.hosts[nic as usize] else { return };
                host.handle_link(now_ps, &mut self.host_outputs, |port| match change {
                    LinkChange::Down => port.handle_link_down(now_ps),
                    LinkChange::Up => port.handle_link_up(now_ps),
                    LinkChange::Rate { rate_bps } => port.set_rate(rate_bps),
                });
                self.after_host(nic);
            }
            NodeId::Switch(switch) => {
                let Some(node) = &mut self.switches[switch as usize] else { return };
                let outputs = &mut self.switch_outputs;
                match change {
                    LinkChange::Down => node.handle_link_down(now_ps, end.port, outputs),
                    LinkChange::Up => node.handle_link_up(now_ps, end.port, outputs),
                    LinkChange::Rate { rate_bps } => node.set_link_rate(end.port, rate_bps),
                }
                self.after_switch(switch);
            }
        }
    }

    /// Remember when a change took effect at the sending end of a direction, if that is here.
    fn note_end(&mut self, event: u32, direction: u32, happened: Happened) {
        let is_here = match self.topology.directions[direction as usize].from.node {
            NodeId::Nic(nic) => self.hosts[nic as usize].is_some(),
            NodeId::Switch(switch) => self.switches[switch as usize].is_some(),
        };
        if let Some(events) = self.link_events.as_mut().filter(|_| is_here) {
            events.note_end(EndRow { time_ps: self.now_ps, event, end: direction, happened });
        }
    }

    /// Each event of a link is recorded once: by the process that carries its end a.
    fn record_link(&mut self, event: u32, link: u32, happened: Happened) {
        let is_here = match self.config.links[link as usize].a.node {
            NodeId::Nic(nic) => self.hosts[nic as usize].is_some(),
            NodeId::Switch(switch) => self.switches[switch as usize].is_some(),
        };
        let rate_bps = self.lines[2 * link as usize].rate_bps();
        if let Some(events) = self.link_events.as_mut().filter(|_| is_here) {
            let time_ps = self.now_ps;
            events.record(LinkEventRow { time_ps, event, link, happened, rate_bps });
        }
    }

    /// The switches at the links of an event see how they are now.
    #[cold]
    pub(super) fn notice_links(&mut self, event: u32) {
        let config = self.config.clone();
        let mut has_news = false;
        for link in &config.events[event as usize].links {
            let learned = self.link_events.as_mut().and_then(|events| events.notice(*link));
            if let Some(happened) = learned {
                has_news = true;
                self.record_link(event, *link, happened);
            }
        }
        if has_news {
            self.reroute();
            let at_ps = self.now_ps.saturating_add(config.rerouting.convergence_delay_ps);
            self.events.push(at_ps, Event::LinkWithdrawal { event });
        }
    }

    /// All switches learn how the links of an event are.
    #[cold]
    pub(super) fn withdraw_links(&mut self, event: u32) {
        let Some(events) = &mut self.link_events else { return };
        let links = &self.config.events[event as usize].links;
        let news = links.iter().filter(|link| events.withdraw(**link)).count();
        if news > 0 {
            self.reroute();
        }
    }

    /// Have every switch use the ports that lead on as far as it knows.
    fn reroute(&mut self) {
        let Some(events) = &self.link_events else { return };
        let ways = Ways::new(&self.config, &self.topology, &events.withdrawn);
        for (index, switch) in self.switches.iter_mut().enumerate() {
            let Some(switch) = switch else { continue };
            switch
                .reroute(|nic, port| is_usable(&self.topology, events, &ways, (index, port), nic));
        }
    }

    /// The links that are down and keep two ranks from each other, in words; empty if none does.
    pub(super) fn outage_between(&self, rank: u32, peer: u32) -> String {
        let Some(events) = &self.link_events else { return String::new() };
        let nics = [rank, peer].map(|rank| self.topology.nic_of_rank.get(&rank).copied());
        let ([Some(a), Some(b)], Some(_)) = (nics, events.down().next()) else {
            return String::new();
        };
        let own = [a, b].map(|nic| self.topology.nic_egress[nic as usize].map(|d| d / 2));
        let mut guilty: Vec<u32> =
            own.into_iter().flatten().filter(|link| events.is_down(*link)).collect();
        guilty.dedup();
        if guilty.is_empty() && !(self.has_way(a, b) && self.has_way(b, a)) {
            guilty = events.down().map(|(link, _)| link).collect();
        }
        events.outages(&self.config, |link| guilty.contains(&link))
    }

    fn has_way(&self, from: u32, to: u32) -> bool {
        let Some(events) = &self.link_events else { return true };
        let down: Vec<bool> =
            (0..self.config.links.len() as u32).map(|link| events.is_down(link)).collect();
        let Some(direction) = self.topology.nic_egress[from as usize] else { return false };
        match self.topology.directions[direction as usize].to.node {
            NodeId::Nic(_) => true,
            NodeId::Switch(switch) => {
                Ways::new(&self.config, &self.topology, &down).has_way(switch, to)
            }
        }
    }
}
