//! `udp`: RoCEv2 over UDP sockets of the kernel. No privileges, any routed network.
//!
//! Sent packets have a valid ICRC: an unconnected socket that forbids fragmentation gives the
//! identification 0 to a datagram and 0, 1, 2, ... to those that are cut from a burst, so that it is
//! known beforehand. Of received packets the kernel does not tell the identification; the frames that
//! are handed out have a guess. The kernel fills in MAC addresses, time to live, header checksum and,
//! always for bursts, the UDP checksum.
//!
//! A source port is a socket of its own, because that is what ECMP hashes.

use super::burst::{Burst, BurstQueue};
use super::run::Runs;
use super::timestamps::{self, Timestamps};
use super::udp_receive::UdpReceiver;
use super::udp_send::Sender;
use super::view::{View, ViewError, view_own};
use super::{InvariantCrc, Port, PortCapabilities, PortCounters, PortError, PortSpec, Received};
use super::{interface, path};
use crate::io::socket;
use crate::roce::Frame;
use crate::roce::layout::{ETHERNET_BYTES, ROCE_PORT};
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Where RoCEv2 has its source ports. Source: rdma-core, `ibv_flow_label_to_udp_sport`.
const FIRST_SOURCE_PORT: u16 = 0xC000;
/// Longest IP packet that a frame of any usual network holds; loopback alone has more.
const MAX_IP_PACKET_BYTES: u32 = 9202;
/// A socket that only sends keeps next to nothing of what is sent to it.
const LEAST_BUFFER_BYTES: libc::c_int = 1;

/// See the module documentation.
pub struct UdpPort {
    address: Ipv4Addr,
    receiver: UdpReceiver,
    receiving: UdpSocket,
    sending: Vec<Sender>,
    /// Source port -> index in `sending`.
    socket_of: BTreeMap<u16, u32>,
    queue: BurstQueue,
    runs: Runs,
    capabilities: PortCapabilities,
    counters: PortCounters,
}

impl UdpPort {
    /// Open the sockets and see what they can do.
    pub fn open(spec: &PortSpec) -> Result<Self, PortError> {
        path::check(spec)?;
        let receiving = bound(spec, ROCE_PORT)?;
        let tell = |what: &str, level, name| {
            socket::set_option(&receiving, level, name, 1)
                .map_err(|source| PortError::system(spec, what, source))
        };
        tell("telling the ECN codepoint (IP_RECVTOS)", libc::SOL_IP, libc::IP_RECVTOS)?;
        let has_coalescing = tell("UDP_GRO", libc::SOL_UDP, libc::UDP_GRO).is_ok();
        let (sending, socket_of) = senders(spec)?;
        let has_segmentation = sending.first().is_some_and(can_segment);
        let most = if has_segmentation { spec.max_burst_packets } else { 1 };
        let interface = interface::of_port(spec)?;
        let timestamps = timestamps::of_interface(&interface);
        if timestamps == Timestamps::Hardware {
            timestamps::tell_adapter_times(&receiving)
                .map_err(|source| PortError::system(spec, "SO_TIMESTAMPING", source))?;
        }
        let mtu_bytes = interface.mtu_bytes.min(MAX_IP_PACKET_BYTES);
        let queue = BurstQueue::new(most.into());
        Ok(Self {
            address: spec.address,
            receiver: UdpReceiver::new(spec.address),
            receiving,
            sending,
            socket_of,
            queue,
            runs: Runs::new(),
            capabilities: PortCapabilities {
                max_frame_bytes: mtu_bytes + ETHERNET_BYTES as u32,
                has_segmentation,
                has_coalescing,
                has_ecn: true,
                invariant_crc: InvariantCrc::Sender,
                timestamps,
                ..PortCapabilities::default()
            },
            counters: PortCounters::default(),
        })
    }

    /// Take note of whether the kernel cuts bursts.
    fn keep(&mut self, has_segmentation: bool) {
        self.capabilities.has_segmentation = has_segmentation;
        if !has_segmentation {
            self.queue.limit_segments(1);
        }
    }
}

/// A socket at the address of the port.
fn bound(spec: &PortSpec, port: u16) -> Result<UdpSocket, PortError> {
    let address = SocketAddrV4::new(spec.address, port);
    let refused = |source| PortError::system(spec, format!("UDP port {port}"), source);
    let socket = socket::bind(address).map_err(refused)?;
    if let Some(interface) = &spec.interface {
        let refused = |source| PortError::system(spec, format!("interface {interface}"), source);
        socket::bind_to_interface(&socket, interface).map_err(refused)?;
    }
    Ok(socket)
}

