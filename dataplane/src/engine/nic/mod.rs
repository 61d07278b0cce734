//! A network interface: queue pairs, their pacing by congestion control, notifications, one port.
//!
//! It knows no program and no clock: messages come in by [`Nic::post`] and go out as [`NicEvent`]s.

mod class;
mod counters;
mod event;
mod glance;
mod offload;
mod pacer;
mod pair;
mod port;
pub(crate) mod striping;

pub use counters::NicCounters;
pub use event::{Departure, NicEvent, QpSample};
pub use offload::{DeviceEvent, DeviceRequest, PairPlan};
pub use port::{ControlQueueSample, NicPort};
pub use striping::Route;

use super::connections::Connection;
use super::lazy_timers::LazyTimers;
use crate::config::{JobConfig, QpDistribution};
use crate::congestion::{CongestionControl, NotificationPoint};
use crate::roce::opcode::Opcode;
use crate::roce::packet::Ecn;
use crate::roce::queue_pair::{Message, QpEvent};
use crate::roce::{Frame, Packet, cnp};
use class::Class;
use offload::Offload;
use pair::{Pair, Posted, index_numbers};
use std::collections::{BTreeMap, VecDeque};
use striping::{Peer, Sent, Striping, stripes};

const NONE: u32 = u32::MAX;
/// A time that never comes.
const NEVER_PS: u64 = u64::MAX;
/// Payload of a clear-to-send message: one slot of the sender's queue of posted receives. Source:
/// NCCL, `net_ib`, an RDMA WRITE of `struct ncclIbSendFifo`.
pub const CLEAR_TO_SEND_BYTES: u64 = 64;

/// See the module documentation.
#[derive(Debug)]
pub struct Nic {
    classes: Vec<Class>,
    /// The class whose turn it is to send data.
    next_class: usize,
    cnp_dscp: u8,
    cnp_priority: u8,
    cnp_on_nak: bool,
    address: u32,
    /// Number of the first entry of `pair_of_qp`.
    first_qp: u32,
    /// Index in `pairs` of each queue pair number; `NONE` where there is none.
    pair_of_qp: Vec<u32>,
    pairs: Vec<Pair>,
    /// Queue pairs that send to a rank in a class.
    peers: BTreeMap<(u32, u8), Peer>,
    /// First queue pair that receives from a rank in a class.
    first_receiving: BTreeMap<(u32, u8), u32>,
    distribution: QpDistribution,
    striping: Striping,
    notification_point: NotificationPoint,
    port: NicPort,
    timers: LazyTimers,
    events: VecDeque<NicEvent>,
    counters: NicCounters,
    /// Present where an adapter carries the messages.
    offload: Option<Offload>,
}

impl Nic {
    /// The NIC of `rank` with its ends of `connections`, which are all of this rank and in the order
    /// of the plan; `rate_bps` is its line rate.
    pub fn new(
        config: &JobConfig,
        addresses: &BTreeMap<u32, u32>,
        rank: u32,
        rate_bps: u64,
        connections: &[Connection],
    ) -> Self {
        let mut pairs = Vec::new();
        let mut peers = BTreeMap::new();
        let mut first_receiving = BTreeMap::new();
        for connection in connections {
            let pair = Pair::new(config, addresses, rank, rate_bps, connection);
            if connection.source_rank == rank {
                let first = pairs.len() as u32;
                let flow = (connection.destination_rank, connection.class);
                let peer = peers.entry(flow).or_insert(Peer { first, count: 0, next: 0 });
                peer.count += 1;
            } else {
                let index = pairs.len() as u32;
                let flow = (connection.source_rank, connection.class);
                first_receiving.entry(flow).or_insert(index);
            }
            pairs.push(pair);
        }
        Self {
            classes: (0..config.data_classes())
                .map(|class| Class::new(&config.tags(class as u8), pairs.len()))
                .collect(),
            next_class: 0,
            cnp_dscp: config.classes.cnp_dscp,
            cnp_priority: config.classes.cnp_priority,
            cnp_on_nak: config.notification_point.cnp_on_nak,
            address: addresses[&rank],
            first_qp: pairs.iter().map(Pair::number).min().unwrap_or(0),
            pair_of_qp: index_numbers(&pairs),
            peers,
            first_receiving,
            distribution: config.transport.qp_distribution,
            striping: Striping::new(
                config.transport.qp_distribution,
                config.transport.qps_per_peer,
            ),
            notification_point: NotificationPoint::new(&config.notification_point),
            port: NicPort::new(rate_bps),
            timers: LazyTimers::new(pairs.len()),
            pairs,
            events: VecDeque::new(),
            counters: NicCounters::default(),
            offload: None,
        }
    }

