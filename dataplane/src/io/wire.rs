//! Wires: links whose frames travel as UDP datagrams, one Ethernet frame without FCS in each.
//!
//! The form is that of QEMU's `-netdev dgram`. Behind the frame, where IP and pause frames end before
//! the datagram does, stands the emulated time at which its last bit arrives; a peer that knows no
//! emulated time ignores it and sends none. A process holds the ends of links that are at its own
//! nodes; what comes from anywhere but the opposite end is counted and dropped.

use super::batch::{BATCH, ReceiveBatch, SendQueue};
use super::clock::KernelTime;
use super::poll::Poll;
use super::socket;
use crate::config::{JobConfig, NodeId};
use crate::roce::{DecodeError, Frame, decode, decode_forwarding, encode};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;

const NONE: u32 = u32::MAX;

/// Last bytes of a datagram that carries the time of arrival: 8 bytes of it, then these.
const STAMP_MARK: [u8; 4] = *b"rwat";
const STAMP_BYTES: usize = 12;

/// A wire that cannot be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The port cannot be bound.
    #[error("wire end {end}: UDP port {address} cannot be bound: {source}; {remedy}")]
    Bind {
        /// Name of the wire end.
        end: String,
        /// Address and port.
        address: SocketAddrV4,
        /// What the system says.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// Wire ends that are needed and missing, or given and unknown.
    #[error("wire end {end}: {what}")]
    End {
        /// Name of the wire end.
        end: String,
        /// What is wrong.
        what: &'static str,
    },
    /// A port cannot be opened.
    #[error(transparent)]
    Port(Box<super::port::PortError>),
    /// The system refuses something else.
    #[error("wires cannot be used: {0}")]
    System(#[from] io::Error),
}

/// What one wire end counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounters {
    /// Datagrams handed to the kernel.
    pub datagrams_sent: u64,
    /// Bytes of them.
    pub bytes_sent: u64,
    /// Datagrams taken from the kernel.
    pub datagrams_received: u64,
    /// Datagrams that the kernel refused to send.
    pub send_errors: u64,
    /// Calls in which the kernel took not all that waited.
    pub send_stalls: u64,
    /// Datagrams that the kernel dropped because they were not taken in time.
    pub receive_overflows: u64,
    /// Datagrams from elsewhere than the opposite end.
    pub unexpected_sources: u64,
    /// Datagrams that were no frame, or longer than any.
    pub decode_errors: u64,
    /// Those whose invariant CRC did not fit.
    pub icrc_errors: u64,
}

/// One end of a wire at a local node.
struct Wire {
    name: String,
    link: u32,
    /// 0 for end a, 1 for end b.
    end: u8,
    node: NodeId,
    socket: Option<UdpSocket>,
    peer: Option<SocketAddrV4>,
    source_mac: [u8; 6],
    destination_mac: [u8; 6],
    queue: SendQueue,
    is_dirty: bool,
    counters: WireCounters,
}

impl Wire {
    /// The direction whose frames it sends.
    fn sends(&self) -> u32 {
        2 * self.link + u32::from(self.end)
    }

    /// The direction whose frames it receives.
    fn receives(&self) -> u32 {
        self.sends() ^ 1
    }
}

/// A frame that came over a wire.
pub struct Arrival {
    /// The direction that it travelled.
    pub direction: u32,
    /// When its last bit arrives, emulated; `None` if the sender did not say.
    pub at_ps: Option<u64>,
    /// When the kernel took it, CLOCK_REALTIME; `None` if it did not say.
    pub kernel_time: Option<KernelTime>,
    /// The frame.
    pub frame: Frame,
}

/// All wire ends of a process.
pub struct Wires {
    wires: Vec<Wire>,
    /// Index of the wire that sends each direction; `NONE` for what leaves other processes.
    wire_of_direction: Vec<u32>,
    dirty: Vec<u32>,
    poll: Poll,
    ready: Vec<u32>,
    batch: ReceiveBatch,
}

