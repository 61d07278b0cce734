//! The congestion estimate of DCQCN, decayed only when somebody looks.
//!
//! The decay needs no timer: `k` silent periods multiply the estimate by `(1-g)^k`, whenever that is
//! computed. So an idle queue pair costs nothing. Where an implementation counts in integers, so does
//! the estimate: every update is rounded down, and the steps of `k` periods are taken one by one
//! until nothing is left.

use crate::config::{AlphaUpdate, DcqcnConfig};

/// The estimate and the time up to which it is decayed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alpha {
    value: Value,
    period_ps: u64,
    update: AlphaUpdate,
    /// Start of the running period.
    period_start_ps: u64,
    /// A notification came in the running period; used where the update is periodic.
    notified: bool,
}

impl Alpha {
    /// The estimate before the first notification.
    pub fn new(config: &DcqcnConfig) -> Self {
        Self {
            value: Value::new(config),
            period_ps: config.alpha_update_period_ps.max(1),
            update: config.alpha_update,
            period_start_ps: 0,
            notified: false,
        }
    }

    /// The first notification: the periods start. Where the update is periodic the estimate has its
    /// initial value on account of this notification, so it does not count again.
    pub fn start(&mut self, now_ps: u64) {
        self.period_start_ps = now_ps;
        if self.update == AlphaUpdate::OnCnp {
            self.value.rise();
        }
    }

    /// A later notification.
    pub fn notify(&mut self, now_ps: u64) {
        self.advance(now_ps);
        match self.update {
            AlphaUpdate::OnCnp => {
                self.value.rise();
                self.period_start_ps = now_ps;
            }
            AlphaUpdate::Periodic => self.notified = true,
        }
    }

    /// End all periods up to `now_ps`.
    #[inline]
    pub fn advance(&mut self, now_ps: u64) {
        let mut periods = now_ps.saturating_sub(self.period_start_ps) / self.period_ps;
        if periods == 0 {
            return;
        }
        self.period_start_ps += periods * self.period_ps;
        if std::mem::take(&mut self.notified) {
            self.value.rise();
            periods -= 1;
        }
        self.value.decay(periods);
    }

    /// The estimate as of the last `advance`.
    #[inline]
    pub fn value(&self) -> f64 {
        self.value.ratio()
    }
}

/// Most binary digits behind the point: products stay within 64 bits.
pub const MAX_FRACTION_BITS: u32 = 30;

/// A number from 0 to 1, real or with so many binary digits behind the point.
#[derive(Clone, Copy, Debug)]
enum Value {
    Real { value: f64, g: f64 },
    Fixed { value: u64, kept: u64, bits: u32 },
}

impl Value {
    fn new(config: &DcqcnConfig) -> Self {
        let (value, g) = (config.initial_alpha, config.g);
        match config.alpha_fraction_bits.min(MAX_FRACTION_BITS) {
            0 => Self::Real { value, g },
            bits => {
                let one = (1u64 << bits) as f64;
                let rounded = |ratio: f64| (ratio * one).round() as u64;
                Self::Fixed { value: rounded(value), kept: rounded(1.0 - g), bits }
            }
        }
    }

    /// `alpha = (1-g) alpha + g`. Source: Zhu et al., SIGCOMM 2015, equation 1; in integers as mlx5's
    /// parameters describe it, `alpha = G alpha / 1024 + (1024 - G)`.
    fn rise(&mut self) {
        match self {
            Self::Real { value, g } => *value = (1.0 - *g) * *value + *g,
            Self::Fixed { value, kept, bits } => {
                *value = ((*value * *kept) >> *bits) + ((1 << *bits) - *kept);
            }
        }
    }

    /// `alpha = (1-g)^periods alpha`. Source: Zhu et al., SIGCOMM 2015, equation 2.
    #[inline]
    fn decay(&mut self, periods: u64) {
        match self {
            Self::Real { value, g } => *value *= power(1.0 - *g, periods),
            Self::Fixed { value, kept, bits } => {
                for _ in 0..periods {
                    let next = (*value * *kept) >> *bits;
                    if next == *value {
                        break;
                    }
                    *value = next;
                }
            }
        }
    }

    #[inline]
    fn ratio(&self) -> f64 {
        match *self {
            Self::Real { value, .. } => value,
            Self::Fixed { value, bits, .. } => value as f64 / (1u64 << bits) as f64,
        }
    }
}

/// `base^exponent` by multiplications alone, in a fixed order: `f64::powi` may differ in the last bit
/// from one machine or compiler to the next, and a prediction must not.
fn power(base: f64, exponent: u64) -> f64 {
    let (mut result, mut square, mut left) = (1.0, base, exponent);
    while left > 0 {
        if left & 1 == 1 {
            result *= square;
        }
        square *= square;
        left >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::power;

    #[test]
    fn a_power_is_as_many_multiplications() {
        for (base, exponent) in [(1.0 - 1.0 / 256.0, 1000_u64), (15.0 / 16.0, 55), (0.5, 1)] {
            let one_by_one = (0..exponent).fold(1.0, |product, _| product * base);
            assert!((power(base, exponent) - one_by_one).abs() <= 1e-13 * one_by_one);
        }
        assert_eq!(power(0.75, 0), 1.0);
        assert_eq!(power(255.0 / 256.0, u64::MAX), 0.0);
    }
}
