//! The records of the paths that were taken, as tables of columns.

use super::records::{Column, Table, table};
use super::world::{Medium, World};
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
}
