//! What is to happen to links and when, what has happened, and which links are down.
//!
//! It decides nothing about frames: the world takes the changes from here and carries them out.

use super::error::ConfigError;
use super::executor::{Executor, NEVER_PS};
use super::topology::Topology;
use crate::config::{EventTrigger, JobConfig, LinkChange, OperationId};
use std::collections::BTreeMap;

/// Something that happened to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEventRow {
    /// When.
    pub time_ps: u64,
    /// Index into [`JobConfig::events`].
    pub event: u32,
    /// The link.
    pub link: u32,
    /// What.
    pub happened: Happened,
    /// Line rate from then on.
    pub rate_bps: u64,
}

/// The moment of an event as a part of the job sees it: the start of the first of the operations here,
/// or the end of the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Index into [`JobConfig::events`].
    pub event: u32,
    /// When.
    pub time_ps: u64,
}

/// An event that was ordered from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventOrder {
    /// Index into [`JobConfig::events`].
    pub event: u32,
    /// Its changes are counted from here.
    pub base_ps: u64,
    /// When the order was taken here.
    pub taken_ps: u64,
}

/// A change of a link at one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndRow {
    /// When it took effect.
    pub time_ps: u64,
    /// Index into [`JobConfig::events`].
    pub event: u32,
    /// Twice the link, plus one for its end b.
    pub end: u32,
    /// What.
    pub happened: Happened,
}

/// What happened to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It went down.
    Down,
    /// It came up.
    Up,
    /// Its rate changed.
    Rate,
    /// The switches at it learned that it is down.
    Avoided,
    /// The switches at it learned that it is up.
    UsedAgain,
}

impl Happened {
    /// For records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
            Self::Rate => "rate",
            Self::Avoided => "avoided",
            Self::UsedAgain => "used_again",
        }
    }
}

/// Operations whose start or end an event waits for.
#[derive(Clone, Debug, Default)]
struct Awaited {
    /// The end of all of them; else the start of any.
    is_end: bool,
    /// By NIC: those that have not ended.
    operations: BTreeMap<u32, Vec<u32>>,
}

impl Awaited {
    /// Whether the moment has come, as the executor of `nic` shows.
    fn has_come(&mut self, nic: u32, executor: &Executor) -> bool {
        let Some(operations) = self.operations.get_mut(&nic) else { return false };
        if !self.is_end {
            return operations.iter().any(|op| executor.start_ps()[*op as usize] != NEVER_PS);
        }
        while operations.last().is_some_and(|op| executor.end_ps()[*op as usize] != NEVER_PS) {
            operations.pop();
        }
        if operations.is_empty() {
            self.operations.remove(&nic);
        }
        self.operations.is_empty()
    }
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct LinkEvents {
    /// By event.
    awaited: Vec<Awaited>,
    /// By NIC: events that wait for its operations.
    watched: Vec<Vec<u32>>,
    /// By link.
    down_since_ps: Vec<Option<u64>>,
    /// By link: the switches at it take it for down.
    pub(crate) avoided: Vec<bool>,
    /// By link: the whole fabric takes it for down.
    pub(crate) withdrawn: Vec<bool>,
    log: Vec<LinkEventRow>,
    /// Where a part of the job is carried: others decide about moments.
    part: Option<Part>,
}

/// What a part of a job knows of events beyond its own.
#[derive(Clone, Debug, Default)]
struct Part {
    /// Moments that have come here and were not told.
    moments: Vec<Moment>,
    orders: Vec<EventOrder>,
    ends: Vec<EndRow>,
}

impl LinkEvents {
    /// The events of a job; `None` if there are none.
    pub(crate) fn new(
        config: &JobConfig,
        topology: &Topology,
        programs: &BTreeMap<u32, usize>,
        is_whole: bool,
    ) -> Result<Option<Box<Self>>, ConfigError> {
        if config.events.is_empty() {
            return Ok(None);
        }
        let links = config.links.len();
        let mut events = Self {
            awaited: Vec::new(),
            watched: vec![Vec::new(); config.nics.len()],
            down_since_ps: vec![None; links],
            avoided: vec![false; links],
            withdrawn: vec![false; links],
            log: Vec::new(),
            part: (!is_whole).then(Part::default),
        };
        for (index, event) in config.events.iter().enumerate() {
            let awaited = awaited(&event.trigger, topology, programs, is_whole)?;
            for nic in awaited.operations.keys() {
                events.watched[*nic as usize].push(index as u32);
            }
            events.awaited.push(awaited);
        }
        Ok(Some(Box::new(events)))
    }

    /// An event that is to happen now, as the executor of `nic` shows; each once. Where a part of the
    /// job is carried none is: its moment is kept for [`LinkEvents::take_moments`].
    #[inline]
    pub(crate) fn poll_due(&mut self, nic: u32, now_ps: u64, executor: &Executor) -> Option<u32> {
        while let Some(event) = self.poll_moment(nic, executor) {
            match &mut self.part {
                Some(part) => part.moments.push(Moment { event, time_ps: now_ps }),
                None => return Some(event),
            }
        }
        None
    }

    /// Moments that have come here since the last call.
    pub fn take_moments(&mut self) -> Vec<Moment> {
        self.part.as_mut().map(|part| std::mem::take(&mut part.moments)).unwrap_or_default()
    }

