//! What a NIC counts.

use crate::roce::counters::QpCounters;

/// Totals of one NIC since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NicCounters {
    /// Frames sent.
    pub tx_packets: u64,
    /// Bytes of them, FCS included.
    pub tx_bytes: u64,
    /// Frames that arrived.
    pub rx_packets: u64,
    /// Bytes of them, FCS included.
    pub rx_bytes: u64,
    /// Notifications sent (`np_cnp_sent`).
    pub cnps_sent: u64,
    /// Notifications that a rate controller took (`rp_cnp_handled`).
    pub cnps_handled: u64,
    /// Pause frames that arrived.
    pub pause_frames_received: u64,
    /// Packets for a queue pair or from an address that the NIC is not connected to.
    pub unknown_qp_packets: u64,
    /// Clear-to-send messages posted.
    pub clear_to_send_sent: u64,
    /// Clear-to-send messages that arrived.
    pub clear_to_send_received: u64,
    /// Sums over the queue pairs.
    pub transport: QpCounters,
}
