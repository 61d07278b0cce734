//! Ports: what a driver opens on an interface of the operating system, so that RoCEv2 packets leave
//! for a real network and come from it.
//!
//! * [`udp`]: UDP datagrams of the kernel, with segmentation offload.
//! * [`af_packet`]: whole frames on a packet socket.
//! * [`interface`]: interfaces of the operating system.
//! * [`namespace`]: opening in another network namespace.
//! * [`neighbour`]: MAC addresses of next hops.
//! * [`path`]: whether destinations are reachable, and how large packets may be.
//! * [`timestamps`]: where the time of an arrival is taken.
//! * [`xdp`]: frames in memory shared with the kernel.
//! * [`view`]: the fields of a raw frame that drivers look at.
//!
//! A driver knows frames and their headers; it knows no queue pair, program or rate.

pub mod af_packet;
mod burst;
pub mod interface;
pub mod namespace;
pub mod neighbour;
mod netlink;
mod packet_receive;
mod packet_send;
mod packet_socket;
pub mod path;
mod run;
pub mod timestamps;
pub mod udp;
mod udp_receive;
mod udp_send;
pub mod view;
pub mod xdp;

use super::clock::KernelTime;
use crate::io::verbs::VerbsError;
use crate::roce::Frame;
use serde::Deserialize;
use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;
use timestamps::Timestamps;

/// The drivers that open ports.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum DriverName {
    /// [`udp`].
    Udp,
    /// [`af_packet`].
    AfPacket,
    /// [`xdp`].
    AfXdp,
    /// [`verbs`](crate::io::verbs): it carries messages, and opens no port for frames.
    Verbs,
}

/// Where the program of [`xdp`] runs.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum XdpMode {
    /// Natively if the interface's driver can, else generically.
    #[default]
    Any,
    /// In the interface's driver.
    Native,
    /// In the kernel's common receive path.
    Generic,
}

impl XdpMode {
    /// As in lab files.
    pub fn name(self) -> &'static str {
        match self {
            XdpMode::Any => "any",
            XdpMode::Native => "native",
            XdpMode::Generic => "generic",
        }
    }
}

impl fmt::Display for DriverName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            DriverName::Udp => "udp",
            DriverName::AfPacket => "af_packet",
            DriverName::AfXdp => "af_xdp",
            DriverName::Verbs => "verbs",
        })
    }
}

/// Which port is opened, by which driver.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortSpec {
    /// Who opens it.
    pub driver: DriverName,
    /// Address of this host that packets come from and go to.
    pub address: Ipv4Addr,
    /// Interface of the operating system; `None` leaves the choice to the routes.
    #[serde(default)]
    pub interface: Option<String>,
    /// Network namespace by name; `None` is the caller's.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Packets that the kernel is given as one, at most; a switch may mark or drop them together.
    #[serde(default = "most_packets")]
    pub max_burst_packets: u16,
    /// Where the XDP program runs.
    #[serde(default)]
    pub xdp_mode: XdpMode,
    /// Microseconds that `af_xdp` polls the adapter in a call instead of waiting for interrupts.
    #[serde(default)]
    pub busy_poll_us: u32,
    /// Source ports that packets have. Source: the entropy that ECMP hashes.
    #[serde(default)]
    pub source_ports: Vec<u16>,
    /// Addresses that packets go to.
    #[serde(default)]
    pub destinations: Vec<Ipv4Addr>,
    /// Longest IP packet that must pass to every destination; 0 asks for nothing.
    #[serde(default)]
    pub ip_packet_bytes: u32,
}

fn most_packets() -> u16 {
    burst::MAX_SEGMENTS as u16
}

/// Who computes the RoCEv2 ICRC of what is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InvariantCrc {
    /// We do.
    #[default]
    Sender,
    /// The adapter does.
    Hardware,
}

impl InvariantCrc {
    /// As in records.
    pub fn name(self) -> &'static str {
        match self {
            InvariantCrc::Sender => "sender",
            InvariantCrc::Hardware => "hardware",
        }
    }
}

/// What an open port can do: probed, never guessed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCapabilities {
    /// Largest frame, without FCS.
    pub max_frame_bytes: u32,
    /// The kernel or adapter cuts packets that are given as one.
    pub has_segmentation: bool,
    /// The kernel or adapter hands out packets of a flow as one.
    pub has_coalescing: bool,
    /// The receiver's side tells the ECN codepoint.
    pub has_ecn: bool,
    /// Whole frames are given and taken, Ethernet header included.
    pub carries_ethernet_header: bool,
    /// Who computes the ICRC of what is sent.
    pub invariant_crc: InvariantCrc,
    /// Where the time of an arrival is taken.
    pub timestamps: Timestamps,
    /// Packets that are given to the kernel as one, at most.
    pub max_burst_packets: u32,
    /// Queues of the interface that are served; 0 if the kernel's network stack serves them.
    pub queues: u32,
    /// Where the XDP program runs: natively or generically; `None` without one.
    pub xdp_mode: Option<XdpMode>,
    /// The adapter reads and writes the port's memory itself.
    pub has_zero_copy: bool,
    /// The receiver sees the IP identification; of packets that are handed out as one, that of the
    /// first. Without it the ICRC covers 16 bits less.
    pub has_identification: bool,
    /// Name of the RDMA device that the port is of; empty for any other.
    pub device: String,
    /// Rate of its port; 0 if it is not told.
    pub port_rate_bps: u64,
}

