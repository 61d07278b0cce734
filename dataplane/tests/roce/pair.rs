//! Two queue pairs on a wire with a latency, in virtual time. Every packet crosses as bytes.

use _native::config::{ClassConfig, LossRecovery, TransportConfig};
use _native::random::Random;
use _native::roce::{
    Frame, Message, Packet, QpCounters, QpEvent, QueuePair, QueuePairAddress, decode, encode,
};
use std::collections::BTreeMap;

pub const US: u64 = 1_000_000;
pub const LATENCY_PS: u64 = 2 * US;
/// Time between two data packets of one end.
pub const PACKET_GAP_PS: u64 = US / 10;
/// First packet sequence number of end 0, and of end 1.
pub const FIRST_PSN: [u32; 2] = [100, 0xFF_FFF0];

pub fn transport() -> TransportConfig {
    TransportConfig {
        mtu_bytes: 1024,
        qps_per_peer: 1,
        qp_distribution: Default::default(),
        clear_to_send: false,
        rnr_retry_count: 7,
        max_outstanding_reads: 16,
        window_packets: 64,
        ack_every_packets: 4,
        ack_delay_ps: 5 * US,
        retransmission_timeout_ps: 100 * US,
        retry_count: 7,
        loss_recovery: LossRecovery::GoBackN,
        reordering_packets: 0,
        adaptive_retransmission: None,
    }
}

pub fn classes() -> ClassConfig {
    ClassConfig {
        data_dscp: 26,
        data_priority: 3,
        data_ecn_capable: true,
        ack_dscp: 46,
        ack_priority: 5,
        ack_ecn_capable: false,
        cnp_dscp: 48,
        cnp_priority: 6,
    }
}

pub fn queue_pair(transport: &TransportConfig, end: usize) -> QueuePair {
    let (qp, other) = (0x11 + end as u32, 0x12 - end as u32);
    let address = QueuePairAddress {
        local_address: 0x0A00_0001 + end as u32,
        remote_address: 0x0A00_0002 - end as u32,
        local_qp: qp,
        remote_qp: other,
        source_port: 0xC001,
    };
    QueuePair::new(transport, &classes(), address, FIRST_PSN[end], FIRST_PSN[1 - end])
}

/// What becomes of a packet on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    Arrive,
    Lost,
    Twice,
    LateBy(u64),
    Marked,
    Damaged,
}

/// Decides a packet's fate from the end that sent it, its place among that end's packets (acknowledgements
/// included), and itself.
pub type Wire = Box<dyn FnMut(usize, u64, &Packet) -> Fate>;

pub struct Pair {
    pub ends: [QueuePair; 2],
    pub now_ps: u64,
    wire: Wire,
    /// Packets on the way, by arrival.
    on_wire: BTreeMap<(u64, u64), (usize, Vec<u8>)>,
    sent: [u64; 2],
    sequence: u64,
    next_send_ps: [u64; 2],
    events: [Vec<QpEvent>; 2],
    next_id: u64,
    pub sent_packets: [Vec<Packet>; 2],
}

impl Pair {
    pub fn new(transport: TransportConfig) -> Self {
        Self::over(transport, |_, _, _| Fate::Arrive)
    }

    pub fn over(
        transport: TransportConfig,
        wire: impl FnMut(usize, u64, &Packet) -> Fate + 'static,
    ) -> Self {
        Self {
            ends: [queue_pair(&transport, 0), queue_pair(&transport, 1)],
            now_ps: 0,
            wire: Box::new(wire),
            on_wire: BTreeMap::new(),
            sent: [0; 2],
            sequence: 0,
            next_send_ps: [0; 2],
            events: [vec![], vec![]],
            next_id: 0,
            sent_packets: [vec![], vec![]],
        }
    }

    /// Posts messages of these sizes at end `from`; immediates and ids count from 0.
    pub fn post(&mut self, from: usize, sizes_bytes: &[u64]) {
        for &size_bytes in sizes_bytes {
            let message = Message { id: self.next_id, size_bytes, immediate: self.next_id as u32 };
            self.ends[from].post_write(message);
            self.next_id += 1;
        }
    }

    /// Runs until nothing is left to happen.
    pub fn finish(&mut self) {
        while self.step() {
            assert!(self.now_ps < 10_000_000 * US, "no end in sight");
        }
    }

    /// Does everything due now and moves to the next instant, if there is one.
    pub fn step(&mut self) -> bool {
        for end in 0..2 {
            self.ends[end].handle_timeout(self.now_ps);
            self.pump(end);
        }
        let Some(next_ps) = self.next_instant() else {
            return false;
        };
        assert!(next_ps >= self.now_ps, "time runs backwards");
        self.now_ps = next_ps;
        while let Some(entry) = self.on_wire.first_entry() {
            if entry.key().0 > self.now_ps {
                break;
            }
            let (to, bytes) = entry.remove();
            if let Ok(Frame::Roce(packet)) = decode(&bytes) {
                self.ends[to].handle_packet(self.now_ps, &packet);
                self.pump(to);
            }
        }
        true
    }

