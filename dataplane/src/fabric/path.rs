//! Which of several ports leads a packet on: one for all packets of a flow, or not.

use super::ecmp::{EcmpHash, pick};
use crate::config::PathSelection;
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
    hash: EcmpHash,
    random: Random,
    /// By the flow's hash.
    flowlets: HashMap<u64, Flowlet>,
}

impl PathSelector {
    /// A switch with that hash seed, in a job with that seed.
    pub fn new(selection: PathSelection, hash_seed: u64, job_seed: u64) -> Self {
        Self {
            selection,
            hash: EcmpHash::new(hash_seed),
            random: Random::new(job_seed, mix(hash_seed)),
            flowlets: HashMap::new(),
        }
    }

    /// The port of a packet of `flow` among `ports` (at least 1), whose queues `depth_bytes` tells.
    #[inline]
    pub fn choose(
        &mut self,
        now_ps: u64,
        flow: (u32, u32, u16),
        ports: &[u16],
        depth_bytes: impl Fn(u16) -> u64,
    ) -> u16 {
        match self.selection {
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

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: [u16; 4] = [10, 11, 12, 13];
    const FLOW: (u32, u32, u16) = (1, 2, 0xC000);

    fn selector(selection: PathSelection) -> PathSelector {
        PathSelector::new(selection, 5, 1)
    }

    /// How often each port is chosen for packets of one flow at those times.
    fn counts(selection: PathSelection, times_ps: impl Iterator<Item = u64>) -> [u32; 4] {
        let mut selector = selector(selection);
        let mut counts = [0; 4];
        for now_ps in times_ps {
            let port = selector.choose(now_ps, FLOW, &PORTS, |_| 0);
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
        assert!((0..100).all(|now_ps| selector.choose(now_ps, FLOW, &PORTS, depth_bytes) == 12));
    }

    #[test]
    fn a_port_that_stands_twice_gets_twice_the_flows() {
        let mut selector = selector(PathSelection::Flow);
        let ports = [10, 10, 11];
        let chosen = (0..3000).map(|port| selector.choose(0, (1, 2, port), &ports, |_| 0));
        let first = chosen.filter(|port| *port == 10).count();
        assert!((1900..2100).contains(&first), "{first} of 2000");
    }
}
