//! The network of a job: interfaces, switches, links and what befalls frames on them.

use super::events::FailureHashing;
use serde::Deserialize;
use std::net::Ipv4Addr;

/// One network interface with one port (port 0).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NicConfig {
    /// Unique name, for records.
    pub name: String,
    /// The rank that it carries; unique.
    pub rank: u32,
    /// IPv4 address; unique.
    pub address: Ipv4Addr,
    /// MAC address, six octets.
    pub mac: [u8; 6],
}

/// One output-queued switch.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchConfig {
    /// Unique name, for records.
    pub name: String,
    /// MAC address that its pause frames carry.
    pub mac: [u8; 6],
    /// Number of ports.
    pub ports: u16,
    /// `routes[nic index]`: the egress ports that lead there, ascending. They share the flows evenly;
    /// a port that stands there twice gets twice the share.
    pub routes: Vec<Vec<u16>>,
    /// Seed of the ECMP hash.
    pub ecmp_seed: u64,
    /// What that hash covers; a missing key is everything.
    #[serde(default = "HashField::all")]
    pub hash_fields: Vec<HashField>,
    /// What is sent over one of several ports together; a missing key is [`PathSelection::Flow`].
    #[serde(default)]
    pub path_selection: PathSelection,
    /// Which flows move when one of several ports fails; a missing key is
    /// [`FailureHashing::Modulo`].
    #[serde(default)]
    pub failure_hashing: FailureHashing,
    /// Shared packet buffer, without headroom and reservations.
    pub buffer_bytes: u64,
    /// Headroom that all ingresses share, each up to its `headroom_bytes`; a missing key lets each
    /// have its own.
    #[serde(default)]
    pub headroom_pool_bytes: Option<u64>,
    /// Share of the free shared buffer that one egress queue may take before tail drop
    /// (lossy) or that one ingress may take before pause (lossless).
    pub dynamic_threshold_alpha: f64,
    /// The eight priorities.
    pub priorities: Vec<PriorityConfig>,
    /// Guards the lossless priorities; a missing key is off.
    #[serde(default)]
    pub pfc_watchdog: Option<PfcWatchdogConfig>,
}

/// What a switch does about a neighbour that pauses it for good. Source: SONiC's PFC watchdog.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct PfcWatchdogConfig {
    /// A queue that is paused and sends nothing for so long is in a storm.
    pub detection_ps: u64,
    /// The storm is over when no pause has come for so long.
    pub restoration_ps: u64,
    /// What happens in a storm.
    pub action: StormAction,
}

/// What happens to the packets of a queue in a storm.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum StormAction {
    /// They are dropped.
    Drop,
    /// They are sent in spite of the pauses.
    Forward,
}

/// A header field that an ECMP hash can cover.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum HashField {
    /// IPv4 source address.
    SourceAddress,
    /// IPv4 destination address.
    DestinationAddress,
    /// UDP source port, which tells queue pairs apart.
    SourcePort,
    /// UDP destination port, 4791 in every packet.
    DestinationPort,
    /// IPv4 protocol, UDP in every packet.
    Protocol,
}

impl HashField {
    /// All of them: the five-tuple.
    pub fn all() -> Vec<Self> {
        vec![
            Self::SourceAddress,
            Self::DestinationAddress,
            Self::SourcePort,
            Self::DestinationPort,
            Self::Protocol,
        ]
    }
}

/// What takes one of several ports together. All but `Flow` can reorder the packets of a flow.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(tag = "mode", rename_all = "snake_case", deny_unknown_fields)]
pub enum PathSelection {
    /// All packets of a flow, by its hash.
    #[default]
    Flow,
    /// Packets of a flow with gaps no longer than this between them; each such flowlet takes a port
    /// by chance. Source: Vanini et al., "Let it flow", NSDI 2017.
    Flowlet {
        /// A longer gap begins a new flowlet.
        gap_ps: u64,
    },
    /// Each packet, by chance. Source: Dixit et al., "On the impact of packet spraying in data
    /// center networks", INFOCOM 2013.
    Packet,
    /// Each packet takes the port with the shortest queue of its priority; by chance among equals.
    ShortestQueue,
}

