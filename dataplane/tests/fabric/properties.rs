//! What holds for a switch under every sequence of frames, pauses and wake-ups.

use crate::world::{CONTROL, DATA, GBPS, OTHER, US, job, lossless, packet};
use _native::config::{EcnConfig, JobConfig, PathSelection};
use _native::fabric::{Output, PortLink, Switch};
use _native::roce::packet::{Ecn, Frame, PauseFrame};
use proptest::prelude::*;
use std::collections::BTreeMap;

const PORTS: u16 = 4;
const LINK: PortLink = PortLink { rate_bps: 100 * GBPS, delay_ps: US };
const BUFFER_BYTES: u64 = 60_000;
const HEADROOM_BYTES: u64 = 5_000;
const RESERVED_BYTES: u64 = 3_000;

/// What comes in at a port.
#[derive(Clone, Copy, Debug)]
enum Event {
    Packet { to: u16, dscp: u8, wire_bytes: u32 },
    Pause { class_enable: u8, quanta: u16 },
}

fn event() -> impl Strategy<Value = (u64, u16, Event)> {
    let dscp = prop_oneof![Just(DATA.0), Just(OTHER.0), Just(CONTROL.0)];
    let packet = (0..PORTS, dscp, 1_u32..1000).prop_map(|(to, dscp, words)| Event::Packet {
        to,
        dscp,
        wire_bytes: 62 + 4 * words,
    });
    let quanta = prop_oneof![Just(0), 1_u16..1_000];
    let pause = (any::<u8>(), quanta)
        .prop_map(|(class_enable, quanta)| Event::Pause { class_enable, quanta });
    (0_u64..300_000, 0..PORTS, prop_oneof![8 => packet, 1 => pause])
}

fn selection() -> impl Strategy<Value = PathSelection> {
    prop_oneof![
        Just(PathSelection::Flow),
        Just(PathSelection::Flowlet { gap_ps: US }),
        Just(PathSelection::Packet),
        Just(PathSelection::ShortestQueue)
    ]
}

fn small_job(path_selection: PathSelection) -> JobConfig {
    let mut priorities = lossless(8_000, HEADROOM_BYTES);
    let profile =
        EcnConfig { kmin_bytes: 2_000, kmax_bytes: 20_000, pmax_ratio: 0.5, drops_not_ect: true };
    priorities[usize::from(DATA.1)].ecn = Some(profile);
    priorities[usize::from(DATA.1)].reserved_bytes = RESERVED_BYTES;
    priorities[usize::from(OTHER.1)].reserved_bytes = RESERVED_BYTES;
    let mut job = job(PORTS, BUFFER_BYTES, priorities);
    job.switches[0].path_selection = path_selection;
    job.switches[0].routes[0] = vec![0, 1];
    job
}

/// A switch, and all that came in and went out.
struct Bench {
    switch: Switch,
    wakes: BTreeMap<(u64, u32), ()>,
    outputs: Vec<Output>,
    arrived_bytes: u64,
    sent_bytes: u64,
    /// When the last frame of each port ends.
    ends_ps: [u64; PORTS as usize],
}

impl Bench {
    fn new(path_selection: PathSelection) -> Self {
        Self {
            switch: Switch::new(&small_job(path_selection), 0, &[LINK; PORTS as usize]),
            wakes: BTreeMap::new(),
            outputs: Vec::new(),
            arrived_bytes: 0,
            sent_bytes: 0,
            ends_ps: [0; PORTS as usize],
        }
    }

    fn apply(&mut self, now_ps: u64, port: u16, event: Event) {
        let frame = match event {
            Event::Packet { to, dscp, wire_bytes } => {
                self.arrived_bytes += u64::from(wire_bytes);
                let mut packet = packet(port, to, dscp, wire_bytes);
                packet.ecn = if wire_bytes % 8 == 2 { Ecn::NotEct } else { Ecn::Ect0 };
                packet.bth.psn = wire_bytes;
                Frame::Roce(Box::new(packet))
            }
            Event::Pause { class_enable, quanta } => Frame::Pause(Box::new(PauseFrame {
                source_mac: [0; 6],
                class_enable,
                quanta: [quanta; 8],
            })),
        };
        self.switch.handle_frame(now_ps, port, frame, &mut self.outputs);
        self.collect();
    }

    /// Wake the switch up as it asked, each time by `lateness_ps` later.
    fn advance(&mut self, until_ps: u64, lateness_ps: u64) {
        while let Some((&(at_ps, token), ())) = self.wakes.first_key_value() {
            if at_ps + lateness_ps > until_ps {
                break;
            }
            self.wakes.pop_first();
            self.switch.handle_wake(at_ps + lateness_ps, token, &mut self.outputs);
            self.collect();
        }
    }

    fn collect(&mut self) {
        for output in self.outputs.drain(..) {
            match output {
                Output::Wake { token, at_ps } => {
                    self.wakes.insert((at_ps, token), ());
                }
                Output::Transmit { port, frame, end_ps } => {
                    let bytes = u64::from(frame.wire_bytes());
                    let last_ps = &mut self.ends_ps[usize::from(port)];
                    assert!(*last_ps == 0 || end_ps >= *last_ps + (bytes + 20) * 80, "overlap");
                    *last_ps = end_ps;
                    if matches!(frame, Frame::Roce(_)) {
                        self.sent_bytes += bytes;
                    }
                }
            }
        }
    }

    fn dropped_bytes(&self) -> u64 {
        let queues = (0..PORTS).flat_map(|port| (0..8).map(move |priority| (port, priority)));
        queues.map(|(port, priority)| self.switch.queue_totals(port, priority).dropped_bytes).sum()
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let held_bytes = self.switch.buffer().used_bytes();
        prop_assert!(
            held_bytes <= BUFFER_BYTES + u64::from(PORTS) * (HEADROOM_BYTES + 2 * RESERVED_BYTES)
        );
        prop_assert_eq!(self.arrived_bytes, self.sent_bytes + self.dropped_bytes() + held_bytes);
        let queued = (0..PORTS).flat_map(|port| (0..8).map(move |priority| (port, priority)));
        let queued_bytes: u64 =
            queued.map(|(port, priority)| self.switch.depth_bytes(port, priority)).sum();
        prop_assert_eq!(queued_bytes, held_bytes);
        Ok(())
    }
}

proptest! {
    #[test]
    fn bytes_are_conserved_and_everything_leaves_in_the_end(
        selection in selection(),
        lateness_ps in prop_oneof![Just(0), 0_u64..2 * US],
        events in prop::collection::vec(event(), 1..300),
    ) {
        let mut bench = Bench::new(selection);
        let mut now_ps = 0;
        for (gap_ps, port, event) in events {
            now_ps += gap_ps;
            bench.advance(now_ps, lateness_ps);
            bench.apply(now_ps, port, event);
            bench.check()?;
        }
        bench.advance(now_ps + 1_000_000 * US, lateness_ps);
        prop_assert_eq!(bench.switch.buffer().used_bytes(), 0);
        prop_assert!(bench.wakes.is_empty(), "nothing is left to do");
        bench.check()?;
    }
}
