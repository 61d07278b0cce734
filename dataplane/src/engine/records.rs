//! What a world tells about itself, as tables of columns: the final records, and totals on the way.
//!
//! Rows of snapshots stand for all nodes and links of the job, with zeros for what other processes
//! carry, so that the tables of several processes add up. Final records hold local rows only.

use super::host::Host;
use super::line::Delivered;
use super::link_events::{EndRow, EventOrder, LinkEventRow};
use super::nic::CLEAR_TO_SEND_BYTES;
use super::program::OpKind;
use super::rows::QueueRow;
use super::world::{Medium, RankCompletion, World};
use crate::config::NodeId;
use crate::fabric::{PRIORITIES, QueueTotals};

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Booleans.
    Bool(Vec<bool>),
    /// Octets.
    U8(Vec<u8>),
    /// 16-bit integers.
    U16(Vec<u16>),
    /// 32-bit integers.
    U32(Vec<u32>),
    /// 64-bit integers.
    U64(Vec<u64>),
    /// Floating point numbers.
    F64(Vec<f64>),
    /// Words.
    Text(Vec<String>),
}

/// Columns of one length, with their names.
pub type Table = Vec<(&'static str, Column)>;

/// Tables with their names.
pub type Tables = Vec<(&'static str, Table)>;

/// Totals of a world on the way.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Numbers with their names.
    pub totals: Vec<(&'static str, u64)>,
    /// Tables with their names.
    pub tables: Tables,
}

/// An operation that has started and is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Rank.
    pub rank: u32,
    /// Operation.
    pub op: u32,
    /// What it does.
    pub kind: OpKind,
    /// Rank of the other side; the own rank for a delay.
    pub peer: u32,
    /// Size of its message; 0 for a delay.
    pub size_bytes: u64,
    /// RECV: bytes of the peer's message under way that have arrived.
    pub received_bytes: u64,
    /// What it waits for, in words.
    pub waiting_for: String,
}

/// A table from rows: `name: Kind = expression of the row`.
macro_rules! table {
    ($rows:expr, $row:pat => { $($name:literal: $kind:ident = $value:expr),+ $(,)? }) => {
        vec![$({
            #[allow(unused_variables)] // A column needs a part of the row.
            let column = $rows.iter().map(|$row| $value).collect();
            ($name, Column::$kind(column))
        }),+]
    };
}

pub(crate) use table;

/// The completions as a table.
pub fn completion_table(completions: &[RankCompletion]) -> Table {
    table!(completions, row => {
        "rank": U32 = row.rank,
        "op": U32 = row.completion.op,
        "start_ps": U64 = row.completion.start_ps,
        "end_ps": U64 = row.completion.end_ps,
    })
}

impl<M: Medium> World<M> {
    /// All final tables; the counters are nested one level deeper, see
    /// [`World::counter_tables`].
    pub fn record_tables(&self) -> Tables {
        let mut tables = vec![
            ("ops", self.op_table()),
            ("links", self.link_table()),
            ("queues", self.queue_table()),
            ("qps", self.qp_table()),
            ("flow_links", self.flow_link_table()),
            ("pauses", self.pause_table()),
            ("pause_causes", self.pause_cause_table()),
            ("lost_pauses", self.lost_pause_table()),
            ("failures", self.failure_table()),
        ];
        if let Some(events) = self.link_events() {
            tables.push(("link_events", link_event_table(events.log())));
            if let Some((orders, ends)) = events.of_part() {
                tables.push(("link_event_orders", order_table(orders)));
                tables.push(("link_event_ends", end_table(ends)));
            }
        }
        if let Some(capture) = self.medium().capture() {
            let frames = capture.frames().clone();
            let rows = vec![
                ("time_ps", Column::U64(frames.time_ps)),
                ("direction", Column::U32(frames.direction)),
                ("length_bytes", Column::U32(frames.length_bytes)),
            ];
            tables.push(("capture", rows));
            tables.push(("capture_bytes", vec![("bytes", Column::U8(frames.bytes))]));
        }
        tables
    }

    /// Totals per node and port.
    pub fn counter_tables(&self) -> Tables {
        let mut tables =
            vec![("nics", self.nic_table(false)), ("switch_ports", self.switch_port_table())];
        if self.link_events().is_some() {
            tables.push(("link_losses", self.link_loss_table()));
        }
        if !self.config().impairments.is_empty() {
            tables.push(("impairments", self.impairment_table()));
        }
        if let Some(capture) = self.medium().capture() {
            tables.push(("capture", capture_table(&capture.counts())));
        }
        tables
    }

    /// Totals on the way.
    pub fn snapshot(&self) -> Snapshot {
        let hosts = || self.hosts().map(|(_, host)| host);
        let delivered = |host: &Host| {
            let counters = host.nic().counters();
            let control_bytes = counters.clear_to_send_received * CLEAR_TO_SEND_BYTES;
            counters.transport.data_payload_bytes_received - control_bytes
        };
        Snapshot {
            totals: vec![
                ("now_ps", self.now_ps()),
                ("ops_done", self.ops_done() as u64),
                ("ops_total", self.ops_total() as u64),
                ("bytes_delivered", hosts().map(delivered).sum()),
                ("events", self.events_handled()),
                ("frames_delivered", self.frames_delivered()),
                ("adapter_advances", hosts().map(|host| host.nic().advances()).sum()),
                ("failed_qps", hosts().map(|host| host.failures().len() as u64).sum()),
            ],
            tables: vec![
                ("links", self.line_table()),
                ("queues", self.queue_totals_table()),
                ("nics", self.nic_table(true)),
                ("pauses", self.pause_total_table()),
                ("link_changes", self.link_change_table()),
            ],
        }
    }

    /// Operations that have started and are not complete, at most `limit`: of each rank in turn
    /// those that started first.
    pub fn blocked(&self, limit: usize) -> Vec<Blocked> {
        let mut of_ranks: Vec<Vec<Blocked>> =
            self.hosts().map(|(_, host)| blocked_of(host, limit)).collect();
        let mut blocked = Vec::new();
        for turn in 0..limit {
            for of_rank in &mut of_ranks {
                if let Some(operation) = of_rank.get(turn) {
                    blocked.push(operation.clone());
                }
            }
        }
        blocked.truncate(limit);
        for operation in &mut blocked {
            if matches!(operation.kind, OpKind::Send | OpKind::Receive) {
                let outage = self.outage_between(operation.rank, operation.peer);
                if !outage.is_empty() {
                    operation.waiting_for.push_str("; ");
                    operation.waiting_for.push_str(&outage);
                }
            }
        }
        blocked
    }

    fn op_table(&self) -> Table {
        let mut rows = Vec::with_capacity(self.ops_total());
        for (_, host) in self.hosts() {
            let executor = host.executor();
            for op in 0..executor.program().len() {
                let times = (executor.start_ps()[op], executor.end_ps()[op]);
                rows.push((executor.program().rank, op as u32, times, host.messages()[op]));
            }
        }
        rows.sort_by_key(|&(rank, op, ..)| (rank, op));
        table!(rows, (rank, op, times, message) => {
            "rank": U32 = *rank,
            "op": U32 = *op,
            "start_ps": U64 = times.0,
            "end_ps": U64 = times.1,
            "retransmitted_packets": U32 = message.retransmitted_packets,
            "marked_packets": U32 = message.marked_packets,
            "cnps": U32 = message.cnps,
        })
    }

    /// End and length of a sample; the last one may have ended early.
    fn sample_times(&self, sample: u32) -> (u64, u64) {
        let interval_ps = self.telemetry().interval_ps();
        let start_ps = u64::from(sample) * interval_ps;
        let end_ps = (start_ps + interval_ps).min(self.now_ps().max(start_ps + 1));
        (end_ps, end_ps - start_ps)
    }

    fn sample_columns<R>(&self, rows: &[(u32, R)]) -> Table {
        let times: Vec<_> = rows.iter().map(|(sample, _)| self.sample_times(*sample)).collect();
        table!(times, (end_ps, interval_ps) => {
            "time_ps": U64 = *end_ps,
            "interval_ps": U64 = *interval_ps,
        })
    }

    fn link_table(&self) -> Table {
        let rows = self.telemetry().links();
        let mut table = self.sample_columns(rows);
        table.extend(table!(rows, (_, row) => {
            "link": U32 = row.direction / 2,
            "direction": U8 = (row.direction % 2) as u8,
            "tx_bytes": U64 = row.tx_bytes,
            "tx_packets": U64 = row.tx_packets,
            "data_bytes": U64 = row.data_bytes,
            "busy_ps": U64 = row.busy_ps,
            "paused_ps": U64 = row.paused_ps,
        }));
        table
    }

    fn queue_table(&self) -> Table {
        let rows = self.telemetry().queues();
        let mut table = self.sample_columns(rows);
        table.extend(queue_columns(rows.iter().map(|(_, row)| row)));
        table
    }

    fn qp_table(&self) -> Table {
        table!(self.telemetry().qps(), (sample, row) => {
            "time_ps": U64 = self.sample_times(*sample).0,
            "source_rank": U32 = row.source_rank,
            "destination_rank": U32 = row.destination_rank,
            "qp": U32 = row.qp,
            "traffic_class": U8 = row.class,
            "current_rate_bps": U64 = row.current_rate_bps,
            "target_rate_bps": U64 = row.target_rate_bps,
            "alpha": F64 = row.alpha,
        })
    }

    fn failure_table(&self) -> Table {
        let failures: Vec<_> =
            self.hosts().flat_map(|(_, host)| host.failures().to_vec()).collect();
        table!(failures, failure => {
            "time_ps": U64 = failure.time_ps,
            "rank": U32 = failure.rank,
            "peer_rank": U32 = failure.peer_rank,
            "qp": U32 = failure.qp,
            "op": U32 = failure.op.unwrap_or(u32::MAX),
            "reason": Text = failure.reason.to_string(),
        })
    }

    fn line_table(&self) -> Table {
        let totals: Vec<_> = self.lines().iter().map(|line| line.totals(self.now_ps())).collect();
        table!(totals, row => {
            "tx_packets": U64 = row.tx_packets,
            "tx_bytes": U64 = row.tx_bytes,
            "data_bytes": U64 = row.data_bytes,
            "busy_ps": U64 = row.busy_ps,
        })
    }

    fn queue_totals_table(&self) -> Table {
        queue_columns(self.telemetry().queue_totals().iter())
    }

    /// Counters of NICs: all of the job, or the local ones.
    fn nic_table(&self, all: bool) -> Table {
        let mut rows = vec![(0, 0, 0, Default::default()); self.config().nics.len()];
        let mut local = Vec::new();
        for (index, host) in self.hosts() {
            let egress = self.topology().nic_egress[index as usize];
            let icrc_errors = egress.map_or(0, |egress| self.medium().icrc_errors(egress ^ 1));
            let rank = host.executor().program().rank;
            let row = (index, rank, icrc_errors, host.nic().counters());
            rows[index as usize] = row;
            local.push(row);
        }
        let rows: Vec<(u32, u32, u64, super::nic::NicCounters)> = if all { rows } else { local };
        table!(rows, (nic, rank, icrc_errors, c) => {
            "nic": U32 = *nic,
            "rank": U32 = *rank,
            "tx_packets": U64 = c.tx_packets,
            "tx_bytes": U64 = c.tx_bytes,
            "rx_packets": U64 = c.rx_packets,
            "rx_bytes": U64 = c.rx_bytes,
            "data_packets_sent": U64 = c.transport.data_packets_sent,
            "data_packets_received": U64 = c.transport.data_packets_received,
            "data_payload_bytes_sent": U64 = c.transport.data_payload_bytes_sent,
            "data_payload_bytes_received": U64 = c.transport.data_payload_bytes_received,
            "data_payload_bytes_retransmitted": U64 =
                c.transport.data_payload_bytes_retransmitted,
            "retransmitted_packets": U64 = c.transport.retransmitted_packets,
            "ecn_marked_packets": U64 = c.transport.ecn_marked_packets,
            "cnps_sent": U64 = c.cnps_sent,
            "cnps_handled": U64 = c.cnps_handled,
            "clear_to_send_sent": U64 = c.clear_to_send_sent,
            "clear_to_send_bytes_sent": U64 = c.clear_to_send_sent * CLEAR_TO_SEND_BYTES,
            "clear_to_send_bytes_received": U64 = c.clear_to_send_received * CLEAR_TO_SEND_BYTES,
            "acks_sent": U64 = c.transport.acks_sent,
            "naks_sent": U64 = c.transport.naks_sent,
            "out_of_sequence": U64 = c.transport.out_of_sequence,
            "duplicate_requests": U64 = c.transport.duplicate_requests,
            "packet_seq_err": U64 = c.transport.packet_seq_err,
            "local_ack_timeout_err": U64 = c.transport.local_ack_timeout_err,
            "invalid_requests": U64 = c.transport.invalid_requests,
            "payload_mismatches": U64 = c.transport.payload_mismatches,
            "rx_icrc_errors": U64 = *icrc_errors,
            "unknown_qp_packets": U64 = c.unknown_qp_packets,
            "pause_frames_received": U64 = c.pause_frames_received,
        })
    }

    fn impairment_table(&self) -> Table {
        table!(self.medium().impairments(), (direction, c) => {
            "link": U32 = *direction / 2,
            "direction": U8 = (*direction % 2) as u8,
            "packets": U64 = c.packets,
            "lost": U64 = c.lost,
            "corrupted": U64 = c.corrupted,
            "duplicated": U64 = c.duplicated,
            "reordered": U64 = c.reordered,
            "delayed": U64 = c.delayed,
        })
    }

    /// What links lost by going down, by direction; only those that lost something. Each direction
    /// is counted where its sending end is.
    fn link_loss_table(&self) -> Table {
        let rows = self.link_losses();
        table!(rows, (direction, under_way, waiting) => {
            "link": U32 = *direction / 2,
            "direction": U8 = (*direction % 2) as u8,
            "under_way_packets": U64 = under_way.packets,
            "under_way_bytes": U64 = under_way.bytes,
            "waiting_packets": U64 = waiting.0,
            "waiting_bytes": U64 = waiting.1,
        })
    }

    /// Direction, what was lost on it, and packets and bytes that were lost while they waited for it.
    pub(super) fn link_losses(&self) -> Vec<(u32, Delivered, (u64, u64))> {
        let mut rows = Vec::new();
        for (index, direction) in self.topology().directions.iter().enumerate() {
            let waiting = match direction.from.node {
                NodeId::Nic(nic) => self.host(nic).map(|host| host.nic().port().link_down_losses()),
                NodeId::Switch(switch) => self.switch(switch).map(|switch| {
                    let mut queues = QueueTotals::default();
                    let port = direction.from.port;
                    (0..PRIORITIES as u8).for_each(|p| queues.add(&switch.queue_totals(port, p)));
                    (queues.link_down_packets, queues.link_down_bytes)
                }),
            };
            let waiting = waiting.unwrap_or_default();
            let under_way = self.lines()[index].lost();
            if under_way.packets + waiting.0 > 0 {
                rows.push((index as u32, under_way, waiting));
            }
        }
        rows
    }

    fn switch_port_table(&self) -> Table {
        let mut rows = Vec::new();
        for (index, switch) in self.switches() {
            for port in 0..switch.ports() {
                let egress = self.topology().switch_egress[index as usize][usize::from(port)];
                let Some(direction) = egress else { continue };
                let sent = self.lines()[direction as usize].totals(self.now_ps());
                let received = self.lines()[(direction ^ 1) as usize].delivered();
                let max_depth_bytes = self.telemetry().port_totals(index, port).max_depth_bytes;
                let mut queues = QueueTotals::default();
                (0..PRIORITIES as u8).for_each(|p| queues.add(&switch.queue_totals(port, p)));
                let place = (index, port, max_depth_bytes, switch.port_totals(port));
                rows.push((place, sent, received, queues));
            }
        }
        table!(rows, ((switch, port, max_depth_bytes, totals), sent, received, queues) => {
            "switch": U32 = *switch,
            "port": U16 = *port,
            "tx_packets": U64 = sent.tx_packets,
            "tx_bytes": U64 = sent.tx_bytes,
            "rx_packets": U64 = received.packets,
            "rx_bytes": U64 = received.bytes,
            "max_depth_bytes": U64 = *max_depth_bytes,
            "marked_packets": U64 = queues.marked_packets,
            "dropped_packets": U64 = queues.dropped_packets,
            "dropped_bytes": U64 = queues.dropped_bytes,
            "headroom_dropped_packets": U64 = queues.headroom_dropped_packets,
            "wred_dropped_packets": U64 = queues.wred_dropped_packets,
            "storm_dropped_packets": U64 = queues.storm_dropped_packets,
            "storms": U64 = queues.storms,
            "unroutable_packets": U64 = totals.unroutable_packets,
            "expired_packets": U64 = totals.expired_packets,
            "link_down_packets": U64 = queues.link_down_packets,
            "link_down_bytes": U64 = queues.link_down_bytes,
            "pause_frames_sent": U64 = queues.pause_frames_sent,
            "pause_frames_received": U64 = queues.pause_frames_received,
        })
    }
}

/// The columns of queues, in samples and in totals.
fn queue_columns<'a>(rows: impl Iterator<Item = &'a QueueRow>) -> Table {
    let rows: Vec<&QueueRow> = rows.collect();
    table!(rows, row => {
        "node": U32 = row.node,
        "is_switch": Bool = row.is_switch,
        "port": U16 = row.port,
        "priority": U8 = row.priority,
        "depth_bytes": U64 = row.depth_bytes,
        "max_depth_bytes": U64 = row.max_depth_bytes,
        "tx_packets": U64 = row.tx_packets,
        "tx_bytes": U64 = row.tx_bytes,
        "paused_ps": U64 = row.paused_ps,
        "marked_packets": U64 = row.marked_packets,
        "dropped_packets": U64 = row.dropped_packets,
        "dropped_bytes": U64 = row.dropped_bytes,
        "wred_dropped_packets": U64 = row.wred_dropped_packets,
        "pause_frames_sent": U64 = row.pause_frames_sent,
        "pause_frames_received": U64 = row.pause_frames_received,
    })
}

