//! What acknowledgements tell congestion control.

/// What acknowledgements said since the last question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Payload bytes newly acknowledged.
    pub payload_bytes: u64,
    /// Time from sending a packet to its acknowledgement, if one was measured. Packets sent twice
    /// are never measured. Source: Karn and Partridge, SIGCOMM 1987.
    pub round_trip_ps: Option<u64>,
}

/// The packet whose round trip is being measured.
#[derive(Clone, Copy, Debug)]
struct Probe {
    number: u64,
    sent_ps: u64,
}

/// Measures one round trip at a time and adds up what is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    probe: Option<Probe>,
    acknowledged: Acknowledged,
}

impl RoundTrip {
    /// Packet `number` was sent for the first time.
    #[inline]
    pub fn sent(&mut self, number: u64, now_ps: u64) {
        if self.probe.is_none() {
            self.probe = Some(Probe { number, sent_ps: now_ps });
        }
    }

    /// Packets are about to be sent again.
    pub fn lost(&mut self) {
        self.probe = None;
    }

    /// Everything in front of packet `number` is acknowledged, `payload_bytes` more than before.
    #[inline]
    pub fn acknowledged(&mut self, number: u64, now_ps: u64, payload_bytes: u64) {
        self.acknowledged.payload_bytes += payload_bytes;
        if let Some(probe) = self.probe.take_if(|probe| probe.number < number) {
            self.acknowledged.round_trip_ps = Some(now_ps.saturating_sub(probe.sent_ps));
        }
    }

    pub fn take(&mut self) -> Acknowledged {
        std::mem::take(&mut self.acknowledged)
    }
}
