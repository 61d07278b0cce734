//! Many packets over unreliable wires: nothing is lost, repeated, reordered or altered, and no bound is
//! passed on the way.
//!
//! Each queue pair has a wire of its own that loses, repeats, delays and damages. Packets cross it as
//! values, one in 64 as bytes; a damaged one is flipped in a random bit and must be refused.

use super::pair::{LATENCY_PS, PACKET_GAP_PS, US, queue_pair, transport};
use _native::config::{LossRecovery, TransportConfig};
use _native::random::Random;
use _native::roce::{Frame, Packet, QpEvent, QueuePair, WorkRequest, decode, encode};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// Share of packets that each misfortune hits.
const MISFORTUNE_RATIO: f64 = 0.0005;
/// Requests that an end keeps posted.
const OUTSTANDING_REQUESTS: usize = 6;

struct Soak {
    ends: [QueuePair; 2],
    transport: TransportConfig,
    random: Random,
    now_ps: u64,
    next_send_ps: [u64; 2],
    /// Arrivals: time, order, end; the packets are beside, since they have no order.
    arrivals: BinaryHeap<Reverse<(u64, u64, usize)>>,
    on_wire: HashMap<u64, Packet>,
    packets: u64,
    damaged: u64,
    /// Posted and not complete, by end.
    posted: [VecDeque<(u64, WorkRequest)>; 2],
    /// WRITEs and SENDs posted at an end and not yet arrived at the other.
    expected: [VecDeque<(u32, u64)>; 2],
    next_id: u64,
}

impl Soak {
    fn new(seed: u64, loss_recovery: LossRecovery) -> Self {
        let transport = TransportConfig {
            loss_recovery,
            window_packets: 48,
            retry_count: 1000,
            retransmission_timeout_ps: 60 * US,
            ..transport()
        };
        Self {
            ends: [queue_pair(&transport, 0), queue_pair(&transport, 1)],
            transport,
            random: Random::new(seed, 3),
            now_ps: 0,
            next_send_ps: [0; 2],
            arrivals: BinaryHeap::new(),
            on_wire: HashMap::new(),
            packets: 0,
            damaged: 0,
            posted: [VecDeque::new(), VecDeque::new()],
            expected: [VecDeque::new(), VecDeque::new()],
            next_id: 0,
        }
    }

    /// Posts requests until `packets` have crossed the wire, then lets everything finish.
    fn run(&mut self, packets: u64) {
        loop {
            for end in 0..2 {
                while self.packets < packets && self.posted[end].len() < OUTSTANDING_REQUESTS {
                    self.post(end);
                }
                self.ends[end].handle_timeout(self.now_ps);
                self.pump(end);
            }
            let Some(next_ps) = self.next_instant() else { break };
            assert!(next_ps >= self.now_ps);
            self.now_ps = next_ps;
            self.deliver();
        }
        assert!(self.posted.iter().all(VecDeque::is_empty), "requests never completed");
        assert!(self.expected.iter().all(VecDeque::is_empty), "messages never arrived");
    }

    fn post(&mut self, end: usize) {
        let size_bytes = match self.random.next_u64() % 8 {
            0 => 0,
            1..=3 => self.random.next_u64() % 1024,
            _ => self.random.next_u64() % 100_000,
        };
        let (id, immediate) = (self.next_id, Some(self.next_id as u32));
        let request = match self.random.next_u64() % 8 {
            0 => WorkRequest::Read { size_bytes, offset_bytes: self.random.next_u64() >> 8 },
            1 | 2 => WorkRequest::Send { size_bytes, immediate },
            _ => WorkRequest::Write { size_bytes, immediate },
        };
        if !matches!(request, WorkRequest::Read { .. }) {
            self.expected[end].push_back((id as u32, size_bytes));
        }
        self.next_id += 1;
        self.posted[end].push_back((id, request));
        self.ends[end].post(id, request);
    }

    fn next_instant(&self) -> Option<u64> {
        let arrival = self.arrivals.peek().map(|Reverse((at_ps, ..))| *at_ps);
        let timers = self.ends.iter().filter_map(QueuePair::poll_timeout);
        let sends = (0..2)
            .filter(|&end| self.ends[end].next_data_bytes().is_some())
            .map(|end| self.next_send_ps[end]);
        timers.chain(sends).chain(arrival).min()
    }

    fn deliver(&mut self) {
        while let Some(&Reverse((at_ps, order, end))) = self.arrivals.peek() {
            if at_ps > self.now_ps {
                return;
            }
            self.arrivals.pop();
            let packet = self.on_wire.remove(&order).expect("every arrival has a packet");
            self.ends[end].handle_packet(self.now_ps, &packet);
            self.pump(end);
        }
    }