/// What a port counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames handed to the kernel.
    pub frames_sent: u64,
    /// Bytes of them, without FCS.
    pub bytes_sent: u64,
    /// Calls or descriptors in which they went.
    pub bursts_sent: u64,
    /// Frames that the kernel refused for good.
    pub send_errors: u64,
    /// Times that the kernel took not all that waited.
    pub send_stalls: u64,
    /// Frames taken from the kernel.
    pub frames_received: u64,
    /// Bytes of them.
    pub bytes_received: u64,
    /// Calls or descriptors in which they came.
    pub bursts_received: u64,
    /// Frames that the kernel dropped because they were not taken in time.
    pub receive_overflows: u64,
    /// Frames that were cut, or not for this port.
    pub misaddressed: u64,
    /// Frames of whose arrival nobody told the time.
    pub untimed_frames: u64,
    /// Queues of the interface by which frames came, of those that are served.
    pub queues_used: u64,
}

/// A frame that came.
#[derive(Debug)]
pub struct Received<'a> {
    /// From the destination MAC address to the end of the ICRC. What the kernel kept for itself is
    /// zero.
    pub bytes: &'a mut [u8],
    /// The IP identification is the one that the sender gave, not a guess.
    pub is_identified: bool,
    /// When it came, by the clock that [`PortCapabilities::timestamps`] names; `None` if nobody said.
    pub kernel_time: Option<KernelTime>,
}

/// An open port. Nothing blocks; what is not sent at once waits for the next [`Port::flush`].
pub trait Port: Send {
    /// What can be waited for.
    fn descriptor(&self) -> BorrowedFd<'_>;
    /// What it can do.
    fn capabilities(&self) -> PortCapabilities;
    /// Queue a frame; the identification of its packet becomes the one that it will have. Pauses are
    /// left out: they are the business of a network's own devices.
    fn push(&mut self, frame: &mut Frame);
    /// Whether a frame can be sent as bytes.
    fn check<'a>(&self, frame: &'a [u8]) -> Result<view::View<'a>, view::ViewError>;
    /// Send frames that are there as bytes, behind what waits; how many were taken. The rest is the
    /// caller's still: a queue of the kernel is full, or the next one cannot be sent, which is an error
    /// if it is the first.
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, view::ViewError>;
    /// Frames that wait.
    fn waiting(&self) -> usize;
    /// Send what waits; true if something is left because a queue of the kernel is full.
    fn flush(&mut self) -> bool;
    /// Take what has arrived, one call's worth; how many frames came.
    fn receive(&mut self, take: &mut dyn FnMut(Received<'_>)) -> usize;
    /// What it counted.
    fn counters(&self) -> PortCounters;
}

/// Open what a description says.
pub fn open(spec: &PortSpec) -> Result<Box<dyn Port>, PortError> {
    namespace::within(spec.namespace.as_deref(), || match spec.driver {
        DriverName::Udp => Ok(Box::new(udp::UdpPort::open(spec)?) as Box<dyn Port>),
        DriverName::AfPacket => Ok(Box::new(af_packet::PacketPort::open(spec)?)),
        DriverName::AfXdp => Ok(Box::new(xdp::XdpPort::open(spec)?)),
        DriverName::Verbs => Err(PortError::Device { address: spec.address, error: no_frames() }),
    })
}

fn no_frames() -> VerbsError {
    VerbsError::new("it carries messages, not frames", "use another driver for frames")
}

/// A port that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The system refuses something.
    #[error("{driver} on {address}: {what}: {source}; {remedy}")]
    System {
        /// Who opens.
        driver: DriverName,
        /// Address of the port.
        address: Ipv4Addr,
        /// What was tried.
        what: String,
        /// What the system says.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// Packets would not fit a path.
    #[error(
        "{driver} on {address}: the path to {destination} carries IP packets of {path_bytes} bytes, \
         {needed_bytes} are needed; raise the MTU of the interfaces on the path, or choose a smaller \
         transport.mtu_bytes"
    )]
    PathMtu {
        /// Who opens.
        driver: DriverName,
        /// Address of the port.
        address: Ipv4Addr,
        /// Where to.
        destination: Ipv4Addr,
        /// Largest packet of the path.
        path_bytes: u32,
        /// Largest packet to be sent.
        needed_bytes: u32,
    },
    /// An RDMA device lacks something.
    #[error("verbs on {address}: {error}")]
    Device {
        /// Address of the port.
        address: Ipv4Addr,
        /// What, and what to do.
        error: VerbsError,
    },
    /// There is no such namespace, or it may not be entered.
    #[error("network namespace {name}: {source}; {remedy}")]
    Namespace {
        /// Its name.
        name: String,
        /// What the system says.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
}

impl PortError {
    /// What the system refused, and what to do about it by the kind of the refusal.
    pub(crate) fn system(spec: &PortSpec, what: impl Into<String>, source: io::Error) -> Self {
        let remedy = match (source.kind(), source.raw_os_error()) {
            (io::ErrorKind::AddrInUse, _) => {
                "end the other program that has the port (the kernel's rdma_rxe has 4791 of all \
                 addresses), or use another address"
            }
            (io::ErrorKind::AddrNotAvailable, _) => "give the interface this address first",
            (io::ErrorKind::PermissionDenied, _) | (_, Some(libc::EPERM)) => {
                "run as root or grant cap_net_raw and cap_net_admin"
            }
            (_, Some(libc::ENETUNREACH | libc::EHOSTUNREACH)) => {
                "add a route, and see that the interface is up"
            }
            (_, Some(libc::ENODEV)) => "name an interface of this host (ip link)",
            (_, Some(libc::EMFILE | libc::ENFILE)) => {
                "raise the limit of open files (ulimit -n): each source port needs one"
            }
            (_, Some(libc::ENOPROTOOPT | libc::EOPNOTSUPP | libc::EINVAL)) => {
                "use a newer kernel or another driver"
            }
            _ => "see that the interface is up and has the address",
        };
        Self::System {
            driver: spec.driver,
            address: spec.address,
            what: what.into(),
            source,
            remedy,
        }
    }
}
