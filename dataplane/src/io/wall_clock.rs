//! Some nodes of a job in real time, dilated, in a thread of its own: what its owner may ask.

use super::carrier::Carrier;
use super::clock::DilatedClock;
use super::lateness::Lateness;
use super::port::{DriverName, PortSpec};
use super::ports::{NicPortCounters, Ports};
use super::wall_loop::{Loop, Shared};
use super::wire::{WireCounters, WireError, Wires};
use crate::config::{JobConfig, NodeId};
use crate::engine::ConfigError;
use crate::engine::medium::{Wrapped, wrap};
use crate::engine::program::Program;
use crate::engine::records::{Blocked, Column, Snapshot, Table, Tables};
use crate::engine::world::{RankCompletion, World};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a caller waits for an answer of the loop.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Something asked for at the wrong moment, or a loop that ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunStateError {
    /// The wires are not bound and connected.
    #[error("bind and connect every wire end before the start")]
    NotConnected,
    /// It was started before.
    #[error("it was started before")]
    Started,
    /// The loop runs.
    #[error("stop and join it first")]
    Running,
    /// The loop panicked.
    #[error("the engine's loop ended by an internal error")]
    Panicked,
    /// The thread cannot be made.
    #[error("no thread for the engine's loop: {0}")]
    Thread(std::io::Error),
}

enum Stage {
    Ready(Box<World<Wrapped<Carrier>>>),
    Running(JoinHandle<Box<World<Wrapped<Carrier>>>>),
    Ended(Box<World<Wrapped<Carrier>>>),
    Lost,
}

/// Some nodes of a job under the wall clock.
pub struct WallEmulation {
    stage: Mutex<Stage>,
    dilation: u64,
    bind_address: Ipv4Addr,
    shared: Arc<Shared>,
}

