//! Seeded pseudo-random numbers, one generator per state machine, so that a run repeats bit for bit.

/// SplitMix64. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014; the output function and constants are those of its section 5.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator whose sequence depends on `seed` and on the `stream` within it.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self { state: seed ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03) };
        random.next_u64();
        random
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    /// A number uniform in `[0, 1)`, with 53 random bits.
    #[inline]
    pub fn next_ratio(&mut self) -> f64 {
        ratio(self.next_u64())
    }
}

/// The number in `[0, 1)` that 64 random bits stand for: the upper 53 of them.
#[inline]
pub fn ratio(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// SplitMix64's output function: a bijection whose every output bit depends on every input bit.
#[inline]
pub fn mix(value: u64) -> u64 {
    let mut z = value;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
