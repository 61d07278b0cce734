//! Job configurations: hosts with 400 Gb/s links, a lossless data class with ECN, DCQCN.

use crate::config::{
    AlphaUpdate, ClampTargetRate, ClassConfig, CnpMode, CnpScope, CongestionControlConfig,
    DcqcnConfig, EcnConfig, HashField, JobConfig, LinkConfig, LinkEnd, LossRecovery, NicConfig,
    NodeId, NotificationPointConfig, PriorityConfig, StageCount, SwitchConfig, TelemetryConfig,
    TransportConfig,
};
use crate::units::{PS_PER_NS, PS_PER_US};
use std::net::Ipv4Addr;

/// Line rate of every link.
pub const RATE_BPS: u64 = 400_000_000_000;
/// Propagation delay of every link.
pub const DELAY_PS: u64 = 500 * PS_PER_NS;
/// Priority of data packets.
pub const DATA_PRIORITY: u8 = 3;

/// Appends nodes and links to a job configuration.
#[derive(Clone, Debug)]
pub struct FabricBuilder(pub JobConfig);

impl FabricBuilder {
    /// `nics` NICs, ranks 0 and up, without links.
    pub fn new(nics: u32) -> Self {
        Self(JobConfig {
            seed: 1,
            nics: (0..nics).map(nic).collect(),
            switches: Vec::new(),
            links: Vec::new(),
            transport: transport(),
            classes: classes(),
            congestion_control: CongestionControlConfig::Dcqcn(dcqcn()),
            notification_point: notification_point(),
            impairments: Vec::new(),
            further_classes: Vec::new(),
            events: Vec::new(),
            rerouting: Default::default(),
            capture: None,
            telemetry: TelemetryConfig {
                sample_interval_ps: PS_PER_US,
                max_samples: 1000,
                flow_paths: true,
                max_pauses: 1000,
            },
        })
    }

    /// Append a switch; its index.
    pub fn switch(&mut self, ports: u16, routes: Vec<Vec<u16>>) -> u32 {
        let index = self.0.switches.len() as u32;
        self.0.switches.push(switch(index, ports, routes));
        index
    }

    /// Append a link.
    pub fn link(&mut self, a: (NodeId, u16), b: (NodeId, u16)) {
        let name = format!("link{}", self.0.links.len());
        let end = |(node, port)| LinkEnd { node, port };
        self.0.links.push(LinkConfig {
            name,
            a: end(a),
            b: end(b),
            rate_bps: RATE_BPS,
            delay_ps: DELAY_PS,
        });
    }
}

/// Two NICs on one link.
pub fn pair() -> FabricBuilder {
    let mut builder = FabricBuilder::new(2);
    builder.link((NodeId::Nic(0), 0), (NodeId::Nic(1), 0));
    builder
}

/// `nics` NICs on one switch.
pub fn star(nics: u32) -> FabricBuilder {
    let mut builder = FabricBuilder::new(nics);
    builder.switch(nics as u16, (0..nics as u16).map(|port| vec![port]).collect());
    for nic in 0..nics {
        builder.link((NodeId::Nic(nic), 0), (NodeId::Switch(0), nic as u16));
    }
    builder
}

/// `leaves` leaf switches with `nics_per_leaf` NICs each, every leaf linked to each of `spines`.
pub fn clos(leaves: u32, spines: u32, nics_per_leaf: u32) -> FabricBuilder {
    let nics = leaves * nics_per_leaf;
    let mut builder = FabricBuilder::new(nics);
    let uplinks: Vec<u16> = (nics_per_leaf as u16..(nics_per_leaf + spines) as u16).collect();
    for leaf in 0..leaves {
        let route = |nic: u32| match nic / nics_per_leaf == leaf {
            true => vec![(nic % nics_per_leaf) as u16],
            false => uplinks.clone(),
        };
        builder.switch((nics_per_leaf + spines) as u16, (0..nics).map(route).collect());
    }
    for _ in 0..spines {
        let routes = (0..nics).map(|nic| vec![(nic / nics_per_leaf) as u16]).collect();
        builder.switch(leaves as u16, routes);
    }
    for nic in 0..nics {
        let leaf = NodeId::Switch(nic / nics_per_leaf);
        builder.link((NodeId::Nic(nic), 0), (leaf, (nic % nics_per_leaf) as u16));
    }
    for leaf in 0..leaves {
        for spine in 0..spines {
            let up = (NodeId::Switch(leaf), uplinks[spine as usize]);
            builder.link(up, (NodeId::Switch(leaves + spine), leaf as u16));
        }
    }
    builder
}

