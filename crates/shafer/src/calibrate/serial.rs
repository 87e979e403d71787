//! A calibration as text: what is read is checked again.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::calibration::{Calibration, Strata, Threshold};
use super::score::Score;

/// The form of the text.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    version: u32,
    score: Score,
    by: Strata,
    classes: usize,
    alpha: f64,
    delta: Option<f64>,
    thresholds: Vec<RawThreshold>,
    measured_on: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawThreshold {
    /// Group or class; 0 for all rows.
    stratum: u32,
    rows: usize,
    /// `None` is infinite: all classes are kept.
    threshold: Option<f64>,
}

impl Serialize for Calibration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let thresholds = self.thresholds().iter().map(|(&stratum, threshold)| RawThreshold {
            stratum,
            rows: threshold.rows,
            threshold: threshold.value.is_finite().then_some(threshold.value),
        });
        let raw = Raw {
            version: VERSION,
            score: self.score(),
            by: self.strata(),
            classes: self.classes(),
            alpha: self.alpha(),
            delta: self.delta(),
            thresholds: thresholds.collect(),
            measured_on: self.origin().to_owned(),
        };
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Calibration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        if raw.version != VERSION {
            let version = raw.version;
            return Err(de::Error::custom(format!(
                "the calibration has version {version}, but only {VERSION} is known"
            )));
        }
        let pairs = raw.thresholds.iter().map(|raw| {
            let value = raw.threshold.unwrap_or(f64::INFINITY);
            (raw.stratum, Threshold { rows: raw.rows, value })
        });
        let count = raw.thresholds.len();
        let thresholds: std::collections::BTreeMap<_, _> = pairs.collect();
        if thresholds.len() != count {
            return Err(de::Error::custom("a stratum has two thresholds"));
        }
        let fits = match raw.by {
            Strata::All => thresholds.keys().eq([&0]),
            Strata::Class => thresholds.keys().copied().eq(0..raw.classes as u32),
            Strata::Group => true,
        };
        if !fits {
            return Err(de::Error::custom("the thresholds are not those of the strata"));
        }
        Calibration::new(raw.score, raw.by, raw.classes, raw.alpha, raw.delta, thresholds)
            .map(|calibration| calibration.measured_on(raw.measured_on))
            .map_err(de::Error::custom)
    }
}

impl Serialize for Score {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Score {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