impl WallEmulation {
    /// The nodes named `local_nodes` of a job, with the programs of their ranks.
    ///
    /// With `ports`, by name of the NIC, they are NICs of a real network; without, nodes of an
    /// emulated fabric with wires for links.
    pub fn new(
        config: JobConfig,
        programs: &[Arc<Program>],
        local_nodes: &[String],
        dilation: u64,
        bind_address: Ipv4Addr,
        ports: Option<&BTreeMap<String, PortSpec>>,
    ) -> Result<Self, WallEmulationError> {
        if dilation == 0 {
            return Err(ConfigError::new("time_dilation must be at least 1").into());
        }
        let config = Arc::new(if ports.is_some() { without_delays(config) } else { config });
        let local = resolve(&config, local_nodes)?;
        let is_local = |node| local.contains(&node);
        let carrier = match ports {
            Some(_) if local.iter().any(|node| matches!(node, NodeId::Switch(_))) => {
                return Err(
                    ConfigError::new("a switch of a real network is carried by nobody").into()
                );
            }
            Some(specs) => Carrier::Ports(Ports::new(&config, specs, is_local)?),
            None => Carrier::Wires(Wires::new(&config, is_local)?),
        };
        let medium = wrap(&config, carrier);
        let world = World::new(config, programs, medium, |node| local.contains(&node))?;
        let shared = Arc::new(Shared::default());
        shared.lock().snapshot = world.snapshot();
        let stage = Mutex::new(Stage::Ready(Box::new(world)));
        Ok(Self { stage, dilation, bind_address, shared })
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Bind every wire end; see [`Wires::bind`]. Or open every port: then there is no wire end.
    pub fn bind(
        &self,
        ports: &BTreeMap<String, u16>,
    ) -> Result<Vec<(String, u16)>, WallEmulationError> {
        let mut stage = self.stage();
        let world = stage.ready()?;
        let flows: BTreeMap<u32, BTreeSet<(u16, u32)>> =
            world.hosts().map(|(nic, host)| (nic, host.nic().flows().collect())).collect();
        let mtu_bytes = world.config().transport.mtu_bytes;
        match world.medium_mut().inner_mut().inner_mut() {
            Carrier::Wires(wires) => Ok(wires.bind(self.bind_address, ports)?),
            Carrier::Ports(own) => {
                own.open(mtu_bytes, |nic| flows.get(&nic).cloned().unwrap_or_default())?;
                Ok(Vec::new())
            }
        }
    }

    /// Name the opposite end of every wire end; without effect for ports.
    pub fn connect(
        &self,
        peers: &BTreeMap<String, SocketAddrV4>,
    ) -> Result<(), WallEmulationError> {
        match self.stage().ready()?.medium_mut().inner_mut().inner_mut() {
            Carrier::Wires(wires) => Ok(wires.connect(peers)?),
            Carrier::Ports(_) => Ok(()),
        }
    }

    /// Begin at an instant of CLOCK_MONOTONIC, which is emulated time 0.
    pub fn start(&self, start_ns: u64) -> Result<(), WallEmulationError> {
        let mut stage = self.stage();
        if !stage.ready()?.medium().inner().inner().is_ready() {
            return Err(RunStateError::NotConnected.into());
        }
        let Stage::Ready(world) = std::mem::replace(&mut *stage, Stage::Lost) else {
            return Err(RunStateError::Started.into());
        };
        let clock = DilatedClock { start_ns, dilation: self.dilation };
        let run = Loop::new(world, clock, self.shared.clone());
        let thread = std::thread::Builder::new().name("rankwire-engine".into());
        let handle = thread.spawn(move || run.run()).map_err(RunStateError::Thread)?;
        *stage = Stage::Running(handle);
        Ok(())
    }

    /// Ask the loop to stop.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// The loop runs.
    pub fn is_running(&self) -> bool {
        matches!(&*self.stage(), Stage::Running(handle) if !handle.is_finished())
    }

    /// Wait until the loop has ended; false if it has not in time. True if it never began.
    pub fn join(&self, timeout: Duration) -> Result<bool, RunStateError> {
        let deadline = Instant::now().checked_add(timeout);
        while self.is_running() {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.stage().collect().map(|()| true)
    }

    /// The latest published totals, at most a tenth of a second old.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.lock().snapshot.clone()
    }

    /// Operations whose completion was published since the last call.
    pub fn completed(&self) -> Vec<RankCompletion> {
        std::mem::take(&mut self.shared.lock().completions)
    }

    /// How late events were handled.
    pub fn lateness(&self) -> Lateness {
        self.shared.lock().lateness.clone()
    }

    /// How long after its time of arrival each frame came over its wire, 0 if in time.
    pub fn frame_lateness(&self) -> Lateness {
        self.shared.lock().frame_lateness.clone()
    }

    /// Operations that have started and are not complete.
    pub fn blocked(&self, limit: usize) -> Vec<Blocked> {
        match &*self.stage() {
            Stage::Ready(world) | Stage::Ended(world) => return world.blocked(limit),
            Stage::Lost => return Vec::new(),
            Stage::Running(_) => {}
        }
        self.ask_blocked(limit)
    }

    fn ask_blocked(&self, limit: usize) -> Vec<Blocked> {
        let mut published = self.shared.lock();
        published.blocked = None;
        self.shared.blocked_limit.store(limit, Ordering::Relaxed);
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        while published.blocked.is_none() && self.is_running() && Instant::now() < deadline {
            let waited = self.shared.answered.wait_timeout(published, Duration::from_millis(50));
            published = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        published.blocked.take().unwrap_or_default()
    }

    /// Final tables and counters; only when the loop does not run.
    pub fn records(&self) -> Result<(Tables, Tables), RunStateError> {
        let mut stage = self.stage();
        if matches!(&*stage, Stage::Running(handle) if !handle.is_finished()) {
            return Err(RunStateError::Running);
        }
        stage.collect()?;
        match &mut *stage {
            Stage::Ready(world) | Stage::Ended(world) => {
                world.finish_telemetry();
                let mut counters = world.counter_tables();
                counters.push(match world.medium().inner().inner() {
                    Carrier::Wires(wires) => ("wires", wire_table(&wires.counters())),
                    Carrier::Ports(ports) => ("ports", port_table(&ports.counters())),
                });
                Ok((world.record_tables(), counters))
            }
            Stage::Running(_) | Stage::Lost => Err(RunStateError::Panicked),
        }
    }
}

impl Stage {
    fn ready(&mut self) -> Result<&mut World<Wrapped<Carrier>>, RunStateError> {
        match self {
            Stage::Ready(world) => Ok(world),
            _ => Err(RunStateError::Started),
        }
    }

    /// Take the world back from a loop that has ended.
    fn collect(&mut self) -> Result<(), RunStateError> {
        match std::mem::replace(self, Stage::Lost) {
            Stage::Running(handle) => {
                let world = handle.join().map_err(|_| RunStateError::Panicked)?;
                *self = Stage::Ended(world);
            }
            Stage::Lost => return Err(RunStateError::Panicked),
            stage => *self = stage,
        }
        Ok(())
    }
}

impl Drop for WallEmulation {
    /// A forgotten emulation does not go on sending.
    fn drop(&mut self) {
        self.stop();
        let stage = std::mem::replace(&mut *self.stage(), Stage::Lost);
        if let Stage::Running(handle) = stage {
            let _ = handle.join();
        }
    }
}

/// Anything that can go wrong before or after a run.
#[derive(Debug, thiserror::Error)]
pub enum WallEmulationError {
    /// The job.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The wires.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The moment.
    #[error(transparent)]
    State(#[from] RunStateError),
}

/// The network delays frames by itself.
fn without_delays(mut config: JobConfig) -> JobConfig {
    for link in &mut config.links {
        link.delay_ps = 0;
    }
    config
}

fn resolve(config: &JobConfig, names: &[String]) -> Result<BTreeSet<NodeId>, ConfigError> {
    let nics = config.nics.iter().enumerate().map(|(i, nic)| (&nic.name, NodeId::Nic(i as u32)));
    let switches = config.switches.iter().enumerate();
    let switches = switches.map(|(i, switch)| (&switch.name, NodeId::Switch(i as u32)));
    let by_name: BTreeMap<_, _> = nics.chain(switches).collect();
    names
        .iter()
        .map(|name| {
            let node = by_name.get(name).copied();
            node.ok_or_else(|| ConfigError::new(format!("{name}: no NIC or switch has this name")))
        })
        .collect()
}

fn wire_table(rows: &[(u32, u8, WireCounters)]) -> Table {
    let link = rows.iter().map(|row| row.0).collect();
    let end = rows.iter().map(|row| row.1).collect();
    let column =
        |of: fn(&WireCounters) -> u64| Column::U64(rows.iter().map(|r| of(&r.2)).collect());
    vec![
        ("link", Column::U32(link)),
        ("end", Column::U8(end)),
        ("datagrams_sent", column(|c| c.datagrams_sent)),
        ("bytes_sent", column(|c| c.bytes_sent)),
        ("datagrams_received", column(|c| c.datagrams_received)),
        ("send_errors", column(|c| c.send_errors)),
        ("send_stalls", column(|c| c.send_stalls)),
        ("receive_overflows", column(|c| c.receive_overflows)),
        ("unexpected_sources", column(|c| c.unexpected_sources)),
        ("decode_errors", column(|c| c.decode_errors)),
        ("icrc_errors", column(|c| c.icrc_errors)),
    ]
}

fn port_table(rows: &[(u32, DriverName, NicPortCounters)]) -> Table {
    let nic = rows.iter().map(|row| row.0).collect();
    let column =
        |of: fn(&NicPortCounters) -> u64| Column::U64(rows.iter().map(|r| of(&r.2)).collect());
    vec![
        ("nic", Column::U32(nic)),
        ("frames_sent", column(|c| c.port.frames_sent)),
        ("bytes_sent", column(|c| c.port.bytes_sent)),
        ("bursts_sent", column(|c| c.port.bursts_sent)),
        ("send_errors", column(|c| c.port.send_errors)),
        ("send_stalls", column(|c| c.port.send_stalls)),
        ("frames_received", column(|c| c.port.frames_received)),
        ("bytes_received", column(|c| c.port.bytes_received)),
        ("bursts_received", column(|c| c.port.bursts_received)),
        ("receive_overflows", column(|c| c.port.receive_overflows)),
        ("misaddressed", column(|c| c.port.misaddressed)),
        ("unexpected_sources", column(|c| c.unexpected_sources)),
        ("decode_errors", column(|c| c.decode_errors)),
        ("icrc_errors", column(|c| c.icrc_errors)),
    ]
}
