//! The loop of a thread that drives nodes in real time.
//!
//! Events are handled at their scheduled time even if the loop comes late, so that lateness costs no
//! bandwidth; how late it came is recorded. Frames go on their wire when their transmission begins,
//! with the time at which they arrive: the loop may be late by as much as a link takes before a
//! frame is. How late frames are is recorded, too. Frames of a real network are taken to arrive when
//! the kernel got them, not when the loop looked.

use super::carrier::Carrier;
use super::clock::{DilatedClock, monotonic_ns, realtime_offset_ns, sharpen_timers, sleep_until};
use super::lateness::Lateness;
use super::live_links::LiveLinks;
use super::wire::Arrival;
use crate::engine::blocked::Blocked;
use crate::engine::link_events::Moment;
use crate::engine::medium::{Medium, Wrapped};
use crate::engine::nic::DeviceEvent;
use crate::engine::records::Snapshot;
use crate::engine::world::{RankCompletion, World};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, TryLockError};

/// Shorter waits are spent polling. A sleeping thread comes back some 25 us late, but one that polls
/// for longer uses up its share of a busy machine and is late by milliseconds when it matters.
const POLL_NS: u64 = 10_000;
/// Time between two publications of totals.
const PUBLISH_NS: u64 = 100_000_000;
/// How long an order may lie where events are waited for.
const ORDER_NS: u64 = 5_000_000;
/// A retry when a socket was full.
const RETRY_NS: u64 = 20_000;

/// What the loop tells while it runs.
#[derive(Debug, Default)]
pub struct Published {
    pub snapshot: Snapshot,
    pub completions: Vec<RankCompletion>,
    pub lateness: Lateness,
    pub frame_lateness: Lateness,
    /// The answer to a question for blocked operations.
    pub blocked: Option<Vec<Blocked>>,
}

/// What the loop and its callers have in common.
#[derive(Debug, Default)]
pub struct Shared {
    pub stop: AtomicBool,
    /// Blocked operations are asked for, at most so many; 0 is no question.
    pub blocked_limit: AtomicUsize,
    pub published: Mutex<Published>,
    pub answered: Condvar,
    /// Something was ordered.
    pub has_orders: AtomicBool,
    /// Events of links that were ordered, and from when their changes are counted.
    pub orders: Mutex<Vec<(u32, u64)>>,
    /// Moments of events that have come here.
    pub moments: Mutex<Vec<Moment>>,
}

/// What is behind a mutex; a panic while it was held leaves old but whole values.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, Published> {
        locked(&self.published)
    }
}

/// The thread's state.
pub struct Loop {
    world: Box<World<Wrapped<Carrier>>>,
    clock: DilatedClock,
    /// What is sent at one time comes back no earlier than this after it.
    lookahead_ps: u64,
    shared: Arc<Shared>,
    /// Of events.
    lateness: Lateness,
    /// Of frames: how long after its time of arrival each came, 0 if in time.
    frame_lateness: Lateness,
    arrivals: Vec<Arrival>,
    device_events: Vec<(u32, u32, DeviceEvent)>,
    /// Links have events, and others carry a part of the job: some may be ordered.
    has_events: bool,
    live_links: Option<LiveLinks>,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC.
    realtime_offset_ns: u64,
    next_publication_ns: u64,
}

impl Loop {
    pub fn new(
        world: Box<World<Wrapped<Carrier>>>,
        clock: DilatedClock,
        shared: Arc<Shared>,
    ) -> Self {
        let delays = world.config().links.iter().map(|link| link.delay_ps);
        let lookahead_ps = if world.medium().takes_ahead() { delays.min() } else { None };
        let has_events = world.link_events().is_some_and(|events| events.of_part().is_some());
        let is_fabric = matches!(world.medium().inner().inner(), Carrier::Wires(_));
        let live_links = if is_fabric { LiveLinks::new(&world) } else { None };
        Self {
            world,
            clock,
            has_events,
            live_links,
            lookahead_ps: lookahead_ps.unwrap_or(u64::MAX),
            shared,
            lateness: Lateness::new(),
            frame_lateness: Lateness::new(),
            arrivals: Vec::new(),
            device_events: Vec::new(),
            realtime_offset_ns: realtime_offset_ns(),
            next_publication_ns: 0,
        }
    }

