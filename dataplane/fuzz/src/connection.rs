//! Two ends that follow the protocol, and a wire that loses, doubles, reorders, damages and holds
//! back what they send, as the input says. In the end the wire is good: then every request has been
//! done exactly once, in order, with its bytes intact.

use crate::endpoints::{US, first_psns, queue_pair, request, transport};
use crate::input::Input;
use _native::config::TransportConfig;
use _native::roce::packet::Ecn;
use _native::roce::{Frame, Packet, QpEvent, QueuePair, WorkRequest, decode, encode};
use std::collections::VecDeque;

/// Steps taken from the input, at most.
const STEPS: usize = 400;
/// Rounds after which the rest must be done.
const ROUNDS: usize = 5000;
/// Packets of each end that may come once more.
const REMEMBERED: usize = 32;

/// Runs the connection that `bytes` describe.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut connection = Connection::new(&mut input);
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        connection.step(&mut input);
    }
    connection.finish();
}

#[derive(Debug)]
struct Connection {
    transport: TransportConfig,
    ends: [QueuePair; 2],
    /// Frames on the way from each end.
    wires: [VecDeque<Vec<u8>>; 2],
    /// Frames sent before by each end.
    sent: [VecDeque<Vec<u8>>; 2],
    posted: [Vec<WorkRequest>; 2],
    events: [Vec<QpEvent>; 2],
    /// Each end has as many receives as were posted.
    counts_receives: [bool; 2],
    now_ps: u64,
}