    /// Send a message to a rank that the NIC is connected to.
    pub fn post(&mut self, now_ps: u64, route: Route, id: u32, size_bytes: u64, immediate: u32) {
        let Some(peer) = self.peers.get_mut(&route.flow()) else {
            debug_assert!(false, "no connection for {route:?}");
            return;
        };
        if self.striping.is_on() {
            let pairs = peer.pairs();
            for (index, bytes) in pairs.zip(stripes(size_bytes, peer.count)) {
                self.post_on(now_ps, index, id, bytes, immediate);
            }
        } else {
            let index = match self.distribution {
                QpDistribution::Channel => peer.of_channel(route.channel),
                QpDistribution::RoundRobin | QpDistribution::Split => peer.take_turn(),
            };
            self.post_on(now_ps, index, id, size_bytes, immediate);
        }
    }

    /// Tell the sender of the message for `id` that it may be sent; `immediate` is its operation. It
    /// goes against the direction of the data, on the first queue pair.
    pub fn clear_to_send(&mut self, now_ps: u64, route: Route, id: u32, immediate: u32) {
        let Some(&index) = self.first_receiving.get(&route.flow()) else {
            debug_assert!(false, "no connection for {route:?}");
            return;
        };
        self.counters.clear_to_send_sent += 1;
        self.post_on(now_ps, index, id, CLEAR_TO_SEND_BYTES, immediate);
    }

    fn post_on(&mut self, now_ps: u64, index: u32, id: u32, size_bytes: u64, immediate: u32) {
        let pair = &mut self.pairs[index as usize];
        pair.posted.push_back(Posted { id, cnps: 0 });
        if let Some(offload) = &mut self.offload {
            return offload.requests.push_back(DeviceRequest {
                pair: index,
                id,
                size_bytes,
                immediate,
            });
        }
        pair.qp.post_write(Message { id: u64::from(id), size_bytes, immediate });
        self.refresh(now_ps, index);
    }

    /// A frame has arrived.
    pub fn handle_frame(&mut self, now_ps: u64, frame: &Frame) {
        self.counters.rx_packets += 1;
        self.counters.rx_bytes += u64::from(frame.wire_bytes());
        match frame {
            Frame::Pause(pause) => self.port.handle_pause(now_ps, pause),
            Frame::Roce(packet) => self.handle_packet(now_ps, packet),
        }
    }

    fn handle_packet(&mut self, now_ps: u64, packet: &Packet) {
        let index = self.pair_of(packet.bth.destination_qp);
        let known = self.pairs.get(index as usize).is_some_and(|pair| {
            packet.destination_address == self.address
                && packet.source_address == pair.qp.address().remote_address
        });
        if !known {
            self.counters.unknown_qp_packets += 1;
            return;
        }
        if packet.bth.opcode == Opcode::CNP {
            self.handle_cnp(now_ps, index);
        } else if packet.ecn == Ecn::Ce && packet.is_data() {
            self.handle_mark(now_ps, index);
        }
        self.pairs[index as usize].handle_packet(now_ps, packet);
        self.settle(now_ps, index);
    }

    #[inline]
    fn pair_of(&self, qp: u32) -> u32 {
        let slot = qp.wrapping_sub(self.first_qp) as usize;
        self.pair_of_qp.get(slot).copied().unwrap_or(NONE)
    }

    fn handle_cnp(&mut self, now_ps: u64, index: u32) {
        let pair = &mut self.pairs[index as usize];
        if let Some(controller) = &mut pair.controller {
            controller.handle_cnp(now_ps);
            self.counters.cnps_handled += 1;
        }
        if let Some(oldest) = pair.posted.front_mut() {
            oldest.cnps += 1;
        }
    }

    fn handle_mark(&mut self, now_ps: u64, index: u32) {
        let flow = self.pairs[index as usize].flow();
        if self.notification_point.handle_marked(now_ps, flow) {
            self.send_cnp(now_ps, index);
        }
    }

    fn send_cnp(&mut self, now_ps: u64, index: u32) {
        let packet = cnp(self.pairs[index as usize].qp.address(), self.cnp_dscp);
        self.counters.cnps_sent += 1;
        self.port.push_control(now_ps, self.cnp_priority, packet);
    }

