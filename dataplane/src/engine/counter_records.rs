//! The totals of NICs, links and ports of switches, as tables of columns.

use super::line::Delivered;
use super::nic::{CLEAR_TO_SEND_BYTES, NicCounters};
use super::records::{Column, Table, Tables, table};
use super::world::{Medium, World};
use crate::config::NodeId;
use crate::fabric::{PRIORITIES, QueueTotals};

impl<M: Medium> World<M> {
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

    /// Counters of NICs: all of the job, or the local ones.
    pub(super) fn nic_table(&self, all: bool) -> Table {
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
        let rows: Vec<(u32, u32, u64, NicCounters)> = if all { rows } else { local };
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

fn capture_table(counts: &[(u32, u64, u64)]) -> Table {
    table!(counts, (direction, kept, left_out) => {
        "link": U32 = *direction / 2,
        "direction": U8 = (*direction % 2) as u8,
        "captured": U64 = *kept,
        "left_out": U64 = *left_out,
    })
}
