//! Time series of links, queues and sender rates, sampled from the nodes' own counters.

use super::host::Host;
use super::line::{Line, LineTotals};
use super::rows::{LinkRow, QpRow, QueueRow};
use super::series::{Row, SampleClock, Series};
use super::topology::Topology;
use crate::config::{JobConfig, NodeId};
use crate::fabric::port::bits;
use crate::fabric::{PRIORITIES, Switch};

/// Rows that one series may have: past it the interval doubles, whatever `max_samples` allows.
const MAX_ROWS: usize = 1 << 20;

/// See the module documentation.
#[derive(Debug)]
pub struct Telemetry {
    clock: SampleClock,
    next_sample_ps: u64,
    /// Priorities of the data classes, each once.
    data_priorities: Vec<u8>,
    /// Nodes at the sending end of each direction.
    senders: Vec<(NodeId, u16)>,
    previous: Vec<(LineTotals, u64)>,
    is_active: bool,
    /// Number of the sample that was closed last.
    last_taken: Option<u32>,
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
            data_priorities: data_priorities(config),
            senders: topology.directions.iter().map(|d| (d.from.node, d.from.port)).collect(),
            previous: vec![Default::default(); topology.directions.len()],
            is_active: false,
            last_taken: None,
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
        while self.rows_of_longest() > MAX_ROWS && self.clock.sample() > 0 {
            self.clock.coarsen();
            self.halve();
        }
        for _ in 0..self.clock.advance_to(now_ps) {
            self.halve();
        }
        self.next_sample_ps = self.clock.end_ps();
    }

    fn rows_of_longest(&self) -> usize {
        self.links.len().max(self.queues.len()).max(self.qps.len())
    }

    fn halve(&mut self) {
        self.last_taken = self.last_taken.map(|sample| sample / 2);
        self.links.halve();
        self.queues.halve();
        self.qps.halve();
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
        self.take_nic_queues(at_ps, hosts);
        self.take_switch_queues(at_ps, switches);
        self.take_rates(at_ps, hosts);
        if self.last_taken.replace(self.clock.sample()) == Some(self.clock.sample()) {
            // The sample was closed before its end, or its interval has doubled since.
            self.links.merge();
            self.queues.merge();
            self.qps.merge();
        }
    }

    fn take_links(
        &mut self,
        at_ps: u64,
        hosts: &mut [Option<Box<Host>>],
        switches: &mut [Option<Box<Switch>>],
        lines: &[Line],
    ) {
        for (index, line) in lines.iter().enumerate() {
            let mut paused = |priority: u8| match self.senders[index] {
                (NodeId::Nic(nic), _) => hosts[nic as usize]
                    .as_mut()
                    .map_or(0, |host| host.nic_mut().port_mut().paused_ps(at_ps, priority)),
                (NodeId::Switch(switch), port) => switches[switch as usize]
                    .as_mut()
                    .map_or(0, |node| node.paused_ps(at_ps, port, priority)),
            };
            let paused_ps =
                self.data_priorities.iter().map(|&priority| paused(priority)).max().unwrap_or(0);
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

    fn take_nic_queues(&mut self, at_ps: u64, hosts: &mut [Option<Box<Host>>]) {
        for (index, host) in hosts.iter_mut().enumerate() {
            let Some(host) = host else { continue };
            let port = host.nic_mut().port_mut();
            for priority in priorities(port.take_touched(at_ps)) {
                let sample = port.take_sample(priority);
                let paused_ps = port.paused_ps(at_ps, priority);
                let row = QueueRow {
                    is_switch: false,
                    node: index as u32,
                    port: 0,
                    priority,
                    depth_bytes: sample.depth_bytes,
                    max_depth_bytes: sample.max_depth_bytes,
                    tx_packets: sample.tx_packets,
                    tx_bytes: sample.tx_bytes,
                    paused_ps,
                    marked_packets: 0,
                    dropped_packets: 0,
                    dropped_bytes: 0,
                    wred_dropped_packets: 0,
                    pause_frames_sent: 0,
                    pause_frames_received: sample.pause_frames_received,
                };
                self.push_queue(index * PRIORITIES, row);
            }
        }
    }

    fn take_switch_queues(&mut self, at_ps: u64, switches: &mut [Option<Box<Switch>>]) {
        for (index, switch) in switches.iter_mut().enumerate() {
            let Some(switch) = switch else { continue };
            for port in 0..switch.ports() {
                for priority in priorities(switch.take_touched(at_ps, port)) {
                    let sample = switch.take_queue_sample(port, priority);
                    let paused_ps = switch.paused_ps(at_ps, port, priority);
                    self.push_queue(
                        self.switch_offsets[index],
                        QueueRow {
                            is_switch: true,
                            node: index as u32,
                            port,
                            priority,
                            depth_bytes: sample.depth_bytes,
                            max_depth_bytes: sample.max_depth_bytes,
                            tx_packets: sample.tx_packets,
                            tx_bytes: sample.tx_bytes,
                            paused_ps,
                            marked_packets: sample.marked_packets,
                            dropped_packets: sample.dropped_packets,
                            dropped_bytes: sample.dropped_bytes,
                            wred_dropped_packets: sample.wred_dropped_packets,
                            pause_frames_sent: sample.pause_frames_sent,
                            pause_frames_received: sample.pause_frames_received,
                        },
                    );
                }
            }
        }
    }

    /// `first` is the index of the node's first queue in the totals; the row's paused time is that
    /// since the start.
    fn push_queue(&mut self, first: usize, mut row: QueueRow) {
        let index = first + usize::from(row.port) * PRIORITIES + usize::from(row.priority);
        let total = &mut self.queue_totals[index];
        row.paused_ps -= total.paused_ps;
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
                    class: sample.class,
                    current_rate_bps: sample.rate.current_rate_bps,
                    target_rate_bps: sample.rate.target_rate_bps,
                    alpha: sample.rate.alpha,
                };
                self.qps.push(self.clock.sample(), row);
            }
        }
    }
}

/// The priorities of a mask.
fn priorities(mask: u8) -> impl Iterator<Item = u8> {
    bits(mask).map(|priority| priority as u8)
}

fn data_priorities(config: &JobConfig) -> Vec<u8> {
    let mut priorities: Vec<u8> =
        (0..config.data_classes()).map(|class| config.tags(class as u8).data_priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    priorities
}
