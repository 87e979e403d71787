//! Sums that know their rounding error.

/// Adds up with the rounding error of each step carried along (Neumaier, 1974).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    total: f64,
    error: f64,
}

impl Sum {
    #[inline]
    pub(crate) fn add(&mut self, value: f64) {
        let total = self.total + value;
        self.error += if self.total.abs() >= value.abs() {
            (self.total - total) + value
        } else {
            (value - total) + self.total
        };
        self.total = total;
    }

    pub(crate) fn value(self) -> f64 {
        self.total + self.error
    }

    /// The largest double that is not greater than the sum divided by `count`: rounding to the
    /// nearest could put the mean on the wrong side of a value.
    pub(crate) fn mean_floor(self, count: usize) -> f64 {
        let count = count as f64;
        let mean = self.value() / count;
        let rest = (-mean).mul_add(count, self.total) + self.error;
        if rest < 0.0 { mean.next_down() } else { mean }
    }
}

impl From<f64> for Sum {
    fn from(total: f64) -> Self {
        Self { total, error: 0.0 }
    }
}
