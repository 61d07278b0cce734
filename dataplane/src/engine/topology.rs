//! Who is connected to whom: links resolved into directions, and the checks of a job's fabric.

use super::error::ConfigError;
use crate::config::{
    AdaptiveRetransmissionConfig, CongestionControlConfig, EventTrigger, ImpairmentConfig,
    JobConfig, LinkChange, LinkChangeConfig, LinkEnd, LinkEventConfig, NodeId, ReroutingConfig,
    SwitchConfig,
};
use crate::congestion::MAX_FRACTION_BITS;
use std::collections::{BTreeMap, BTreeSet};

/// One direction of a link. Direction `2 * link` leaves end a, `2 * link + 1` leaves end b.
#[derive(Clone, Copy, Debug)]
pub struct Direction {
    /// The end that sends.
    pub from: LinkEnd,
    /// The end that receives.
    pub to: LinkEnd,
    /// Line rate.
    pub rate_bps: u64,
    /// Propagation delay.
    pub delay_ps: u64,
}

/// Links and ports of a job.
#[derive(Clone, Debug)]
pub struct Topology {
    /// All directions of all links.
    pub directions: Vec<Direction>,
    /// The direction that leaves each NIC; `None` if it has no link.
    pub nic_egress: Vec<Option<u32>>,
    /// The direction that leaves each port of each switch.
    pub switch_egress: Vec<Vec<Option<u32>>>,
    /// NIC index of each rank.
    pub nic_of_rank: BTreeMap<u32, u32>,
}

/// Longest propagation delay, 1000 s: far from where 64 bits of picoseconds end.
const MAX_DELAY_PS: u64 = 1_000_000_000_000_000;

impl Topology {
    /// Resolve and check the fabric of `config`.
    pub fn new(config: &JobConfig) -> Result<Self, ConfigError> {
        check_names(config)?;
        let nic_of_rank = index_ranks(config)?;
        let mut topology = Self {
            directions: Vec::with_capacity(2 * config.links.len()),
            nic_egress: vec![None; config.nics.len()],
            switch_egress: config.switches.iter().map(|s| vec![None; s.ports.into()]).collect(),
            nic_of_rank,
        };
        for link in &config.links {
            if link.rate_bps == 0 {
                return Err(wrong(&link.name, "rate_bps must be above 0"));
            }
            if link.delay_ps > MAX_DELAY_PS {
                return Err(wrong(&link.name, "delay_ps must be at most 1000 s"));
            }
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                topology.attach(&link.name, from)?;
                let (rate_bps, delay_ps) = (link.rate_bps, link.delay_ps);
                topology.directions.push(Direction { from, to, rate_bps, delay_ps });
            }
        }
        for (index, switch) in config.switches.iter().enumerate() {
            check_switch(switch, config.nics.len(), &topology.switch_egress[index])?;
        }
        check_parameters(config)?;
        Ok(topology)
    }

    /// The NIC of a rank that has a program.
    pub fn nic_of(&self, rank: u32) -> Result<u32, ConfigError> {
        let nic = self.nic_of_rank.get(&rank).copied();
        nic.ok_or_else(|| ConfigError::new(format!("rank {rank} has a program and no NIC")))
    }

    /// The direction that leaves this port, which has a link.
    fn attach(&mut self, link: &str, end: LinkEnd) -> Result<(), ConfigError> {
        let direction = self.directions.len() as u32;
        let port = match end.node {
            NodeId::Nic(index) => match self.nic_egress.get_mut(index as usize) {
                Some(port) if end.port == 0 => Some(port),
                _ => None,
            },
            NodeId::Switch(index) => self
                .switch_egress
                .get_mut(index as usize)
                .and_then(|ports| ports.get_mut(usize::from(end.port))),
        };
        let Some(port) = port else {
            return Err(wrong(link, &format!("there is no port {} of {:?}", end.port, end.node)));
        };
        if port.replace(direction).is_some() {
            return Err(wrong(link, &format!("port {} of {:?} has two links", end.port, end.node)));
        }
        Ok(())
    }
}

fn wrong(name: &str, what: &str) -> ConfigError {
    ConfigError::new(format!("{name}: {what}"))
}

