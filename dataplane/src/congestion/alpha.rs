//! The congestion estimate of DCQCN, decayed only when somebody looks.
//!
//! The decay needs no timer: `k` silent periods multiply the estimate by `(1-g)^k`, whenever that is
//! computed. So an idle queue pair costs nothing.

use crate::config::{AlphaUpdate, DcqcnConfig};

/// The estimate and the time up to which it is decayed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alpha {
    value: f64,
    g: f64,
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
            value: config.initial_alpha,
            g: config.g,
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
            self.rise();
        }
    }

    /// A later notification.
    pub fn notify(&mut self, now_ps: u64) {
        self.advance(now_ps);
        match self.update {
            AlphaUpdate::OnCnp => {
                self.rise();
                self.period_start_ps = now_ps;
            }
            AlphaUpdate::Periodic => self.notified = true,
        }
    }

    /// `alpha = (1-g) alpha + g`. Source: Zhu et al., SIGCOMM 2015, equation 1.
    fn rise(&mut self) {
        self.value = (1.0 - self.g) * self.value + self.g;
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
            self.rise();
            periods -= 1;
        }
        self.value *= decay(self.g, periods);
    }

    /// The estimate as of the last `advance`.
    #[inline]
    pub fn value(&self) -> f64 {
        self.value
    }
}

/// `(1-g)^periods`. Source: Zhu et al., SIGCOMM 2015, equation 2.
///
/// Multiplications alone, in a fixed order: `f64::powi` may differ in the last bit from one machine
/// or compiler to the next, and a prediction must not.
#[inline]
fn decay(g: f64, periods: u64) -> f64 {
    let (mut factor, mut square, mut left) = (1.0, 1.0 - g, periods);
    while left > 0 {
        if left & 1 == 1 {
            factor *= square;
        }
        square *= square;
        left >>= 1;
    }
    factor
}

#[cfg(test)]
mod tests {
    use super::decay;

    #[test]
    fn silent_periods_decay_like_as_many_multiplications() {
        for (g, periods) in [(1.0 / 256.0, 1000_u64), (1.0 / 16.0, 55), (0.5, 1), (1.0, 3)] {
            let one_by_one = (0..periods).fold(1.0, |factor, _| factor * (1.0 - g));
            assert!((decay(g, periods) - one_by_one).abs() <= 1e-13 * one_by_one);
        }
        assert_eq!(decay(0.25, 0), 1.0);
        assert_eq!(decay(1.0 / 256.0, u64::MAX), 0.0);
    }
}
