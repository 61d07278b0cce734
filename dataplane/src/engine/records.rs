//! What a world tells about itself, as tables of columns: the final records, and totals on the way.
//!
//! Rows of snapshots stand for all nodes and links of the job, with zeros for what other processes
//! carry, so that the tables of several processes add up. Final records hold local rows only.

use super::host::Host;
use super::link_events::{EndRow, EventOrder, LinkEventRow};
use super::nic::CLEAR_TO_SEND_BYTES;
use super::rows::QueueRow;
use super::world::{Medium, RankCompletion, World};

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
