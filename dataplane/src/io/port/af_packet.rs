//! `af_packet`: whole frames on a packet socket of an interface. Needs CAP_NET_RAW.
//!
//! Source ports cost no sockets, and every header field is ours. The frames of a flow that wait
//! together are given to the kernel as one and cut by it or by the adapter, so that large bursts cost
//! no more than with `udp`. Frames that come are seen before the kernel's own IP: a UDP socket that
//! takes nothing keeps it from answering that nobody is there.

use super::burst::{Burst, BurstQueue};
use super::interface::{self, Interface};
use super::neighbour;
use super::netlink::{Mac, Netlink};
use super::packet_receive::PacketReceiver;
use super::packet_send::{self, Ends};
use super::run::Runs;
use super::timestamps::{self, Timestamps};
use super::view::{View, ViewError, view_own};
use super::{InvariantCrc, Port, PortCapabilities, PortCounters, PortError, PortSpec, Received};
use super::{packet_socket, path};
use crate::io::socket;
use crate::roce::Frame;
use crate::roce::layout::{ETHERNET_BYTES, ROCE_PORT};
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// See the module documentation.
pub struct PacketPort {
    address: Ipv4Addr,
    interface: Interface,
    next_hops: BTreeMap<Ipv4Addr, Mac>,
    socket: OwnedFd,
    receiver: PacketReceiver,
    queue: BurstQueue,
    runs: Runs,
    counters: PortCounters,
    has_segmentation: bool,
    timestamps: Timestamps,
    _guard: UdpSocket,
}

impl PacketPort {
    /// Open the socket, and find the next hop of every destination.
    pub fn open(spec: &PortSpec) -> Result<Self, PortError> {
        let interface = interface::of_port(spec)?;
        let guard = guard(spec)?;
        path::check(spec)?;
        let next_hops = next_hops(spec, &interface)?;
        let socket = packet_socket::open(&interface, spec.address)
            .map_err(|source| PortError::system(spec, "packet socket", source))?;
        let timestamps = timestamps::of_interface(&interface);
        if timestamps == Timestamps::Hardware {
            timestamps::tell_adapter_times(&socket)
                .map_err(|source| PortError::system(spec, "SO_TIMESTAMPING", source))?;
        }
        let refused = |source| PortError::system(spec, "asking the kernel for a limit", source);
        let allowed = Netlink::open().and_then(|mut kernel| kernel.max_segments(&interface));
        let most = allowed.map_err(refused)?.min(spec.max_burst_packets.into());
        Ok(Self {
            address: spec.address,
            interface,
            next_hops,
            socket,
            receiver: PacketReceiver::new(),
            queue: BurstQueue::new(most),
            runs: Runs::new(),
            counters: PortCounters::default(),
            has_segmentation: most > 1,
            timestamps,
            _guard: guard,
        })
    }

    /// No more bursts once the kernel has refused one.
    fn follow_refusals(&mut self) {
        if !self.has_segmentation {
            self.queue.limit_segments(1);
        }
    }
}

/// The endpoint's UDP port, held by a socket that takes nothing.
pub(super) fn guard(spec: &PortSpec) -> Result<UdpSocket, PortError> {
    let refused = |source| PortError::system(spec, format!("UDP port {ROCE_PORT}"), source);
    let guard = UdpSocket::bind(SocketAddrV4::new(spec.address, ROCE_PORT)).map_err(refused)?;
    packet_socket::refuse_everything(&guard).map_err(refused)?;
    Ok(guard)
}

/// MAC addresses for the destinations of a port.
pub(super) fn next_hops(
    spec: &PortSpec,
    interface: &Interface,
) -> Result<BTreeMap<Ipv4Addr, Mac>, PortError> {
    let hop = |&destination| Ok((destination, neighbour::next_hop(spec, interface, destination)?));
    spec.destinations.iter().map(hop).collect()
}

