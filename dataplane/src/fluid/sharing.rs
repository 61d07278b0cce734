//! Max-min fair rates of flows over links, kept up to date as flows come and go.
//!
//! It knows no clock and no message. Rates are bits per second of the line, headers and gaps counted.
//!
//! Only what a change can reach is computed anew. A link on which all flows together want no more than
//! it carries never binds: nobody is slower because of it, and nothing spreads over it. So only
//! flows connected by binding links are looked at, and a flow that meets none has its peak at once.

use super::route::Hop;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, Debug)]
struct Entry {
    direction: u32,
    /// Place among the link's members while the flow is active.
    slot: u32,
    fraction: f64,
    /// What the flow puts on the link at its peak.
    demand_bps: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    first: u32,
    count: u32,
    peak_bps: u64,
    rate_bps: f64,
    /// Number of the sharing in which it was seen last, and in which it got its rate.
    seen: u32,
    fixed: u32,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    flow: u32,
    entry: u32,
}

#[derive(Clone, Debug, Default)]
struct Link {
    capacity_bps: u64,
    demand_bps: u64,
    /// What the members have at the moment.
    given_bps: f64,
    members: Vec<Member>,
    is_dirty: bool,
    seen: u32,
    /// While rates are computed: what is left, over the fractions of the flows without a rate.
    left_bps: f64,
    weight: f64,
    open: u32,
}

impl Link {
    /// Flows want more than there is; demands are rounded, each by less than one.
    fn is_binding(&self) -> bool {
        self.demand_bps > self.capacity_bps + self.members.len() as u64
    }

    /// The rate at which the flows without one would use up what is left.
    fn level_bps(&self) -> f64 {
        (self.left_bps / self.weight).max(0.0)
    }
}

/// What a flow gets that has something to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Activation {
    /// Its rate until the next sharing: what the others leave.
    pub rate_bps: f64,
    /// Its fair rate is at least this.
    pub least_bps: f64,
    /// The rate is the fair one, and that of the others as well: no sharing is wanted.
    pub is_final: bool,
}

/// A flow whose rate has changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The flow.
    pub flow: u32,
    /// Its rate from now on.
    pub rate_bps: f64,
}

