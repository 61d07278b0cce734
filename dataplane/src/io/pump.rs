//! The yardstick for drivers: one thread that only sends frames by a port, one that only takes them
//! from another.
//!
//! Frames are there as bytes, and what comes is not decoded: this is what a driver costs by itself.

use super::affinity::stay_on;
use super::clock::{monotonic_ns, thread_processor_ns};
use super::poll::wait_for;
use super::port::{self, Port, PortError, PortSpec};
use crate::roce::layout::HEADERS_BYTES;
use crate::roce::packet::Bth;
use crate::roce::{Frame, Packet, Payload, encode, opcode::Opcode};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Frames that are given in one call, if not less of them fill a burst.
const FRAMES_PER_CALL: usize = 64;
/// Bytes that a burst holds.
const BURST_BYTES: usize = 65_507;
/// The receiver goes on until nothing has come for so long.
const SILENCE_NS: u64 = 200_000_000;
const WAIT_NS: u64 = 1_000_000;

/// What was carried.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pumped {
    /// Frames given to the kernel.
    pub sent_frames: u64,
    /// Frames taken from it.
    pub received_frames: u64,
    /// From the first frame that was sent to the last.
    pub sending_s: f64,
    /// From the first frame that came to the last.
    pub receiving_s: f64,
    /// Processor time of the thread that sends.
    pub sender_processor_s: f64,
    /// Processor time of the thread that takes.
    pub receiver_processor_s: f64,
}

/// Send frames with a payload of `payload_bytes` from one port to another for a time. The thread that
/// sends and the one that takes stay on one of `processors` each.
pub fn measure(
    from: &PortSpec,
    to: &PortSpec,
    payload_bytes: u16,
    time: Duration,
    processors: [usize; 2],
) -> Result<Pumped, PortError> {
    let (sender, receiver) = (port::open(from)?, port::open(to)?);
    let frame = frame(from, to.address, payload_bytes);
    let is_over = AtomicBool::new(false);
    let on = |processor| {
        stay_on(processor).map_err(|source| PortError::system(from, "choosing a processor", source))
    };
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            on(processors[1])?;
            Ok(receive(receiver, &is_over))
        });
        let sending = scope.spawn(|| {
            on(processors[0])?;
            Ok(send(sender, &frame, time))
        });
        let sent = sending.join().unwrap_or_else(|_| Ok(Pumped::default()));
        is_over.store(true, Ordering::Release);
        let received = receiving.join().unwrap_or_else(|_| Ok(Pumped::default()))?;
        let Pumped { sent_frames, sending_s, sender_processor_s, .. } = sent?;
        Ok(Pumped { sent_frames, sending_s, sender_processor_s, ..received })
    })
}

fn frame(from: &PortSpec, to: Ipv4Addr, length_bytes: u16) -> Vec<u8> {
    let packet = Packet {
        source_address: from.address.into(),
        destination_address: to.into(),
        source_port: from.source_ports.first().copied().unwrap_or(0xC000),
        bth: Bth { opcode: Opcode::WRITE_MIDDLE, ..Bth::default() },
        payload: Payload::Pattern { offset_bytes: 0, length_bytes },
        ..Packet::default()
    };
    let mut bytes = Vec::new();
    encode(&Frame::Roce(Box::new(packet)), [0; 6], [0; 6], &mut bytes);
    bytes
}

fn send(mut port: Box<dyn Port>, frame: &[u8], time: Duration) -> Pumped {
    let (start_ns, processor_ns) = (monotonic_ns(), thread_processor_ns());
    let end_ns = start_ns + time.as_nanos() as u64;
    let mut frames = vec![frame; FRAMES_PER_CALL];
    if port.capabilities().has_segmentation {
        frames.truncate(BURST_BYTES / (frame.len() - HEADERS_BYTES));
    }
    while monotonic_ns() < end_ns {
        if port.send(&frames).unwrap_or_default() == 0 {
            std::thread::yield_now();
        }
    }
    Pumped {
        sent_frames: port.counters().frames_sent,
        sending_s: (monotonic_ns() - start_ns) as f64 * 1e-9,
        sender_processor_s: (thread_processor_ns() - processor_ns) as f64 * 1e-9,
        ..Pumped::default()
    }
}

fn receive(mut port: Box<dyn Port>, is_over: &AtomicBool) -> Pumped {
    let processor_ns = thread_processor_ns();
    let (mut frames, mut first_ns, mut last_ns) = (0, 0, monotonic_ns());
    loop {
        let count = port.receive(&mut |_| ()) as u64;
        if count > 0 {
            frames += count;
            last_ns = monotonic_ns();
            first_ns = if first_ns == 0 { last_ns } else { first_ns };
        } else if is_over.load(Ordering::Acquire) && monotonic_ns() > last_ns + SILENCE_NS {
            break;
        } else {
            wait_for(port.descriptor(), WAIT_NS);
        }
    }
    Pumped {
        received_frames: frames,
        receiving_s: last_ns.saturating_sub(first_ns) as f64 * 1e-9,
        receiver_processor_s: (thread_processor_ns() - processor_ns) as f64 * 1e-9,
        ..Pumped::default()
    }
}
