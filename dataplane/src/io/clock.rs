//! The wall clock, and its relation to emulated time.

use std::time::Duration;

/// Two looks at clocks between which nothing else happened take less.
const PROMPT_NS: u64 = 2_000;

/// CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME less CLOCK_MONOTONIC in nanoseconds, now.
pub fn realtime_offset_ns() -> u64 {
    let look = || {
        let before_ns = monotonic_ns();
        let realtime_ns = read_ns(libc::CLOCK_REALTIME);
        let took_ns = monotonic_ns() - before_ns;
        (took_ns, realtime_ns.saturating_sub(before_ns + took_ns / 2))
    };
    let mut best = look();
    // Another process may have had its turn in between.
    for _ in 0..3 {
        if best.0 <= PROMPT_NS {
            break;
        }
        best = best.min(look());
    }
    best.1
}

/// An instant as the kernel tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelTime {
    /// CLOCK_REALTIME in nanoseconds.
    Realtime(u64),
    /// CLOCK_MONOTONIC in nanoseconds.
    Monotonic(u64),
}

impl KernelTime {
    /// CLOCK_MONOTONIC; `offset_ns` is that of CLOCK_REALTIME, see [`realtime_offset_ns`].
    pub fn monotonic_ns(self, offset_ns: u64) -> u64 {
        match self {
            KernelTime::Realtime(ns) => ns.saturating_sub(offset_ns),
            KernelTime::Monotonic(ns) => ns,
        }
    }
}

/// Processor time of the calling thread in nanoseconds.
pub fn thread_processor_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[allow(unsafe_code)]
fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result; these clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Emulated time as a function of the wall clock: it starts at an instant and runs `dilation` times
/// slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DilatedClock {
    /// CLOCK_MONOTONIC at emulated time 0.
    pub start_ns: u64,
    /// Wall time per emulated time, at least 1.
    pub dilation: u64,
}

impl DilatedClock {
    /// Emulated time at an instant; 0 before the start.
    #[inline]
    pub fn emulated_ps(&self, wall_ns: u64) -> u64 {
        let elapsed_ns = wall_ns.saturating_sub(self.start_ns);
        (u128::from(elapsed_ns) * 1000 / u128::from(self.dilation)) as u64
    }

    /// The first instant at which it is at least `emulated_ps`.
    #[inline]
    pub fn wall_ns(&self, emulated_ps: u64) -> u64 {
        let elapsed_ns = (u128::from(emulated_ps) * u128::from(self.dilation)).div_ceil(1000);
        self.start_ns.saturating_add(elapsed_ns.min(u128::from(u64::MAX)) as u64)
    }

    /// Wall time that an emulated span takes.
    #[inline]
    pub fn wall_span_ns(&self, emulated_ps: u64) -> u64 {
        (u128::from(emulated_ps) * u128::from(self.dilation) / 1000) as u64
    }
}

/// Let the calling thread's timers fire on time instead of up to 50 us late.
#[allow(unsafe_code)]
pub fn sharpen_timers() {
    // SAFETY: the option takes one integer and concerns the calling thread alone. Should it fail,
    // timers stay as they are.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Sleep until an instant of CLOCK_MONOTONIC, or return at once if it has passed.
pub fn sleep_until(wall_ns: u64) {
    let now_ns = monotonic_ns();
    if wall_ns > now_ns {
        std::thread::sleep(Duration::from_nanos(wall_ns - now_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emulated_time_runs_slower_by_the_dilation() {
        let clock = DilatedClock { start_ns: 1000, dilation: 5000 };
        assert_eq!(clock.emulated_ps(0), 0);
        assert_eq!(clock.emulated_ps(1000 + 5000), 1000);
        assert_eq!(clock.wall_ns(1000), 1000 + 5000);
    }

    #[test]
    fn an_event_is_never_due_before_its_wall_time() {
        let clock = DilatedClock { start_ns: 17, dilation: 333 };
        for emulated_ps in [1, 2, 3, 999, 1000, 123_456_789] {
            assert!(clock.emulated_ps(clock.wall_ns(emulated_ps)) >= emulated_ps);
        }
    }

    #[test]
    fn instants_of_both_clocks_are_the_same_on_one() {
        assert_eq!(KernelTime::Realtime(1_700).monotonic_ns(1_000), 700);
        assert_eq!(KernelTime::Monotonic(700).monotonic_ns(1_000), 700);
    }

    #[test]
    fn the_monotonic_clock_advances() {
        let first_ns = monotonic_ns();
        sleep_until(first_ns + 1_000_000);
        assert!(monotonic_ns() >= first_ns + 1_000_000);
    }
}
