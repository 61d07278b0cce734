//! Time series of links, queues and sender rates, sampled from the nodes' own counters.

use super::host::Host;
use super::line::{Line, LineTotals};
use super::nic::PRIORITIES;
use super::series::{Row, SampleClock, Series};
use super::topology::Topology;
use crate::config::{JobConfig, NodeId};
use crate::fabric::Switch;

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
    /// Time that the sending port was paused for the data priority.
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
    /// Packets marked.
    pub marked_packets: u64,
    /// Packets dropped.
    pub dropped_packets: u64,
    /// Bytes of them.
    pub dropped_bytes: u64,
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
        self.marked_packets += later.marked_packets;
        self.dropped_packets += later.dropped_packets;
        self.dropped_bytes += later.dropped_bytes;
        self.pause_frames_sent += later.pause_frames_sent;
        self.pause_frames_received += later.pause_frames_received;
    }
}

impl QueueRow {
    fn copy_identity(&mut self, from: &Self) {
        self.is_switch = from.is_switch;
        self.node = from.node;
        self.port = from.port;
        self.priority = from.priority;
    }

    /// Nothing was queued, marked, dropped or paused.
    fn is_empty(&self) -> bool {
        self.depth_bytes
            | self.max_depth_bytes
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

/// See the module documentation.
#[derive(Debug)]
pub struct Telemetry {
    clock: SampleClock,
    next_sample_ps: u64,
    data_priority: u8,
    /// Nodes at the sending end of each direction.
    senders: Vec<(NodeId, u16)>,
    previous: Vec<(LineTotals, u64)>,
    is_active: bool,
    /// Every queue of the job since the start: of NICs by index, then of switches by port; eight
    /// priorities each. Rows of nodes in other processes stay zero.
    queue_totals: Vec<QueueRow>,
    /// Index in `queue_totals` of each switch's first queue.
    switch_offsets: Vec<usize>,
    links: Series<LinkRow>,
    queues: Series<QueueRow>,
    qps: Series<QpRow>,
}

impl Telemetry {
    /// Empty series.
    pub fn new(config: &JobConfig, topology: &Topology) -> Self {
        let telemetry = config.telemetry;
        let mut offset = config.nics.len() * PRIORITIES;
        let mut switch_offsets = Vec::new();
        for switch in &config.switches {
            switch_offsets.push(offset);
            offset += usize::from(switch.ports) * PRIORITIES;
        }
        let clock = SampleClock::new(telemetry.sample_interval_ps, telemetry.max_samples);
        Self {
            next_sample_ps: clock.end_ps(),
            clock,
            data_priority: config.classes.data_priority,
            senders: topology.directions.iter().map(|d| (d.from.node, d.from.port)).collect(),
            previous: vec![Default::default(); topology.directions.len()],
            is_active: false,
            queue_totals: vec![QueueRow::default(); offset],
            switch_offsets,
            links: Series::new(),
            queues: Series::new(),
            qps: Series::new(),
        }
    }

    /// When [`Telemetry::advance_to`] must be called.
    #[inline]
    pub fn next_sample_ps(&self) -> u64 {
        self.next_sample_ps
    }

    /// Something happened in the sample that is being collected.
    #[inline]
    pub fn note_activity(&mut self) {
        self.is_active = true;
    }

    /// Length of the samples.
    pub fn interval_ps(&self) -> u64 {
        self.clock.interval_ps()
    }

    /// Links: sample number and row.
    pub fn links(&self) -> &[(u32, LinkRow)] {
        self.links.rows()
    }

    /// Queues: sample number and row.
    pub fn queues(&self) -> &[(u32, QueueRow)] {
        self.queues.rows()
    }

    /// Sender rates: sample number and row.
    pub fn qps(&self) -> &[(u32, QpRow)] {
        self.qps.rows()
    }

    /// Every queue of the job, from the start to the last sample.
    pub fn queue_totals(&self) -> &[QueueRow] {
        &self.queue_totals
    }

    /// The queues of one switch port together, from the start to the last sample.
    pub fn port_totals(&self, switch: u32, port: u16) -> QueueRow {
        let first = self.switch_offsets[switch as usize] + usize::from(port) * PRIORITIES;
        let mut total = self.queue_totals[first];
        for row in &self.queue_totals[first + 1..first + PRIORITIES] {
            let depth_bytes = total.depth_bytes + row.depth_bytes;
            total.merge(row);
            total.depth_bytes = depth_bytes;
        }
        total
    }

    /// Close the current sample if `now_ps` is behind its end, and go to the one that holds it.
    pub(super) fn advance_to(
        &mut self,
        now_ps: u64,
        hosts: &mut [Option<Box<Host>>],
        switches: &mut [Option<Box<Switch>>],
        lines: &[Line],
    ) {
        if std::mem::take(&mut self.is_active) {
            self.take(self.clock.end_ps(), hosts, switches, lines);
        }
        for _ in 0..self.clock.advance_to(now_ps) {
            self.links.halve();
            self.queues.halve();
            self.qps.halve();
        }
        self.next_sample_ps = self.clock.end_ps();
    }

    /// Close the sample that holds `now_ps`, the last one.
    pub(super) fn finish(
        &mut self,
        now_ps: u64,
        hosts: &mut [Option<Box<Host>>],
        switches: &mut [Option<Box<Switch>>],
        lines: &[Line],
    ) {
        if std::mem::take(&mut self.is_active) {
            self.take(now_ps, hosts, switches, lines);
        }
    }

    fn take(
        &mut self,
        at_ps: u64,
        hosts: &mut [Option<Box<Host>>],
        switches: &mut [Option<Box<Switch>>],
        lines: &[Line],
    ) {
        self.take_links(at_ps, hosts, switches, lines);
        self.take_nic_queues(hosts);
        self.take_switch_queues(switches);
        self.take_rates(at_ps, hosts);
    }

    fn take_links(
        &mut self,
        at_ps: u64,
        hosts: &mut [Option<Box<Host>>],
        switches: &mut [Option<Box<Switch>>],
        lines: &[Line],
    ) {
        for (index, line) in lines.iter().enumerate() {
            let paused_ps = match self.senders[index] {
                (NodeId::Nic(nic), _) => hosts[nic as usize].as_mut().map_or(0, |host| {
                    host.nic_mut().port_mut().paused_ps(at_ps, self.data_priority)
                }),
                (NodeId::Switch(switch), port) => switches[switch as usize]
                    .as_mut()
                    .map_or(0, |node| node.paused_ps(at_ps, port, self.data_priority)),
            };
            let totals = line.totals(at_ps);
            let (before, paused_before_ps) =
                std::mem::replace(&mut self.previous[index], (totals, paused_ps));
            let row = LinkRow {
                direction: index as u32,
                tx_bytes: totals.tx_bytes - before.tx_bytes,
                tx_packets: totals.tx_packets - before.tx_packets,
                data_bytes: totals.data_bytes - before.data_bytes,
                busy_ps: totals.busy_ps - before.busy_ps,
                paused_ps: paused_ps - paused_before_ps,
            };
            if row.tx_packets > 0 || row.busy_ps > 0 || row.paused_ps > 0 {
                self.links.push(self.clock.sample(), row);
            }
        }
    }

    fn take_nic_queues(&mut self, hosts: &mut [Option<Box<Host>>]) {
        for (index, host) in hosts.iter_mut().enumerate() {
            let Some(host) = host else { continue };
            for priority in 0..PRIORITIES as u8 {
                let sample = host.nic_mut().port_mut().take_sample(priority);
                let row = QueueRow {
                    is_switch: false,
                    node: index as u32,
                    port: 0,
                    priority,
                    depth_bytes: sample.depth_bytes,
                    max_depth_bytes: sample.max_depth_bytes,
                    marked_packets: 0,
                    dropped_packets: 0,
                    dropped_bytes: 0,
                    pause_frames_sent: 0,
                    pause_frames_received: sample.pause_frames_received.into(),
                };
                self.push_queue(index * PRIORITIES, row);
            }
        }
    }

    fn take_switch_queues(&mut self, switches: &mut [Option<Box<Switch>>]) {
        for (index, switch) in switches.iter_mut().enumerate() {
            let Some(switch) = switch else { continue };
            for port in 0..switch.ports() {
                for priority in 0..PRIORITIES as u8 {
                    let sample = switch.take_queue_sample(port, priority);
                    self.push_queue(
                        self.switch_offsets[index],
                        QueueRow {
                            is_switch: true,
                            node: index as u32,
                            port,
                            priority,
                            depth_bytes: sample.depth_bytes,
                            max_depth_bytes: sample.max_depth_bytes,
                            marked_packets: sample.marked_packets,
                            dropped_packets: sample.dropped_packets,
                            dropped_bytes: sample.dropped_bytes,
                            pause_frames_sent: sample.pause_frames_sent,
                            pause_frames_received: sample.pause_frames_received,
                        },
                    );
                }
            }
        }
    }

    /// `first` is the index of the node's first queue in the totals.
    fn push_queue(&mut self, first: usize, row: QueueRow) {
        let index = first + usize::from(row.port) * PRIORITIES + usize::from(row.priority);
        let total = &mut self.queue_totals[index];
        total.merge(&row);
        total.copy_identity(&row);
        if !row.is_empty() {
            self.queues.push(self.clock.sample(), row);
        }
    }

    fn take_rates(&mut self, at_ps: u64, hosts: &[Option<Box<Host>>]) {
        for host in hosts.iter().flatten() {
            let source_rank = host.executor().program().rank;
            for sample in host.nic().rate_samples(at_ps) {
                let row = QpRow {
                    source_rank,
                    destination_rank: sample.peer_rank,
                    qp: sample.qp,
                    current_rate_bps: sample.rate.current_rate_bps,
                    target_rate_bps: sample.rate.target_rate_bps,
                    alpha: sample.rate.alpha,
                };
                self.qps.push(self.clock.sample(), row);
            }
        }
    }
}
