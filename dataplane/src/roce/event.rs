//! What a queue pair reports. Loss, marks and time-outs are events, never errors.

use super::counters::QpCounters;
use std::collections::VecDeque;

/// Why a queue pair stopped for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FailureReason {
    /// The retransmission timer expired more often than allowed without progress.
    #[error("no acknowledgement after all retries")]
    RetriesExhausted,
    /// The peer had no receive posted more often in a row than allowed.
    #[error("the peer had no receive posted after all retries")]
    ReceiverNotReady,
    /// The peer refused a request as invalid.
    #[error("the peer refused a request as invalid")]
    RefusedAsInvalid,
    /// The peer refused access to its memory.
    #[error("the peer refused access to its memory")]
    RefusedAccess,
    /// The peer could not execute a request.
    #[error("the peer could not execute a request")]
    RefusedOperation,
    /// The peer answered a READ with the wrong number of bytes.
    #[error("the peer answered a READ with the wrong number of bytes")]
    InvalidResponse,
    /// The peer's request broke the protocol and was refused.
    #[error("the peer sent an invalid request")]
    InvalidRequest,
    /// An adapter gave up for a reason of its own.
    #[error("the adapter stopped the queue pair: {} (completion status {status})", meaning(*status))]
    Device {
        /// Status of the completion. Source: rdma-core, `enum ibv_wc_status`.
        status: u32,
    },
}

/// What a completion status of an adapter means. Source: rdma-core, `enum ibv_wc_status`.
fn meaning(status: u32) -> &'static str {
    match status {
        1 => "local length error",
        2 => "local operation error",
        4 => "local protection error",
        5 => "its requests came back undone",
        7 => "bad response",
        8 => "local access error",
        16 => "aborted by the peer",
        19 => "fatal error",
        20 => "response timed out",
        21 => "general error",
        _ => "unknown error",
    }
}

/// What happened on a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QpEvent {
    /// The peer has acknowledged a whole message; messages complete in the order of posting.
    SendCompleted {
        /// The message's `id`.
        id: u64,
        /// Packets of it that were sent again.
        retransmitted_packets: u32,
    },
    /// A whole message has arrived; messages arrive in the order of posting.
    MessageReceived {
        /// Its immediate data.
        immediate: u32,
        /// Its size.
        size_bytes: u64,
        /// Data packets of it that arrived with congestion experienced.
        marked_packets: u32,
    },
    /// A SEND has arrived whole.
    SendReceived {
        /// Its immediate data.
        immediate: Option<u32>,
        /// Its size.
        size_bytes: u64,
        /// Data packets of it that arrived with congestion experienced.
        marked_packets: u32,
    },
    /// All responses to a READ have arrived.
    ReadCompleted {
        /// The request's `id`.
        id: u64,
        /// Its size.
        size_bytes: u64,
        /// Requests for it that were sent again.
        retransmitted_packets: u32,
        /// Responses that arrived with congestion experienced.
        marked_packets: u32,
    },
    /// A gap was seen and a NAK is about to be sent.
    SequenceError,
    /// The retransmission timer expired; everything unacknowledged is sent again.
    TimedOut,
    /// The queue pair has stopped for good.
    Failed {
        /// Why.
        reason: FailureReason,
    },
}

/// Where the halves of a queue pair note what happens.
pub(super) struct Notes<'a> {
    pub counters: &'a mut QpCounters,
    pub events: &'a mut VecDeque<QpEvent>,
}