fn nic(index: u32) -> NicConfig {
    let [high, low] = (index as u16 + 1).to_be_bytes();
    NicConfig {
        name: format!("nic{index}"),
        rank: index,
        address: Ipv4Addr::new(10, 0, high, low),
        mac: [2, 0, 0, 0, high, low],
    }
}

fn switch(index: u32, ports: u16, routes: Vec<Vec<u16>>) -> SwitchConfig {
    let priorities = (0..8).map(priority).collect();
    SwitchConfig {
        name: format!("switch{index}"),
        mac: [2, 0, 0, 1, 0, index as u8],
        ports,
        routes,
        ecmp_seed: u64::from(index) + 1,
        hash_fields: HashField::all(),
        path_selection: Default::default(),
        failure_hashing: Default::default(),
        pfc_watchdog: None,
        buffer_bytes: 64 << 20,
        headroom_pool_bytes: None,
        dynamic_threshold_alpha: 1.0,
        priorities,
    }
}

fn priority(number: u8) -> PriorityConfig {
    let is_data = number == DATA_PRIORITY;
    let ecn = EcnConfig {
        kmin_bytes: 400_000,
        kmax_bytes: 1_600_000,
        pmax_ratio: 0.2,
        drops_not_ect: false,
    };
    PriorityConfig {
        lossless: is_data,
        watched: true,
        dynamic_threshold_alpha: None,
        strict: !is_data,
        weight: 1,
        ecn: is_data.then_some(ecn),
        xoff_bytes: None,
        xon_offset_bytes: 8192,
        headroom_bytes: if is_data { 200_000 } else { 0 },
        reserved_bytes: 0,
    }
}

fn transport() -> TransportConfig {
    TransportConfig {
        mtu_bytes: 4096,
        qps_per_peer: 1,
        qp_distribution: Default::default(),
        clear_to_send: false,
        rnr_retry_count: 7,
        max_outstanding_reads: 16,
        window_packets: 1 << 16,
        ack_every_packets: 16,
        ack_delay_ps: 4 * PS_PER_US,
        retransmission_timeout_ps: 1000 * PS_PER_US,
        retry_count: 7,
        loss_recovery: LossRecovery::GoBackN,
        reordering_packets: 0,
        adaptive_retransmission: None,
    }
}

fn classes() -> ClassConfig {
    ClassConfig {
        data_dscp: 26,
        data_priority: DATA_PRIORITY,
        data_ecn_capable: true,
        ack_dscp: 40,
        ack_priority: 5,
        ack_ecn_capable: false,
        cnp_dscp: 48,
        cnp_priority: 6,
    }
}

fn dcqcn() -> DcqcnConfig {
    DcqcnConfig {
        g: 1.0 / 256.0,
        initial_alpha: 1.0,
        alpha_update_period_ps: 55 * PS_PER_US,
        alpha_update: AlphaUpdate::OnCnp,
        cut_uses_old_alpha: true,
        rate_decrease_period_ps: 50 * PS_PER_US,
        min_decrease_ratio: 0.5,
        rate_increase_period_ps: 55 * PS_PER_US,
        rate_increase_bytes: 10_000_000,
        fast_recovery_stages: 5,
        stage_count: StageCount::AfterCompare,
        additive_increase_bps: 400_000_000,
        hyper_increase_bps: 4_000_000_000,
        hyper_increase_multiplies: true,
        hyper_increase_by_timer: false,
        clamp_target_rate: ClampTargetRate::Always,
        rate_on_first_cnp_bps: 0,
        min_rate_bps: 100_000_000,
        alpha_fraction_bits: 0,
        decrease_alpha_ratio: 0.5,
        hyper_increase_speedup: 1,
        high_target_divisor: 1,
        max_rate_bps: 0,
        rearms_pacer: true,
    }
}

fn notification_point() -> NotificationPointConfig {
    NotificationPointConfig {
        enabled: true,
        cnp_interval_ps: 50 * PS_PER_US,
        scope: CnpScope::Qp,
        mode: CnpMode::ImmediateAndTrailing,
        cnp_on_nak: false,
    }
}
