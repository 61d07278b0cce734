//! What a NIC leaves to an adapter that has queue pairs of its own: it posts whole messages and is
//! told what became of them. Packets, their pacing and their repetition are the adapter's.

use super::{CLEAR_TO_SEND_BYTES, Nic, NicCounters};
use crate::roce::RemoteMemory;
use crate::roce::counters::QpCounters;
use crate::roce::queue_pair::{FailureReason, QpEvent};
use std::collections::VecDeque;

/// A message for an adapter to send: RDMA WRITEs, of which the last has immediate data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRequest {
    /// Which of the NIC's queue pairs.
    pub pair: u32,
    /// Comes back in [`DeviceEvent::Sent`].
    pub id: u32,
    /// Size.
    pub size_bytes: u64,
    /// Immediate data.
    pub immediate: u32,
}

/// What an adapter reports of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceEvent {
    /// The oldest message is acknowledged.
    Sent {
        /// As posted.
        id: u32,
    },
    /// A part of the oldest message is acknowledged, and more of it is under way.
    Advanced,
    /// A message arrived whole.
    Received {
        /// Its immediate data.
        immediate: u32,
        /// The bytes that were looked at are those that were sent.
        is_intact: bool,
    },
    /// It stopped for good.
    Failed {
        /// Why.
        reason: FailureReason,
    },
}

/// A queue pair as it is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairPlan {
    /// Rank of the other end.
    pub peer_rank: u32,
    /// The other end's IPv4 address, host byte order.
    pub remote_address: u32,
    /// The other end's number, unless an adapter chooses another.
    pub remote_qp: u32,
    /// First sequence number sent.
    pub send_psn: u32,
    /// First sequence number expected.
    pub receive_psn: u32,
    /// UDP source port.
    pub source_port: u16,
    /// DSCP and ECN codepoint of data.
    pub traffic_class: u8,
}

/// The half of a NIC that an adapter does not do.
#[derive(Debug, Default)]
pub(super) struct Offload {
    pub requests: VecDeque<DeviceRequest>,
    counters: QpCounters,
    advances: u64,
}

impl Offload {
    pub fn add_to(&self, counters: &mut NicCounters) {
        counters.transport.add(&self.counters);
    }
}

impl Nic {
    /// From now on an adapter carries the messages; to be called before the first one.
    pub fn offload(&mut self) {
        self.offload = Some(Offload::default());
    }

    /// An adapter carries the messages.
    pub fn is_offloaded(&self) -> bool {
        self.offload.is_some()
    }

    /// The next message for the adapter.
    pub fn poll_request(&mut self) -> Option<DeviceRequest> {
        let offload = self.offload.as_mut()?;
        let request = offload.requests.pop_front()?;
        offload.counters.data_payload_bytes_sent += request.size_bytes;
        Some(request)
    }

    /// The adapter reports something.
    pub fn handle_device_event(&mut self, now_ps: u64, index: u32, event: DeviceEvent) {
        let Some(pair) = self.pairs.get(index as usize) else { return };
        if let (Some(offload), DeviceEvent::Received { is_intact, .. }) = (&mut self.offload, event)
        {
            // The size of any other message is known to the program alone.
            let control_bytes = if pair.is_source() { CLEAR_TO_SEND_BYTES } else { 0 };
            offload.counters.data_payload_bytes_received += control_bytes;
            offload.counters.payload_mismatches += u64::from(!is_intact);
        }
        let event = match event {
            DeviceEvent::Advanced => {
                return self.offload.iter_mut().for_each(|offload| offload.advances += 1);
            }
            DeviceEvent::Sent { id } => {
                QpEvent::SendCompleted { id: id.into(), retransmitted_packets: 0 }
            }
            DeviceEvent::Received { immediate, .. } => {
                QpEvent::MessageReceived { immediate, size_bytes: 0, marked_packets: 0 }
            }
            DeviceEvent::Failed { reason } => QpEvent::Failed { reason },
        };
        self.handle_event(now_ps, index, event);
    }

    /// Parts of messages that were acknowledged before the whole was: what moves while a long message
    /// is under way.
    pub fn advances(&self) -> u64 {
        self.offload.as_ref().map_or(0, |offload| offload.advances)
    }

    /// A message of so many bytes was received from the adapter.
    pub fn count_received(&mut self, size_bytes: u64) {
        if let Some(offload) = &mut self.offload {
            offload.counters.data_payload_bytes_received += size_bytes;
        }
    }

    /// The queue pairs in their order, which is the same at both ends of those towards one rank.
    pub fn pair_plans(&self) -> impl Iterator<Item = PairPlan> + '_ {
        self.pairs.iter().map(|pair| {
            let address = pair.qp.address();
            let class = &self.classes[usize::from(pair.class)];
            PairPlan {
                peer_rank: pair.peer_rank,
                remote_address: address.remote_address,
                remote_qp: address.remote_qp,
                send_psn: pair.psns.0,
                receive_psn: pair.psns.1,
                source_port: address.source_port,
                traffic_class: class.data_dscp << 2 | class.data_ecn as u8,
            }
        })
    }

    /// The other ends towards a rank are an adapter's: its numbers, in the order of the plan, and its
    /// memory. False if there are not as many.
    #[must_use]
    pub fn set_peer_device(&mut self, rank: u32, numbers: &[u32], memory: RemoteMemory) -> bool {
        let mut pairs: Vec<_> =
            self.pairs.iter_mut().filter(|pair| pair.peer_rank == rank).collect();
        if pairs.len() != numbers.len() {
            return false;
        }
        for (pair, &number) in pairs.iter_mut().zip(numbers) {
            pair.qp.set_remote(number, memory);
        }
        true
    }
}