/// How a switch treats one priority on every port.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorityConfig {
    /// PFC is on: pause the upstream instead of dropping.
    pub lossless: bool,
    /// The watchdog guards it, if there is one and the priority is lossless; a missing key does.
    #[serde(default = "yes")]
    pub watched: bool,
    /// As the switch's, for this priority alone; a missing key takes the switch's.
    #[serde(default)]
    pub dynamic_threshold_alpha: Option<f64>,
    /// Strict priority over all weighted ones; among strict, the higher number first.
    pub strict: bool,
    /// Weight among the non-strict priorities (deficit round robin); at least 1.
    pub weight: u32,
    /// ECN marking at dequeue; `None` is off.
    pub ecn: Option<EcnConfig>,
    /// Pause when one ingress holds more; `None` takes the dynamic threshold.
    pub xoff_bytes: Option<u64>,
    /// Resume when the ingress holds this much less than the pause threshold.
    pub xon_offset_bytes: u64,
    /// Bytes that one ingress may hold above its pause threshold.
    pub headroom_bytes: u64,
    /// Bytes kept for each ingress (lossless) or egress queue (lossy) beside the shared buffer; none
    /// if missing.
    #[serde(default)]
    pub reserved_bytes: u64,
}

fn yes() -> bool {
    true
}

/// RED/ECN profile on the instantaneous egress queue, decided at dequeue.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EcnConfig {
    /// No mark at or below.
    pub kmin_bytes: u64,
    /// Every packet marked above.
    pub kmax_bytes: u64,
    /// Probability at `kmax_bytes`.
    pub pmax_ratio: f64,
    /// Packets that would be marked but are not ECN-capable are dropped; left alone if missing.
    #[serde(default)]
    pub drops_not_ect: bool,
}

/// A node of the fabric.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub enum NodeId {
    /// Index into [`JobConfig::nics`].
    Nic(u32),
    /// Index into [`JobConfig::switches`].
    Switch(u32),
}

/// One end of a link.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
#[serde(deny_unknown_fields)]
pub struct LinkEnd {
    /// The node.
    pub node: NodeId,
    /// Its port; 0 on a NIC.
    pub port: u16,
}

/// A full-duplex link; both directions have the same rate and delay.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Unique name, for records.
    pub name: String,
    /// One end; direction 0 leaves it.
    pub a: LinkEnd,
    /// The other end; direction 1 leaves it.
    pub b: LinkEnd,
    /// Line rate in bits per second.
    pub rate_bps: u64,
    /// Propagation delay in picoseconds.
    pub delay_ps: u64,
}

/// What some directions of links do to some frames by chance. Ratios are of the frames that the rule
/// applies to, each drawn on its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpairmentConfig {
    /// Directions: twice the index of the link, plus one for the direction that leaves its end b.
    pub directions: Vec<u32>,
    /// Kinds of frames; where this and `opcodes` are empty, all but pause frames.
    pub packets: Vec<PacketKind>,
    /// Opcodes of the base transport header beside them; none if missing.
    #[serde(default)]
    pub opcodes: Vec<u8>,
    /// Share that vanishes.
    pub loss_ratio: f64,
    /// Share of which a bit of payload, pad or invariant CRC is flipped.
    pub corruption_ratio: f64,
    /// Share that arrives twice.
    pub duplication_ratio: f64,
    /// Share that arrives `reordering_ps` later, so that others overtake it.
    pub reordering_ratio: f64,
    /// How much later a reordered frame arrives.
    pub reordering_ps: u64,
    /// Delay of every frame, beside the link's own.
    pub delay_ps: u64,
    /// Further delay, uniform from 0 to this; the order is kept.
    pub jitter_ps: u64,
}

/// Kinds of frames that an impairment can be limited to.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum PacketKind {
    /// Parts of SEND requests.
    Send,
    /// Parts of RDMA WRITE requests.
    Write,
    /// RDMA READ requests.
    ReadRequest,
    /// Parts of the answers to RDMA READ requests.
    ReadResponse,
    /// ACK and NAK.
    Acknowledge,
    /// Congestion notification packets.
    Cnp,
    /// Pause frames.
    Pause,
}
