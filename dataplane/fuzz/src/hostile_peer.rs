//! A queue pair that gets packets which follow no protocol, between those of a peer that does.
//!
//! Nobody can tell a forged packet with the right number from a true one, so that nothing holds
//! about the messages; but the queue pair never panics, stays in its window, takes each number
//! once, completes each request once and in order, and keeps its queues short.

use crate::endpoints::{US, first_psns, queue_pair, request, transport};
use crate::input::Input;
use _native::config::{LossRecovery, TransportConfig};
use _native::roce::opcode::{OPCODES, Opcode, Operation};
use _native::roce::packet::{Aeth, Bth, Ecn, Packet, Payload, Reth};
use _native::roce::syndrome::Syndrome;
use _native::roce::{QpEvent, QueuePair, psn};

/// Steps taken from the input, at most.
const STEPS: usize = 400;

/// Runs the attack that `bytes` describe.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut attack = Attack::new(&mut input);
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        attack.step(&mut input);
    }
}

#[derive(Debug)]
struct Attack {
    transport: TransportConfig,
    victim: QueuePair,
    peer: QueuePair,
    first_psns: [u32; 2],
    now_ps: u64,
    posted: u64,
    completed: u64,
    failed: bool,
    /// What the victim's acknowledgements say that it expects; advances only.
    expected_psn: u32,
    /// Packets and numbers that it may have taken since.
    grants: u64,
    /// Numbers behind the first one that acknowledgements may have named.
    acknowledged: u64,
    /// The packet behind the last one that the victim sent.
    highest: u64,
}

