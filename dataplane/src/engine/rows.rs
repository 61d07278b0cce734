//! The rows of time series: links, queues, sender rates.

use super::series::Row;

/// What one direction of a link carried in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRow {
    /// `2 * link`, plus 1 for the direction that leaves end b.
    pub direction: u32,
    /// Frame bytes with FCS, of frames that began.
    pub tx_bytes: u64,
    /// Frames that began.
    pub tx_packets: u64,
    /// RoCE payload of them.
    pub data_bytes: u64,
    /// Time that the line was in use.
    pub busy_ps: u64,
    /// Time that the sending port was paused for the data priority, the most paused of several.
    pub paused_ps: u64,
}

/// One egress queue in a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueRow {
    /// The node is a switch, not a NIC.
    pub is_switch: bool,
    /// Index of the node.
    pub node: u32,
    /// Port.
    pub port: u16,
    /// Priority.
    pub priority: u8,
    /// Bytes queued at the end of the sample.
    pub depth_bytes: u64,
    /// Most bytes queued at once.
    pub max_depth_bytes: u64,
    /// Frames that began to leave.
    pub tx_packets: u64,
    /// Bytes of them, FCS included.
    pub tx_bytes: u64,
    /// Time that the priority was paused by the neighbour.
    pub paused_ps: u64,
    /// Packets marked.
    pub marked_packets: u64,
    /// Packets dropped.
    pub dropped_packets: u64,
    /// Bytes of them.
    pub dropped_bytes: u64,
    /// Those of the dropped packets that were not ECN-capable where they would have been marked.
    pub wred_dropped_packets: u64,
    /// Pause frames sent by this port for this priority.
    pub pause_frames_sent: u64,
    /// Pause frames that arrived at this port for this priority.
    pub pause_frames_received: u64,
}

/// Rate of one sender at the end of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QpRow {
    /// Rank that sends.
    pub source_rank: u32,
    /// Rank that receives.
    pub destination_rank: u32,
    /// Queue pair number at the source.
    pub qp: u32,
    /// Data class of its messages.
    pub class: u8,
    /// Rate in use.
    pub current_rate_bps: u64,
    /// Rate aimed at.
    pub target_rate_bps: u64,
    /// Congestion estimate.
    pub alpha: f64,
}

impl Row for LinkRow {
    fn key(&self) -> u64 {
        u64::from(self.direction)
    }

    fn merge(&mut self, later: &Self) {
        self.tx_bytes += later.tx_bytes;
        self.tx_packets += later.tx_packets;
        self.data_bytes += later.data_bytes;
        self.busy_ps += later.busy_ps;
        self.paused_ps += later.paused_ps;
    }
}

impl Row for QueueRow {
    fn key(&self) -> u64 {
        let place = u64::from(self.port) << 8 | u64::from(self.priority);
        u64::from(self.is_switch) << 63 | u64::from(self.node) << 24 | place
    }

    fn merge(&mut self, later: &Self) {
        self.depth_bytes = later.depth_bytes;
        self.max_depth_bytes = self.max_depth_bytes.max(later.max_depth_bytes);
        self.tx_packets += later.tx_packets;
        self.tx_bytes += later.tx_bytes;
        self.paused_ps += later.paused_ps;
        self.marked_packets += later.marked_packets;
        self.dropped_packets += later.dropped_packets;
        self.dropped_bytes += later.dropped_bytes;
        self.wred_dropped_packets += later.wred_dropped_packets;
        self.pause_frames_sent += later.pause_frames_sent;
        self.pause_frames_received += later.pause_frames_received;
    }
}

impl QueueRow {
    pub(super) fn copy_identity(&mut self, from: &Self) {
        self.is_switch = from.is_switch;
        self.node = from.node;
        self.port = from.port;
        self.priority = from.priority;
    }

    /// Nothing was queued, sent, marked, dropped or paused.
    pub(super) fn is_empty(&self) -> bool {
        self.depth_bytes
            | self.max_depth_bytes
            | self.tx_packets
            | self.paused_ps
            | self.marked_packets
            | self.dropped_packets
            | self.pause_frames_sent
            | self.pause_frames_received
            == 0
    }
}

impl Row for QpRow {
    fn key(&self) -> u64 {
        u64::from(self.source_rank) << 32 | u64::from(self.qp)
    }

    fn merge(&mut self, later: &Self) {
        *self = *later;
    }
}
