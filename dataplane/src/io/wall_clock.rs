//! Drives some nodes of a job in real time, dilated, in a thread of its own.
//!
//! Events are handled at their scheduled time even if the loop comes late, so that lateness costs no
//! bandwidth; how late it came is recorded. Frames go on their wire when they would arrive, and are
//! taken to arrive when the kernel got them, not when the loop looked.

use super::clock::{DilatedClock, monotonic_ns, realtime_offset_ns, sharpen_timers, sleep_until};
use super::lateness::Lateness;
use super::wire::{Arrival, WireCounters, WireError, Wires};
use crate::config::{JobConfig, NodeId};
use crate::engine::ConfigError;
use crate::engine::program::Program;
use crate::engine::records::{Blocked, Column, Snapshot, Table, Tables};
use crate::engine::world::{Medium, RankCompletion, World};
use crate::roce::Frame;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Shorter waits are spent polling: a sleeping thread comes back up to this much late.
const POLL_NS: u64 = 50_000;
/// Time between two publications of totals.
const PUBLISH_NS: u64 = 100_000_000;
/// A retry when a socket was full.
const RETRY_NS: u64 = 20_000;
/// How long a caller waits for an answer of the loop.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

impl Medium for Wires {
    #[inline]
    fn carry(&mut self, _now_ps: u64, direction: u32, frame: Frame) -> Option<Frame> {
        self.push(direction, &frame);
        None
    }

    fn icrc_errors(&self, direction: u32) -> u64 {
        self.counters_of_arrivals(direction).icrc_errors
    }
}

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

