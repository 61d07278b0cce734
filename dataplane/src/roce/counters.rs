//! What one queue pair counts. Names follow the stems of the Linux kernel's `hw_counters` where there
//! is one.

/// Totals since the queue pair was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QpCounters {
    /// Data packets sent, retransmissions included.
    pub data_packets_sent: u64,
    /// Payload bytes sent, retransmissions included.
    pub data_payload_bytes_sent: u64,
    /// Data packets sent again.
    pub retransmitted_packets: u64,
    /// Payload bytes sent again.
    pub data_payload_bytes_retransmitted: u64,
    /// Data packets that arrived, whatever became of them.
    pub data_packets_received: u64,
    /// Payload bytes accepted in order: every byte of every message once.
    pub data_payload_bytes_received: u64,
    /// Data packets that arrived with congestion experienced, accepted or not
    /// (`np_ecn_marked_roce_packets`).
    pub ecn_marked_packets: u64,
    /// Congestion notifications that arrived.
    pub cnps_received: u64,
    /// Acknowledgements sent, without NAKs.
    pub acks_sent: u64,
    /// Negative acknowledgements sent, without those for receives not posted.
    pub naks_sent: u64,
    /// Acknowledgements that arrived, without NAKs.
    pub acks_received: u64,
    /// Data packets that arrived ahead of their turn (`out_of_sequence`).
    pub out_of_sequence: u64,
    /// Data packets that arrived again (`duplicate_request`).
    pub duplicate_requests: u64,
    /// NAKs that arrived for a sequence error (`packet_seq_err`).
    pub packet_seq_err: u64,
    /// READ responses found missing by what came behind them (`implied_nak_seq_err`).
    pub implied_nak_seq_err: u64,
    /// NAKs sent because no receive was posted.
    pub rnr_naks_sent: u64,
    /// NAKs that arrived because the peer had no receive posted.
    pub rnr_naks_received: u64,
    /// Requests given up since the peer had no receive posted (`rnr_nak_retry_err`).
    pub rnr_nak_retry_err: u64,
    /// Expired retransmission timers (`local_ack_timeout_err`).
    pub local_ack_timeout_err: u64,
    /// Accepted packets whose payload was not the pattern's.
    pub payload_mismatches: u64,
    /// Requests that broke the protocol.
    pub invalid_requests: u64,
}

impl QpCounters {
    /// All totals with their names.
    pub fn named(&self) -> [(&'static str, u64); 21] {
        [
            ("data_packets_sent", self.data_packets_sent),
            ("data_payload_bytes_sent", self.data_payload_bytes_sent),
            ("retransmitted_packets", self.retransmitted_packets),
            ("data_payload_bytes_retransmitted", self.data_payload_bytes_retransmitted),
            ("data_packets_received", self.data_packets_received),
            ("data_payload_bytes_received", self.data_payload_bytes_received),
            ("ecn_marked_packets", self.ecn_marked_packets),
            ("cnps_received", self.cnps_received),
            ("acks_sent", self.acks_sent),
            ("naks_sent", self.naks_sent),
            ("acks_received", self.acks_received),
            ("out_of_sequence", self.out_of_sequence),
            ("duplicate_requests", self.duplicate_requests),
            ("packet_seq_err", self.packet_seq_err),
            ("implied_nak_seq_err", self.implied_nak_seq_err),
            ("rnr_naks_sent", self.rnr_naks_sent),
            ("rnr_naks_received", self.rnr_naks_received),
            ("rnr_nak_retry_err", self.rnr_nak_retry_err),
            ("local_ack_timeout_err", self.local_ack_timeout_err),
            ("payload_mismatches", self.payload_mismatches),
            ("invalid_requests", self.invalid_requests),
        ]
    }

    /// Adds another queue pair's totals.
    pub fn add(&mut self, other: &QpCounters) {
        self.data_packets_sent += other.data_packets_sent;
        self.data_payload_bytes_sent += other.data_payload_bytes_sent;
        self.retransmitted_packets += other.retransmitted_packets;
        self.data_payload_bytes_retransmitted += other.data_payload_bytes_retransmitted;
        self.data_packets_received += other.data_packets_received;
        self.data_payload_bytes_received += other.data_payload_bytes_received;
        self.ecn_marked_packets += other.ecn_marked_packets;
        self.cnps_received += other.cnps_received;
        self.acks_sent += other.acks_sent;
        self.naks_sent += other.naks_sent;
        self.acks_received += other.acks_received;
        self.out_of_sequence += other.out_of_sequence;
        self.duplicate_requests += other.duplicate_requests;
        self.packet_seq_err += other.packet_seq_err;
        self.implied_nak_seq_err += other.implied_nak_seq_err;
        self.rnr_naks_sent += other.rnr_naks_sent;
        self.rnr_naks_received += other.rnr_naks_received;
        self.rnr_nak_retry_err += other.rnr_nak_retry_err;
        self.local_ack_timeout_err += other.local_ack_timeout_err;
        self.payload_mismatches += other.payload_mismatches;
        self.invalid_requests += other.invalid_requests;
    }
}
