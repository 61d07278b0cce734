//! Packets per second of the endpoint on one core, without IO: two queue pairs, a WRITE that never
//! ends, a 4096-byte MTU, every packet sent, received, verified and acknowledged.
//!
//! Prints one JSON object: nanoseconds per packet of each case, the best of several rounds.

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

fn ns_per_packet(packets: u64, mut round: impl FnMut()) -> f64 {
    let best = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            round();
            start.elapsed()
        })
        .min();
    best.unwrap_or_default().as_nanos() as f64 / packets as f64
}

/// What no endpoint can do without when packets are bytes: two copies and two checksums.
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

fn main() {
    let (many, few) = (4_096_000, 400_000);
    let mut wire = Vec::new();
    let values = ns_per_packet(many, || stream(1, many, |packet| packet));
    let values_4096 = ns_per_packet(many, || stream(4096, many, |packet| packet));
    let bytes = ns_per_packet(few, || stream(1, few, |packet| through_bytes(packet, &mut wire)));
    let floor = ns_per_packet(few, || copies_and_checksums(few));
    let forwarded = ns_per_packet(few, || {
        for _ in 0..few {
            let frame = decode_forwarding(black_box(&wire)).expect("a frame");
            let mut out = Vec::with_capacity(wire.len());
            encode(&frame, [2; 6], [2; 6], &mut out);
            black_box(out);
        }
    });
    println!(
        "{{\"values\": {values:.2}, \"values_4096_qps\": {values_4096:.2}, \"bytes\": {bytes:.1}, \
         \"copies_and_checksums\": {floor:.1}, \"forwarded\": {forwarded:.1}}}"
    );
}
