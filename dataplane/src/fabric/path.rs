//! Which of several ports leads a packet on: one for all packets of a flow, or not.

use super::ecmp::{EcmpHash, pick};
use super::routes::Choices;
use crate::config::{FailureHashing, PathSelection};
use crate::random::{Random, mix};
use std::collections::HashMap;

/// A flow between two gaps.
#[derive(Clone, Copy, Debug, Default)]
struct Flowlet {
    /// Flowlets of this flow before it.
    number: u64,
    last_packet_ps: u64,
}

/// The choices of one switch.
#[derive(Clone, Debug)]
pub struct PathSelector {
    selection: PathSelection,
    failure_hashing: FailureHashing,
    hash: EcmpHash,
    random: Random,
    /// By the flow's hash.
    flowlets: HashMap<u64, Flowlet>,
}

impl PathSelector {
    /// A switch with that hash, in a job with that seed.
    pub fn new(
        selection: PathSelection,
        failure_hashing: FailureHashing,
        hash: EcmpHash,
        job_seed: u64,
    ) -> Self {
        Self {
            selection,
            failure_hashing,
            random: Random::new(job_seed, mix(hash.seed())),
            hash,
            flowlets: HashMap::new(),
        }
    }

    /// The port of a packet of `flow` among `choices` (at least 1), whose queues `depth_bytes`
    /// tells.
    #[inline]
    pub fn choose(
        &mut self,
        now_ps: u64,
        flow: (u32, u32, u16),
        choices: Choices<'_>,
        depth_bytes: impl Fn(u16) -> u64,
    ) -> u16 {
        let ports = choices.ports;
        match (self.selection, choices.before_failures) {
            (PathSelection::Flow, Some(all)) => {
                port_of_flow(&self.hash, self.failure_hashing, flow, (ports, all))
            }
            (selection, _) => self.choose_anew(selection, now_ps, flow, ports, depth_bytes),
        }
    }

    /// The port that [`PathSelector::choose`] will choose, if that depends on the flow alone.
    #[inline]
    pub fn expected(&self, flow: (u32, u32, u16), choices: Choices<'_>) -> Option<u16> {
        let is_fixed = self.selection == PathSelection::Flow && choices.before_failures.is_none();
        is_fixed.then(|| choices.ports[self.hash.choose(flow, choices.ports.len())])
    }

    #[inline]
    fn choose_anew(
        &mut self,
        selection: PathSelection,
        now_ps: u64,
        flow: (u32, u32, u16),
        ports: &[u16],
        depth_bytes: impl Fn(u16) -> u64,
    ) -> u16 {
        match selection {
            PathSelection::Flow => ports[self.hash.choose(flow, ports.len())],
            PathSelection::Flowlet { gap_ps } => {
                ports[pick(self.flowlet_hash(now_ps, flow, gap_ps), ports.len())]
            }
            PathSelection::Packet => ports[pick(self.random.next_u64(), ports.len())],
            PathSelection::ShortestQueue => self.shortest(ports, depth_bytes),
        }
    }

    /// A hash of the flow and of the number of its flowlet.
    fn flowlet_hash(&mut self, now_ps: u64, flow: (u32, u32, u16), gap_ps: u64) -> u64 {
        let hash = self.hash.of(flow);
        let first = Flowlet { number: 0, last_packet_ps: now_ps };
        let flowlet = self.flowlets.entry(hash).or_insert(first);
        if now_ps.saturating_sub(flowlet.last_packet_ps) > gap_ps {
            flowlet.number += 1;
        }
        flowlet.last_packet_ps = now_ps;
        mix(hash ^ mix(flowlet.number))
    }

    fn shortest(&mut self, ports: &[u16], depth_bytes: impl Fn(u16) -> u64) -> u16 {
        let first = pick(self.random.next_u64(), ports.len());
        let (before, from_first) = ports.split_at(first);
        let in_turn = from_first.iter().chain(before);
        in_turn.copied().min_by_key(|port| depth_bytes(*port)).unwrap_or(ports[0])
    }
}

