//! Exact confidence intervals for a proportion.

/// The Clopper-Pearson 95% interval for the probability of an event seen `seen` times in `trials >= 1`.
pub(super) fn clopper_pearson(seen: u64, trials: u64) -> [f64; 2] {
    const TAIL: f64 = 0.025;
    let (k, n) = (seen as f64, trials as f64);
    // P(X >= k) is I_p(k, n - k + 1), and P(X <= k) is 1 - I_p(k + 1, n - k).
    let low = if seen == 0 { 0.0 } else { quantile(TAIL, k, n - k + 1.0) };
    let high = if seen == trials { 1.0 } else { quantile(1.0 - TAIL, k + 1.0, n - k) };
    [low, high]
}

/// The quantile of the beta distribution, by bisection.
fn quantile(probability: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if regularized_beta(middle, a, b) < probability { low = middle } else { high = middle }
    }
}

/// The regularized incomplete beta function `I_x(a, b)` for `0 < x < 1`.
fn regularized_beta(x: f64, a: f64, b: f64) -> f64 {
    // The continued fraction converges fast only below the mean.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - regularized_beta(1.0 - x, b, a);
    }
    let factor = a * x.ln() + b * (-x).ln_1p() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    factor.exp() / a / continued_fraction(x, a, b)
}

/// The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method.
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    const MOST: u32 = 10_000;
    let tiny = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut result, mut c, mut d) = (1.0, 1.0, 0.0);
    for step in 1..MOST {
        let m = f64::from(step / 2);
        let numerator = if step % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        d = 1.0 / tiny(1.0 + numerator * d);
        c = tiny(1.0 + numerator / c);
        result *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

/// The logarithm of the gamma function for `x >= 1`: Stirling's series.
fn ln_gamma(x: f64) -> f64 {
    const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;
    // The series is accurate to double precision from 16 on; the recurrence covers smaller x.
    let (mut x, mut below) = (x, 0.0);
    while x < 16.0 {
        below += x.ln();
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + HALF_LN_TWO_PI + series - below
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `scipy.stats.binomtest(seen, trials).proportion_ci(0.95, "exact")`.
    #[test]
    fn intervals_are_those_of_scipy() {
        for (seen, trials, low, high) in [
            (0, 10, 0.0, 0.308_497_107_818_762_94),
            (3, 10, 0.066_739_511_177_734_47, 0.652_452_850_060_008),
            (10, 10, 0.691_502_892_181_237_1, 1.0),
            (1, 2000, 1.265_882_387_067_635e-5, 0.002_782_639_834_672_444),
            (37, 2000, 0.013_058_315_418_338_575, 0.025_410_378_996_541_763),
            (1234, 60_000, 0.019_445_924_266_241_837, 0.021_734_110_800_047_11),
            (5, 8, 0.244_863_216_366_499_9, 0.914_766_585_862_406_9),
            (0, 1, 0.0, 0.975),
            (499_999, 1_000_000, 0.499_018_519_198_209_94, 0.500_979_480_807_582_6),
        ] {
            let found = clopper_pearson(seen, trials);
            for (found, expected) in found.into_iter().zip([low, high]) {
                let close = (found - expected).abs() <= 1e-9 * expected;
                assert!(close, "{seen} of {trials}: {found}, {expected}");
            }
        }
    }
}