impl Attack {
    fn new(input: &mut Input<'_>) -> Self {
        let retry_count = u32::from(input.byte() & 7);
        let rnr_retry_count = u32::from(input.byte() & 7);
        let transport = TransportConfig { rnr_retry_count, ..transport(input, retry_count) };
        let first_psns = first_psns(input);
        let mut victim = queue_pair(&transport, first_psns, 0);
        if input.byte() & 3 == 3 {
            victim.limit_receives(u32::from(input.byte() & 7), input.byte() & 31);
        }
        Self {
            victim,
            peer: queue_pair(&transport, first_psns, 1),
            transport,
            first_psns,
            now_ps: 0,
            posted: 0,
            completed: 0,
            failed: false,
            expected_psn: first_psns[1],
            grants: 0,
            acknowledged: 0,
            highest: 0,
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() & 15 {
            0 => self.post(input),
            1 => self.peer.post(0, request(input, 0)),
            2 | 3 => self.take_from_victim(1 + input.below(16), input.byte() & 1 == 1),
            4 | 5 => self.take_from_peer(1 + input.below(16)),
            6 => self.wait(u64::from(input.byte()) * US),
            7 => self.victim.post_receive(),
            _ => {
                let packet = self.forged(input);
                self.deliver(&packet);
            }
        }
        let window_bytes = self.transport.window_packets * self.transport.mtu_bytes;
        assert!(self.victim.in_flight_bytes() <= u64::from(window_bytes));
    }

    fn post(&mut self, input: &mut Input<'_>) {
        self.victim.post(self.posted, request(input, self.posted as u32));
        self.posted += 1;
    }

    /// Sends what the victim has to send; the peer gets it if `arrives`.
    fn take_from_victim(&mut self, packets: usize, arrives: bool) {
        for _ in 0..packets {
            let announced = self.victim.next_data_bytes();
            let packet = self.victim.poll_data(self.now_ps);
            assert_eq!(announced, packet.as_ref().map(Packet::wire_bytes));
            let Some(packet) = packet else { break };
            self.check_sent(&packet);
            if arrives {
                self.peer.handle_packet(self.now_ps, &packet);
            }
        }
        let mut replies = 0;
        while let Some(reply) = self.victim.poll_control(self.now_ps) {
            replies += 1;
            assert!(replies <= 2, "no end of acknowledgements");
            self.check_reply(&reply);
            if arrives {
                self.peer.handle_packet(self.now_ps, &reply);
            }
        }
        while self.peer.poll_event().is_some() {}
    }

    /// A request is in the window behind what may have been acknowledged.
    fn check_sent(&mut self, packet: &Packet) {
        assert!(packet.payload.length_bytes() <= self.transport.mtu_bytes);
        let operation = packet.bth.opcode.row().expect("a known opcode").operation;
        if operation == Operation::ReadResponse {
            return;
        }
        assert!(!self.failed, "a request after the failure");
        let oldest = psn::add(self.first_psns[0], self.highest);
        let ahead = i64::from(psn::difference(packet.bth.psn, oldest));
        let number = self.highest.checked_add_signed(ahead).expect("a number before the first");
        assert!(number <= self.highest, "packets are left out");
        assert!(number < self.acknowledged + u64::from(self.transport.window_packets));
        let numbers = match operation {
            Operation::ReadRequest => {
                u64::from(packet.reth.length_bytes.div_ceil(self.transport.mtu_bytes).max(1))
            }
            _ => 1,
        };
        self.highest = self.highest.max(number + numbers);
    }

    /// What the victim expects never goes back, and never further than packets came.
    fn check_reply(&mut self, reply: &Packet) {
        let expected_psn = match Syndrome::from_code(reply.aeth.syndrome) {
            Syndrome::Acknowledge => psn::add(reply.bth.psn, 1),
            _ => reply.bth.psn,
        };
        let advance = u64::from(expected_psn.wrapping_sub(self.expected_psn) & psn::MASK_24);
        assert!(advance <= self.grants, "went back, or took what did not come");
        self.grants -= advance;
        self.expected_psn = expected_psn;
    }

    fn take_from_peer(&mut self, packets: usize) {
        for _ in 0..packets {
            let reply = self.peer.poll_control(self.now_ps);
            let Some(packet) = reply.or_else(|| self.peer.poll_data(self.now_ps)) else { break };
            self.deliver(&packet);
        }
    }

    fn wait(&mut self, time_ps: u64) {
        self.now_ps += time_ps;
        for end in [&mut self.victim, &mut self.peer] {
            end.handle_timeout(self.now_ps);
            assert!(end.poll_timeout().is_none_or(|due_ps| due_ps > self.now_ps));
        }
        self.take_events(1);
    }

    fn deliver(&mut self, packet: &Packet) {
        let operation = packet.bth.opcode.row().map(|row| row.operation);
        match operation {
            Some(Operation::Send | Operation::Write) => self.grants += 1,
            Some(Operation::ReadRequest) => {
                let length_bytes = packet.reth.length_bytes;
                self.grants += u64::from(length_bytes.div_ceil(self.transport.mtu_bytes).max(1));
            }
            Some(Operation::Acknowledge | Operation::ReadResponse) => self.note_named(packet),
            _ => {}
        }
        // Packets that waited for this one come with it.
        let messages = match self.transport.loss_recovery {
            LossRecovery::GoBackN => 1,
            LossRecovery::SelectiveRepeat => self.transport.window_packets as usize,
        };
        self.victim.handle_packet(self.now_ps, packet);
        self.take_events(messages);
    }

    /// The number that a packet names may be acknowledged from now on, if it was sent.
    fn note_named(&mut self, packet: &Packet) {
        let end = psn::add(self.first_psns[0], self.highest);
        let behind = psn::difference(end, packet.bth.psn);
        if let Some(behind) = u64::try_from(behind).ok().filter(|behind| *behind >= 1) {
            let named = (self.highest + 1).saturating_sub(behind);
            self.acknowledged = self.acknowledged.max(named);
        }
    }

    /// Takes what happened in one call: at most so many messages, and little else.
    fn take_events(&mut self, messages: usize) {
        let (mut received, mut others) = (0, 0);
        while let Some(event) = self.victim.poll_event() {
            match event {
                QpEvent::SendCompleted { id, .. } | QpEvent::ReadCompleted { id, .. } => {
                    assert_eq!(id, self.completed, "out of order or twice");
                    self.completed += 1;
                }
                QpEvent::MessageReceived { .. } | QpEvent::SendReceived { .. } => received += 1,
                QpEvent::Failed { .. } => {
                    self.failed = true;
                    others += 1;
                }
                QpEvent::SequenceError | QpEvent::TimedOut => others += 1,
            }
        }
        assert!(self.completed <= self.posted);
        assert!(received <= messages, "{received} messages from one packet");
        assert!(others <= 2, "{others} events from one call");
    }

    /// Any packet, most often with a number that may matter.
    fn forged(&mut self, input: &mut Input<'_>) -> Packet {
        let opcode = match input.byte() {
            code @ 0xF0.. => Opcode(code.wrapping_mul(37)),
            code => OPCODES[usize::from(code) % OPCODES.len()].opcode,
        };
        let answers = opcode.row().is_some_and(|row| row.has_aeth || row.name.contains("RESPONSE"));
        let length_bytes = input.of(&[0, 1, 255, 256, 256, 257, 1024, 4096]);
        let aeth = Aeth {
            syndrome: input.of(&[0x1F, 0x1F, 0x60, 0x60, 0x20, 0x3F, 0x61, 0x7F]),
            msn: self.number(input, true),
        };
        Packet {
            ecn: Ecn::from_bits(input.byte()),
            bth: Bth {
                opcode,
                ack_request: input.byte() & 1 == 1,
                psn: self.number(input, answers),
                ..Bth::default()
            },
            reth: Reth { length_bytes: declared_bytes(input), ..Reth::default() },
            immediate: u32::from(input.byte()),
            aeth,
            payload: Payload::Pattern { offset_bytes: 0, length_bytes },
            ..Packet::default()
        }
    }

    /// A number near those that the victim has sent, or near the one that it expects.
    fn number(&self, input: &mut Input<'_>, of_victim: bool) -> u32 {
        let near = match of_victim {
            true => psn::add(self.first_psns[0], self.highest),
            false => self.expected_psn,
        };
        match input.byte() {
            0xFF => input.u32() & psn::MASK_24,
            0xFE => near.wrapping_add(0x80_0000) & psn::MASK_24,
            distance => near.wrapping_add_signed(i32::from(distance as i8 / 2)) & psn::MASK_24,
        }
    }
}

/// The length of a whole request.
fn declared_bytes(input: &mut Input<'_>) -> u32 {
    match input.byte() {
        0xFF => input.u32(),
        0xFE => 1 << 31,
        units => u32::from(units) * 64,
    }
}
