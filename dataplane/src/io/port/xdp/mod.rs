//! `af_xdp`: whole frames in memory that is shared with the kernel, past most of its network stack.
//! Needs root or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF.
//!
//! A program of ours hands it the RoCEv2 frames for its address, with the time at which it saw them;
//! everything else goes on its way. Frames longer than a chunk of memory, as those of a RoCEv2 MTU of
//! 4096, are in two parts. Each queue of the interface has a socket; what a flow sends goes by one of
//! them, chosen by its source port.

mod program;
mod queue;
mod rings;
mod socket;

use super::af_packet::{guard, next_hops};
use super::burst::Flow;
use super::interface::{self, Interface, Queues};
use super::netlink::Mac;
use super::packet_send::{Ends, put_header};
use super::timestamps::Timestamps;
use super::view::{View, ViewError, view_own};
use super::{
    InvariantCrc, Port, PortCapabilities, PortCounters, PortError, PortSpec, Received, XdpMode,
    path,
};
use crate::io::clock::KernelTime;
use crate::io::poll::Poll;
use crate::roce::layout::{ETHERNET_BYTES, HEADERS_BYTES};
use crate::roce::{Frame, encode};
use program::{Attached, MAX_QUEUES, Mode};
use queue::Queue;
use socket::{CHUNK_BYTES, XdpOptions, XdpSocket};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Entries of the rings of all queues together, and of one at least.
const RING_ENTRIES: u32 = 2048;
const LEAST_RING_ENTRIES: u32 = 256;
/// The kernel keeps so much of a received chunk for itself. Source: `XDP_PACKET_HEADROOM`.
const HEADROOM_BYTES: usize = 256;
/// Longest IP packet that is in one part.
const ONE_CHUNK_MTU_BYTES: u32 = (CHUNK_BYTES - ETHERNET_BYTES - HEADROOM_BYTES) as u32;

/// See the module documentation.
pub struct XdpPort {
    address: Ipv4Addr,
    interface: Interface,
    next_hops: BTreeMap<Ipv4Addr, Mac>,
    // Before the program: a socket that is closed leaves the program's map by itself.
    queues: Vec<Queue>,
    /// Of `queues` the first so many send.
    senders: usize,
    /// Of several queues.
    poll: Option<Poll>,
    /// The queue that is looked at first.
    first: usize,
    attached: Attached,
    _guard: UdpSocket,
    counters: PortCounters,
}

impl XdpPort {
    /// Open the sockets and attach the program.
    pub fn open(spec: &PortSpec) -> Result<Self, PortError> {
        let mut interface = interface::of_port(spec)?;
        let served = queues_of(spec, &interface)?;
        let guard = guard(spec)?;
        path::check(spec)?;
        let next_hops = next_hops(spec, &interface)?;
        let attached = attach(spec, &interface)?;
        let queues = match open_queues(spec, &interface, &attached, served.receive) {
            Err(error) if can_do_with_one_chunk(spec, &error) => {
                interface.mtu_bytes = interface.mtu_bytes.min(ONE_CHUNK_MTU_BYTES);
                open_queues(spec, &interface, &attached, served.receive)?
            }
            opened => opened?,
        };
        let mut poll = None;
        if queues.len() > 1 {
            let all = poll_all(&queues);
            poll = Some(all.map_err(|source| PortError::system(spec, "waiting", source))?);
        }
        Ok(Self {
            address: spec.address,
            interface,
            next_hops,
            queues,
            senders: served.transmit.clamp(1, served.receive) as usize,
            poll,
            first: 0,
            attached,
            _guard: guard,
            counters: PortCounters::default(),
        })
    }

    /// The queue of a flow.
    fn queue_of(&self, source_port: u16) -> usize {
        usize::from(source_port) % self.senders
    }

    /// Address and MAC addresses of a flow's frames.
    fn ends_of(&self, destination: Ipv4Addr) -> Option<Ends> {
        let next_hop = *self.next_hops.get(&destination)?;
        Some(Ends { address: self.address, mac: self.interface.mac, next_hop })
    }

    /// Give a frame to the socket of its queue, or let it wait.
    fn give(&mut self, view: &View<'_>) {
        let Some(ends) = self.ends_of(view.destination) else { return };
        let flow = Flow {
            source_port: view.source_port,
            destination: view.destination,
            traffic_class: view.traffic_class,
        };
        let mut header = [0; HEADERS_BYTES];
        put_header(&mut header, &ends, flow, view.identification, view.datagram.len());
        let queue = self.queue_of(flow.source_port);
        self.queues[queue].push(&header, view.datagram, &mut self.counters);
    }

    fn max_frame_bytes(&self) -> u32 {
        self.interface.mtu_bytes + ETHERNET_BYTES as u32
    }
}

/// The queues to be served: all by which frames may come.
fn queues_of(spec: &PortSpec, interface: &Interface) -> Result<Queues, PortError> {
    let what = || format!("queues of {}", interface.name);
    let queues =
        interface::queues(interface).map_err(|source| PortError::system(spec, what(), source))?;
    if queues.receive <= MAX_QUEUES {
        return Ok(Queues { receive: queues.receive.max(1), ..queues });
    }
    let many =
        format!("there are {} for what is received, {MAX_QUEUES} can be served", queues.receive);
    Err(PortError::System {
        driver: spec.driver,
        address: spec.address,
        what: what(),
        source: io::Error::other(many),
        remedy: "leave fewer: ethtool -L INTERFACE combined 16, or rx 16",
    })
}

