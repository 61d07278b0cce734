//! The yardstick for pacing: a loop that watches the clock and sends a prepared datagram when it is
//! time.
//!
//! What is left between the gaps that it leaves and those asked for is the machine's doing: system
//! calls of varying length, interrupts, other threads on the processor.

use super::clock::monotonic_ns;
use super::socket;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Send `count` datagrams of `datagram_bytes` to a port of loopback, one each `interval_ns`.
///
/// A datagram that is late does not delay those after it.
pub fn send(port: u16, datagram_bytes: usize, interval_ns: u64, count: u64) -> io::Result<()> {
    let sender = socket::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    sender.connect(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    let datagram = vec![0u8; datagram_bytes];
    let start_ns = monotonic_ns();
    for index in 0..count {
        while monotonic_ns() < start_ns + index * interval_ns {
            std::hint::spin_loop();
        }
        sender.send(&datagram)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::arrival_log::ArrivalLog;
    use super::*;
    use crate::io::clock::realtime_offset_ns;

    #[test]
    fn datagrams_depart_no_earlier_than_asked() {
        let log = ArrivalLog::start().expect("loopback works");
        let begin_ns = monotonic_ns() + realtime_offset_ns();
        send(log.port(), 1000, 100_000, 50).expect("loopback works");
        let arrivals = log.stop();
        assert_eq!((arrivals.times_ns.len(), arrivals.overflows), (50, 0));
        for (asked_ns, left_ns) in (begin_ns..).step_by(100_000).zip(arrivals.times_ns) {
            // CLOCK_REALTIME may be slewed against CLOCK_MONOTONIC.
            assert!(left_ns + 10_000 >= asked_ns, "{left_ns} {asked_ns}");
        }
    }
}