impl Wires {
    /// The ends of all links that are at nodes which `is_local` accepts; no port is bound yet.
    pub fn new(config: &JobConfig, is_local: impl Fn(NodeId) -> bool) -> Result<Self, WireError> {
        let mut wires = Vec::new();
        for (link, description) in config.links.iter().enumerate() {
            let ends = [description.a, description.b];
            for end in 0..2 {
                if is_local(ends[end].node) {
                    wires.push(Wire {
                        name: format!("{}/{end}", description.name),
                        link: link as u32,
                        end: end as u8,
                        node: ends[end].node,
                        socket: None,
                        peer: None,
                        source_mac: config.mac(ends[end].node),
                        destination_mac: config.mac(ends[1 - end].node),
                        queue: SendQueue::new(),
                        is_dirty: false,
                        counters: WireCounters::default(),
                    });
                }
            }
        }
        let mut wire_of_direction = vec![NONE; 2 * config.links.len()];
        for (index, wire) in wires.iter().enumerate() {
            wire_of_direction[wire.sends() as usize] = index as u32;
        }
        Ok(Self {
            wire_of_direction,
            wires,
            dirty: Vec::new(),
            poll: Poll::new()?,
            ready: Vec::new(),
            batch: ReceiveBatch::new(),
        })
    }

    /// Bind every end: to the port given for its name, or else to any free one. Returns the ports.
    pub fn bind(
        &mut self,
        address: Ipv4Addr,
        ports: &BTreeMap<String, u16>,
    ) -> Result<Vec<(String, u16)>, WireError> {
        self.check_names(ports.keys())?;
        let mut bound = Vec::new();
        for (index, wire) in self.wires.iter_mut().enumerate() {
            let port = ports.get(&wire.name).copied().unwrap_or(0);
            let address = SocketAddrV4::new(address, port);
            let socket = socket::bind(address).map_err(|source| WireError::Bind {
                end: wire.name.clone(),
                address,
                remedy: match source.kind() {
                    io::ErrorKind::AddrInUse => "choose another port, or 0 for any free one",
                    io::ErrorKind::AddrNotAvailable => "choose an address of this host",
                    _ => "choose an address and a port that this user may bind",
                },
                source,
            })?;
            self.poll.add(socket.as_fd(), index as u32)?;
            bound.push((wire.name.clone(), socket.local_addr()?.port()));
            wire.socket = Some(socket);
        }
        Ok(bound)
    }

    /// Name the opposite end of every wire end.
    pub fn connect(&mut self, peers: &BTreeMap<String, SocketAddrV4>) -> Result<(), WireError> {
        self.check_names(peers.keys())?;
        for wire in &mut self.wires {
            let what = "its opposite end is not given";
            let missing = || WireError::End { end: wire.name.clone(), what };
            wire.peer = Some(*peers.get(&wire.name).ok_or_else(missing)?);
        }
        Ok(())
    }