    /// Take what a queue pair has to say after it was called.
    fn settle(&mut self, now_ps: u64, index: u32) {
        while let Some(event) = self.pairs[index as usize].qp.poll_event() {
            self.handle_event(now_ps, index, event);
        }
        let pair = &mut self.pairs[index as usize];
        if let Some(controller) = &mut pair.controller {
            let acknowledged = pair.qp.take_acknowledged();
            if acknowledged.payload_bytes > 0 {
                let round_trip_ps = acknowledged.round_trip_ps;
                controller.handle_ack(now_ps, acknowledged.payload_bytes, round_trip_ps);
            }
        }
        let ack_priority = self.classes[usize::from(pair.class)].ack_priority;
        while let Some(packet) = pair.qp.poll_control(now_ps) {
            self.port.push_control(now_ps, ack_priority, packet);
        }
        self.refresh(now_ps, index);
    }

    fn handle_event(&mut self, now_ps: u64, index: u32, event: QpEvent) {
        let pair = &mut self.pairs[index as usize];
        match event {
            QpEvent::SendCompleted { id, retransmitted_packets } => {
                let cnps = pair.posted.pop_front().map_or(0, |posted| posted.cnps);
                // What leaves on a receiving queue pair is a clear-to-send message.
                if pair.is_source() {
                    self.handle_sent(id as u32, Sent { retransmitted_packets, cnps });
                }
            }
            QpEvent::MessageReceived { immediate, .. } if pair.is_source() => {
                self.counters.clear_to_send_received += 1;
                self.events.push_back(NicEvent::Cleared { id: immediate });
            }
            QpEvent::MessageReceived { immediate, size_bytes, marked_packets } => {
                let peer_rank = pair.peer_rank;
                let whole =
                    self.striping.handle_received(peer_rank, immediate, size_bytes, marked_packets);
                if let Some(marked_packets) = whole {
                    self.events.push_back(NicEvent::Received { immediate, marked_packets });
                }
            }
            QpEvent::SequenceError => {
                let flow = pair.flow();
                if self.cnp_on_nak && self.notification_point.handle_sequence_error(now_ps, flow) {
                    self.send_cnp(now_ps, index);
                }
            }
            QpEvent::TimedOut => {
                if let Some(controller) = &mut pair.controller {
                    controller.handle_retransmission_timeout(now_ps);
                }
            }
            // Programs are made of WRITEs alone.
            QpEvent::SendReceived { .. } | QpEvent::ReadCompleted { .. } => {}
            QpEvent::Failed { reason } => {
                let (peer_rank, qp) = (pair.peer_rank, pair.qp.address().local_qp);
                let oldest = pair.posted.front().filter(|_| pair.is_source());
                let id = oldest.map(|posted| posted.id);
                self.events.push_back(NicEvent::Failed { peer_rank, qp, reason, id });
            }
        }
    }

    fn handle_sent(&mut self, id: u32, stripe: Sent) {
        if let Some(Sent { retransmitted_packets, cnps }) = self.striping.handle_sent(id, stripe) {
            self.events.push_back(NicEvent::Sent { id, retransmitted_packets, cnps });
        }
    }

    /// Bring pacing and timers of a queue pair up to date with its state.
    fn refresh(&mut self, now_ps: u64, index: u32) {
        let pair = &mut self.pairs[index as usize];
        let pacer = &mut self.classes[usize::from(pair.class)].pacer;
        if pair.update_rate() {
            pacer.set_eligible(index, pair.eligible_ps());
        }
        if pair.may_send() {
            pacer.activate(now_ps, index);
        }
        if let Some(at_ps) = pair.poll_timeout() {
            self.timers.arm(index, at_ps);
        }
    }

    /// Fire what is due.
    pub fn handle_timeout(&mut self, now_ps: u64) {
        while let Some(index) = self.timers.pop_due(now_ps) {
            let pair = &mut self.pairs[index as usize];
            pair.qp.handle_timeout(now_ps);
            if let Some(controller) = &mut pair.controller {
                if controller.poll_timeout().is_some_and(|at_ps| at_ps <= now_ps) {
                    controller.handle_timeout(now_ps);
                }
            }
            self.settle(now_ps, index);
        }
        if self.notification_point.poll_timeout().is_some_and(|at_ps| at_ps <= now_ps) {
            while let Some(flow) = self.notification_point.handle_timeout(now_ps) {
                self.send_cnp(now_ps, self.pair_of(flow.local_qp));
            }
        }
    }

