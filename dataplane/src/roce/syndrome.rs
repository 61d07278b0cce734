//! The syndrome of an acknowledgement. Source: IBTA volume 1, section 9.7.5.2.1 and table 47.

use crate::units::PS_PER_US;

/// What a responder says about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syndrome {
    /// Everything up to the packet sequence number has been executed.
    Acknowledge,
    /// The packet at the number cannot be taken yet; the code names the time to wait.
    ReceiverNotReady {
        /// 5-bit code of the waiting time.
        timer: u8,
    },
    /// The packet at the number is missing.
    SequenceError,
    /// The request at the number breaks the protocol.
    InvalidRequest,
    /// The request at the number may not touch that memory.
    RemoteAccessError,
    /// The responder cannot execute the request at the number.
    RemoteOperationalError,
    /// A reserved code.
    Reserved(u8),
}

/// Waiting times of a receiver that is not ready, in units of 10 microseconds, by code. Source: IBTA
/// volume 1, table 45.
const RECEIVER_NOT_READY_10_US: [u32; 32] = [
    65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768, 49_152,
];

/// How long a requester waits after a receiver-not-ready NAK with that 5-bit code.
pub fn receiver_not_ready_ps(timer: u8) -> u64 {
    u64::from(RECEIVER_NOT_READY_10_US[usize::from(timer & 0x1F)]) * 10 * PS_PER_US
}

/// An acknowledgement without end-to-end credits.
const ACKNOWLEDGE_WITHOUT_CREDITS: u8 = 0x1F;

impl Syndrome {
    /// The code on the wire.
    pub const fn code(self) -> u8 {
        match self {
            Syndrome::Acknowledge => ACKNOWLEDGE_WITHOUT_CREDITS,
            Syndrome::ReceiverNotReady { timer } => 0x20 | timer & 0x1F,
            Syndrome::SequenceError => 0x60,
            Syndrome::InvalidRequest => 0x61,
            Syndrome::RemoteAccessError => 0x62,
            Syndrome::RemoteOperationalError => 0x63,
            Syndrome::Reserved(code) => code,
        }
    }

    /// The meaning of a code; credits are ignored.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0x00..=0x1F => Syndrome::Acknowledge,
            0x20..=0x3F => Syndrome::ReceiverNotReady { timer: code & 0x1F },
            0x60 => Syndrome::SequenceError,
            0x61 => Syndrome::InvalidRequest,
            0x62 => Syndrome::RemoteAccessError,
            0x63 => Syndrome::RemoteOperationalError,
            _ => Syndrome::Reserved(code),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_meaning_that_is_written_as_it_was_read() {
        for code in 0x20..=u8::MAX {
            assert_eq!(Syndrome::from_code(code).code(), code);
        }
        assert_eq!(Syndrome::from_code(0), Syndrome::Acknowledge);
        assert_eq!(Syndrome::from_code(0x1F).code(), 0x1F);
    }

    #[test]
    fn waiting_times_are_those_of_the_specification() {
        let milliseconds = |timer| receiver_not_ready_ps(timer) as f64 / 1e9;
        assert_eq!(milliseconds(0), 655.36);
        assert_eq!(milliseconds(1), 0.01);
        assert_eq!(milliseconds(12), 0.64);
        assert_eq!(milliseconds(31), 491.52);
    }
}