    fn next_instant(&self) -> Option<u64> {
        let arrival = self.on_wire.keys().next().map(|key| key.0);
        let timers = self.ends.iter().filter_map(QueuePair::poll_timeout);
        let sends = (0..2)
            .filter(|&end| self.ends[end].next_data_bytes().is_some())
            .map(|end| self.next_send_ps[end]);
        timers.chain(sends).chain(arrival).min()
    }

    fn pump(&mut self, end: usize) {
        while let Some(packet) = self.ends[end].poll_control(self.now_ps) {
            self.transmit(end, packet);
        }
        if self.next_send_ps[end] <= self.now_ps {
            let announced = self.ends[end].next_data_bytes();
            let packet = self.ends[end].poll_data(self.now_ps);
            assert_eq!(announced, packet.as_ref().map(Packet::wire_bytes));
            if let Some(packet) = packet {
                self.next_send_ps[end] = self.now_ps + PACKET_GAP_PS;
                self.transmit(end, packet);
            }
        }
        while let Some(event) = self.ends[end].poll_event() {
            self.events[end].push(event);
        }
    }

    fn transmit(&mut self, from: usize, mut packet: Packet) {
        let fate = (self.wire)(from, self.sent[from], &packet);
        self.sent[from] += 1;
        self.sent_packets[from].push(packet.clone());
        if fate == Fate::Marked {
            packet.ecn = _native::roce::packet::Ecn::Ce;
        }
        let mut bytes = Vec::new();
        encode(&Frame::Roce(Box::new(packet)), [2; 6], [2; 6], &mut bytes);
        if fate == Fate::Damaged {
            let place = bytes.len() / 2;
            bytes[place] ^= 0x10;
        }
        let (copies, late_ps) = match fate {
            Fate::Lost => (0, 0),
            Fate::Twice => (2, 0),
            Fate::LateBy(late_ps) => (1, late_ps),
            Fate::Arrive | Fate::Marked | Fate::Damaged => (1, 0),
        };
        for _ in 0..copies {
            self.sequence += 1;
            let key = (self.now_ps + LATENCY_PS + late_ps, self.sequence);
            self.on_wire.insert(key, (1 - from, bytes.clone()));
        }
    }

    /// Takes the messages that have arrived at `end`: immediate and size.
    pub fn received(&mut self, end: usize) -> Vec<(u32, u64)> {
        let received = |event: &QpEvent| match *event {
            QpEvent::MessageReceived { immediate, size_bytes, .. } => Some((immediate, size_bytes)),
            _ => None,
        };
        self.events[end].iter().filter_map(received).collect()
    }

    /// The ids that have completed at `end`.
    pub fn completed(&self, end: usize) -> Vec<u64> {
        let completed = |event: &QpEvent| match *event {
            QpEvent::SendCompleted { id, .. } => Some(id),
            _ => None,
        };
        self.events[end].iter().filter_map(completed).collect()
    }

    pub fn events(&self, end: usize) -> &[QpEvent] {
        &self.events[end]
    }

    pub fn counters(&self, end: usize) -> QpCounters {
        *self.ends[end].counters()
    }

    /// Everything posted at `from` has arrived once and in order, and is completed.
    pub fn expect_delivered(&mut self, from: usize, first_id: u64, sizes_bytes: &[u64]) {
        let ids = first_id..first_id + sizes_bytes.len() as u64;
        let expected: Vec<_> =
            ids.clone().map(|id| id as u32).zip(sizes_bytes.iter().copied()).collect();
        assert_eq!(self.received(1 - from), expected);
        assert_eq!(self.completed(from), ids.collect::<Vec<_>>());
        assert!(!self.ends[from].has_unacknowledged());
        assert_eq!(self.ends[from].in_flight_bytes(), 0);
        let total: u64 = sizes_bytes.iter().sum();
        let counters = self.counters(1 - from);
        assert_eq!(counters.data_payload_bytes_received, total);
        assert_eq!((counters.payload_mismatches, counters.invalid_requests), (0, 0));
    }
}

/// A wire on which every fate happens with the given probability, the same for the same seed.
pub fn unreliable(seed: u64, ratio: f64) -> impl FnMut(usize, u64, &Packet) -> Fate {
    let mut random = Random::new(seed, 7);
    move |_, _, _| {
        if random.next_ratio() >= 4.0 * ratio {
            return Fate::Arrive;
        }
        match random.next_u64() % 4 {
            0 => Fate::Lost,
            1 => Fate::Twice,
            2 => Fate::Damaged,
            _ => Fate::LateBy(random.next_u64() % (3 * LATENCY_PS)),
        }
    }
}

/// A wire that loses those packets of end 0, counted from 0.
pub fn losing(lost: &'static [u64]) -> impl FnMut(usize, u64, &Packet) -> Fate {
    move |from, index, _| {
        if from == 0 && lost.contains(&index) { Fate::Lost } else { Fate::Arrive }
    }
}
