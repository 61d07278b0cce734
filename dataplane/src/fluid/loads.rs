//! What links carry: the sum of the rates on each, integrated over time and sampled.

use crate::engine::rows::LinkRow;
use crate::engine::series::{SampleClock, Series};
use crate::units::{PREAMBLE_AND_GAP_BYTES, PS_PER_S};

/// Rows that the series may have: past it the interval doubles, whatever `max_samples` allows.
const MAX_ROWS: usize = 1 << 20;

/// What one byte on the line stands for while a message is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mix {
    /// Payload of it.
    pub payload_ratio: f64,
    /// Packets for each byte.
    pub packets_per_byte: f64,
}

/// Bytes on the line, payload and packets; or rates of them.
#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    line: f64,
    payload: f64,
    packets: f64,
}

impl Amount {
    fn add(&mut self, factor: f64, of: Amount) {
        self.line += factor * of.line;
        self.payload += factor * of.payload;
        self.packets += factor * of.packets;
    }

    fn of(line: f64, mix: Mix) -> Self {
        Self { line, payload: line * mix.payload_ratio, packets: line * mix.packets_per_byte }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Load {
    rate_bps: u64,
    flows: u32,
    /// Bytes, payload and packets a picosecond.
    now: Amount,
    updated_ps: u64,
    carried: Amount,
    /// Bytes on the line when the rate changed last, and the time that they had taken.
    before: (f64, f64),
    /// What has gone into rows.
    told: (u64, u64, u64, u64),
}

impl Load {
    fn settle(&mut self, now_ps: u64) {
        let elapsed_ps = (now_ps - self.updated_ps) as f64;
        self.updated_ps = now_ps;
        if self.flows > 0 {
            self.carried.add(elapsed_ps, self.now);
        }
    }

    /// Frame bytes, packets, payload and busy time since the start.
    fn totals(&self) -> (u64, u64, u64, u64) {
        let Amount { line, payload, packets } = self.carried;
        let frame_bytes = line - packets * PREAMBLE_AND_GAP_BYTES as f64;
        let busy_ps = self.busy_ps(line);
        (frame_bytes.round() as u64, packets.round() as u64, payload.round() as u64, busy_ps as u64)
    }

    fn busy_ps(&self, line: f64) -> f64 {
        let (line_before, busy_before_ps) = self.before;
        busy_before_ps + (line - line_before) * (8 * PS_PER_S) as f64 / self.rate_bps as f64
    }

    fn row(&mut self, direction: u32) -> LinkRow {
        let (totals, told) = (self.totals(), self.told);
        self.told = totals;
        LinkRow {
            direction,
            tx_bytes: totals.0.saturating_sub(told.0),
            tx_packets: totals.1.saturating_sub(told.1),
            data_bytes: totals.2.saturating_sub(told.2),
            busy_ps: totals.3.saturating_sub(told.3),
            paused_ps: 0,
        }
    }
}

/// All directions of all links.
#[derive(Debug)]
pub struct Loads {
    loads: Vec<Load>,
    /// Flow shares that are on any link now.
    active: u64,
    has_changed: bool,
    clock: SampleClock,
    next_sample_ps: u64,
    /// Number of the sample that was taken last.
    last_taken: Option<u32>,
    series: Series<LinkRow>,
}

impl Loads {
    /// Directions with these rates, carrying nothing; samples as in the packet engine.
    pub fn new(
        rates_bps: impl Iterator<Item = u64>,
        sample_interval_ps: u64,
        max_samples: u32,
    ) -> Self {
        let clock = SampleClock::new(sample_interval_ps, max_samples);
        Self {
            loads: rates_bps.map(|rate_bps| Load { rate_bps, ..Load::default() }).collect(),
            active: 0,
            has_changed: false,
            clock,
            next_sample_ps: clock.end_ps(),
            last_taken: None,
            series: Series::new(),
        }
    }

    /// A flow comes on a direction.
    pub fn enter(&mut self, now_ps: u64, direction: u32) {
        let load = &mut self.loads[direction as usize];
        load.settle(now_ps);
        load.flows += 1;
        self.active += 1;
        self.has_changed = true;
    }

    /// A flow that has been brought to rate 0 leaves a direction; rounding leaves with the last.
    pub fn leave(&mut self, now_ps: u64, direction: u32) {
        let load = &mut self.loads[direction as usize];
        load.settle(now_ps);
        load.flows -= 1;
        self.active -= 1;
        if load.flows == 0 {
            load.now = Amount::default();
        }
    }

    /// A part of a flow on a direction changes from one rate, bits/s, and mix to another.
    pub fn change(&mut self, now_ps: u64, direction: u32, from: (f64, Mix), to: (f64, Mix)) {
        let load = &mut self.loads[direction as usize];
        load.settle(now_ps);
        let bytes_per_ps = 1.0 / (8 * PS_PER_S) as f64;
        load.now.add(-bytes_per_ps, Amount::of(from.0, from.1));
        load.now.add(bytes_per_ps, Amount::of(to.0, to.1));
    }

    /// A direction has another line rate from now on.
    pub fn set_rate(&mut self, now_ps: u64, direction: u32, rate_bps: u64) {
        let load = &mut self.loads[direction as usize];
        load.settle(now_ps);
        load.before = (load.carried.line, load.busy_ps(load.carried.line));
        load.rate_bps = rate_bps;
    }

    /// When [`Loads::advance_to`] must be called.
    pub fn next_sample_ps(&self) -> u64 {
        self.next_sample_ps
    }

    /// Take the samples that end up to `now_ps`.
    pub fn advance_to(&mut self, now_ps: u64) {
        while self.clock.end_ps() <= now_ps {
            let end_ps = self.clock.end_ps();
            let is_idle = self.active == 0 && !std::mem::take(&mut self.has_changed);
            if !is_idle {
                self.take(end_ps);
            }
            while self.series.len() > MAX_ROWS && self.clock.sample() > 0 {
                self.clock.coarsen();
                self.halve();
            }
            let to_ps = if is_idle { now_ps } else { end_ps };
            for _ in 0..self.clock.advance_to(to_ps) {
                self.halve();
            }
        }
        self.next_sample_ps = self.clock.end_ps();
    }

    /// Take what there is of the sample that holds `now_ps`.
    pub fn finish(&mut self, now_ps: u64) {
        self.advance_to(now_ps);
        self.take(now_ps);
    }

    fn take(&mut self, at_ps: u64) {
        for (direction, load) in self.loads.iter_mut().enumerate() {
            load.settle(at_ps);
            let row = load.row(direction as u32);
            if row.tx_packets > 0 || row.busy_ps > 0 {
                self.series.push(self.clock.sample(), row);
            }
        }
        if self.last_taken.replace(self.clock.sample()) == Some(self.clock.sample()) {
            // The sample was taken before its end, or its interval has doubled since.
            self.series.merge();
        }
    }

    fn halve(&mut self) {
        self.last_taken = self.last_taken.map(|sample| sample / 2);
        self.series.halve();
    }

    /// Length of the samples.
    pub fn interval_ps(&self) -> u64 {
        self.clock.interval_ps()
    }

    /// Sample number and row.
    pub fn rows(&self) -> &[(u32, LinkRow)] {
        self.series.rows()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIX: Mix = Mix { payload_ratio: 0.5, packets_per_byte: 0.01 };

    /// One direction of 8 Tb/s, a byte a picosecond, with samples of 100 ps.
    fn one() -> Loads {
        Loads::new([8_000_000_000_000].into_iter(), 100, 4)
    }

    #[test]
    fn bytes_are_the_rate_over_time() {
        let mut loads = one();
        loads.enter(50, 0);
        loads.change(50, 0, (0.0, MIX), (8e12, MIX));
        loads.advance_to(150);
        loads.change(150, 0, (8e12, MIX), (4e12, MIX));
        loads.finish(250);
        let rows: Vec<_> = loads.rows().iter().map(|(s, row)| (*s, row.busy_ps)).collect();
        assert_eq!(rows, [(0, 50), (1, 75), (2, 25)]);
        let sum = |of: fn(&LinkRow) -> u64| loads.rows().iter().map(|(_, r)| of(r)).sum::<u64>();
        assert_eq!(sum(|row| row.data_bytes), 75);
        assert_eq!(sum(|row| row.tx_packets), 2);
        assert_eq!(sum(|row| row.tx_bytes), 150 - 30);
    }

    #[test]
    fn a_long_flow_without_an_event_has_all_samples_and_idle_time_has_none() {
        let mut loads = one();
        loads.enter(0, 0);
        loads.change(0, 0, (0.0, MIX), (8e12, MIX));
        loads.advance_to(300);
        assert_eq!(loads.rows().len(), 3);
        loads.change(300, 0, (8e12, MIX), (0.0, MIX));
        loads.leave(300, 0);
        loads.advance_to(1_000_000);
        assert_eq!(loads.rows().iter().map(|(_, row)| row.busy_ps).sum::<u64>(), 300);
    }
}
