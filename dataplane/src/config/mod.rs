//! The passive description of one job: what stands in the fabric and which parameters hold.
//!
//! Python resolves a lab file into this document and hands it over as JSON; nothing here decides
//! anything. Every default is resolved before: a missing key is an error, except where noted.

mod congestion;
mod events;
mod fabric;
mod transport;

pub use congestion::*;
pub use events::*;
pub use fabric::*;
pub use transport::*;

use serde::Deserialize;

/// Everything the engine needs apart from the programs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobConfig {
    /// Seed of every random generator of the job.
    pub seed: u64,
    /// Network interfaces, one per rank; a NIC's index is its identity in `routes`.
    pub nics: Vec<NicConfig>,
    /// Virtual switches.
    pub switches: Vec<SwitchConfig>,
    /// Full-duplex links.
    pub links: Vec<LinkConfig>,
    /// RoCEv2 reliable-connection parameters of every NIC.
    pub transport: TransportConfig,
    /// Traffic classes: how packets are tagged and queued.
    pub classes: ClassConfig,
    /// Congestion control of every sender of data class 0, the one of `classes`.
    pub congestion_control: CongestionControlConfig,
    /// Data classes 1, 2, ...; none if missing.
    #[serde(default)]
    pub further_classes: Vec<DataClassConfig>,
    /// Notification point of every receiver.
    pub notification_point: NotificationPointConfig,
    /// Time series kept while the job runs.
    pub telemetry: TelemetryConfig,
    /// What links do to frames on purpose; of the rules of a direction, the first that names a
    /// frame's kind holds. Nothing if missing.
    #[serde(default)]
    pub impairments: Vec<ImpairmentConfig>,
    /// What happens to links; nothing if missing.
    #[serde(default)]
    pub events: Vec<LinkEventConfig>,
    /// What switches do about it; at once if missing.
    #[serde(default)]
    pub rerouting: ReroutingConfig,
    /// Frames that are kept as bytes; nothing if missing.
    #[serde(default)]
    pub capture: Option<CaptureConfig>,
}

impl JobConfig {
    /// Number of data classes.
    pub fn data_classes(&self) -> usize {
        1 + self.further_classes.len()
    }

    /// Tags of the packets of a data class.
    pub fn tags(&self, class: u8) -> ClassConfig {
        self.further(class).map_or(self.classes, |further| ClassConfig {
            data_dscp: further.dscp,
            data_priority: further.priority,
            data_ecn_capable: further.ecn_capable,
            ack_dscp: further.dscp,
            ack_priority: further.priority,
            ack_ecn_capable: further.ack_ecn_capable,
            ..self.classes
        })
    }

    /// Congestion control of the senders of a data class.
    pub fn congestion_control_of(&self, class: u8) -> &CongestionControlConfig {
        self.further(class).map_or(&self.congestion_control, |further| &further.congestion_control)
    }

    fn further(&self, class: u8) -> Option<&DataClassConfig> {
        self.further_classes.get(usize::from(class).checked_sub(1)?)
    }

    /// MAC address of a node; zeros for one that there is not.
    pub fn mac(&self, node: NodeId) -> [u8; 6] {
        match node {
            NodeId::Nic(index) => self.nics.get(index as usize).map_or([0; 6], |nic| nic.mac),
            NodeId::Switch(index) => {
                self.switches.get(index as usize).map_or([0; 6], |switch| switch.mac)
            }
        }
    }
}

/// What is kept of frames as they arrive at the end of their link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureConfig {
    /// Directions: twice the index of the link, plus one for the direction that leaves its end b.
    pub directions: Vec<u32>,
    /// Frames that each process keeps at most; later ones are counted.
    pub max_packets: u64,
}

/// Time series.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TelemetryConfig {
    /// First sampling interval; it doubles, and neighbouring samples merge, when `max_samples` is reached.
    pub sample_interval_ps: u64,
    /// Samples kept per series.
    pub max_samples: u32,
    /// Count, for every flow, packets and bytes on every link that it crosses.
    pub flow_paths: bool,
    /// Pauses of its neighbours that each switch keeps, with their causes; later ones are counted.
    pub max_pauses: u32,
}