    /// Take the order of an event that waits for operations, each once. Whether it is new.
    pub(crate) fn take_order(&mut self, event: u32, base_ps: u64, now_ps: u64) -> bool {
        let Some(part) = &mut self.part else { return false };
        if part.orders.iter().any(|order| order.event == event) {
            return false;
        }
        part.orders.push(EventOrder { event, base_ps, taken_ps: now_ps });
        true
    }

    /// Remember when a change took effect at an end, where a part of the job is carried.
    pub(crate) fn note_end(&mut self, row: EndRow) {
        if let Some(part) = &mut self.part {
            part.ends.push(row);
        }
    }

    /// Orders that were taken, and when changes took effect at the ends here; `None` where the whole
    /// job is carried.
    pub fn of_part(&self) -> Option<(&[EventOrder], &[EndRow])> {
        self.part.as_ref().map(|part| (&part.orders[..], &part.ends[..]))
    }

    /// An event whose moment has come, as the executor of `nic` shows; each once.
    #[inline]
    fn poll_moment(&mut self, nic: u32, executor: &Executor) -> Option<u32> {
        let watched = &mut self.watched[nic as usize];
        let place = watched
            .iter()
            .position(|event| self.awaited[*event as usize].has_come(nic, executor))?;
        let event = watched.remove(place);
        self.watched.iter_mut().for_each(|events| events.retain(|other| *other != event));
        Some(event)
    }

    /// Whether a link is to change so, or is so already.
    pub(crate) fn is_news(&self, link: u32, change: LinkChange) -> bool {
        match change {
            LinkChange::Down => !self.is_down(link),
            LinkChange::Up => self.is_down(link),
            LinkChange::Rate { .. } => true,
        }
    }

    /// Remember that a link has changed.
    pub(crate) fn note_change(&mut self, now_ps: u64, link: u32, change: LinkChange) -> Happened {
        match change {
            LinkChange::Down => {
                self.down_since_ps[link as usize] = Some(now_ps);
                Happened::Down
            }
            LinkChange::Up => {
                self.down_since_ps[link as usize] = None;
                Happened::Up
            }
            LinkChange::Rate { .. } => Happened::Rate,
        }
    }

    /// The switches at a link see its state. What they learn by that; `None` if nothing.
    pub(crate) fn notice(&mut self, link: u32) -> Option<Happened> {
        let is_down = self.is_down(link);
        let was_down = std::mem::replace(&mut self.avoided[link as usize], is_down);
        match (was_down, is_down) {
            (false, true) => Some(Happened::Avoided),
            (true, false) => Some(Happened::UsedAgain),
            _ => None,
        }
    }

    /// All switches learn what those at a link know. Whether that is new.
    pub(crate) fn withdraw(&mut self, link: u32) -> bool {
        let is_avoided = self.avoided[link as usize];
        std::mem::replace(&mut self.withdrawn[link as usize], is_avoided) != is_avoided
    }

    /// Add to the log.
    pub(crate) fn record(&mut self, row: LinkEventRow) {
        self.log.push(row);
    }

    /// A link carries nothing.
    pub fn is_down(&self, link: u32) -> bool {
        self.down_since_ps[link as usize].is_some()
    }

    /// Links that are down, and since when.
    pub fn down(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let indexed = self.down_since_ps.iter().enumerate();
        indexed.filter_map(|(link, since_ps)| Some((link as u32, (*since_ps)?)))
    }

    /// The links that are down and that `is_meant` says, in words; empty if there are none.
    pub(crate) fn outages(&self, config: &JobConfig, is_meant: impl Fn(u32) -> bool) -> String {
        let meant = self.down().filter(|(link, _)| is_meant(*link));
        let named = meant.map(|(link, since_ps)| {
            let name = &config.links[link as usize].name;
            format!("link {name} is down since {:.3} us", since_ps as f64 / 1e6)
        });
        named.collect::<Vec<_>>().join(", ")
    }

    /// What has happened, in the order of time.
    pub fn log(&self) -> &[LinkEventRow] {
        &self.log
    }
}

fn awaited(
    trigger: &EventTrigger,
    topology: &Topology,
    programs: &BTreeMap<u32, usize>,
    is_whole: bool,
) -> Result<Awaited, ConfigError> {
    let (is_end, operations) = match trigger {
        EventTrigger::Time { .. } => return Ok(Awaited::default()),
        EventTrigger::FirstStart { operations } => (false, operations),
        EventTrigger::LastEnd { operations } => (true, operations),
    };
    let mut by_nic: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for OperationId { rank, op } in operations {
        let nic = topology.nic_of_rank.get(rank);
        if !is_whole && nic.is_some() && !programs.contains_key(rank) {
            continue;
        }
        let Some(nic) = nic.filter(|_| programs.get(rank).is_some_and(|n| (*op as usize) < *n))
        else {
            let what = format!("an event waits for operation {op} of rank {rank}: there is none");
            return Err(ConfigError::new(what));
        };
        by_nic.entry(*nic).or_default().push(*op);
    }
    if by_nic.is_empty() && is_whole {
        return Err(ConfigError::new("an event waits for no operation"));
    }
    Ok(Awaited { is_end, operations: by_nic })
}
