//! `af_xdp`: whole frames in memory that is shared with the kernel, past most of its network stack.
//! Needs root or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF, and the first queue of an interface.
//!
//! A program of ours hands it the RoCEv2 frames for its address; everything else goes on its way.
//! Frames longer than a chunk of memory, as those of a RoCEv2 MTU of 4096, are in two parts.

mod program;
mod rings;

use super::af_packet::{guard, next_hops};
use super::burst::Flow;
use super::interface::{self, Interface};
use super::netlink::Mac;
use super::packet_send::{Ends, put_header};
use super::view::{View, ViewError, view_own};
use super::{Port, PortCapabilities, PortCounters, PortError, PortSpec, Received, XdpMode, path};
use crate::roce::layout::{ETHERNET_BYTES, HEADERS_BYTES};
use crate::roce::{Frame, encode};
use program::{Attached, Mode};
use rings::{CHUNK_BYTES, XdpOptions, XdpSocket};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// The only queue that is served.
const QUEUE: u32 = 0;
/// Frames taken in one call.
const BATCH: usize = 64;
/// The kernel keeps so much of a received chunk for itself. Source: `XDP_PACKET_HEADROOM`.
const HEADROOM_BYTES: usize = 256;

/// See the module documentation.
pub struct XdpPort {
    address: Ipv4Addr,
    interface: Interface,
    next_hops: BTreeMap<Ipv4Addr, Mac>,
    // Before the program: a socket that is closed leaves the program's map by itself.
    socket: XdpSocket,
    _attached: Attached,
    _guard: UdpSocket,
    /// Frames that wait for room, one behind the other.
    bytes: Vec<u8>,
    /// End of each in `bytes`.
    ends: Vec<usize>,
    /// Frames of `ends` that have gone.
    sent: usize,
    whole: Vec<u8>,
    /// The kernel has not been told of the last frames.
    is_pushed: bool,
    counters: PortCounters,
}

impl XdpPort {
    /// Open the socket and attach the program.
    pub fn open(spec: &PortSpec) -> Result<Self, PortError> {
        let interface = interface::of_port(spec)?;
        check_queues(spec, &interface)?;
        let guard = guard(spec)?;
        path::check(spec)?;
        let next_hops = next_hops(spec, &interface)?;
        let has_parts =
            interface.mtu_bytes as usize + ETHERNET_BYTES + HEADROOM_BYTES > CHUNK_BYTES;
        let options = XdpOptions {
            interface: interface.index,
            queue: QUEUE,
            has_parts,
            busy_poll_us: spec.busy_poll_us,
        };
        let attached = attach(spec, &interface)?;
        let socket = XdpSocket::open(options)
            .map_err(|source| PortError::system(spec, "AF_XDP socket", source))?;
        attached
            .set_socket(QUEUE, socket.as_fd())
            .map_err(|source| PortError::system(spec, "the XDP program's map", source))?;
        Ok(Self {
            address: spec.address,
            interface,
            next_hops,
            socket,
            _attached: attached,
            _guard: guard,
            bytes: Vec::new(),
            ends: Vec::new(),
            sent: 0,
            whole: Vec::new(),
            is_pushed: false,
            counters: PortCounters::default(),
        })
    }

    /// Address and MAC addresses of a flow's frames.
    fn ends_of(&self, destination: Ipv4Addr) -> Option<Ends> {
        let next_hop = *self.next_hops.get(&destination)?;
        Some(Ends { address: self.address, mac: self.interface.mac, next_hop })
    }

    fn count_sent(&mut self, bytes: usize) {
        self.counters.frames_sent += 1;
        self.counters.bytes_sent += bytes as u64;
        self.is_pushed = true;
    }

    fn max_frame_bytes(&self) -> u32 {
        self.interface.mtu_bytes + ETHERNET_BYTES as u32
    }
}

/// Frames on another queue than ours would be lost unseen.
fn check_queues(spec: &PortSpec, interface: &Interface) -> Result<(), PortError> {
    let what = || format!("queues of {}", interface.name);
    let queues = interface::receive_queues(interface)
        .map_err(|source| PortError::system(spec, what(), source))?;
    if queues <= 1 {
        return Ok(());
    }
    Err(PortError::System {
        driver: spec.driver,
        address: spec.address,
        what: what(),
        source: io::Error::other(format!("there are {queues} for what is received, one is served")),
        remedy: "leave one: ethtool -L INTERFACE combined 1, or rx 1",
    })
}