/// What the loop tells while it runs.
#[derive(Debug, Default)]
struct Published {
    snapshot: Snapshot,
    completions: Vec<RankCompletion>,
    lateness: Lateness,
    /// The answer to a question for blocked operations.
    blocked: Option<Vec<Blocked>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Blocked operations are asked for, at most so many; 0 is no question.
    blocked_limit: AtomicUsize,
    published: Mutex<Published>,
    answered: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Published> {
        // A panic while it was held leaves old but whole values.
        self.published.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

enum Stage {
    Ready(Box<World<Wires>>),
    Running(JoinHandle<Box<World<Wires>>>),
    Ended(Box<World<Wires>>),
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
    pub fn new(
        config: JobConfig,
        programs: &[Arc<Program>],
        local_nodes: &[String],
        dilation: u64,
        bind_address: Ipv4Addr,
    ) -> Result<Self, WallEmulationError> {
        if dilation == 0 {
            return Err(ConfigError::new("time_dilation must be at least 1").into());
        }
        let config = Arc::new(config);
        let local = resolve(&config, local_nodes)?;
        let wires = Wires::new(&config, |node| local.contains(&node))?;
        let world = World::new(config, programs, wires, |node| local.contains(&node))?;
        let shared = Arc::new(Shared::default());
        shared.lock().snapshot = world.snapshot();
        let stage = Mutex::new(Stage::Ready(Box::new(world)));
        Ok(Self { stage, dilation, bind_address, shared })
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Bind every wire end; see [`Wires::bind`].
    pub fn bind(
        &self,
        ports: &BTreeMap<String, u16>,
    ) -> Result<Vec<(String, u16)>, WallEmulationError> {
        Ok(self.stage().ready()?.medium_mut().bind(self.bind_address, ports)?)
    }

    /// Name the opposite end of every wire end.
    pub fn connect(
        &self,
        peers: &BTreeMap<String, SocketAddrV4>,
    ) -> Result<(), WallEmulationError> {
        Ok(self.stage().ready()?.medium_mut().connect(peers)?)
    }

    /// Begin at an instant of CLOCK_MONOTONIC, which is emulated time 0.
    pub fn start(&self, start_ns: u64) -> Result<(), WallEmulationError> {
        let mut stage = self.stage();
        if !stage.ready()?.medium().is_connected() {
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
                counters.push(("wires", wire_table(&world.medium().counters())));
                Ok((world.record_tables(), counters))
            }
            Stage::Running(_) | Stage::Lost => Err(RunStateError::Panicked),
        }
    }
}

impl Stage {
    fn ready(&mut self) -> Result<&mut World<Wires>, RunStateError> {
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

/// The thread's state.
struct Loop {
    world: Box<World<Wires>>,
    clock: DilatedClock,
    shared: Arc<Shared>,
    lateness: Lateness,
    arrivals: Vec<Arrival>,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC.
    realtime_offset_ns: u64,
    next_publication_ns: u64,
}

impl Loop {
    fn new(world: Box<World<Wires>>, clock: DilatedClock, shared: Arc<Shared>) -> Self {
        Self {
            world,
            clock,
            shared,
            lateness: Lateness::new(),
            arrivals: Vec::new(),
            realtime_offset_ns: realtime_offset_ns(),
            next_publication_ns: 0,
        }
    }

    fn run(mut self) -> Box<World<Wires>> {
        sharpen_timers();
        if self.await_start() {
            self.world.start();
            while !self.is_stopped() {
                self.turn();
            }
        }
        self.publish(true);
        self.world
    }

    fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// Sleep until the start; false if it was stopped before.
    fn await_start(&self) -> bool {
        while !self.is_stopped() {
            let now_ns = monotonic_ns();
            if now_ns >= self.clock.start_ns {
                return true;
            }
            sleep_until(self.clock.start_ns.min(now_ns + PUBLISH_NS));
        }
        false
    }

    /// Take what arrived, handle what is due, send, and wait for what comes next.
    fn turn(&mut self) {
        let now_ns = monotonic_ns();
        let now_ps = self.clock.emulated_ps(now_ns);
        let received = self.receive(now_ps);
        let mut handled = 0u32;
        while let Some(at_ps) = self.world.step(now_ps) {
            self.lateness.record(self.clock.wall_span_ns(now_ps - at_ps));
            handled += 1;
        }
        let is_blocked = self.world.medium_mut().flush();
        if now_ns >= self.next_publication_ns
            || self.shared.blocked_limit.load(Ordering::Relaxed) > 0
        {
            self.world.advance_to(now_ps);
            self.publish(false);
        }
        if received == 0 {
            self.wait(is_blocked, handled == 0);
        }
    }

    fn receive(&mut self, now_ps: u64) -> usize {
        let arrivals = &mut self.arrivals;
        let received = self.world.medium_mut().receive(|arrival| arrivals.push(arrival));
        for Arrival { direction, realtime_ns, frame } in self.arrivals.drain(..) {
            let arrival_ps = realtime_ns.map_or(now_ps, |realtime_ns| {
                self.clock.emulated_ps(realtime_ns.saturating_sub(self.realtime_offset_ns))
            });
            self.world.inject(arrival_ps.min(now_ps), direction, frame);
        }
        received
    }

    /// Wait for the next event, publication or datagram. Polls when it comes soon.
    fn wait(&mut self, is_blocked: bool, is_idle: bool) {
        let next_ns = self.world.next_ps().map_or(u64::MAX, |at_ps| self.clock.wall_ns(at_ps));
        let now_ns = monotonic_ns();
        let mut left_ns = next_ns.min(self.next_publication_ns).saturating_sub(now_ns);
        if is_blocked {
            left_ns = left_ns.min(RETRY_NS + POLL_NS);
        }
        if left_ns > POLL_NS {
            self.world.medium().wait(left_ns - POLL_NS);
        } else if is_idle {
            // Others may have frames for us.
            std::thread::yield_now();
        }
    }

    /// Hand over totals, completions and answers, unless a reader is just taking them.
    fn publish(&mut self, must: bool) {
        let mut published = match self.shared.published.try_lock() {
            Ok(published) => published,
            Err(TryLockError::WouldBlock) if !must => return,
            Err(_) => self.shared.lock(),
        };
        let limit = self.shared.blocked_limit.swap(0, Ordering::Relaxed);
        if limit > 0 {
            published.blocked = Some(self.world.blocked(limit));
            self.shared.answered.notify_all();
        }
        self.world.take_completions(&mut published.completions);
        published.snapshot = self.world.snapshot();
        published.lateness = self.lateness.clone();
        let p99_ns = self.lateness.quantile_ns(0.99);
        published.snapshot.totals.push(("lateness_p99_ns", p99_ns));
        self.next_publication_ns = monotonic_ns() + PUBLISH_NS;
        self.realtime_offset_ns = realtime_offset_ns();
    }
}