    fn pump(&mut self, end: usize) {
        while let Some(packet) = self.ends[end].poll_control(self.now_ps) {
            self.transmit(end, packet);
        }
        if self.next_send_ps[end] <= self.now_ps
            && let Some(packet) = self.ends[end].poll_data(self.now_ps)
        {
            self.next_send_ps[end] = self.now_ps + PACKET_GAP_PS;
            self.transmit(end, packet);
        }
        let window_bytes = u64::from(self.transport.window_packets * self.transport.mtu_bytes);
        assert!(self.ends[end].in_flight_bytes() <= window_bytes);
        while let Some(event) = self.ends[end].poll_event() {
            self.check(end, &event);
        }
    }

    fn check(&mut self, end: usize, event: &QpEvent) {
        match *event {
            QpEvent::SendCompleted { id, .. } | QpEvent::ReadCompleted { id, .. } => {
                assert_eq!(self.posted[end].pop_front().map(|(posted, _)| posted), Some(id));
            }
            QpEvent::MessageReceived { immediate, size_bytes, .. }
            | QpEvent::SendReceived { immediate: Some(immediate), size_bytes, .. } => {
                let expected = self.expected[1 - end].pop_front();
                assert_eq!(expected, Some((immediate, size_bytes)));
            }
            QpEvent::SequenceError | QpEvent::TimedOut => {}
            QpEvent::SendReceived { immediate: None, .. } | QpEvent::Failed { .. } => {
                panic!("{event:?} at end {end}")
            }
        }
    }

    fn transmit(&mut self, from: usize, packet: Packet) {
        self.packets += 1;
        let fate = self.random.next_ratio() / MISFORTUNE_RATIO;
        let late_ps = match fate as u64 {
            0 => return,
            1 => return self.damage(packet),
            2 => self.random.next_u64() % (4 * LATENCY_PS),
            _ => 0,
        };
        let packet = if self.packets % 64 == 0 { through_bytes(packet) } else { packet };
        if fate as u64 == 3 {
            self.arrive(from, packet.clone(), LATENCY_PS / 2);
        }
        self.arrive(from, packet, late_ps);
    }

    fn arrive(&mut self, from: usize, packet: Packet, late_ps: u64) {
        let order = self.packets * 2 + u64::from(late_ps > 0);
        self.on_wire.insert(order, packet);
        self.arrivals.push(Reverse((self.now_ps + LATENCY_PS + late_ps, order, 1 - from)));
    }

    /// One bit behind the Ethernet header flips on the way: the packet is refused, or what flipped is
    /// one of the bits that no checksum covers.
    fn damage(&mut self, packet: Packet) {
        self.damaged += 1;
        let sent = bytes_of(packet.clone());
        let bits = (sent.len() - 14) as u64 * 8;
        let bit = 14 * 8 + (self.random.next_u64() % bits) as usize;
        let mut damaged = sent.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        if let Ok(Frame::Roce(mut read)) = decode(&damaged) {
            (read.bth.fecn, read.bth.becn) = (packet.bth.fecn, packet.bth.becn);
            assert_eq!(bytes_of(*read), sent, "bit {bit}");
        }
    }
}

/// The packet after a way as bytes.
fn through_bytes(packet: Packet) -> Packet {
    match decode(&bytes_of(packet)) {
        Ok(Frame::Roce(packet)) => *packet,
        other => panic!("{other:?}"),
    }
}

fn bytes_of(packet: Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&Frame::Roce(Box::new(packet)), [2; 6], [2; 6], &mut bytes);
    bytes
}

/// Runs `queue_pairs`, half of them with selective repeat, for `packets` each.
fn soak(queue_pairs: u64, packets: u64) {
    let mut total = [0; 5];
    for seed in 0..queue_pairs {
        let recovery =
            if seed % 2 == 0 { LossRecovery::GoBackN } else { LossRecovery::SelectiveRepeat };
        let mut soak = Soak::new(seed, recovery);
        soak.run(packets);
        total[0] += soak.packets;
        total[1] += soak.next_id;
        total[2] += soak.damaged;
        for end in &soak.ends {
            let counters = end.counters();
            assert_eq!((counters.payload_mismatches, counters.invalid_requests), (0, 0));
            total[3] += counters.retransmitted_packets;
            total[4] += counters.local_ack_timeout_err;
        }
    }
    let [packets, requests, damaged, retransmitted, timeouts] = total;
    println!(
        "{packets} packets, {requests} requests, {damaged} damaged, \
         {retransmitted} sent again, {timeouts} timeouts"
    );
    assert!(retransmitted > 0 && damaged > 0);
}

#[test]
fn every_request_of_64_queue_pairs_is_executed_once_and_in_order() {
    soak(64, 3_000);
}

#[test]
#[ignore = "10^8 packets take minutes, and only in a release build"]
fn a_hundred_million_packets_are_delivered_once_and_in_order() {
    soak(64, 100_000_000 / 64);
}