fn check_names(config: &JobConfig) -> Result<(), ConfigError> {
    let nics = config.nics.iter().map(|nic| &nic.name);
    let switches = config.switches.iter().map(|switch| &switch.name);
    let links = config.links.iter().map(|link| &link.name);
    let mut seen = BTreeSet::new();
    if let Some(name) = nics.chain(switches).find(|name| !seen.insert(*name)) {
        return Err(wrong(name, "two nodes have this name"));
    }
    let mut seen = BTreeSet::new();
    match links.into_iter().find(|name| !seen.insert(*name)) {
        Some(name) => Err(wrong(name, "two links have this name")),
        None => Ok(()),
    }
}

fn index_ranks(config: &JobConfig) -> Result<BTreeMap<u32, u32>, ConfigError> {
    let mut nic_of_rank = BTreeMap::new();
    let mut addresses = BTreeSet::new();
    for (index, nic) in config.nics.iter().enumerate() {
        if nic_of_rank.insert(nic.rank, index as u32).is_some() {
            return Err(wrong(&nic.name, &format!("rank {} has two NICs", nic.rank)));
        }
        if !addresses.insert(nic.address) {
            return Err(wrong(&nic.name, &format!("two NICs have the address {}", nic.address)));
        }
    }
    Ok(nic_of_rank)
}

fn check_switch(
    switch: &SwitchConfig,
    nics: usize,
    egress: &[Option<u32>],
) -> Result<(), ConfigError> {
    if switch.routes.len() != nics {
        return Err(wrong(
            &switch.name,
            &format!("{} routes for {nics} NICs", switch.routes.len()),
        ));
    }
    let has_link = |port: &u16| egress.get(usize::from(*port)).is_some_and(Option::is_some);
    if let Some(port) = switch.routes.iter().flatten().find(|port| !has_link(port)) {
        return Err(wrong(&switch.name, &format!("a route uses port {port}, which has no link")));
    }
    if switch.priorities.len() != 8 {
        return Err(wrong(&switch.name, &format!("{} priorities, not 8", switch.priorities.len())));
    }
    if switch.priorities.iter().any(|priority| !priority.strict && priority.weight == 0) {
        return Err(wrong(&switch.name, "a weighted priority needs a weight of at least 1"));
    }
    Ok(())
}

/// Queue pairs per ordered pair of peers, at most: so many are made for each pair that communicates.
const MAX_QPS_PER_PEER: u32 = 64;

/// Data classes, at most: one for each priority.
const MAX_DATA_CLASSES: usize = 8;

fn is_sound(control: &CongestionControlConfig) -> bool {
    match control {
        CongestionControlConfig::Dcqcn(dcqcn) => {
            dcqcn.alpha_fraction_bits <= MAX_FRACTION_BITS
                && dcqcn.hyper_increase_speedup >= 1
                && dcqcn.high_target_divisor >= 1
        }
        CongestionControlConfig::Swift(_) | CongestionControlConfig::FixedRate { .. } => true,
    }
}

/// The exponents of an adaptive timer are those of 32 bits.
fn has_exponents(adaptive: AdaptiveRetransmissionConfig) -> bool {
    let exponents = [adaptive.initial_exponent, adaptive.min_exponent, adaptive.max_exponent];
    exponents.iter().all(|exponent| *exponent < 32) && adaptive.initial_exponents <= 32
}

fn check_parameters(config: &JobConfig) -> Result<(), ConfigError> {
    let transport = &config.transport;
    let classes = &config.classes;
    let further = &config.further_classes;
    let mut controls =
        (0..config.data_classes()).map(|class| config.congestion_control_of(class as u8));
    let priorities = [classes.data_priority, classes.ack_priority, classes.cnp_priority];
    let checks = [
        ([256, 512, 1024, 2048, 4096].contains(&transport.mtu_bytes), "mtu_bytes"),
        ((1..=MAX_QPS_PER_PEER).contains(&transport.qps_per_peer), "qps_per_peer"),
        ((1..=1 << 23).contains(&transport.window_packets), "window_packets"),
        (transport.ack_every_packets >= 1, "ack_every_packets"),
        (transport.max_outstanding_reads >= 1, "max_outstanding_reads"),
        (transport.retransmission_timeout_ps >= 1, "retransmission_timeout_ps"),
        (transport.adaptive_retransmission.is_none_or(has_exponents), "adaptive_retransmission"),
        (priorities.iter().all(|&priority| priority < 8), "priorities of the classes"),
        (further.iter().all(|class| class.priority < 8 && class.dscp < 64), "further_classes"),
        (controls.all(is_sound), "congestion_control"),
        (further.len() < MAX_DATA_CLASSES, "number of further_classes"),
        (config.telemetry.sample_interval_ps >= 1, "sample_interval_ps"),
        (config.telemetry.max_samples >= 2, "max_samples"),
        (config.capture.iter().all(|c| are_directions(&c.directions, config)), "capture"),
        (config.impairments.iter().all(|rule| is_possible(rule, config)), "impairments"),
        (config.events.iter().all(|event| can_happen(event, config)), "events"),
        (can_reroute(config.rerouting), "rerouting"),
    ];
    match checks.iter().find(|(holds, _)| !holds) {
        Some((_, name)) => Err(ConfigError::new(format!("{name} out of range"))),
        None => Ok(()),
    }
}

