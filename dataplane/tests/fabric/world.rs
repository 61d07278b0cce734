//! One switch with a host at each of its ports, in virtual time.

use _native::config::{JobConfig, PriorityConfig};
use _native::fabric::{Output, PortLink, Switch};
use _native::roce::opcode::Opcode;
use _native::roce::packet::{Bth, Ecn, Frame, Packet, Payload};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// One gigabit per second.
pub const GBPS: u64 = 1_000_000_000;
/// One microsecond.
pub const US: u64 = 1_000_000;
/// DSCP and priority of data, of a second kind of data, and of control packets.
pub const DATA: (u8, u8) = (26, 3);
pub const OTHER: (u8, u8) = (10, 1);
pub const CONTROL: (u8, u8) = (48, 6);

/// A node at the end of a link.
pub trait Host {
    /// The last bit of a frame has arrived.
    fn handle_frame(&mut self, now_ps: u64, frame: Frame);
    /// The next frame that could begin by now, and when its last bit leaves.
    fn poll(&mut self, now_ps: u64) -> Option<(Frame, u64)>;
    /// When to poll.
    fn next_ps(&self) -> Option<u64>;
    /// For the test that knows what stands here.
    fn as_any(&self) -> &dyn std::any::Any;
}

enum Event {
    AtSwitch(u16, Frame),
    AtHost(u16, Frame),
    WakeSwitch(u32),
    WakeHost(u16),
}

/// An event in the order of time and, at one time, of being pushed.
struct Scheduled {
    key: (u64, u64),
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

/// See the module documentation.
pub struct World {
    pub now_ps: u64,
    pub switch: Switch,
    pub hosts: Vec<Box<dyn Host>>,
    /// Frames that the switch sent, in the order of their last bits, where they are recorded.
    pub sent: Option<Vec<(u16, Frame, u64)>>,
    links: Vec<PortLink>,
    events: BinaryHeap<Reverse<Scheduled>>,
    sequence: u64,
    host_wake_ps: Vec<u64>,
    outputs: Vec<Output>,
}

impl World {
    pub fn new(job: &JobConfig, link: PortLink, hosts: Vec<Box<dyn Host>>) -> Self {
        Self::with_links(job, vec![link; hosts.len()], hosts)
    }

    pub fn with_links(job: &JobConfig, links: Vec<PortLink>, hosts: Vec<Box<dyn Host>>) -> Self {
        let mut world = Self {
            now_ps: 0,
            switch: Switch::new(job, 0, &links),
            sent: None,
            host_wake_ps: vec![u64::MAX; hosts.len()],
            hosts,
            links,
            events: BinaryHeap::new(),
            sequence: 0,
            outputs: Vec::new(),
        };
        (0..world.hosts.len() as u16).for_each(|host| world.poll_host(host));
        world
    }

    fn push(&mut self, at_ps: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse(Scheduled { key: (at_ps, self.sequence), event }));
    }

    fn poll_host(&mut self, index: u16) {
        let host = usize::from(index);
        while let Some((frame, end_ps)) = self.hosts[host].poll(self.now_ps) {
            let at_ps = end_ps + self.links[host].delay_ps;
            self.push(at_ps, Event::AtSwitch(index, frame));
        }
        if let Some(at_ps) = self.hosts[host].next_ps() {
            let at_ps = at_ps.max(self.now_ps + 1);
            if at_ps < self.host_wake_ps[host] {
                self.host_wake_ps[host] = at_ps;
                self.push(at_ps, Event::WakeHost(index));
            }
        }
    }

    fn drain(&mut self) {
        let mut outputs = std::mem::take(&mut self.outputs);
        for output in outputs.drain(..) {
            match output {
                Output::Wake { token, at_ps } => self.push(at_ps, Event::WakeSwitch(token)),
                Output::Transmit { port, frame, end_ps } => {
                    if let Some(sent) = &mut self.sent {
                        sent.push((port, frame.clone(), end_ps));
                    }
                    let at_ps = end_ps + self.links[usize::from(port)].delay_ps;
                    self.push(at_ps, Event::AtHost(port, frame));
                }
            }
        }
        self.outputs = outputs;
    }

