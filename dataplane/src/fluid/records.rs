//! What a fluid emulation tells, in the tables of the packet engine; what it does not know is absent.

use super::emulation::Emulation;
use super::rank::Rank;
use crate::engine::blocked::Blocked;
use crate::engine::program::OpKind;
use crate::engine::records::{Column, Snapshot, Table, Tables, link_event_table, table};

impl Emulation {
    /// Operations, links and paths; there are no queues, rates of queue pairs and failures.
    pub fn record_tables(&self) -> Tables {
        let mut tables = vec![("ops", self.op_table()), ("links", self.link_table())];
        if self.config.telemetry.flow_paths {
            tables.push(("flow_links", self.flow_link_table()));
        }
        if let Some(events) = &self.link_events {
            tables.push(("link_events", link_event_table(events.log())));
        }
        tables
    }

    /// Totals per NIC.
    pub fn counter_tables(&self) -> Tables {
        vec![("nics", self.nic_table())]
    }

    /// Totals on the way.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            totals: vec![
                ("now_ps", self.now_ps()),
                ("ops_done", self.ops_done() as u64),
                ("ops_total", self.ops_total() as u64),
                ("bytes_delivered", self.bytes_arrived()),
                ("events", self.events_handled()),
                ("failed_qps", 0),
            ],
            tables: vec![("nics", self.nic_table())],
        }
    }

    /// Operations that have started and are not complete, at most `limit`: of each rank in turn
    /// those that started first.
    pub fn blocked(&self, limit: usize) -> Vec<Blocked> {
        let of_rank = |(nic, rank)| self.blocked_of(nic, rank, limit);
        let mut of_ranks: Vec<Vec<Blocked>> = self.ranks().map(of_rank).collect();
        let mut blocked = Vec::new();
        for turn in 0..limit {
            blocked.extend(of_ranks.iter_mut().filter_map(|own| own.get(turn).cloned()));
        }
        blocked.truncate(limit);
        blocked
    }

    fn blocked_of(&self, nic: u32, rank: &Rank, limit: usize) -> Vec<Blocked> {
        let executor = &rank.executor;
        let mut pending: Vec<u32> = executor.pending().collect();
        pending.sort_by_key(|&op| (executor.start_ps()[op as usize], op));
        pending.truncate(limit);
        pending.into_iter().map(|op| self.describe(nic, rank, op)).collect()
    }

    fn describe(&self, nic: u32, rank: &Rank, op: u32) -> Blocked {
        let program = rank.executor.program();
        let (kind, peer) = (program.op_kind(op), program.peer[op as usize]);
        let waiting_for = match kind {
            OpKind::Send if !rank.executor.is_cleared(op) => "the receiver's readiness",
            OpKind::Send => "its acknowledgement",
            OpKind::Receive => "its message",
            OpKind::Delay | OpKind::Join => "its end",
        };
        let outages = match kind {
            OpKind::Send | OpKind::Receive => self.outages(),
            OpKind::Delay | OpKind::Join => String::new(),
        };
        let separator = if outages.is_empty() { "" } else { "; " };
        let received_bytes = match kind {
            OpKind::Receive => self.leaving_bytes(peer, nic),
            _ => 0,
        };
        Blocked {
            rank: program.rank,
            op,
            kind,
            peer,
            size_bytes: program.size_bytes[op as usize],
            received_bytes,
            waiting_for: format!("{waiting_for}{separator}{outages}"),
        }
    }

    fn op_table(&self) -> Table {
        let mut rows = Vec::with_capacity(self.ops_total());
        for (_, rank) in self.ranks() {
            let executor = &rank.executor;
            for op in 0..executor.program().len() {
                let times = (executor.start_ps()[op], executor.end_ps()[op]);
                rows.push((executor.program().rank, op as u32, times));
            }
        }
        rows.sort_by_key(|&(rank, op, _)| (rank, op));
        table!(rows, (rank, op, times) => {
            "rank": U32 = *rank,
            "op": U32 = *op,
            "start_ps": U64 = times.0,
            "end_ps": U64 = times.1,
        })
    }

    fn link_table(&self) -> Table {
        let interval_ps = self.loads().interval_ps();
        let times = |sample: u32| {
            let start_ps = u64::from(sample) * interval_ps;
            let end_ps = (start_ps + interval_ps).min(self.now_ps().max(start_ps + 1));
            (end_ps, end_ps - start_ps)
        };
        table!(self.loads().rows(), (sample, row) => {
            "time_ps": U64 = times(*sample).0,
            "interval_ps": U64 = times(*sample).1,
            "link": U32 = row.direction / 2,
            "direction": U8 = (row.direction % 2) as u8,
            "tx_bytes": U64 = row.tx_bytes,
            "tx_packets": U64 = row.tx_packets,
            "data_bytes": U64 = row.data_bytes,
            "busy_ps": U64 = row.busy_ps,
        })
    }

    /// What the messages that have left put on every link.
    fn flow_link_table(&self) -> Table {
        let rank = |nic: u32| self.config.nics[nic as usize].rank;
        let mut sent = self.past.clone();
        let flows = 0..self.flows.len() as u32;
        let mut rows: Vec<_> = flows
            .flat_map(|flow| self.sharing.hops(flow).map(move |hop| (flow, hop)))
            .map(|(flow, (direction, fraction))| {
                let pair = &self.flows[flow as usize];
                let mut part = pair.sent.part(fraction);
                part.add(sent.remove(&(flow, direction)).unwrap_or_default());
                (direction, pair, part)
            })
            .collect();
        let left = sent.into_iter().filter(|(_, part)| part.packets > 0);
        rows.extend(
            left.map(|((flow, direction), part)| (direction, &self.flows[flow as usize], part)),
        );
        table!(rows, (direction, pair, sent) => {
            "link": U32 = direction / 2,
            "direction": U8 = (direction % 2) as u8,
            "source_rank": U32 = rank(pair.source_nic),
            "destination_rank": U32 = rank(pair.destination_nic),
            "source_port": U16 = pair.source_port,
            "tx_packets": U64 = sent.packets,
            "tx_bytes": U64 = sent.frame_bytes,
            "data_bytes": U64 = sent.payload_bytes,
        })
    }

    fn nic_table(&self) -> Table {
        let rows: Vec<_> = self.ranks().collect();
        table!(rows, (nic, rank) => {
            "nic": U32 = *nic,
            "rank": U32 = rank.executor.program().rank,
            "tx_packets": U64 = rank.totals.tx_packets,
            "tx_bytes": U64 = rank.totals.tx_bytes,
            "rx_packets": U64 = rank.totals.rx_packets,
            "rx_bytes": U64 = rank.totals.rx_bytes,
            "data_payload_bytes_sent": U64 = rank.totals.sent_bytes,
            "data_payload_bytes_received": U64 = rank.totals.received_bytes,
            "clear_to_send_sent": U64 = rank.totals.clear_to_send_sent,
        })
    }
}
