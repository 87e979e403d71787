//! Round numbers along an axis.

/// The round numbers within a range that are about `wanted` in number: multiples of 1, 2 or 5 times a
/// power of ten, each with its label.
pub(crate) fn ticks(low: f64, high: f64, wanted: usize) -> Vec<(f64, String)> {
    let range = high - low;
    if range <= 0.0 || !range.is_finite() || wanted == 0 {
        return Vec::new();
    }
    let rough = range / wanted as f64;
    let unit = 10_f64.powf(rough.log10().floor());
    // The closest by ratio.
    let off = |step: &f64| (step / rough).ln().abs();
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * unit);
    let step = steps.into_iter().min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(unit);
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last)
        .map(|count| {
            // Adding 0 makes a negative zero an ordinary one.
            let value = count as f64 * step + 0.0;
            (value, format!("{value:.decimals$}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, wanted: usize) -> Vec<String> {
        ticks(low, high, wanted).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(labels(0.0, 1.0, 5), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(0.0, 18_760.0, 4), ["0", "5000", "10000", "15000"]);
        assert_eq!(labels(0.0, 0.0123, 3), ["0.000", "0.005", "0.010"]);
        assert_eq!(labels(0.0, 1.06, 5), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(0.0, 10.0, 5), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(-0.3, 0.3, 3), ["-0.2", "0.0", "0.2"]);
        for (low, high) in [(0.0, 0.0), (1.0, 0.0), (0.0, f64::INFINITY), (0.0, f64::NAN)] {
            assert!(ticks(low, high, 4).is_empty());
        }
    }
}