    /// Handle the next event, if it is not later than `until_ps`.
    pub fn step(&mut self, until_ps: u64) -> bool {
        if self.events.peek().is_none_or(|Reverse(next)| next.key.0 > until_ps) {
            return false;
        }
        let Some(Reverse(Scheduled { key: (at_ps, _), event })) = self.events.pop() else {
            return false;
        };
        self.now_ps = at_ps;
        match event {
            Event::AtSwitch(port, frame) => {
                self.switch.handle_frame(at_ps, port, frame, &mut self.outputs);
                self.drain();
            }
            Event::WakeSwitch(token) => {
                self.switch.handle_wake(at_ps, token, &mut self.outputs);
                self.drain();
            }
            Event::AtHost(host, frame) => {
                self.hosts[usize::from(host)].handle_frame(at_ps, frame);
                self.poll_host(host);
            }
            Event::WakeHost(host) => {
                if self.host_wake_ps[usize::from(host)] == at_ps {
                    self.host_wake_ps[usize::from(host)] = u64::MAX;
                }
                self.poll_host(host);
            }
        }
        true
    }

    pub fn run_until(&mut self, until_ps: u64) {
        while self.step(until_ps) {}
        self.now_ps = until_ps;
    }

    /// What stands at a port.
    pub fn host<H: 'static>(&self, port: usize) -> &H {
        self.hosts[port].as_any().downcast_ref().expect("the test knows its hosts")
    }
}

/// Address of the host at a port.
pub fn address(port: u16) -> u32 {
    0x0A00_0001 + u32::from(port)
}

/// A packet of `wire_bytes` that is a multiple of four plus 62.
pub fn packet(source: u16, destination: u16, dscp: u8, wire_bytes: u32) -> Packet {
    let length_bytes = (wire_bytes - 62) as u16;
    Packet {
        source_address: address(source),
        destination_address: address(destination),
        dscp,
        ecn: Ecn::Ect0,
        bth: Bth { opcode: Opcode::WRITE_MIDDLE, ..Bth::default() },
        payload: Payload::Pattern { offset_bytes: 0, length_bytes },
        ..Packet::default()
    }
}

/// A switch with `ports` hosts, and how it treats each priority.
pub fn job(ports: u16, buffer_bytes: u64, priorities: Vec<PriorityConfig>) -> JobConfig {
    let nic = |port: u16| {
        let address = std::net::Ipv4Addr::from(address(port)).to_string();
        serde_json::json!({"name": format!("n{port}"), "rank": port, "address": address,
                           "mac": [2, 0, 0, 0, port >> 8, port & 255]})
    };
    let routes: Vec<Vec<u16>> = (0..ports).map(|port| vec![port]).collect();
    let document = serde_json::json!({
        "seed": 1,
        "nics": (0..ports).map(nic).collect::<Vec<_>>(),
        "switches": [{
            "name": "s0", "mac": [2, 0, 0, 0, 1, 0], "ports": ports, "routes": routes,
            "ecmp_seed": 1, "buffer_bytes": buffer_bytes, "dynamic_threshold_alpha": 1.0,
            "priorities": [],
        }],
        "links": [],
        "transport": {
            "mtu_bytes": 1024, "qps_per_peer": 1, "window_packets": 1024, "ack_every_packets": 1,
            "ack_delay_ps": 0, "retransmission_timeout_ps": 1, "retry_count": 1,
        },
        "classes": {
            "data_dscp": DATA.0, "data_priority": DATA.1, "data_ecn_capable": true,
            "ack_dscp": OTHER.0, "ack_priority": OTHER.1,
            "cnp_dscp": CONTROL.0, "cnp_priority": CONTROL.1,
        },
        "congestion_control": {"algorithm": "fixed_rate", "rate_bps": null},
        "notification_point": {
            "enabled": true, "cnp_interval_ps": 50 * US, "scope": "qp",
            "mode": "immediate_and_trailing", "cnp_on_nak": false,
        },
        "telemetry": {"sample_interval_ps": 1_000_000, "max_samples": 16, "flow_paths": false,
            "max_pauses": 1000},
    });
    let mut job: JobConfig = serde_json::from_value(document).expect("the document is complete");
    job.switches[0].priorities = priorities;
    job
}

/// Eight lossy weighted priorities without marking.
pub fn lossy() -> Vec<PriorityConfig> {
    let priority = PriorityConfig {
        lossless: false,
        watched: true,
        dynamic_threshold_alpha: None,
        strict: false,
        weight: 1,
        ecn: None,
        xoff_bytes: None,
        xon_offset_bytes: 0,
        headroom_bytes: 0,
        reserved_bytes: 0,
    };
    let mut priorities = vec![priority; 8];
    priorities[usize::from(CONTROL.1)].strict = true;
    priorities
}

/// Data is lossless, with that threshold and headroom.
pub fn lossless(xoff_bytes: u64, headroom_bytes: u64) -> Vec<PriorityConfig> {
    let mut priorities = lossy();
    let data = &mut priorities[usize::from(DATA.1)];
    data.lossless = true;
    data.xoff_bytes = Some(xoff_bytes);
    data.xon_offset_bytes = 4_000;
    data.headroom_bytes = headroom_bytes;
    priorities
}