fn is_possible(rule: &ImpairmentConfig, config: &JobConfig) -> bool {
    let ratios =
        [rule.loss_ratio, rule.corruption_ratio, rule.duplication_ratio, rule.reordering_ratio];
    let delays = [rule.reordering_ps, rule.delay_ps, rule.jitter_ps];
    ratios.iter().all(|ratio| (0.0..=1.0).contains(ratio))
        && delays.iter().all(|delay_ps| *delay_ps <= MAX_DELAY_PS)
        && are_directions(&rule.directions, config)
}

fn can_happen(event: &LinkEventConfig, config: &JobConfig) -> bool {
    let at_ps = if let EventTrigger::Time { at_ps } = event.trigger { at_ps } else { 0 };
    let is_change = |change: &LinkChangeConfig| {
        change.after_ps <= MAX_DELAY_PS && change.change != LinkChange::Rate { rate_bps: 0 }
    };
    at_ps <= MAX_DELAY_PS
        && event.links.iter().all(|link| (*link as usize) < config.links.len())
        && event.changes.iter().all(is_change)
}

fn can_reroute(rerouting: ReroutingConfig) -> bool {
    rerouting.detection_delay_ps <= MAX_DELAY_PS && rerouting.convergence_delay_ps <= MAX_DELAY_PS
}

fn are_directions(directions: &[u32], config: &JobConfig) -> bool {
    directions.iter().all(|&direction| (direction as usize) < 2 * config.links.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::pair;

    /// What is wrong with a pair of NICs after `change`.
    fn refusal(change: impl FnOnce(&mut JobConfig)) -> String {
        let mut config = pair().0;
        change(&mut config);
        Topology::new(&config).expect_err("the configuration is wrong").to_string()
    }

    #[test]
    fn a_delay_that_leaves_no_room_for_time_is_refused() {
        let what = refusal(|config| config.links[0].delay_ps = u64::MAX);
        assert!(what.contains("delay_ps must be at most"), "{what}");
    }

    #[test]
    fn an_impairment_that_leaves_no_room_for_time_is_refused() {
        let what = refusal(|config| {
            let rule = ImpairmentConfig {
                directions: vec![0],
                packets: vec![],
                opcodes: vec![],
                loss_ratio: 0.0,
                corruption_ratio: 0.0,
                duplication_ratio: 0.0,
                reordering_ratio: 0.0,
                reordering_ps: 0,
                delay_ps: u64::MAX,
                jitter_ps: 0,
            };
            config.impairments.push(rule);
        });
        assert_eq!(what, "impairments out of range");
    }

    #[test]
    fn more_queue_pairs_than_anybody_has_are_refused() {
        let what = refusal(|config| config.transport.qps_per_peer = 1_000_000);
        assert_eq!(what, "qps_per_peer out of range");
    }

    #[test]
    fn an_exponent_beyond_32_bits_is_refused() {
        let adaptive = AdaptiveRetransmissionConfig {
            time_base_ps: 1,
            initial_exponent: u32::MAX,
            initial_exponents: 2,
            min_exponent: 0,
            max_exponent: 8,
            retries_per_timeout: 1,
            progress_decrease: 1,
        };
        let what = refusal(|config| config.transport.adaptive_retransmission = Some(adaptive));
        assert_eq!(what, "adaptive_retransmission out of range");
    }
}