/// A kernel before Linux 6.6 has no frames in parts, and no packet of the job needs any, however long
/// the interface's may be.
fn can_do_with_one_chunk(spec: &PortSpec, error: &PortError) -> bool {
    let is_refused = matches!(
        error,
        PortError::System { source, .. } if source.raw_os_error() == Some(libc::EINVAL)
    );
    is_refused && (1..=ONE_CHUNK_MTU_BYTES).contains(&spec.ip_packet_bytes)
}

/// A socket on each of `count` queues.
fn open_queues(
    spec: &PortSpec,
    interface: &Interface,
    attached: &Attached,
    count: u32,
) -> Result<Vec<Queue>, PortError> {
    let open = |number| open_queue(spec, interface, attached, number, count).map(Queue::new);
    (0..count).map(open).collect()
}

/// A socket on one of `count` queues, in the program's map.
fn open_queue(
    spec: &PortSpec,
    interface: &Interface,
    attached: &Attached,
    number: u32,
    count: u32,
) -> Result<XdpSocket, PortError> {
    let longest_bytes = interface.mtu_bytes as usize + ETHERNET_BYTES + HEADROOM_BYTES;
    let options = XdpOptions {
        interface: interface.index,
        queue: number,
        ring_entries: (RING_ENTRIES / count.next_power_of_two()).max(LEAST_RING_ENTRIES),
        has_parts: longest_bytes > CHUNK_BYTES,
        busy_poll_us: spec.busy_poll_us,
    };
    let refused = |what: &str| {
        let what = format!("{what}, queue {number} of {}", interface.name);
        move |source| PortError::system(spec, what, source)
    };
    let socket = XdpSocket::open(options).map_err(refused("AF_XDP socket"))?;
    attached.set_socket(number, socket.as_fd()).map_err(refused("the XDP program's map"))?;
    Ok(socket)
}

/// What can be read when any queue can.
fn poll_all(queues: &[Queue]) -> io::Result<Poll> {
    let poll = Poll::new()?;
    for (number, queue) in queues.iter().enumerate() {
        poll.add(queue.socket.as_fd(), number as u32)?;
    }
    Ok(poll)
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
        self.poll.as_ref().map_or_else(|| self.queues[0].socket.as_fd(), AsFd::as_fd)
    }

    fn capabilities(&self) -> PortCapabilities {
        PortCapabilities {
            max_frame_bytes: self.max_frame_bytes(),
            has_ecn: true,
            invariant_crc: InvariantCrc::Sender,
            timestamps: Timestamps::Kernel,
            max_burst_packets: 1,
            queues: self.queues.len() as u32,
            xdp_mode: Some(self.attached.mode().into()),
            has_zero_copy: self.queues.iter().all(|queue| queue.socket.has_zero_copy()),
            has_identification: true,
            ..PortCapabilities::default()
        }
    }

    fn push(&mut self, frame: &mut Frame) {
        let Frame::Roce(packet) = frame else { return };
        let Some(ends) = self.ends_of(packet.destination_address.into()) else {
            self.counters.send_errors += 1;
            return;
        };
        let queue = self.queue_of(packet.source_port);
        self.queues[queue].append(|bytes| encode(frame, ends.mac, ends.next_hop, bytes));
    }

    fn check<'a>(&self, frame: &'a [u8]) -> Result<View<'a>, ViewError> {
        let max_bytes = self.max_frame_bytes();
        let view = view_own(frame, self.address, max_bytes)?;
        match self.next_hops.contains_key(&view.destination) {
            true => Ok(view),
            false => Err(ViewError::Destination(view.destination)),
        }
    }

    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, ViewError> {
        let mut taken = 0;
        for frame in frames {
            if self.waiting() > 0 && self.flush() {
                break;
            }
            match self.check(frame) {
                Err(error) if taken == 0 => return Err(error),
                Err(_) => break,
                Ok(view) => self.give(&view),
            }
            taken += 1;
        }
        self.flush();
        Ok(taken)
    }

    fn waiting(&self) -> usize {
        self.queues.iter().map(Queue::waiting).sum()
    }

    fn flush(&mut self) -> bool {
        let mut is_waiting = false;
        for queue in &mut self.queues[..self.senders] {
            is_waiting |= queue.flush(&mut self.counters);
        }
        is_waiting
    }

    fn receive(&mut self, take: &mut dyn FnMut(Received<'_>)) -> usize {
        let count = self.queues.len();
        let mut frames = 0;
        // Each time another queue is the first, so that none waits for all others.
        for place in 0..count {
            let queue = &mut self.queues[(self.first + place) % count];
            frames += queue.receive(&mut self.counters, &mut |bytes, time_ns| {
                let kernel_time = time_ns.map(KernelTime::Monotonic);
                take(Received { bytes, is_identified: true, kernel_time });
            });
        }
        self.first = (self.first + 1) % count;
        frames
    }

    fn counters(&self) -> PortCounters {
        let used = self.queues.iter().filter(|queue| queue.is_used).count();
        let receive_overflows = self.queues.iter().map(|queue| queue.socket.dropped()).sum();
        PortCounters { receive_overflows, queues_used: used as u64, ..self.counters }
    }
}