/// See the module documentation.
#[derive(Debug)]
pub struct Sharing {
    links: Vec<Link>,
    flows: Vec<Flow>,
    entries: Vec<Entry>,
    dirty: Vec<u32>,
    round: u32,
    /// Flows and links that the last sharing looked at.
    reached_flows: Vec<u32>,
    reached_links: Vec<u32>,
    levels: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Sharing {
    /// Links with these capacities, without flows.
    pub fn new(capacities_bps: impl IntoIterator<Item = u64>) -> Self {
        let link = |capacity_bps| Link { capacity_bps, ..Link::default() };
        Self {
            links: capacities_bps.into_iter().map(link).collect(),
            flows: Vec::new(),
            entries: Vec::new(),
            dirty: Vec::new(),
            round: 0,
            reached_flows: Vec::new(),
            reached_links: Vec::new(),
            levels: BinaryHeap::new(),
        }
    }

    /// Make a flow that is not active; its number, counted from 0. It never gets more than
    /// `limit_bps` nor than an empty fabric gives it.
    pub fn add_flow(&mut self, hops: &[Hop], limit_bps: u64) -> u32 {
        self.flows.push(Flow::default());
        let flow = self.flows.len() as u32 - 1;
        self.place(flow, hops, limit_bps);
        flow
    }

    /// Have a flow that is not active take other directions, or the same at other capacities.
    pub fn place(&mut self, flow: u32, hops: &[Hop], limit_bps: u64) {
        let alone = |hop: &Hop| {
            (self.links[hop.direction as usize].capacity_bps as f64 / hop.fraction) as u64
        };
        let peak_bps = hops.iter().map(alone).fold(limit_bps.max(1), u64::min);
        let first = self.entries.len() as u32;
        self.entries.extend(hops.iter().map(|hop| Entry {
            direction: hop.direction,
            slot: 0,
            fraction: hop.fraction,
            demand_bps: (hop.fraction * peak_bps as f64) as u64,
        }));
        let count = hops.len() as u32;
        self.flows[flow as usize] = Flow { first, count, peak_bps, ..Flow::default() };
    }

    /// A direction carries so much from now on; flows on it that are not placed anew keep their
    /// peaks. A sharing is wanted.
    pub fn set_capacity(&mut self, direction: u32, capacity_bps: u64) {
        self.links[direction as usize].capacity_bps = capacity_bps;
        self.soil(direction);
    }

    /// The flow has something to send.
    pub fn activate(&mut self, flow: u32) -> Activation {
        let mut least_bps = self.flows[flow as usize].peak_bps as f64;
        let (mut rate_bps, mut is_final) = (least_bps, true);
        for entry in self.range(flow) {
            let Entry { direction, demand_bps, fraction, .. } = self.entries[entry];
            let link = &mut self.links[direction as usize];
            self.entries[entry].slot = link.members.len() as u32;
            link.members.push(Member { flow, entry: entry as u32 });
            link.demand_bps += demand_bps;
            if link.is_binding() {
                is_final = false;
                least_bps = least_bps.min(link.capacity_bps as f64 / link.members.len() as f64);
                let left_bps = (link.capacity_bps as f64 - link.given_bps) / fraction;
                rate_bps = rate_bps.min(left_bps.max(0.0));
                self.soil(direction);
            }
        }
        self.set_rate(flow, rate_bps);
        Activation { rate_bps, least_bps, is_final }
    }

    /// The flow has nothing to send. Whether others may get what it leaves.
    pub fn deactivate(&mut self, flow: u32) -> bool {
        let mut wanted = false;
        self.set_rate(flow, 0.0);
        for entry in self.range(flow) {
            let Entry { direction, slot, demand_bps, .. } = self.entries[entry];
            let link = &mut self.links[direction as usize];
            let was_binding = link.is_binding();
            link.members.swap_remove(slot as usize);
            if let Some(moved) = link.members.get(slot as usize) {
                self.entries[moved.entry as usize].slot = slot;
            }
            link.demand_bps -= demand_bps;
            if link.members.is_empty() {
                // Rounding goes with the last flow.
                link.given_bps = 0.0;
            } else if was_binding {
                wanted = true;
                self.soil(direction);
            }
        }
        wanted
    }

    fn set_rate(&mut self, flow: u32, rate_bps: f64) {
        let before_bps = std::mem::replace(&mut self.flows[flow as usize].rate_bps, rate_bps);
        for entry in self.range(flow) {
            let Entry { direction, fraction, .. } = self.entries[entry];
            self.links[direction as usize].given_bps += fraction * (rate_bps - before_bps);
        }
    }

    /// Give every flow that the changes since the last sharing can reach its fair rate; `changes` gets
    /// those whose rate is another. Returns how many were looked at.
    pub fn share(&mut self, changes: &mut Vec<Change>) -> usize {
        self.round += 1;
        self.reach();
        self.fill(changes);
        self.reached_flows.len()
    }

    /// The flow's rate.
    pub fn rate_bps(&self, flow: u32) -> f64 {
        self.flows[flow as usize].rate_bps
    }

    /// The most that it can get.
    pub fn peak_bps(&self, flow: u32) -> u64 {
        self.flows[flow as usize].peak_bps
    }

    /// Directions of the flow, with the part of it that takes each.
    pub fn hops(&self, flow: u32) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.entries[self.range(flow)].iter().map(|entry| (entry.direction, entry.fraction))
    }

    fn range(&self, flow: u32) -> std::ops::Range<usize> {
        let Flow { first, count, .. } = self.flows[flow as usize];
        first as usize..(first + count) as usize
    }

    fn soil(&mut self, direction: u32) {
        if !std::mem::replace(&mut self.links[direction as usize].is_dirty, true) {
            self.dirty.push(direction);
        }
    }

