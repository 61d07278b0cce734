//! A look at what the next events need, at several events together.
//!
//! The nodes of a large job don't fit into the processor's caches: each event meets another node, and
//! waits for memory a dozen times. Looked at together, they are fetched while the processor waits for
//! the first of them. Nothing is changed or decided here; a glance is a number of no meaning.

use super::world::{Event, World};
use crate::config::NodeId;
use std::hint::black_box;

impl<M> World<M> {
    /// Look at what `first` and the events behind it need, if there are so many of them at about this
    /// time that it is worth it. Returns how many behind it were looked at.
    #[inline]
    pub(super) fn look_ahead(&self, first: Event) -> usize {
        let events = self.events.crowd();
        if events.is_empty() {
            return 0;
        }
        self.look_at(first, events.iter().map(|(_, event)| *event));
        events.len()
    }

    fn look_at(&self, first: Event, behind: impl Iterator<Item = Event> + Clone) {
        let events = std::iter::once(first).chain(behind);
        // What is far off is found by what is near, which is there by then.
        black_box(events.clone().fold(0, |sum, event| sum ^ self.glance_near(event)));
        black_box(events.fold(0, |sum, event| sum ^ self.glance_far(event)));
    }

    /// What an event names: a frame, a host, a port.
    #[inline]
    fn glance_near(&self, event: Event) -> u64 {
        match event {
            Event::Arrival { direction } => self.lines[direction as usize].glance_first(),
            Event::HostWake { nic } => {
                self.hosts[nic as usize].as_ref().map_or(0, |host| host.glance())
            }
            Event::SwitchWake { switch, token } => {
                let switch = self.switches[switch as usize].as_ref();
                switch.map_or(0, |switch| switch.glance_at_port(token as u16))
            }
            _ => 0,
        }
    }

    /// Where a frame goes.
    #[inline]
    fn glance_far(&self, event: Event) -> u64 {
        match event {
            Event::Arrival { direction } => self.glance_at_way(direction),
            Event::HostWake { nic } => {
                self.nic_egress(nic).map_or(0, |direction| self.glance_at_line(direction))
            }
            Event::SwitchWake { switch, token } => {
                let egress =
                    self.topology.switch_egress[switch as usize].get(usize::from(token as u16));
                egress.copied().flatten().map_or(0, |direction| self.glance_at_line(direction))
            }
            _ => 0,
        }
    }

    fn nic_egress(&self, nic: u32) -> Option<u32> {
        self.topology.nic_egress[nic as usize]
    }

    /// What the first frame of a direction meets at its end.
    #[inline]
    fn glance_at_way(&self, direction: u32) -> u64 {
        let Some(packet) = self.lines[direction as usize].first_packet() else { return 0 };
        let end = self.topology.directions[direction as usize].to;
        match end.node {
            NodeId::Nic(nic) => {
                self.hosts[nic as usize].as_ref().map_or(0, |host| host.glance_for(packet))
            }
            NodeId::Switch(index) => {
                let Some(switch) = &self.switches[index as usize] else { return 0 };
                let Some(passage) = switch.expected_passage(end.port, packet) else { return 0 };
                let egress = &self.topology.switch_egress[index as usize];
                let egress = egress[usize::from(passage.egress_port)];
                let line = egress.map_or(0, |direction| self.glance_at_line(direction));
                switch.glance_at_passage(passage) ^ line
            }
        }
    }

    /// What a frame needs that begins to cross a direction.
    #[inline]
    fn glance_at_line(&self, direction: u32) -> u64 {
        self.lines[direction as usize].glance_last() ^ self.flow_links.glance(direction)
    }
}
