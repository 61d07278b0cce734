//! Packets per second of the endpoint on one core, without IO: two queue pairs, a WRITE that never
//! ends, a 4096-byte MTU, every packet sent, received, verified and acknowledged.
//!
//! Prints one JSON object: nanoseconds per packet of each case, in each of several rounds in turns.

use _native::config::{ClassConfig, LossRecovery, TransportConfig};
use _native::roce::{
    Frame, Message, Packet, QueuePair, QueuePairAddress, decode, decode_forwarding, encode,
};
use std::hint::black_box;
use std::time::Instant;

const MTU_BYTES: u32 = 4096;
const ROUNDS: u32 = 7;

fn queue_pair(end: u32, qp: u32) -> QueuePair {
    let transport = TransportConfig {
        mtu_bytes: MTU_BYTES,
        qps_per_peer: 1,
        qp_distribution: Default::default(),
        clear_to_send: false,
        rnr_retry_count: 7,
        max_outstanding_reads: 16,
        window_packets: 256,
        ack_every_packets: 16,
        ack_delay_ps: 5_000_000,
        retransmission_timeout_ps: u64::MAX,
        retry_count: 7,
        loss_recovery: LossRecovery::GoBackN,
        reordering_packets: 0,
        adaptive_retransmission: None,
    };
    let classes = ClassConfig {
        data_dscp: 26,
        data_priority: 3,
        data_ecn_capable: true,
        ack_dscp: 26,
        ack_priority: 3,
        ack_ecn_capable: false,
        cnp_dscp: 48,
        cnp_priority: 6,
    };
    let address = QueuePairAddress {
        local_address: 1 + end,
        remote_address: 2 - end,
        local_qp: qp,
        remote_qp: qp,
        source_port: 0xC000,
    };
    QueuePair::new(&transport, &classes, address, 0, 0)
}

/// Sends `packets` packets in turn over `pairs` connections; `cross` is the wire.
fn stream(pairs: u32, packets: u64, mut cross: impl FnMut(Packet) -> Packet) {
    let mut ends: Vec<[QueuePair; 2]> =
        (0..pairs).map(|qp| [queue_pair(0, qp), queue_pair(1, qp)]).collect();
    for [sender, _] in &mut ends {
        sender.post_write(Message { id: 0, size_bytes: u64::MAX >> 16, immediate: 0 });
    }
    let mut now_ps = 0;
    for _ in 0..packets / u64::from(pairs) {
        for [sender, receiver] in &mut ends {
            now_ps += 1000;
            black_box(sender.next_data_bytes());
            let packet = sender.poll_data(now_ps).expect("the window is open");
            receiver.handle_packet(now_ps, &cross(packet));
            if let Some(reply) = receiver.poll_control(now_ps) {
                sender.handle_packet(now_ps, &reply);
                black_box(sender.take_acknowledged());
            }
            black_box((sender.poll_timeout(), receiver.poll_timeout()));
        }
    }
    let received: u64 =
        ends.iter().map(|[_, receiver]| receiver.counters().data_payload_bytes_received).sum();
    assert_eq!(received, packets / u64::from(pairs) * u64::from(pairs) * u64::from(MTU_BYTES));
}

fn ns_per_packet(packets: u64, round: &mut dyn FnMut()) -> f64 {
    let start = Instant::now();
    round();
    start.elapsed().as_nanos() as f64 / packets as f64
}

/// What an endpoint needs that does not know its payload beforehand: two copies and two checksums.
fn copies_and_checksums(packets: u64) {
    let payload = vec![0x5A; MTU_BYTES as usize + 54];
    let mut wire = Vec::with_capacity(payload.len());
    for _ in 0..packets {
        wire.clear();
        wire.extend_from_slice(black_box(&payload));
        black_box(crc32fast::hash(&wire));
        black_box(crc32fast::hash(black_box(&wire)));
        black_box(wire.to_vec());
    }
}

fn packet_of(frame: Frame) -> Packet {
    match frame {
        Frame::Roce(packet) => *packet,
        Frame::Pause(_) => unreachable!("only packets are encoded here"),
    }
}

fn through_bytes(packet: Packet, wire: &mut Vec<u8>) -> Packet {
    wire.clear();
    encode(&Frame::Roce(Box::new(packet)), [2; 6], [2; 6], wire);
    packet_of(decode(wire).expect("what was encoded is decoded"))
}

/// Name, packets in a round, and the round.
type Case<'a> = (&'a str, u64, Box<dyn FnMut() + 'a>);

/// What a switch does with each packet: look at its headers, send the same bytes on.
fn forward(packets: u64, wire: &[u8]) {
    for _ in 0..packets {
        let frame = decode_forwarding(black_box(wire)).expect("a frame");
        let mut out = Vec::with_capacity(wire.len());
        encode(&frame, [2; 6], [2; 6], &mut out);
        black_box(out);
    }
}

fn main() {
    let (many, few) = (4_096_000, 409_600);
    let mut wire = Vec::new();
    let mut sample = Vec::new();
    stream(1, 1, |packet| through_bytes(packet, &mut sample));
    let mut wire_4096 = Vec::new();
    let mut cases: [Case<'_>; 6] = [
        ("values", many, Box::new(|| stream(1, many, |packet| packet))),
        ("values_4096_qps", many, Box::new(|| stream(4096, many, |packet| packet))),
        ("bytes", few, Box::new(|| stream(1, few, |packet| through_bytes(packet, &mut wire)))),
        (
            "bytes_4096_qps",
            few,
            Box::new(|| stream(4096, few, |packet| through_bytes(packet, &mut wire_4096))),
        ),
        ("copies_and_checksums", few, Box::new(|| copies_and_checksums(few))),
        ("forwarded", few, Box::new(|| forward(few, &sample))),
    ];
    let mut results = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for ((_, packets, round), result) in cases.iter_mut().zip(&mut results) {
            result.push(ns_per_packet(*packets, round));
        }
    }
    let columns: Vec<String> = cases
        .iter()
        .zip(&results)
        .map(|((name, ..), result)| format!("\"{name}\": {result:.2?}"))
        .collect();
    println!("{{{}}}", columns.join(", "));
}
