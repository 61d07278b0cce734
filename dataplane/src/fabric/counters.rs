//! What a switch counts, per port and per egress queue.

/// Why a frame is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DropCause {
    /// A lossy queue has no more share of the buffer.
    QueueFull,
    /// A lossless ingress has no more headroom.
    HeadroomFull,
    /// The queue's profile would mark the packet, which is not ECN-capable.
    Wred,
    /// The queue is in a storm.
    Storm,
    /// The link is down.
    LinkDown,
}

/// Totals of one egress queue since the start; pauses are those of its priority on its port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueTotals {
    /// Frames that left.
    pub tx_packets: u64,
    /// Bytes of them, FCS included.
    pub tx_bytes: u64,
    /// Frames marked here with congestion experienced.
    pub marked_packets: u64,
    /// Frames that did not get into the queue.
    pub dropped_packets: u64,
    /// Bytes of them, FCS included.
    pub dropped_bytes: u64,
    /// Those of the dropped frames that were lossless: the headroom was full.
    pub headroom_dropped_packets: u64,
    /// Those of the dropped frames that were not ECN-capable where they would have been marked.
    pub wred_dropped_packets: u64,
    /// Those of the dropped frames that the watchdog dropped.
    pub storm_dropped_packets: u64,
    /// Storms that the watchdog found.
    pub storms: u64,
    /// Frames that waited for a link when it went down, or came for it while it was down; not
    /// among the dropped ones.
    pub link_down_packets: u64,
    /// Bytes of them, FCS included.
    pub link_down_bytes: u64,
    /// Pause frames (XOFF, its refreshes, and XON) sent about the priority.
    pub pause_frames_sent: u64,
    /// Pause frames received about the priority.
    pub pause_frames_received: u64,
}

impl QueueTotals {
    /// Count a frame that did not get into the queue, or not out of it.
    #[cold]
    pub(super) fn count_drop(&mut self, cause: DropCause, wire_bytes: u32) {
        if cause == DropCause::LinkDown {
            self.link_down_packets += 1;
            self.link_down_bytes += u64::from(wire_bytes);
            return;
        }
        self.dropped_packets += 1;
        self.dropped_bytes += u64::from(wire_bytes);
        self.headroom_dropped_packets += u64::from(cause == DropCause::HeadroomFull);
        self.wred_dropped_packets += u64::from(cause == DropCause::Wred);
        self.storm_dropped_packets += u64::from(cause == DropCause::Storm);
    }

    /// What was counted after `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            tx_packets: self.tx_packets - before.tx_packets,
            tx_bytes: self.tx_bytes - before.tx_bytes,
            marked_packets: self.marked_packets - before.marked_packets,
            dropped_packets: self.dropped_packets - before.dropped_packets,
            dropped_bytes: self.dropped_bytes - before.dropped_bytes,
            headroom_dropped_packets: self.headroom_dropped_packets
                - before.headroom_dropped_packets,
            wred_dropped_packets: self.wred_dropped_packets - before.wred_dropped_packets,
            storm_dropped_packets: self.storm_dropped_packets - before.storm_dropped_packets,
            storms: self.storms - before.storms,
            link_down_packets: self.link_down_packets - before.link_down_packets,
            link_down_bytes: self.link_down_bytes - before.link_down_bytes,
            pause_frames_sent: self.pause_frames_sent - before.pause_frames_sent,
            pause_frames_received: self.pause_frames_received - before.pause_frames_received,
        }
    }

    /// Add the counts of another queue.
    pub fn add(&mut self, other: &Self) {
        self.tx_packets += other.tx_packets;
        self.tx_bytes += other.tx_bytes;
        self.marked_packets += other.marked_packets;
        self.dropped_packets += other.dropped_packets;
        self.dropped_bytes += other.dropped_bytes;
        self.headroom_dropped_packets += other.headroom_dropped_packets;
        self.wred_dropped_packets += other.wred_dropped_packets;
        self.storm_dropped_packets += other.storm_dropped_packets;
        self.storms += other.storms;
        self.link_down_packets += other.link_down_packets;
        self.link_down_bytes += other.link_down_bytes;
        self.pause_frames_sent += other.pause_frames_sent;
        self.pause_frames_received += other.pause_frames_received;
    }
}

/// One egress queue since the sample before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueSample {
    /// Bytes queued now.
    pub depth_bytes: u64,
    /// Most bytes queued at once.
    pub max_depth_bytes: u64,
    /// Frames that left.
    pub tx_packets: u64,
    /// Bytes of them.
    pub tx_bytes: u64,
    /// Frames marked.
    pub marked_packets: u64,
    /// Frames dropped.
    pub dropped_packets: u64,
    /// Bytes of them.
    pub dropped_bytes: u64,
    /// Those of the dropped frames that were not ECN-capable where they would have been marked.
    pub wred_dropped_packets: u64,
    /// Pause frames sent.
    pub pause_frames_sent: u64,
    /// Pause frames received.
    pub pause_frames_received: u64,
}

/// Totals of one port since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortTotals {
    /// Frames that left, pause frames included.
    pub tx_packets: u64,
    /// Bytes of them, FCS included.
    pub tx_bytes: u64,
    /// Frames that arrived for an address without a route.
    pub unroutable_packets: u64,
    /// Frames that arrived with no time to live left.
    pub expired_packets: u64,
    /// Pause frames that left; one frame may be about several priorities.
    pub pause_frames_sent: u64,
    /// Pause frames that arrived.
    pub pause_frames_received: u64,
}