    /// Collect the flows on the changed links, and all that binding links connect with them.
    fn reach(&mut self) {
        self.reached_flows.clear();
        self.reached_links.clear();
        for direction in self.dirty.drain(..) {
            let link = &mut self.links[direction as usize];
            link.is_dirty = false;
            link.seen = self.round;
            self.reached_links.push(direction);
        }
        let mut next = 0;
        while let Some(&direction) = self.reached_links.get(next) {
            next += 1;
            let members = std::mem::take(&mut self.links[direction as usize].members);
            for member in &members {
                let flow = &mut self.flows[member.flow as usize];
                if std::mem::replace(&mut flow.seen, self.round) != self.round {
                    let range = flow.first as usize..(flow.first + flow.count) as usize;
                    self.reached_flows.push(member.flow);
                    for entry in &self.entries[range] {
                        let link = &mut self.links[entry.direction as usize];
                        // A link whose members are away has been seen.
                        if link.seen != self.round && link.is_binding() {
                            link.seen = self.round;
                            self.reached_links.push(entry.direction);
                        }
                    }
                }
            }
            self.links[direction as usize].members = members;
        }
    }

    /// Raise all rates together; whoever meets a full link or its own peak stays there.
    fn fill(&mut self, changes: &mut Vec<Change>) {
        self.levels.clear();
        for &direction in &self.reached_links {
            let link = &mut self.links[direction as usize];
            link.open = 0;
            if link.is_binding() {
                link.open = link.members.len() as u32;
                link.left_bps = link.capacity_bps as f64;
                let fractions =
                    link.members.iter().map(|m| self.entries[m.entry as usize].fraction);
                link.weight = fractions.sum();
                self.levels.push(Reverse((link.level_bps().to_bits(), direction)));
            }
        }
        self.order_by_peak();
        let mut next = 0;
        while let Some(&flow) = self.reached_flows.get(next) {
            let Flow { peak_bps, fixed, .. } = self.flows[flow as usize];
            if fixed == self.round {
                next += 1;
                continue;
            }
            let lowest = self.levels.peek().map(|&Reverse(lowest)| lowest);
            match lowest {
                Some((bits, direction)) if f64::from_bits(bits) < peak_bps as f64 => {
                    self.levels.pop();
                    self.saturate(direction, bits, changes);
                }
                _ => self.fix(flow, peak_bps as f64, changes),
            }
        }
    }

    /// Whoever has the lowest peak meets it first.
    fn order_by_peak(&mut self) {
        let peak_bps = |&flow: &u32| self.flows[flow as usize].peak_bps;
        if !self.reached_flows.is_sorted_by_key(peak_bps) {
            self.reached_flows.sort_by_key(peak_bps);
        }
    }

    /// Fix the flows of a link at its level, if that is still what it was.
    fn saturate(&mut self, direction: u32, bits: u64, changes: &mut Vec<Change>) {
        let link = &mut self.links[direction as usize];
        if link.open == 0 {
            return;
        }
        let level_bps = link.level_bps();
        if level_bps.to_bits() != bits {
            self.levels.push(Reverse((level_bps.to_bits(), direction)));
            return;
        }
        let members = std::mem::take(&mut link.members);
        for member in &members {
            if self.flows[member.flow as usize].fixed != self.round {
                self.fix(member.flow, level_bps, changes);
            }
        }
        self.links[direction as usize].members = members;
    }

    fn fix(&mut self, number: u32, rate_bps: f64, changes: &mut Vec<Change>) {
        let flow = &mut self.flows[number as usize];
        flow.fixed = self.round;
        let before_bps = std::mem::replace(&mut flow.rate_bps, rate_bps);
        if before_bps != rate_bps {
            changes.push(Change { flow: number, rate_bps });
        }
        for entry in &self.entries[flow.first as usize..(flow.first + flow.count) as usize] {
            let link = &mut self.links[entry.direction as usize];
            link.given_bps += entry.fraction * (rate_bps - before_bps);
            if link.seen == self.round && link.open > 0 {
                link.open -= 1;
                link.left_bps -= entry.fraction * rate_bps;
                link.weight -= entry.fraction;
            }
        }
    }
}

#[cfg(test)]
mod tests;
