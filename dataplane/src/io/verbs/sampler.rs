//! Counters of devices while a run goes on, read by a thread of its own: a device's firmware may take
//! its time to answer.

use super::counters::{self, Counters};
use super::discovery::Place;
use crate::io::clock::{DilatedClock, monotonic_ns};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks; it doubles each time that half of the room that is left is full.
const INTERVAL: Duration = Duration::from_millis(100);
/// Rows that are kept of a run.
const MAX_ROWS: usize = 1 << 20;

/// A counter that has grown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it was read, emulated time.
    pub time_ps: u64,
    /// Whose.
    pub nic: u32,
    /// Its name.
    pub name: Arc<str>,
    /// How much it has grown since the device was opened.
    pub value: u64,
}

/// Reads counters until it is finished or dropped.
#[derive(Debug)]
pub struct Sampler {
    /// The thread ends when this is gone.
    run: Arc<()>,
    thread: JoinHandle<Vec<Sample>>,
}

impl Sampler {
    /// Begin with what each NIC's counters were when its device was opened. `None` if there is no
    /// thread to be had: then there are no samples.
    pub fn start(clock: DilatedClock, devices: Vec<(u32, Place, Counters)>) -> Option<Self> {
        let run = Arc::new(());
        let goes_on = Arc::downgrade(&run);
        let watched =
            devices.into_iter().map(|(nic, place, before)| Watched::new(nic, place, before));
        let watched: Vec<Watched> = watched.collect();
        let builder = std::thread::Builder::new().name("rankwire-counters".into());
        let thread = builder.spawn(move || watch(clock, watched, &goes_on)).ok()?;
        Some(Self { run, thread })
    }

    /// Take a last look; everything that was seen.
    pub fn finish(self) -> Vec<Sample> {
        drop(self.run);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}

struct Watched {
    nic: u32,
    place: Place,
    before: Counters,
    /// Name of each counter and how much it had grown when it was last seen.
    seen: Vec<(Arc<str>, u64)>,
}

impl Watched {
    fn new(nic: u32, place: Place, before: Counters) -> Self {
        let seen = before.keys().map(|name| (name.as_str().into(), 0)).collect();
        Self { nic, place, before, seen }
    }

    /// Note the counters that have grown since the last call.
    fn note(&mut self, time_ps: u64, now: &Counters, samples: &mut Vec<Sample>) {
        let grown = counters::growth(&self.before, now);
        for (name, value) in &mut self.seen {
            let Some(&after) = grown.get(&**name) else { continue };
            if std::mem::replace(value, after) != after {
                let (nic, name) = (self.nic, name.clone());
                samples.push(Sample { time_ps, nic, name, value: after });
            }
        }
    }
}

fn watch(clock: DilatedClock, mut watched: Vec<Watched>, goes_on: &Weak<()>) -> Vec<Sample> {
    let (mut samples, mut interval, mut limit) = (Vec::new(), INTERVAL, MAX_ROWS / 2);
    loop {
        let is_last = goes_on.strong_count() == 0;
        for device in &mut watched {
            let now = counters::read(&device.place);
            device.note(clock.emulated_ps(monotonic_ns()), &now, &mut samples);
        }
        if is_last || samples.len() >= MAX_ROWS {
            return samples;
        }
        if samples.len() >= limit {
            limit += (MAX_ROWS - limit) / 2;
            interval *= 2;
        }
        std::thread::park_timeout(interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(rows: &[(&str, u64)]) -> Counters {
        rows.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn only_counters_that_have_grown_are_noted() {
        let place =
            Place { device: "rxe0".into(), port: 1, gid_index: 1, interface: "eth0".into() };
        let mut watched = Watched::new(3, place, counters(&[("a", 10), ("b", 5)]));
        let mut samples = Vec::new();
        watched.note(100, &counters(&[("a", 10), ("b", 7)]), &mut samples);
        watched.note(200, &counters(&[("a", 11), ("b", 7)]), &mut samples);
        watched.note(300, &counters(&[("a", 11), ("b", 7)]), &mut samples);
        let noted: Vec<_> = samples.iter().map(|s| (s.time_ps, &*s.name, s.value)).collect();
        assert_eq!(noted, [(100, "b", 2), (200, "a", 1)]);
        assert!(samples.iter().all(|sample| sample.nic == 3));
    }

    #[test]
    fn a_sampler_ends_when_it_is_told() {
        let sampler = Sampler::start(DilatedClock { start_ns: 0, dilation: 1 }, Vec::new())
            .expect("a thread");
        assert_eq!(sampler.finish(), []);
    }
}
