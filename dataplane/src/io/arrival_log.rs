//! A socket that notes when datagrams arrive and does nothing with them.
//!
//! On loopback the kernel stamps a datagram while the sender's system call hands it over, so the
//! times are those of departure, however late the thread here looks.

use super::batch::ReceiveBatch;
use super::clock::{monotonic_ns, sharpen_timers, sleep_until};
use super::socket;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Rest between two looks at an empty socket: it costs the sender no wake-up, as waiting would.
const REST_NS: u64 = 20_000;

/// When datagrams arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// CLOCK_REALTIME of each in nanoseconds, in order.
    pub times_ns: Vec<u64>,
    /// Datagrams that the kernel dropped because they were not taken in time.
    pub overflows: u64,
}

/// A socket on loopback and the thread that empties it.
#[derive(Debug)]
pub struct ArrivalLog {
    port: u16,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Arrivals>,
}

impl ArrivalLog {
    /// Bind any free port and note from now on.
    pub fn start() -> io::Result<Self> {
        let socket = socket::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        let port = socket.local_addr()?.port();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || note(&socket, &stopped));
        Ok(Self { port, stop, thread })
    }

    /// The UDP port that it is bound to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stop, and take what was noted.
    pub fn stop(self) -> Arrivals {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn note(socket: &UdpSocket, stop: &AtomicBool) -> Arrivals {
    sharpen_timers();
    let mut batch = ReceiveBatch::new();
    let mut times_ns = Vec::new();
    loop {
        let received = batch.receive(socket.as_fd()).unwrap_or(0);
        times_ns.extend((0..received).filter_map(|index| batch.datagram(index).realtime_ns));
        if received == 0 {
            if stop.load(Ordering::Relaxed) {
                return Arrivals { times_ns, overflows: socket::dropped_datagrams(socket) };
            }
            sleep_until(monotonic_ns() + REST_NS);
        }
    }
}
