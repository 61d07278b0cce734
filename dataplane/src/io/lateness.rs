//! How late events were handled: a histogram with a bounded relative error.

/// Sub-buckets per factor of two: values are known within an eighth.
const SUB_BITS: u32 = 3;
const BUCKETS: usize = (64 << SUB_BITS) as usize;

/// A histogram of wall times in nanoseconds.
#[derive(Clone, Debug)]
pub struct Lateness {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Lateness {
    /// Nothing recorded.
    pub fn new() -> Self {
        Self { counts: Box::new([0; BUCKETS]), count: 0, sum_ns: 0, max_ns: 0 }
    }

    /// Record one event.
    #[inline]
    pub fn record(&mut self, late_ns: u64) {
        self.counts[bucket(late_ns)] += 1;
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(late_ns);
        self.max_ns = self.max_ns.max(late_ns);
    }

    /// Events recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Events that were late at all.
    pub fn positive_count(&self) -> u64 {
        self.count - self.counts[0]
    }

    /// Mean.
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns.checked_div(self.count).unwrap_or(0)
    }

    /// Largest.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The value that a share of the events does not exceed, rounded up by at most an eighth.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let wanted = (self.count as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted && *count > 0 {
                return upper_bound(index).min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// Upper bound and count of every bucket that is not empty.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let indexed = self.counts.iter().enumerate();
        indexed.filter(|(_, count)| **count > 0).map(|(index, count)| (upper_bound(index), *count))
    }
}

impl Default for Lateness {
    fn default() -> Self {
        Self::new()
    }
}

#[inline]
fn bucket(value: u64) -> usize {
    let octave = (value | 1).ilog2();
    if octave < SUB_BITS {
        return value as usize;
    }
    let shift = octave - SUB_BITS;
    (((shift + 1) as usize) << SUB_BITS) + ((value >> shift) as usize & ((1 << SUB_BITS) - 1))
}

/// Largest value of a bucket.
fn upper_bound(index: usize) -> u64 {
    if index < 2 << SUB_BITS {
        return index as u64;
    }
    let shift = (index >> SUB_BITS) as u32 - 1;
    let sub = (index & ((1 << SUB_BITS) - 1)) as u128;
    let top = (((1u128 << SUB_BITS) + sub + 1) << shift) - 1;
    top.min(u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_within_an_eighth_below_its_buckets_bound() {
        for value in (0..70_000).chain([1 << 40, (1 << 40) + 12_345, u64::MAX]) {
            let bound = upper_bound(bucket(value));
            assert!(bound >= value && bound - value <= value / 8, "{value} {bound}");
        }
    }

    #[test]
    fn quantiles_of_a_uniform_sample() {
        let mut lateness = Lateness::new();
        (1..=1000).for_each(|value| lateness.record(value));
        assert!(lateness.quantile_ns(0.5).abs_diff(500) <= 64);
        assert_eq!(lateness.quantile_ns(1.0), 1000);
        assert_eq!((lateness.count(), lateness.max_ns(), lateness.mean_ns()), (1000, 1000, 500));
    }

    #[test]
    fn nothing_recorded_is_zero() {
        assert_eq!(Lateness::new().quantile_ns(0.99), 0);
    }
}
