//! Drives a world in virtual time: as fast as events can be handled, the same for every run.

use super::error::ConfigError;
use super::medium::{Internal, Wrapped, wrap};
use super::program::Program;
use super::world::World;
use crate::config::JobConfig;
use std::sync::Arc;

/// Why [`Emulation::advance`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Every operation is complete.
    Done,
    /// Operations are left and nothing will ever happen.
    Stalled,
    /// There is more to do.
    Paused,
}

/// A whole job in one process and virtual time.
#[derive(Debug)]
pub struct Emulation {
    world: World<Wrapped<Internal>>,
    is_started: bool,
}

impl Emulation {
    /// A job at time 0.
    pub fn new(config: JobConfig, programs: &[Arc<Program>]) -> Result<Self, ConfigError> {
        let medium = wrap(&config, Internal::new(&config));
        let world = World::new(Arc::new(config), programs, medium, |_| true)?;
        Ok(Self { world, is_started: false })
    }

    /// Handle events up to `until_ps`, at most `max_events`, until every operation is complete.
    pub fn advance(&mut self, until_ps: Option<u64>, max_events: u64) -> Progress {
        if !self.is_started {
            self.is_started = true;
            self.world.start();
        }
        let until_ps = until_ps.unwrap_or(u64::MAX);
        for _ in 0..max_events {
            if self.world.is_done() {
                return Progress::Done;
            }
            if self.world.step(until_ps).is_none() {
                return self.idle(until_ps);
            }
        }
        if self.world.is_done() { Progress::Done } else { Progress::Paused }
    }

    fn idle(&mut self, until_ps: u64) -> Progress {
        match self.world.next_ps() {
            None => Progress::Stalled,
            Some(_) => {
                self.world.advance_to(until_ps);
                Progress::Paused
            }
        }
    }

    /// The world.
    pub fn world(&self) -> &World<Wrapped<Internal>> {
        &self.world
    }

    /// The world.
    pub fn world_mut(&mut self) -> &mut World<Wrapped<Internal>> {
        &mut self.world
    }
}