    pub fn run(mut self) -> Box<World<Wrapped<Carrier>>> {
        sharpen_timers();
        if self.await_start() {
            self.world.medium_mut().inner_mut().inner_mut().begin(self.clock);
            self.world.start();
            while !self.is_stopped() {
                self.turn();
            }
        }
        self.world.medium_mut().inner_mut().inner_mut().stop();
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
    ///
    /// A loop that is late handles no more at once than the frames that it sends to itself allow.
    fn turn(&mut self) {
        let now_ns = monotonic_ns();
        let now_ps = self.clock.emulated_ps(now_ns);
        self.take_orders();
        let received = self.receive(now_ps);
        let mut handled = 0u32;
        let next_ps = self.world.next_ps().unwrap_or(now_ps);
        let until_ps = now_ps.min(next_ps.saturating_add(self.lookahead_ps));
        while let Some(at_ps) = self.world.step(until_ps) {
            self.lateness.record(self.clock.wall_span_ns(now_ps - at_ps));
            handled += 1;
        }
        self.tell_moments();
        let is_blocked = self.world.medium_mut().inner_mut().inner_mut().flush();
        if now_ns >= self.next_publication_ns
            || self.shared.blocked_limit.load(Ordering::Relaxed) > 0
        {
            self.world.advance_to(now_ps);
            self.publish(false);
        }
        if received == 0 && until_ps == now_ps {
            self.wait(is_blocked, handled == 0);
        }
    }

    /// Take what was ordered.
    fn take_orders(&mut self) {
        if !self.has_events || !self.shared.has_orders.swap(false, Ordering::Acquire) {
            return;
        }
        let orders = std::mem::take(&mut *locked(&self.shared.orders));
        for (event, base_ps) in orders {
            self.world.order_event(event, base_ps);
        }
    }

    fn tell_moments(&mut self) {
        if self.has_events {
            let moments = self.world.take_moments();
            if !moments.is_empty() {
                locked(&self.shared.moments).extend(moments);
            }
        }
    }

    fn receive(&mut self, now_ps: u64) -> usize {
        let arrivals = &mut self.arrivals;
        let received = self
            .world
            .medium_mut()
            .inner_mut()
            .inner_mut()
            .receive(|arrival| arrivals.push(arrival));
        // Anew, so that a clock that is set spoils no more than the times taken before it was.
        if self.arrivals.iter().any(|arrival| arrival.at_ps.is_none()) {
            self.realtime_offset_ns = realtime_offset_ns();
        }
        for Arrival { direction, at_ps, kernel_time, frame } in self.arrivals.drain(..) {
            if let Some(at_ps) = at_ps {
                let late_ns = late_ns(&self.clock, self.world.now_ps(), at_ps);
                self.frame_lateness.record(late_ns);
            }
            let received_ps = || {
                let offset_ns = self.realtime_offset_ns;
                let monotonic_ns = kernel_time.map(|time| time.monotonic_ns(offset_ns));
                monotonic_ns.map_or(now_ps, |ns| self.clock.emulated_ps(ns)).min(now_ps)
            };
            self.world.inject(at_ps.unwrap_or_else(received_ps), direction, frame);
        }
        received + self.receive_from_devices(now_ps)
    }

    /// Take what adapters report; when it happened they don't say.
    fn receive_from_devices(&mut self, now_ps: u64) -> usize {
        let events = &mut self.device_events;
        let carrier = self.world.medium_mut().inner_mut().inner_mut();
        carrier.poll_devices(|nic, pair, event| events.push((nic, pair, event)));
        let count = events.len();
        for (nic, pair, event) in events.drain(..) {
            self.world.inject_device_event(now_ps, nic, pair, event);
        }
        count
    }

    /// Wait for the next event, publication or datagram. Polls when it comes soon.
    fn wait(&mut self, is_blocked: bool, is_idle: bool) {
        let next_ns = self.world.next_ps().map_or(u64::MAX, |at_ps| self.clock.wall_ns(at_ps));
        let now_ns = monotonic_ns();
        let mut left_ns = next_ns.min(self.next_publication_ns).saturating_sub(now_ns);
        if is_blocked {
            left_ns = left_ns.min(RETRY_NS + POLL_NS);
        }
        if self.has_events {
            left_ns = left_ns.min(ORDER_NS);
        }
        if left_ns > POLL_NS {
            self.world.medium().inner().inner().wait(left_ns - POLL_NS);
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
        if let Some(live) = &mut self.live_links {
            live.look(&self.world, must);
            let mut tables = published.snapshot.tables.iter_mut();
            if let Some((_, links)) = tables.find(|(name, _)| *name == "links") {
                links.extend(live.columns(&self.world));
            }
        }
        published.lateness = self.lateness.clone();
        published.frame_lateness = self.frame_lateness.clone();
        let p99_ns = self.lateness.quantile_ns(0.99);
        let late_frames = self.frame_lateness.positive_count();
        published.snapshot.totals.push(("lateness_p99_ns", p99_ns));
        published.snapshot.totals.push(("late_frames", late_frames));
        self.next_publication_ns = monotonic_ns() + PUBLISH_NS;
    }
}

/// How late a frame is that arrives at `at_ps` when everything up to `handled_ps` has been handled,
/// wall time. At that very time it counts as late, by 1 ns: its turn among the events of the time may
/// have passed.
fn late_ns(clock: &DilatedClock, handled_ps: u64, at_ps: u64) -> u64 {
    let late_ps = handled_ps.checked_sub(at_ps);
    late_ps.map_or(0, |late_ps| clock.wall_span_ns(late_ps).max(1))
}