    /// Send the next frame, if one may leave now.
    pub fn poll_departure(&mut self, now_ps: u64) -> Option<Departure> {
        if self.port.is_down() || now_ps < self.port.free_ps() {
            return None;
        }
        let (frame, wire_bytes, end_ps) = match self.port.poll_control(now_ps) {
            Some(control) => control,
            None => self.poll_data(now_ps)?,
        };
        self.counters.tx_packets += 1;
        self.counters.tx_bytes += u64::from(wire_bytes);
        Some(Departure { frame, end_ps })
    }

    /// Classes take turns, a packet each; a paused one is passed over.
    fn poll_data(&mut self, now_ps: u64) -> Option<(Frame, u32, u64)> {
        for _ in 0..self.classes.len() {
            let class = self.next_class;
            self.next_class = if class + 1 == self.classes.len() { 0 } else { class + 1 };
            if let Some(data) = self.poll_class(now_ps, class) {
                return Some(data);
            }
        }
        None
    }

    fn poll_class(&mut self, now_ps: u64, class: usize) -> Option<(Frame, u32, u64)> {
        if self.port.is_paused(now_ps, self.classes[class].data_priority) {
            return None;
        }
        loop {
            let index = self.classes[class].pacer.pop_eligible(now_ps)?;
            let pair = &mut self.pairs[index as usize];
            if !pair.may_send() {
                continue;
            }
            if let Some(packet) = pair.qp.poll_data(now_ps) {
                let wire_bytes = packet.wire_bytes();
                pair.count_sent(now_ps, wire_bytes);
                self.classes[class].pacer.set_eligible(index, pair.eligible_ps());
                self.refresh(now_ps, index);
                let priority = self.classes[class].data_priority;
                let end_ps = self.port.occupy(now_ps, priority, wire_bytes);
                return Some((Frame::Roce(Box::new(packet)), wire_bytes, end_ps));
            }
        }
    }

    /// When [`Nic::handle_timeout`] and [`Nic::poll_departure`] want to be called.
    #[inline]
    pub fn poll_timeout(&self) -> Option<u64> {
        let own = [
            self.port.next_control_ps(),
            self.timers.next_ps(),
            self.notification_point.poll_timeout(),
        ];
        let own_ps = own.map(|at_ps| at_ps.unwrap_or(NEVER_PS)).into_iter().min();
        let mut next_ps = own_ps.unwrap_or(NEVER_PS);
        for class in &self.classes {
            next_ps = next_ps.min(class.next_ps(&self.port).unwrap_or(NEVER_PS));
        }
        (next_ps != NEVER_PS).then_some(next_ps)
    }

    /// What happened to messages, oldest first.
    #[inline]
    pub fn poll_event(&mut self) -> Option<NicEvent> {
        self.events.pop_front()
    }

    /// Totals so far.
    pub fn counters(&self) -> NicCounters {
        let mut counters = self.counters;
        counters.pause_frames_received = self.port.pause_frames_received();
        self.pairs.iter().for_each(|pair| counters.transport.add(pair.qp.counters()));
        if let Some(offload) = &self.offload {
            offload.add_to(&mut counters);
        }
        counters
    }

    /// The port.
    pub fn port_mut(&mut self) -> &mut NicPort {
        &mut self.port
    }

    /// The port.
    pub fn port(&self) -> &NicPort {
        &self.port
    }

    /// Payload bytes in flight on each queue pair.
    pub fn in_flight_bytes(&self) -> impl Iterator<Item = u64> + '_ {
        self.pairs.iter().map(|pair| pair.qp.in_flight_bytes())
    }

    /// UDP source port and destination address of every queue pair.
    pub fn flows(&self) -> impl Iterator<Item = (u16, u32)> + '_ {
        self.pairs.iter().map(|pair| {
            let address = pair.qp.address();
            (address.source_port, address.remote_address)
        })
    }

    /// Rates of the senders with work outstanding.
    pub fn rate_samples(&self, now_ps: u64) -> impl Iterator<Item = QpSample> + '_ {
        self.pairs.iter().filter(|pair| pair.qp.has_unacknowledged()).filter_map(move |pair| {
            let rate = pair.controller.as_ref()?.sample(now_ps);
            let (peer_rank, qp) = (pair.peer_rank, pair.qp.address().local_qp);
            Some(QpSample { peer_rank, qp, class: pair.class, rate })
        })
    }

    /// Bytes that have arrived from a rank of a message that is not complete.
    pub fn receiving_bytes(&self, peer_rank: u32) -> u64 {
        let from_peer = self.pairs.iter().filter(|pair| pair.peer_rank == peer_rank);
        let under_way: u64 = from_peer.map(|pair| pair.qp.receiving_bytes()).sum();
        under_way + self.striping.receiving_bytes(peer_rank)
    }
}
