//! The records of the paths that were taken and of pauses, as tables of columns.

use super::link_events::Happened;
use super::records::{Column, Table, table};
use super::world::{Medium, World};
use crate::fabric::Switch;
use std::collections::HashMap;

/// The rank of an address that no NIC has.
const NO_RANK: u32 = u32::MAX;

impl<M: Medium> World<M> {
    /// Rows of no flow have no ranks.
    pub(super) fn flow_link_table(&self) -> Table {
        let nics = &self.config().nics;
        let rank_of: HashMap<u32, u32> =
            nics.iter().map(|nic| (u32::from(nic.address), nic.rank)).collect();
        let rank = |address: u32| rank_of.get(&address).copied().unwrap_or(NO_RANK);
        table!(self.flow_links().rows(), (direction, flow, totals) => {
            "link": U32 = direction / 2,
            "direction": U8 = (direction % 2) as u8,
            "source_rank": U32 = rank(flow.0),
            "destination_rank": U32 = rank(flow.1),
            "source_port": U16 = flow.2,
            "tx_packets": U64 = totals.tx_packets,
            "tx_bytes": U64 = totals.tx_bytes,
            "data_bytes": U64 = totals.data_bytes,
        })
    }

    /// The pauses that switches asked for, by switch and beginning; `number` counts per switch.
    pub(super) fn pause_table(&self) -> Table {
        let numbered = |(switch, node): (u32, &Switch)| {
            let events = node.pauses().events().iter().enumerate();
            events.map(move |(number, event)| (switch, number as u32, *event)).collect::<Vec<_>>()
        };
        let rows: Vec<_> = self.switches().flat_map(numbered).collect();
        table!(rows, (switch, number, event) => {
            "switch": U32 = *switch,
            "number": U32 = *number,
            "begin_ps": U64 = event.begin_ps,
            "end_ps": U64 = event.end_ps,
            "port": U16 = event.port,
            "priority": U8 = event.priority,
            "held_bytes": U64 = event.held_bytes,
            "max_held_bytes": U64 = event.max_held_bytes,
        })
    }

    /// How often each ingress of a lossless priority has paused its neighbour, over all switches of the
    /// job: zeros for what is elsewhere, so that tables of several processes add up.
    pub(super) fn pause_total_table(&self) -> Table {
        let mut rows = Vec::new();
        for (index, config) in self.config().switches.iter().enumerate() {
            let switch = self.switch(index as u32);
            let lossless =
                config.priorities.iter().zip(0..).filter(|(priority, _)| priority.lossless);
            for (port, (_, priority)) in
                (0..config.ports).flat_map(|port| lossless.clone().map(move |p| (port, p)))
            {
                rows.push(switch.map_or((0, 0, 0, 0), |switch| {
                    (index as u32, port, priority, switch.pauses().begun(port, priority))
                }));
            }
        }
        table!(rows, (switch, port, priority, pauses) => {
            "switch": U32 = *switch,
            "port": U16 = *port,
            "priority": U8 = *priority,
            "pauses": U64 = *pauses,
        })
    }

    /// How often each link of the job went down, came up and changed its rate, and what was lost with
    /// it by direction; each is counted in one process. No rows where nothing is to happen to links.
    pub(super) fn link_change_table(&self) -> Table {
        let links = self.link_events().map_or(0, |_| self.config().links.len());
        let mut rows = vec![[0_u64; 5]; links];
        for row in self.link_events().into_iter().flat_map(|events| events.log()) {
            let counts = &mut rows[row.link as usize];
            match row.happened {
                Happened::Down => counts[0] += 1,
                Happened::Up => counts[1] += 1,
                Happened::Rate => counts[2] += 1,
                Happened::Avoided | Happened::UsedAgain => {}
            }
        }
        if links > 0 {
            for (direction, under_way, waiting) in self.link_losses() {
                rows[direction as usize / 2][3 + direction as usize % 2] +=
                    under_way.packets + waiting.0;
            }
        }
        table!(rows, counts => {
            "down": U64 = counts[0],
            "up": U64 = counts[1],
            "rate": U64 = counts[2],
            "lost_packets_from_a": U64 = counts[3],
            "lost_packets_from_b": U64 = counts[4],
        })
    }

    /// What caused the pauses: by switch, number of the pause, and bytes.
    pub(super) fn pause_cause_table(&self) -> Table {
        let of_switch = |(switch, node): (u32, &Switch)| {
            let causes = node.pauses().causes().iter();
            causes.map(move |cause| (switch, *cause)).collect::<Vec<_>>()
        };
        let rows: Vec<_> = self.switches().flat_map(of_switch).collect();
        table!(rows, (switch, cause) => {
            "switch": U32 = *switch,
            "number": U32 = cause.pause,
            "egress_port": U16 = cause.egress_port,
            "ingress_bytes": U64 = cause.ingress_bytes,
            "depth_bytes": U64 = cause.depth_bytes,
            "oldest_ps": U64 = cause.oldest_ps,
        })
    }

    /// Pauses that there was no room for, by switch; only switches that left some out.
    pub(super) fn lost_pause_table(&self) -> Table {
        let lost = self.switches().map(|(switch, node)| (switch, node.pauses().left_out()));
        let rows: Vec<_> = lost.filter(|(_, left_out)| *left_out > 0).collect();
        table!(rows, (switch, left_out) => {
            "switch": U32 = *switch,
            "left_out": U64 = *left_out,
        })
    }
}