impl Connection {
    fn new(input: &mut Input<'_>) -> Self {
        let transport = transport(input, u32::MAX);
        let first_psns = first_psns(input);
        let mut ends = [0, 1].map(|end| queue_pair(&transport, first_psns, end));
        let counts_receives = [0, 1].map(|_| input.byte() & 3 == 3);
        for (end, counts) in ends.iter_mut().zip(counts_receives) {
            if counts {
                end.limit_receives(u32::from(input.byte() & 3), input.byte() & 7);
            }
        }
        Self {
            transport,
            ends,
            wires: Default::default(),
            sent: Default::default(),
            posted: Default::default(),
            events: Default::default(),
            counts_receives,
            now_ps: 0,
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let step = input.byte();
        let end = usize::from(step >> 7);
        match step & 15 {
            0 | 1 => self.post(end, input),
            2..=5 => self.send(end, 1 + input.below(16)),
            6 => self.send_control(end),
            7..=11 => self.meddle(end, input),
            12 => self.wait(u64::from(input.byte()) * US),
            13 => self.wait_for_timer(end),
            14 => self.send_old(end, input),
            _ => self.ends[end].post_receive(),
        }
    }

    fn post(&mut self, end: usize, input: &mut Input<'_>) {
        let id = self.posted[end].len();
        let request = request(input, id as u32);
        self.ends[end].post(id as u64, request);
        self.posted[end].push(request);
    }

    fn send(&mut self, end: usize, packets: usize) {
        for _ in 0..packets {
            let announced = self.ends[end].next_data_bytes();
            let packet = self.ends[end].poll_data(self.now_ps);
            assert_eq!(announced, packet.as_ref().map(Packet::wire_bytes));
            let Some(packet) = packet else { break };
            self.transmit(end, packet);
        }
        let window_bytes = self.transport.window_packets * self.transport.mtu_bytes;
        assert!(self.ends[end].in_flight_bytes() <= u64::from(window_bytes));
    }

    fn send_control(&mut self, end: usize) {
        let mut replies = 0;
        while let Some(packet) = self.ends[end].poll_control(self.now_ps) {
            self.transmit(end, packet);
            replies += 1;
            assert!(replies <= 2, "no end of acknowledgements");
        }
    }

    fn transmit(&mut self, end: usize, packet: Packet) {
        let mut bytes = Vec::with_capacity(1200);
        encode(&Frame::Roce(Box::new(packet)), [2; 6], [2; 6], &mut bytes);
        self.sent[end].push_back(bytes.clone());
        if self.sent[end].len() > REMEMBERED {
            self.sent[end].pop_front();
        }
        self.wires[end].push_back(bytes);
    }

    /// Takes a frame of `end` from anywhere on the wire and does something to it.
    fn meddle(&mut self, end: usize, input: &mut Input<'_>) {
        let wire = &mut self.wires[end];
        if wire.is_empty() {
            return;
        }
        let place = input.below(wire.len());
        match input.byte() % 8 {
            0..=3 => {
                let frame = wire.remove(place).expect("the place is on the wire");
                self.deliver(1 - end, &frame, false);
            }
            4 => {
                let frame = wire[place].clone();
                self.deliver(1 - end, &frame, false);
            }
            5 => drop(wire.remove(place)),
            6 => {
                let frame = wire.remove(place).expect("the place is on the wire");
                self.deliver(1 - end, &frame, true);
            }
            _ => {
                let mut frame = wire.remove(place).expect("the place is on the wire");
                let at = usize::from(input.u16()) % frame.len();
                frame[at] ^= 1 << input.below(8);
                self.deliver(1 - end, &frame, false);
            }
        }
    }

    fn send_old(&mut self, end: usize, input: &mut Input<'_>) {
        if !self.sent[end].is_empty() {
            let place = input.below(self.sent[end].len());
            let frame = self.sent[end][place].clone();
            self.deliver(1 - end, &frame, false);
        }
    }

    fn deliver(&mut self, end: usize, frame: &[u8], marked: bool) {
        if let Ok(Frame::Roce(mut packet)) = decode(frame) {
            if marked && packet.ecn.is_capable() {
                packet.ecn = Ecn::Ce;
            }
            self.ends[end].handle_packet(self.now_ps, &packet);
            self.take_events(end);
        }
    }

    fn wait(&mut self, time_ps: u64) {
        self.now_ps += time_ps;
        for end in 0..2 {
            self.ends[end].handle_timeout(self.now_ps);
            assert!(self.ends[end].poll_timeout().is_none_or(|due_ps| due_ps > self.now_ps));
            self.take_events(end);
        }
    }

    fn wait_for_timer(&mut self, end: usize) {
        if let Some(due_ps) = self.ends[end].poll_timeout() {
            self.wait(due_ps.saturating_sub(self.now_ps));
        }
    }

    fn take_events(&mut self, end: usize) {
        while let Some(event) = self.ends[end].poll_event() {
            assert!(!matches!(event, QpEvent::Failed { .. }), "{event:?}");
            self.events[end].push(event);
        }
    }

    /// Lets everything arrive until both ends are done.
    fn finish(&mut self) {
        for _ in 0..ROUNDS {
            for end in 0..2 {
                if self.counts_receives[end] {
                    self.ends[end].post_receive();
                }
                self.send(end, usize::MAX);
                self.send_control(end);
                while let Some(frame) = self.wires[end].pop_front() {
                    self.deliver(1 - end, &frame, false);
                }
            }
            if self.ends.iter().all(|end| !end.has_unacknowledged()) {
                return self.check();
            }
            if self.is_quiet() {
                let due = self.ends.iter().filter_map(QueuePair::poll_timeout).min();
                let due_ps = due.expect("somebody waits for something");
                self.wait(due_ps.saturating_sub(self.now_ps));
            }
        }
        panic!("no end in sight");
    }

    fn is_quiet(&self) -> bool {
        self.wires.iter().all(VecDeque::is_empty)
            && self.ends.iter().all(|end| end.next_data_bytes().is_none())
    }

    fn check(&self) {
        for end in 0..2 {
            assert_eq!(self.completed(end), (0..self.posted[end].len() as u64).collect::<Vec<_>>());
            assert_eq!(self.received(1 - end), self.expected(end));
            assert_eq!(self.ends[end].in_flight_bytes(), 0);
            let counters = self.ends[end].counters();
            assert_eq!((counters.payload_mismatches, counters.invalid_requests), (0, 0));
        }
    }

    /// The requests of `end` that are complete, in order.
    fn completed(&self, end: usize) -> Vec<u64> {
        let completed = |event: &QpEvent| match *event {
            QpEvent::SendCompleted { id, .. } | QpEvent::ReadCompleted { id, .. } => Some(id),
            _ => None,
        };
        self.events[end].iter().filter_map(completed).collect()
    }

    /// Immediate data and size of what arrived at `end`, in order.
    fn received(&self, end: usize) -> Vec<(Option<u32>, u64)> {
        let received = |event: &QpEvent| match *event {
            QpEvent::MessageReceived { immediate, size_bytes, .. } => {
                Some((Some(immediate), size_bytes))
            }
            QpEvent::SendReceived { immediate, size_bytes, .. } => Some((immediate, size_bytes)),
            _ => None,
        };
        self.events[end].iter().filter_map(received).collect()
    }

    /// What the requests of `end` must look like at the other end: a WRITE without immediate data is
    /// a part of the next one with them, unless a SEND comes between.
    fn expected(&self, end: usize) -> Vec<(Option<u32>, u64)> {
        let mut before_bytes = 0;
        let mut expected = Vec::new();
        for request in &self.posted[end] {
            match *request {
                WorkRequest::Write { size_bytes, immediate: None } => before_bytes += size_bytes,
                WorkRequest::Write { size_bytes, immediate } => {
                    expected.push((immediate, before_bytes + size_bytes));
                    before_bytes = 0;
                }
                WorkRequest::Send { size_bytes, immediate } => {
                    expected.push((immediate, size_bytes));
                    before_bytes = 0;
                }
                WorkRequest::Read { .. } => {}
            }
        }
        expected
    }
}