/// Attach the program in the wanted mode; natively if possible when the choice is ours.
fn attach(spec: &PortSpec, interface: &Interface) -> Result<Attached, PortError> {
    let in_mode = |mode| Attached::new(spec.address, interface.index, mode);
    let attached = match spec.xdp_mode {
        XdpMode::Native => in_mode(Mode::Native),
        XdpMode::Generic => in_mode(Mode::Generic),
        XdpMode::Any => in_mode(Mode::Native).or_else(|error| match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::EINVAL) => in_mode(Mode::Generic),
            _ => Err(error),
        }),
    };
    attached.map_err(|source| refused(spec, interface, source))
}

fn refused(spec: &PortSpec, interface: &Interface, source: io::Error) -> PortError {
    let what = format!("XDP program on {}", interface.name);
    let remedy = match source.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => {
            "take the other XDP program off (ip link set IF xdp off)"
        }
        Some(libc::EPERM) => "run as root or grant cap_net_admin, cap_net_raw and cap_bpf",
        _ => "lower the MTU of the interface, choose the generic mode, or another driver",
    };
    PortError::System { driver: spec.driver, address: spec.address, what, source, remedy }
}

impl Port for XdpPort {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn capabilities(&self) -> PortCapabilities {
        PortCapabilities {
            max_frame_bytes: self.max_frame_bytes(),
            has_segmentation: false,
            has_coalescing: false,
            has_ecn: true,
            carries_ethernet_header: false,
            has_timestamps: false,
            has_identification: true,
        }
    }

    fn push(&mut self, frame: &mut Frame) {
        let Frame::Roce(packet) = frame else { return };
        let Some(ends) = self.ends_of(packet.destination_address.into()) else {
            self.counters.send_errors += 1;
            return;
        };
        encode(frame, ends.mac, ends.next_hop, &mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    fn check<'a>(&self, frame: &'a [u8]) -> Result<View<'a>, ViewError> {
        let max_bytes = self.max_frame_bytes();
        let view = view_own(frame, self.address, max_bytes)?;
        match self.next_hops.contains_key(&view.destination) {
            true => Ok(view),
            false => Err(ViewError::Destination(view.destination)),
        }
    }

    fn push_bytes(&mut self, frame: &[u8]) -> Result<(), ViewError> {
        let view = self.check(frame)?;
        let ends =
            self.ends_of(view.destination).ok_or(ViewError::Destination(view.destination))?;
        let flow = Flow {
            source_port: view.source_port,
            destination: view.destination,
            traffic_class: view.traffic_class,
        };
        let mut header = [0; HEADERS_BYTES];
        put_header(&mut header, &ends, flow, view.identification, view.datagram.len());
        if self.waiting() == 0 && self.socket.push(&header, view.datagram) {
            self.count_sent(header.len() + view.datagram.len());
            return Ok(());
        }
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(view.datagram);
        self.ends.push(self.bytes.len());
        Ok(())
    }

    fn waiting(&self) -> usize {
        self.ends.len() - self.sent
    }

    fn flush(&mut self) -> bool {
        loop {
            let (first, mut start) =
                (self.sent, if self.sent == 0 { 0 } else { self.ends[self.sent - 1] });
            while let Some(&end) = self.ends.get(self.sent) {
                if !self.socket.push(&self.bytes[start..end], &[]) {
                    break;
                }
                self.count_sent(end - start);
                self.sent += 1;
                start = end;
            }
            self.counters.bursts_sent += u64::from(std::mem::take(&mut self.is_pushed));
            let is_waiting = match self.socket.flush() {
                Ok(is_waiting) => is_waiting,
                Err(_) => {
                    self.counters.send_errors += 1;
                    false
                }
            };
            if self.sent == self.ends.len() {
                self.bytes.clear();
                self.ends.clear();
                self.sent = 0;
                return is_waiting;
            }
            if self.sent == first {
                self.counters.send_stalls += 1;
                return true;
            }
        }
    }

    fn receive(&mut self, take: &mut dyn FnMut(Received<'_>)) -> usize {
        let Self { socket, whole, counters, .. } = self;
        let frames = socket.receive(BATCH, whole, &mut |bytes| {
            counters.bytes_received += bytes.len() as u64;
            take(Received { bytes, is_identified: true, realtime_ns: None });
        });
        counters.frames_received += frames as u64;
        counters.bursts_received += u64::from(frames > 0);
        frames
    }

    fn counters(&self) -> PortCounters {
        PortCounters { receive_overflows: self.socket.dropped(), ..self.counters }
    }
}
