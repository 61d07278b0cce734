//! Queue pairs whose options come from the input.

use crate::input::Input;
use _native::config::{AdaptiveRetransmissionConfig, ClassConfig, LossRecovery, TransportConfig};
use _native::roce::{QueuePair, QueuePairAddress, WorkRequest};
use std::sync::LazyLock;

/// Picoseconds in a microsecond.
pub const US: u64 = 1_000_000;

/// First packet sequence numbers: around the wrap, around the middle, and 0.
const FIRST_PSNS: [u32; 5] = [0, 100, 0xFF_FFF0, 0xFF_FFFF, 0x7F_FFFE];

const CLASSES: ClassConfig = ClassConfig {
    data_dscp: 26,
    data_priority: 3,
    data_ecn_capable: true,
    ack_dscp: 46,
    ack_priority: 5,
    ack_ecn_capable: false,
    cnp_dscp: 48,
    cnp_priority: 6,
};

const ADAPTIVE: AdaptiveRetransmissionConfig = AdaptiveRetransmissionConfig {
    time_base_ps: 4 * US,
    initial_exponent: 1,
    initial_exponents: 3,
    min_exponent: 1,
    max_exponent: 8,
    retries_per_timeout: 2,
    progress_decrease: 2,
};

/// Options that the input does not choose have the value that a missing key has.
static TRANSPORT: LazyLock<TransportConfig> = LazyLock::new(|| {
    let document = serde_json::json!({
        "mtu_bytes": 256,
        "qps_per_peer": 1,
        "window_packets": 1,
        "ack_every_packets": 1,
        "ack_delay_ps": 5 * US,
        "retransmission_timeout_ps": 100 * US,
        "retry_count": 0,
    });
    serde_json::from_value(document).expect("all that has no default is there")
});

/// Transport parameters.
pub fn transport(input: &mut Input<'_>, retry_count: u32) -> TransportConfig {
    TransportConfig {
        mtu_bytes: input.of(&[256, 256, 1024]),
        rnr_retry_count: 7,
        max_outstanding_reads: input.of(&[1, 2, 16]),
        window_packets: input.of(&[1, 2, 8, 64, 100]),
        ack_every_packets: input.of(&[1, 3, 1000]),
        retry_count,
        loss_recovery: input.of(&[LossRecovery::GoBackN, LossRecovery::SelectiveRepeat]),
        reordering_packets: input.of(&[0, 0, 3]),
        adaptive_retransmission: input.of(&[None, None, Some(ADAPTIVE)]),
        ..*TRANSPORT
    }
}

/// The first packet sequence numbers of both ends.
pub fn first_psns(input: &mut Input<'_>) -> [u32; 2] {
    [input.of(&FIRST_PSNS), input.of(&FIRST_PSNS)]
}

/// End 0 or 1 of a connection.
pub fn queue_pair(transport: &TransportConfig, first_psns: [u32; 2], end: usize) -> QueuePair {
    let address = QueuePairAddress {
        local_address: 0x0A00_0001 + end as u32,
        remote_address: 0x0A00_0002 - end as u32,
        local_qp: 0x11 + end as u32,
        remote_qp: 0x12 - end as u32,
        source_port: 0xC001,
    };
    QueuePair::new(transport, &CLASSES, address, first_psns[end], first_psns[1 - end])
}

/// A request of up to 5 KiB; `number` is its immediate data, if it has any.
pub fn request(input: &mut Input<'_>, number: u32) -> WorkRequest {
    let kind = input.byte();
    let length = u64::from(input.byte());
    let size_bytes = length * input.of(&[1, 5, 20]);
    match kind % 8 {
        0..=3 => WorkRequest::Write { size_bytes, immediate: Some(number) },
        4 => WorkRequest::Write { size_bytes, immediate: None },
        5 => WorkRequest::Send { size_bytes, immediate: Some(number) },
        6 => WorkRequest::Send { size_bytes, immediate: None },
        _ => WorkRequest::Read { size_bytes, offset_bytes: u64::from(number) * 1000 },
    }
}
