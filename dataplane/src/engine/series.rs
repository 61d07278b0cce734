//! Time series of bounded length: when they are full, neighbouring samples merge and the interval
//! doubles, so that a series covers any run with the finest resolution that fits.

/// One row of a sparse series: samples without anything to tell have no row.
pub trait Row {
    /// Orders the rows of one sample; rows of the same key are of the same series.
    fn key(&self) -> u64;
    /// Add the row that follows in the same series.
    fn merge(&mut self, later: &Self);
}

/// Rows by sample and key.
#[derive(Debug)]
pub struct Series<R> {
    rows: Vec<(u32, R)>,
}

impl<R: Row> Series<R> {
    /// An empty series.
    pub fn new() -> Self {
        Self { rows: Vec::new() }
    }

    /// Append a row; `sample` never descends.
    pub fn push(&mut self, sample: u32, row: R) {
        self.rows.push((sample, row));
    }

    /// Merge samples 2k and 2k + 1 into sample k.
    pub fn halve(&mut self) {
        for row in &mut self.rows {
            row.0 /= 2;
        }
        self.merge();
    }

    /// Merge rows of the same sample and key.
    pub fn merge(&mut self) {
        self.rows.sort_by_key(|(sample, row)| (*sample, row.key()));
        self.rows.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0 && later.1.key() == earlier.1.key();
            if same {
                earlier.1.merge(&later.1);
            }
            same
        });
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// There are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Sample number and row, in order.
    pub fn rows(&self) -> &[(u32, R)] {
        &self.rows
    }
}

impl<R: Row> Default for Series<R> {
    fn default() -> Self {
        Self::new()
    }
}

/// When samples are taken. Sample k covers `[k, k + 1) * interval_ps` and is taken at its end.
#[derive(Clone, Copy, Debug)]
pub struct SampleClock {
    interval_ps: u64,
    max_samples: u64,
    sample: u64,
}

impl SampleClock {
    /// A clock at time 0.
    pub fn new(interval_ps: u64, max_samples: u32) -> Self {
        Self { interval_ps, max_samples: u64::from(max_samples), sample: 0 }
    }

    /// Number of the sample that is being collected.
    pub fn sample(&self) -> u32 {
        self.sample as u32
    }

    /// Length of a sample.
    pub fn interval_ps(&self) -> u64 {
        self.interval_ps
    }

    /// End of the sample that is being collected.
    #[inline]
    pub fn end_ps(&self) -> u64 {
        (self.sample + 1).saturating_mul(self.interval_ps)
    }

    /// Double the interval; the series must be halved.
    pub fn coarsen(&mut self) {
        self.interval_ps = self.interval_ps.saturating_mul(2);
        self.sample /= 2;
    }

    /// Go to the sample that holds `now_ps`; how often the series must be halved for it.
    pub fn advance_to(&mut self, now_ps: u64) -> u32 {
        let mut halvings = 0;
        while now_ps / self.interval_ps >= self.max_samples {
            self.interval_ps = self.interval_ps.saturating_mul(2);
            halvings += 1;
        }
        self.sample = now_ps / self.interval_ps;
        halvings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    struct Count {
        key: u64,
        sum: u64,
    }

    impl Row for Count {
        fn key(&self) -> u64 {
            self.key
        }

        fn merge(&mut self, later: &Self) {
            self.sum += later.sum;
        }
    }

    #[test]
    fn halving_adds_neighbours_of_the_same_key_and_keeps_lone_rows() {
        let mut series = Series::new();
        for (sample, key, sum) in [(0, 1, 10), (0, 2, 20), (1, 1, 1), (3, 2, 5)] {
            series.push(sample, Count { key, sum });
        }
        series.halve();
        let rows: Vec<_> = series.rows().iter().map(|(s, r)| (*s, r.key, r.sum)).collect();
        assert_eq!(rows, [(0, 1, 11), (0, 2, 20), (1, 2, 5)]);
    }

    #[test]
    fn rows_of_one_sample_that_came_in_two_parts_merge() {
        let mut series = Series::new();
        for (sample, key, sum) in [(0, 1, 10), (1, 1, 1), (1, 2, 2), (1, 1, 4)] {
            series.push(sample, Count { key, sum });
        }
        series.merge();
        let rows: Vec<_> = series.rows().iter().map(|(s, r)| (*s, r.key, r.sum)).collect();
        assert_eq!(rows, [(0, 1, 10), (1, 1, 5), (1, 2, 2)]);
    }

    #[test]
    fn the_interval_doubles_when_the_samples_are_used_up() {
        let mut clock = SampleClock::new(10, 4);
        assert_eq!(clock.end_ps(), 10);
        assert_eq!(clock.advance_to(39), 0);
        assert_eq!((clock.sample(), clock.end_ps()), (3, 40));
        assert_eq!(clock.advance_to(40), 1);
        assert_eq!((clock.interval_ps(), clock.sample(), clock.end_ps()), (20, 2, 60));
    }

    #[test]
    fn a_long_gap_halves_as_often_as_needed() {
        let mut clock = SampleClock::new(1, 4);
        assert_eq!(clock.advance_to(1000), 8);
        assert!(clock.end_ps() > 1000);
    }
}