pub(crate) fn link_event_table(rows: &[LinkEventRow]) -> Table {
    table!(rows, row => {
        "time_ps": U64 = row.time_ps,
        "event": U32 = row.event,
        "link": U32 = row.link,
        "happened": Text = row.happened.as_str().to_string(),
        "rate_bps": U64 = row.rate_bps,
    })
}

fn order_table(rows: &[EventOrder]) -> Table {
    table!(rows, row => {
        "event": U32 = row.event,
        "base_ps": U64 = row.base_ps,
        "taken_ps": U64 = row.taken_ps,
    })
}

fn end_table(rows: &[EndRow]) -> Table {
    table!(rows, row => {
        "time_ps": U64 = row.time_ps,
        "event": U32 = row.event,
        "link": U32 = row.end / 2,
        "end": U8 = (row.end % 2) as u8,
        "happened": Text = row.happened.as_str().to_string(),
    })
}

fn capture_table(counts: &[(u32, u64, u64)]) -> Table {
    table!(counts, (direction, kept, left_out) => {
        "link": U32 = *direction / 2,
        "direction": U8 = (*direction % 2) as u8,
        "captured": U64 = *kept,
        "left_out": U64 = *left_out,
    })
}

fn blocked_of(host: &Host, limit: usize) -> Vec<Blocked> {
    let executor = host.executor();
    let mut pending: Vec<u32> = executor.pending().collect();
    pending.sort_by_key(|&op| (executor.start_ps()[op as usize], op));
    pending.truncate(limit);
    pending.into_iter().map(|op| describe(host, op)).collect()
}

fn describe(host: &Host, op: u32) -> Blocked {
    let program = host.executor().program();
    let (kind, peer) = (program.op_kind(op), program.peer[op as usize]);
    let size_bytes = program.size_bytes[op as usize];
    let received_bytes = match kind {
        OpKind::Receive => host.nic().receiving_bytes(peer),
        _ => 0,
    };
    let failure = host.failures().iter().find(|failure| failure.peer_rank == peer);
    let waiting_for = match (kind, failure) {
        (OpKind::Send | OpKind::Receive, Some(failure)) => {
            format!("queue pair {:#08x}, which failed: {}", failure.qp, failure.reason)
        }
        (OpKind::Send, None) if !host.executor().is_cleared(op) => {
            "the receiver's readiness".into()
        }
        (OpKind::Send, None) => "its acknowledgement".into(),
        (OpKind::Receive, None) => "its message".into(),
        (OpKind::Delay | OpKind::Join, _) => "its end".into(),
    };
    Blocked { rank: program.rank, op, kind, peer, size_bytes, received_bytes, waiting_for }
}