    fn check_names<'a>(
        &self,
        mut names: impl Iterator<Item = &'a String>,
    ) -> Result<(), WireError> {
        match names.find(|name| !self.wires.iter().any(|wire| wire.name == **name)) {
            None => Ok(()),
            Some(name) => {
                let what = "it is at no node of this process";
                Err(WireError::End { end: name.clone(), what })
            }
        }
    }

    /// Every end is bound and knows its opposite end.
    pub fn is_connected(&self) -> bool {
        self.wires.iter().all(|wire| wire.socket.is_some() && wire.peer.is_some())
    }

    /// Queue a frame whose last bit arrives at `at_ps`; [`Wires::flush`] sends it.
    #[inline]
    pub fn push(&mut self, at_ps: u64, direction: u32, frame: &Frame) {
        let index = self.wire_of_direction[direction as usize];
        let wire = &mut self.wires[index as usize];
        let (source, destination) = (wire.source_mac, wire.destination_mac);
        wire.queue.push(|bytes| {
            encode(frame, source, destination, bytes);
            bytes.extend_from_slice(&at_ps.to_be_bytes());
            bytes.extend_from_slice(&STAMP_MARK);
        });
        if !wire.is_dirty {
            wire.is_dirty = true;
            self.dirty.push(index);
        }
    }

    /// Send what is queued. True if something is left because a socket is full.
    pub fn flush(&mut self) -> bool {
        let wires = &mut self.wires;
        self.dirty.retain(|&index| {
            let wire = &mut wires[index as usize];
            let (Some(socket), Some(peer)) = (&wire.socket, wire.peer) else {
                return true;
            };
            let flushed = wire.queue.flush(socket.as_fd(), peer);
            wire.counters.datagrams_sent += flushed.packets;
            wire.counters.bytes_sent += flushed.bytes;
            wire.counters.send_errors += flushed.errors;
            wire.counters.send_stalls += u64::from(flushed.is_blocked);
            wire.is_dirty = flushed.is_blocked;
            flushed.is_blocked
        });
        !self.dirty.is_empty()
    }

    /// Take what has arrived; how many datagrams came.
    pub fn receive(&mut self, mut take: impl FnMut(Arrival)) -> usize {
        self.poll.ready(&mut self.ready);
        let mut count = 0;
        for &index in &self.ready {
            let wire = &mut self.wires[index as usize];
            loop {
                let received = receive_batch(wire, &mut self.batch, &mut take);
                count += received;
                if received < BATCH {
                    break;
                }
            }
        }
        count
    }

    /// Sleep until something arrives, at most `limit_ns`.
    pub fn wait(&self, limit_ns: u64) {
        self.poll.wait(limit_ns);
    }

    /// Counters of the end at which a direction arrives.
    pub fn counters_of_arrivals(&self, direction: u32) -> WireCounters {
        let index = self.wire_of_direction[(direction ^ 1) as usize];
        self.wires.get(index as usize).map_or_else(WireCounters::default, |wire| wire.counters)
    }

    /// Link, end and counters of every wire end.
    pub fn counters(&self) -> Vec<(u32, u8, WireCounters)> {
        let of_wire = |wire: &Wire| {
            let mut counters = wire.counters;
            if let Some(socket) = &wire.socket {
                counters.receive_overflows = socket::dropped_datagrams(socket);
            }
            (wire.link, wire.end, counters)
        };
        self.wires.iter().map(of_wire).collect()
    }
}

/// Take what waits at a wire end, at most one batch; how many datagrams came.
fn receive_batch(
    wire: &mut Wire,
    batch: &mut ReceiveBatch,
    take: &mut impl FnMut(Arrival),
) -> usize {
    let Some(socket) = &wire.socket else { return 0 };
    let received = batch.receive(socket.as_fd()).unwrap_or(0);
    wire.counters.datagrams_received += received as u64;
    for index in 0..received {
        let datagram = batch.datagram(index);
        if Some(datagram.source) != wire.peer {
            wire.counters.unexpected_sources += 1;
            continue;
        }
        let (bytes, at_ps) = datagram.bytes.map_or((None, None), unstamped);
        if let Some(frame) = decode_datagram(wire, bytes) {
            let kernel_time = datagram.realtime_ns.map(KernelTime::Realtime);
            take(Arrival { direction: wire.receives(), at_ps, kernel_time, frame });
        }
    }
    received
}

/// The frame of a datagram, and the time of arrival behind it.
#[inline]
fn unstamped(datagram: &[u8]) -> (Option<&[u8]>, Option<u64>) {
    let Some((frame, stamp)) = datagram.split_last_chunk::<STAMP_BYTES>() else {
        return (Some(datagram), None);
    };
    match stamp {
        [time @ .., a, b, c, d] if [*a, *b, *c, *d] == STAMP_MARK => {
            (Some(frame), Some(u64::from_be_bytes(*time)))
        }
        _ => (Some(datagram), None),
    }
}

/// A NIC looks at the whole packet, a switch at its headers.
fn decode_datagram(wire: &mut Wire, bytes: Option<&[u8]>) -> Option<Frame> {
    let decoded = bytes.map(|bytes| match wire.node {
        NodeId::Nic(_) => decode(bytes),
        NodeId::Switch(_) => decode_forwarding(bytes),
    });
    match decoded {
        Some(Ok(frame)) => return Some(frame),
        Some(Err(DecodeError::Icrc { .. })) => wire.counters.icrc_errors += 1,
        Some(Err(_)) | None => {}
    }
    wire.counters.decode_errors += 1;
    None
}