/// One socket for each source port.
fn senders(spec: &PortSpec) -> Result<(Vec<Sender>, BTreeMap<u16, u32>), PortError> {
    let ports =
        if spec.source_ports.is_empty() { &[FIRST_SOURCE_PORT][..] } else { &spec.source_ports };
    let (mut sockets, mut socket_of) = (Vec::new(), BTreeMap::new());
    for &port in ports {
        if socket_of.contains_key(&port) {
            continue;
        }
        let socket = bound(spec, port)?;
        let refused = |source| PortError::system(spec, "forbidding fragments", source);
        let (level, discover) = (libc::SOL_IP, libc::IP_MTU_DISCOVER);
        socket::set_option(&socket, level, discover, libc::IP_PMTUDISC_DO).map_err(refused)?;
        let (level, buffer) = (libc::SOL_SOCKET, libc::SO_RCVBUF);
        socket::set_option(&socket, level, buffer, LEAST_BUFFER_BYTES).map_err(refused)?;
        socket_of.insert(port, sockets.len() as u32);
        sockets.push(Sender::new(socket));
    }
    Ok((sockets, socket_of))
}

/// The kernel cuts bursts.
fn can_segment(socket: &Sender) -> bool {
    let set = |bytes| socket::set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, bytes);
    let can = set(1024).is_ok();
    // Each call says its own length.
    can && set(0).is_ok()
}

/// The interface does not sum datagrams, for which a kernel before Linux 6.11 does not cut bursts.
fn is_refused_burst(burst: &Burst, error: &io::Error) -> bool {
    burst.segments > 1 && error.raw_os_error() == Some(libc::EIO)
}

/// Give a burst to the kernel; one by one, now and from now on, if it refuses bursts.
fn send(
    sender: &mut Sender,
    has_segmentation: &mut bool,
    burst: &Burst,
    slices: &[IoSlice<'_>],
) -> io::Result<()> {
    match sender.send(ROCE_PORT, burst, slices) {
        Err(error) if is_refused_burst(burst, &error) => {
            *has_segmentation = false;
            sender.send_singly(ROCE_PORT, burst, slices)
        }
        sent => sent,
    }
}

/// Whether a frame can be sent by a port of these capabilities, whose source ports have sockets.
fn check<'a>(
    frame: &'a [u8],
    address: Ipv4Addr,
    capabilities: &PortCapabilities,
    socket_of: &BTreeMap<u16, u32>,
) -> Result<View<'a>, ViewError> {
    let view = view_own(frame, address, capabilities.max_frame_bytes)?;
    match socket_of.contains_key(&view.source_port) {
        true => Ok(view),
        false => Err(ViewError::SourcePort(view.source_port)),
    }
}

impl Port for UdpPort {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.receiving.as_fd()
    }

    fn capabilities(&self) -> PortCapabilities {
        let max_burst_packets = self.queue.max_segments() as u32;
        PortCapabilities { max_burst_packets, ..self.capabilities.clone() }
    }

    fn push(&mut self, frame: &mut Frame) {
        match frame {
            Frame::Roce(packet) if self.socket_of.contains_key(&packet.source_port) => {
                self.queue.push_frame(frame);
            }
            Frame::Roce(_) => self.counters.send_errors += 1,
            Frame::Pause(_) => {}
        }
    }

    fn check<'a>(&self, frame: &'a [u8]) -> Result<View<'a>, ViewError> {
        check(frame, self.address, &self.capabilities, &self.socket_of)
    }

    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, ViewError> {
        if self.flush() {
            return Ok(0);
        }
        let Self { address, queue, runs, counters, sending, socket_of, capabilities, .. } = self;
        let mut has_segmentation = capabilities.has_segmentation;
        let check = |frame| check(frame, *address, capabilities, socket_of);
        let sent = runs.send(frames, queue.max_segments(), counters, check, |burst, slices| {
            let index = socket_of[&burst.flow.source_port] as usize;
            send(&mut sending[index], &mut has_segmentation, burst, slices)
        });
        self.keep(has_segmentation);
        sent
    }

    fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    fn flush(&mut self) -> bool {
        let Self { queue, counters, sending, socket_of, capabilities, .. } = self;
        let mut has_segmentation = capabilities.has_segmentation;
        let is_blocked = queue.flush(counters, |burst, slices| {
            let index = socket_of[&burst.flow.source_port] as usize;
            send(&mut sending[index], &mut has_segmentation, burst, slices)
        });
        self.keep(has_segmentation);
        is_blocked
    }

    fn receive(&mut self, take: &mut dyn FnMut(Received<'_>)) -> usize {
        let taken = self.receiver.receive(self.receiving.as_fd(), take).unwrap_or_default();
        self.counters.frames_received += taken.datagrams;
        self.counters.bytes_received += taken.bytes;
        self.counters.bursts_received += taken.bursts;
        self.counters.misaddressed += taken.malformed;
        taken.datagrams as usize
    }

    fn counters(&self) -> PortCounters {
        let receive_overflows = socket::dropped_datagrams(&self.receiving);
        PortCounters { receive_overflows, ..self.counters }
    }
}
