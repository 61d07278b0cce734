//! Where a fluid emulation is, for whoever drives it.

use super::emulation::Emulation;
use super::loads::Loads;
use super::rank::{NicTotals, Rank};
use crate::engine::executor::Executor;
use crate::engine::link_events::LinkEvents;
use crate::engine::world::RankCompletion;

impl Emulation {
    /// Close the last sample of the series.
    pub fn finish_telemetry(&mut self) {
        self.loads.finish(self.now_ps);
    }

    /// Move what completed since the last call to the end of `into`.
    pub fn take_completions(&mut self, into: &mut Vec<RankCompletion>) {
        for rank in self.ranks.iter_mut().flatten() {
            rank.executor.take_completions(&mut self.completions);
            let number = rank.executor.program().rank;
            let completions = self.completions.drain(..);
            into.extend(completions.map(|completion| RankCompletion { rank: number, completion }));
        }
    }

    /// Every operation is complete.
    pub fn is_done(&self) -> bool {
        self.ops_done == self.ops_total
    }

    /// The clock.
    pub fn now_ps(&self) -> u64 {
        self.now_ps
    }

    /// Events handled.
    pub fn events_handled(&self) -> u64 {
        self.events_handled
    }

    /// Payload that has arrived.
    pub fn bytes_arrived(&self) -> u64 {
        self.bytes_arrived
    }

    /// Operations that are complete.
    pub fn ops_done(&self) -> usize {
        self.ops_done
    }

    /// Operations of all ranks.
    pub fn ops_total(&self) -> usize {
        self.ops_total
    }

    /// The executor of a NIC's program.
    pub fn executor(&self, nic: u32) -> Option<&Executor> {
        Some(&self.ranks.get(nic as usize)?.as_ref()?.executor)
    }

    /// What a NIC has sent and received.
    pub fn totals(&self, nic: u32) -> Option<NicTotals> {
        Some(self.ranks.get(nic as usize)?.as_ref()?.totals)
    }

    /// What has happened to links; `None` if nothing was to.
    pub fn link_events(&self) -> Option<&LinkEvents> {
        self.link_events.as_deref()
    }

    /// The links' loads.
    pub fn loads(&self) -> &Loads {
        &self.loads
    }

    pub(super) fn ranks(&self) -> impl Iterator<Item = (u32, &Rank)> {
        let indexed = self.ranks.iter().enumerate();
        indexed.filter_map(|(nic, rank)| Some((nic as u32, rank.as_ref()?)))
    }

    /// Payload under way from a rank to a NIC that has left the sender.
    pub(super) fn leaving_bytes(&self, peer: u32, nic: u32) -> u64 {
        let from = self.topology.nic_of_rank.get(&peer).copied();
        let pairs = self
            .flows
            .iter()
            .filter(|pair| Some(pair.source_nic) == from && pair.destination_nic == nic);
        pairs.map(|pair| pair.sent_bytes(self.now_ps)).sum()
    }
}