/// The kernel is older than 6.2 and does not cut bursts of packet sockets.
fn is_refused_burst(burst: &Burst, error: &io::Error) -> bool {
    burst.segments > 1 && error.raw_os_error() == Some(libc::EINVAL)
}

/// Give a burst to the kernel; one by one, now and from now on, if it refuses bursts.
fn send(
    socket: BorrowedFd<'_>,
    ends: &Ends,
    has_segmentation: &mut bool,
    burst: &Burst,
    slices: &[IoSlice<'_>],
) -> io::Result<()> {
    match packet_send::send(socket, ends, burst, slices) {
        Err(error) if is_refused_burst(burst, &error) => {
            *has_segmentation = false;
            packet_send::send_singly(socket, ends, burst, slices)
        }
        sent => sent,
    }
}

/// Whether a frame can be sent by a port at `address` to one of the destinations with a next hop.
fn check<'a>(
    frame: &'a [u8],
    address: Ipv4Addr,
    interface: &Interface,
    next_hops: &BTreeMap<Ipv4Addr, Mac>,
) -> Result<View<'a>, ViewError> {
    let max_bytes = interface.mtu_bytes + ETHERNET_BYTES as u32;
    let view = view_own(frame, address, max_bytes)?;
    match next_hops.contains_key(&view.destination) {
        true => Ok(view),
        false => Err(ViewError::Destination(view.destination)),
    }
}

impl Port for PacketPort {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn capabilities(&self) -> PortCapabilities {
        PortCapabilities {
            max_frame_bytes: self.interface.mtu_bytes + ETHERNET_BYTES as u32,
            has_segmentation: self.has_segmentation,
            has_coalescing: true,
            has_ecn: true,
            invariant_crc: InvariantCrc::Sender,
            timestamps: self.timestamps,
            max_burst_packets: self.queue.max_segments() as u32,
            has_identification: true,
            ..PortCapabilities::default()
        }
    }

    fn push(&mut self, frame: &mut Frame) {
        match frame {
            Frame::Roce(packet)
                if self.next_hops.contains_key(&packet.destination_address.into()) =>
            {
                self.queue.push_frame(frame);
            }
            Frame::Roce(_) => self.counters.send_errors += 1,
            Frame::Pause(_) => {}
        }
    }

    fn check<'a>(&self, frame: &'a [u8]) -> Result<View<'a>, ViewError> {
        check(frame, self.address, &self.interface, &self.next_hops)
    }

    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, ViewError> {
        if self.flush() {
            return Ok(0);
        }
        let Self { queue, runs, counters, socket, next_hops, address, interface, .. } = self;
        let has_segmentation = &mut self.has_segmentation;
        let check = |frame| check(frame, *address, interface, next_hops);
        let sent = runs.send(frames, queue.max_segments(), counters, check, |burst, slices| {
            let next_hop = next_hops[&burst.flow.destination];
            let ends = Ends { address: *address, mac: interface.mac, next_hop };
            send(socket.as_fd(), &ends, has_segmentation, burst, slices)
        });
        self.follow_refusals();
        sent
    }

    fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    fn flush(&mut self) -> bool {
        let Self { queue, counters, socket, next_hops, address, interface, .. } = self;
        let has_segmentation = &mut self.has_segmentation;
        let is_blocked = queue.flush(counters, |burst, slices| {
            let next_hop = next_hops[&burst.flow.destination];
            let ends = Ends { address: *address, mac: interface.mac, next_hop };
            send(socket.as_fd(), &ends, has_segmentation, burst, slices)
        });
        self.follow_refusals();
        is_blocked
    }

    fn receive(&mut self, take: &mut dyn FnMut(Received<'_>)) -> usize {
        self.receiver.receive(self.socket.as_fd(), &mut self.counters, take)
    }

    fn counters(&self) -> PortCounters {
        let receive_overflows = socket::dropped_datagrams(&self.socket);
        PortCounters { receive_overflows, ..self.counters }
    }
}