/// The port of a flow while only `left` of `all` are usable.
pub(crate) fn port_of_flow(
    hash: &EcmpHash,
    failure_hashing: FailureHashing,
    flow: (u32, u32, u16),
    (left, all): (&[u16], &[u16]),
) -> u16 {
    let hash = hash.of(flow);
    if left.len() == all.len() {
        return all[pick(hash, all.len())];
    }
    if failure_hashing == FailureHashing::Modulo {
        return left[(hash % left.len() as u64) as usize];
    }
    let port = all[pick(hash, all.len())];
    if left.contains(&port) { port } else { left[pick(mix(hash), left.len())] }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: [u16; 4] = [10, 11, 12, 13];
    const FLOW: (u32, u32, u16) = (1, 2, 0xC000);

    fn selector(selection: PathSelection) -> PathSelector {
        selector_of(selection, FailureHashing::Modulo)
    }

    fn selector_of(selection: PathSelection, failure_hashing: FailureHashing) -> PathSelector {
        PathSelector::new(selection, failure_hashing, EcmpHash::new(5), 1)
    }

    /// How often each port is chosen for packets of one flow at those times.
    fn counts(selection: PathSelection, times_ps: impl Iterator<Item = u64>) -> [u32; 4] {
        let mut selector = selector(selection);
        let mut counts = [0; 4];
        for now_ps in times_ps {
            let port = selector.choose(now_ps, FLOW, PORTS[..].into(), |_| 0);
            counts[usize::from(port - 10)] += 1;
        }
        counts
    }

    fn assert_even(counts: [u32; 4]) {
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_flow_takes_one_port() {
        let used = counts(PathSelection::Flow, (0..4000).map(|k| k * 1000));
        assert_eq!(used.iter().filter(|count| **count > 0).count(), 1);
    }

    #[test]
    fn packets_are_sprayed_evenly() {
        assert_even(counts(PathSelection::Packet, 0..4000));
        assert_even(counts(PathSelection::ShortestQueue, 0..4000));
    }

    #[test]
    fn a_flowlet_keeps_its_port_and_a_gap_chooses_anew() {
        let flowlets = PathSelection::Flowlet { gap_ps: 100 };
        let dense = counts(flowlets, (0..4000).map(|k| k * 100));
        assert_eq!(dense.iter().filter(|count| **count > 0).count(), 1);
        assert_even(counts(flowlets, (0..4000).map(|k| k * 101)));
    }

    #[test]
    fn the_shortest_queue_is_taken() {
        let mut selector = selector(PathSelection::ShortestQueue);
        let depth_bytes = |port: u16| if port == 12 { 5 } else { 6 };
        assert!(
            (0..100).all(|now_ps| {
                selector.choose(now_ps, FLOW, PORTS[..].into(), depth_bytes) == 12
            })
        );
    }

    #[test]
    fn a_port_that_stands_twice_gets_twice_the_flows() {
        let mut selector = selector(PathSelection::Flow);
        let ports = [10, 10, 11];
        let chosen =
            (0..3000).map(|port| selector.choose(0, (1, 2, port), ports[..].into(), |_| 0));
        let first = chosen.filter(|port| *port == 10).count();
        assert!((1900..2100).contains(&first), "{first} of 2000");
    }

    const FLOWS: u16 = 4000;

    /// The ports of many flows when only `left` of the four are usable.
    fn ports_of_flows(failure_hashing: FailureHashing, left: &[u16]) -> Vec<u16> {
        let mut selector = selector_of(PathSelection::Flow, failure_hashing);
        let before_failures = (left.len() < PORTS.len()).then_some(&PORTS[..]);
        let choices = Choices { ports: left, before_failures };
        (0..FLOWS).map(|port| selector.choose(0, (1, 2, port), choices, |_| 0)).collect()
    }

    /// Flows that change their port when port 11 fails, and how many of them had another one.
    fn moved(failure_hashing: FailureHashing) -> (usize, usize) {
        let before = ports_of_flows(failure_hashing, &PORTS);
        let after = ports_of_flows(failure_hashing, &[10, 12, 13]);
        let moved = before.iter().zip(&after).filter(|(before, after)| before != after);
        let (all, of_others) = moved.fold((0, 0), |(all, others), (before, _)| {
            (all + 1, others + usize::from(*before != 11))
        });
        (all, of_others)
    }

    #[test]
    fn hashing_modulo_the_ports_moves_flows_of_ports_that_did_not_fail() {
        // A quarter has to, and of the others two of three: three quarters of all.
        let (all, of_others) = moved(FailureHashing::Modulo);
        assert!((2900..3100).contains(&all), "{all} of {FLOWS}");
        assert!((1900..2100).contains(&of_others), "{of_others}");
    }

    #[test]
    fn resilient_hashing_moves_only_the_flows_of_the_failed_port() {
        let (all, of_others) = moved(FailureHashing::Resilient);
        assert!((900..1100).contains(&all), "{all} of {FLOWS}");
        assert_eq!(of_others, 0);
    }

    #[test]
    fn resilient_hashing_spreads_the_flows_of_the_failed_port_evenly() {
        let after = ports_of_flows(FailureHashing::Resilient, &[10, 12, 13]);
        for port in [10, 12, 13] {
            let flows = after.iter().filter(|chosen| **chosen == port).count();
            assert!((1230..1440).contains(&flows), "port {port}: {flows}");
        }
    }
}
