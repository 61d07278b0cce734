//! What a NIC tells: events of messages, frames that leave, rates.

use crate::congestion::RateSample;
use crate::roce::Frame;
use crate::roce::queue_pair::FailureReason;

/// What happened to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NicEvent {
    /// A posted message is acknowledged.
    Sent {
        /// As posted.
        id: u32,
        /// Packets sent again.
        retransmitted_packets: u32,
        /// Notifications that came while it was the oldest of its queue pair.
        cnps: u32,
    },
    /// A message arrived whole.
    Received {
        /// Its immediate data.
        immediate: u32,
        /// Packets of it that arrived with congestion experienced.
        marked_packets: u32,
    },
    /// The receiver of a message is ready for it.
    Cleared {
        /// The message, as posted.
        id: u32,
    },
    /// A queue pair stopped for good.
    Failed {
        /// Rank of its other end.
        peer_rank: u32,
        /// Number of the queue pair.
        qp: u32,
        /// Why.
        reason: FailureReason,
        /// The oldest message that is not acknowledged, as posted.
        id: Option<u32>,
    },
}

/// A frame that left the port.
#[derive(Debug)]
pub struct Departure {
    /// The frame.
    pub frame: Frame,
    /// When its last bit left.
    pub end_ps: u64,
}

/// State of a sender's rate, for time series.
#[derive(Clone, Copy, Debug)]
pub struct QpSample {
    /// Rank of the other end.
    pub peer_rank: u32,
    /// Queue pair number.
    pub qp: u32,
    /// Data class of its messages.
    pub class: u8,
    /// The rate.
    pub rate: RateSample,
}
