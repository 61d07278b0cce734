//! One queue pair of a NIC with what paces it.

use super::NONE;
use crate::config::JobConfig;
use crate::congestion::{CongestionControl, Controller, FlowKey};
use crate::engine::connections::Connection;
use crate::roce::queue_pair::{QueuePair, QueuePairAddress};
use crate::roce::{Packet, udp_source_port};
use crate::units::{PREAMBLE_AND_GAP_BYTES, transfer_ps};
use std::collections::{BTreeMap, VecDeque};

/// A message between posting and acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Posted {
    pub id: u32,
    pub cnps: u32,
}

/// One queue pair with what paces it.
#[derive(Debug)]
pub struct Pair {
    pub qp: QueuePair,
    pub peer_rank: u32,
    /// First sequence numbers sent and expected.
    pub psns: (u32, u32),
    /// Data class.
    pub class: u8,
    /// Present where messages are sent.
    pub controller: Option<Controller>,
    pub rate_bps: u64,
    pub last_start_ps: u64,
    pub last_wire_bytes: u32,
    pub posted: VecDeque<Posted>,
}

impl Pair {
    pub fn number(&self) -> u32 {
        self.qp.address().local_qp
    }

    pub fn new(
        config: &JobConfig,
        addresses: &BTreeMap<u32, u32>,
        rank: u32,
        line_rate_bps: u64,
        connection: &Connection,
    ) -> Self {
        let is_source = connection.source_rank == rank;
        let ends = (connection.source_qp, connection.destination_qp);
        let (local_qp, remote_qp) = if is_source { ends } else { (ends.1, ends.0) };
        let psns = (connection.psn, connection.reverse_psn);
        let (send_psn, receive_psn) = if is_source { psns } else { (psns.1, psns.0) };
        let peer_rank =
            if is_source { connection.destination_rank } else { connection.source_rank };
        let address = QueuePairAddress {
            local_address: addresses[&rank],
            remote_address: addresses[&peer_rank],
            local_qp,
            remote_qp,
            source_port: udp_source_port(local_qp, remote_qp),
        };
        let (class, tags) = (connection.class, config.tags(connection.class));
        let controller =
            is_source.then(|| Controller::new(config.congestion_control_of(class), line_rate_bps));
        Self {
            qp: QueuePair::new(&config.transport, &tags, address, send_psn, receive_psn),
            peer_rank,
            psns: (send_psn, receive_psn),
            class,
            rate_bps: controller.as_ref().map_or(line_rate_bps, Controller::rate_bps),
            controller,
            last_start_ps: 0,
            last_wire_bytes: 0,
            posted: VecDeque::new(),
        }
    }

    /// Messages leave here; otherwise they arrive, and only clear-to-send messages leave.
    pub fn is_source(&self) -> bool {
        self.controller.is_some()
    }

    pub fn flow(&self) -> FlowKey {
        let address = self.qp.address();
        FlowKey {
            local_qp: address.local_qp,
            local_address: address.local_address,
            remote_address: address.remote_address,
        }
    }

    /// Give a packet to the queue pair, and tell the controller of a NAK for a gap.
    #[inline]
    pub fn handle_packet(&mut self, now_ps: u64, packet: &Packet) {
        let naks = self.qp.counters().packet_seq_err;
        self.qp.handle_packet(now_ps, packet);
        if self.qp.counters().packet_seq_err > naks {
            if let Some(controller) = &mut self.controller {
                controller.handle_sequence_nak(now_ps);
            }
        }
    }

    /// A packet is ready, and neither window is closed.
    pub fn may_send(&self) -> bool {
        let Some(_) = self.qp.next_data_bytes() else {
            return false;
        };
        let window_bytes = self.controller.as_ref().and_then(Controller::window_bytes);
        window_bytes.is_none_or(|window_bytes| self.qp.in_flight_bytes() < window_bytes)
    }

    pub fn count_sent(&mut self, now_ps: u64, wire_bytes: u32) {
        self.last_start_ps = now_ps;
        self.last_wire_bytes = wire_bytes;
        if let Some(controller) = &mut self.controller {
            controller.handle_sent(now_ps, wire_bytes);
            self.rate_bps = controller.rate_bps();
        }
    }

    /// Adopt the controller's rate; true if the packet that waits for its time has a new one.
    pub fn update_rate(&mut self) -> bool {
        let Some(controller) = &self.controller else { return false };
        let rate_bps = controller.rate_bps();
        let is_new = std::mem::replace(&mut self.rate_bps, rate_bps) != rate_bps;
        is_new && controller.rearms_pacer()
    }

    /// The next packet may not start before. Rates count what a frame occupies on the line,
    /// preamble and gap included, so that the rates of a full line add up to the line rate.
    pub fn eligible_ps(&self) -> u64 {
        if self.last_wire_bytes == 0 {
            return 0;
        }
        let bytes = u64::from(self.last_wire_bytes) + PREAMBLE_AND_GAP_BYTES;
        self.last_start_ps.saturating_add(transfer_ps(bytes, self.rate_bps))
    }

    /// A glance at what a packet needs.
    #[inline]
    pub fn glance(&self) -> u64 {
        let controller = self.controller.as_ref().map_or(0, Controller::rate_bps);
        controller ^ self.qp.glance() ^ self.last_start_ps ^ self.rate_bps
    }

    pub fn poll_timeout(&self) -> Option<u64> {
        let controller_ps = self.controller.as_ref().and_then(Controller::poll_timeout);
        match (self.qp.poll_timeout(), controller_ps) {
            (Some(qp_ps), Some(controller_ps)) => Some(qp_ps.min(controller_ps)),
            (qp_ps, controller_ps) => qp_ps.or(controller_ps),
        }
    }
}

/// Index of each queue pair number, from the lowest to the highest.
pub fn index_numbers(pairs: &[Pair]) -> Vec<u32> {
    let Some(first) = pairs.iter().map(Pair::number).min() else {
        return Vec::new();
    };
    let last = pairs.iter().map(Pair::number).max().unwrap_or(first);
    let mut indices = vec![NONE; (last - first) as usize + 1];
    for (index, pair) in pairs.iter().enumerate() {
        indices[(pair.number() - first) as usize] = index as u32;
    }
    indices
}
