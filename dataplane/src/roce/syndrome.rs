//! The syndrome of an acknowledgement. Source: IBTA volume 1, section 9.7.5.2.1 and table 47.

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
}
