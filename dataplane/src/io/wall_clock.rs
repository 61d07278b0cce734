//! Some nodes of a job in real time, dilated, in a thread of its own: what its owner may ask.

use super::carrier::Carrier;
use super::clock::DilatedClock;
use super::lateness::Lateness;
use super::port::{PortCapabilities, PortSpec};
use super::ports::Ports;
use super::tables::{network_tables, sample_table, wire_table};
use super::verbs::DeviceEnds;
use super::wall_loop::{Loop, Shared, locked};
use super::wire::{WireError, Wires};
use crate::config::{JobConfig, NodeId};
use crate::engine::ConfigError;
use crate::engine::blocked::Blocked;
use crate::engine::link_events::Moment;
use crate::engine::medium::{Wrapped, wrap};
use crate::engine::nic::PairPlan;
use crate::engine::program::Program;
use crate::engine::records::{Snapshot, Tables};
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
        let mut world = World::new(config, programs, medium, |node| local.contains(&node))?;
        offload(&mut world, dilation)?;
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
        let plans: BTreeMap<u32, Vec<PairPlan>> =
            (world.hosts()).map(|(nic, host)| (nic, host.nic().pair_plans().collect())).collect();
        let mtu_bytes = world.config().transport.mtu_bytes;
        match world.medium_mut().inner_mut().inner_mut() {
            Carrier::Wires(wires) => Ok(wires.bind(self.bind_address, ports)?),
            Carrier::Ports(own) => {
                own.open(mtu_bytes, |nic| flows.get(&nic).cloned().unwrap_or_default())?;
                own.open_devices(mtu_bytes, |nic| plans.get(&nic).cloned().unwrap_or_default())?;
                Ok(Vec::new())
            }
        }
    }

    /// What peers must know of the local NICs that are adapters', once they are bound.
    pub fn device_ends(&self) -> Result<DeviceEnds, WallEmulationError> {
        match self.stage().ready()?.medium().inner().inner() {
            Carrier::Wires(_) => Ok(DeviceEnds::new()),
            Carrier::Ports(ports) => Ok(ports.devices().ends()),
        }
    }

    /// Name the opposite end of every wire end, which ports have not; and with `devices` those NICs
    /// of the job that are adapters', here or elsewhere.
    pub fn connect(
        &self,
        peers: &BTreeMap<String, SocketAddrV4>,
        devices: &DeviceEnds,
    ) -> Result<(), WallEmulationError> {
        let mut stage = self.stage();
        let world = stage.ready()?;
        set_peer_devices(world, devices)?;
        let transport = world.config().transport;
        match world.medium_mut().inner_mut().inner_mut() {
            Carrier::Wires(wires) => Ok(wires.connect(peers)?),
            Carrier::Ports(ports) => {
                let connected = ports.devices_mut().connect(&transport, devices);
                Ok(connected.map_err(WireError::from)?)
            }
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

    /// Moments of events of links that have come here since the last call: the start of the first, or the
    /// end of the last of the operations here that an event waits for.
    pub fn moments(&self) -> Vec<Moment> {
        std::mem::take(&mut *locked(&self.shared.moments))
    }

    /// Have an event of links happen whose moment came elsewhere: its changes are counted from
    /// `base_ps`. Those that are due already happen at once; an event is ordered once.
    pub fn order_event(&self, event: u32, base_ps: u64) {
        locked(&self.shared.orders).push((event, base_ps));
        self.shared.has_orders.store(true, Ordering::Release);
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

    /// The NICs' names and ports, how they were opened and what they can do; none where the fabric is
    /// emulated. Only when the loop does not run.
    pub fn open_ports(&self) -> Result<Vec<(String, PortSpec, PortCapabilities)>, RunStateError> {
        let mut stage = self.stage();
        let world = stage.at_rest()?;
        let Carrier::Ports(ports) = world.medium().inner().inner() else { return Ok(Vec::new()) };
        let nics = &world.config().nics;
        let named = |(nic, spec, can): (u32, &PortSpec, _)| {
            (nics[nic as usize].name.clone(), spec.clone(), can)
        };
        Ok(ports.open_ports().into_iter().map(named).collect())
    }

    /// Final tables and counters; only when the loop does not run.
    pub fn records(&self) -> Result<(Tables, Tables), RunStateError> {
        let mut stage = self.stage();
        let world = stage.at_rest()?;
        world.finish_telemetry();
        let mut counters = world.counter_tables();
        match world.medium().inner().inner() {
            Carrier::Wires(wires) => counters.push(("wires", wire_table(&wires.counters()))),
            Carrier::Ports(ports) => counters.extend(network_tables(ports)),
        }
        let mut records = world.record_tables();
        if let Carrier::Ports(ports) = world.medium().inner().inner() {
            if ports.devices().nics().next().is_some() {
                records.push(("adapter_series", sample_table(ports.devices().samples())));
            }
        }
        Ok((records, counters))
    }
}

impl Stage {
    fn ready(&mut self) -> Result<&mut World<Wrapped<Carrier>>, RunStateError> {
        match self {
            Stage::Ready(world) => Ok(world),
            _ => Err(RunStateError::Started),
        }
    }

    /// The world of a loop that does not run.
    fn at_rest(&mut self) -> Result<&mut World<Wrapped<Carrier>>, RunStateError> {
        if matches!(self, Stage::Running(handle) if !handle.is_finished()) {
            return Err(RunStateError::Running);
        }
        self.collect()?;
        match self {
            Stage::Ready(world) | Stage::Ended(world) => Ok(world),
            Stage::Running(_) | Stage::Lost => Err(RunStateError::Panicked),
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

/// Leave the messages of NICs that are adapters' to those.
fn offload(world: &mut World<Wrapped<Carrier>>, dilation: u64) -> Result<(), ConfigError> {
    let Carrier::Ports(ports) = world.medium().inner().inner() else { return Ok(()) };
    let nics: Vec<u32> = ports.devices().nics().collect();
    if !nics.is_empty() && dilation != 1 {
        let what = "verbs: an adapter sends at its own rate, time_dilation must be 1";
        return Err(ConfigError::new(what));
    }
    nics.into_iter().for_each(|nic| world.offload(nic));
    Ok(())
}

/// Tell the soft endpoints here of their peers that are adapters'.
fn set_peer_devices(
    world: &mut World<Wrapped<Carrier>>,
    devices: &DeviceEnds,
) -> Result<(), ConfigError> {
    let index: BTreeMap<String, u32> = (world.config().nics.iter().zip(0..))
        .map(|(nic, index)| (nic.name.clone(), index))
        .collect();
    let mtu_bytes = u64::from(world.config().transport.mtu_bytes.max(1));
    for (name, end) in devices {
        let unknown = |name: &str| ConfigError::new(format!("{name}: no NIC has this name"));
        let peer = *index.get(name).ok_or_else(|| unknown(name))?;
        if end.memory_bytes == 0 || end.memory_bytes % mtu_bytes != 0 {
            let what = "its memory holds no whole number of packets";
            return Err(ConfigError::new(format!("{name}: {what}")));
        }
        for (nic, numbers) in &end.queue_pairs {
            let nic = *index.get(nic).ok_or_else(|| unknown(nic))?;
            world.set_peer_device(nic, peer, numbers, end.memory())?;
        }
    }
    Ok(())
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
