//! A guarantee for what is dropped.
//!
//! A sparse distribution gives the dropped classes a probability of 0. With some hundred rows whose
//! true class is known, this module measures how often the true class is among them ([`Audit`]), and
//! finds the threshold at which that happens with at most a given probability ([`Calibrator`]): split
//! conformal prediction. Nothing is assumed about the network or the distribution of rows,
//! except that calibration rows and new rows are exchangeable: every order of them is equally probable.
//!
//! | | |
//! |---|---|
//! | how often is the true class dropped? | [`Audit`], [`Misses`], [`clopper_pearson`] |
//! | drop it with probability `alpha` at most | [`Calibrator`], [`Calibration`], [`Score`]; for each group or class: [`Strata`] |
//! | which method keeps fewest classes then? | [`at_levels`] |
//! | the same with confidence, calibrated once | [`Calibrator::confident_calibration`], [`confident_rank`] |
//! | another loss than dropping it | [`Losses::control_risk`], [`Losses::learn_then_test`] |
//! | new rows are distributed differently, in a known way | [`WeightedScores`] |
//! | or in an unknown way, with labels that come later | [`AdaptiveThreshold`] |
//! | are new rows still from the same distribution? | [`ExchangeabilityTest`] |
//! | how well does each class fit the calibration rows? | [`Scores::p_value`] |
//!
//! ```
//! use shafer::calibrate::{Audit, Calibrator, Labelled, Score, Strata};
//! use shafer::{Logits, Method, Threads};
//!
//! // 30 rows; the true class is the largest logit but for every tenth row.
//! let logits: Vec<f64> = (0..30).flat_map(|_| [1.0, -0.2, -0.3, -0.5]).collect();
//! let labels: Vec<u32> = (0..30).map(|i| u32::from(i % 10 == 0)).collect();
//! let rows = Labelled::new(Logits::rows(&logits, 4)?, &labels)?;
//!
//! let mut audit = Audit::default();
//! audit.add(Method::EVIDENTIAL, &rows, Threads::One)?;
//! assert_eq!(audit.all().share(), Some(0.1));
//!
//! let mut calibrator = Calibrator::new(Score::Evidential, Strata::All);
//! calibrator.add(&rows)?;
//! let calibration = calibrator.calibration(0.05)?;
//! let kept = calibration.csr(&Logits::row(&[1.0, -0.2, -0.3, -0.5])?, None, Threads::One)?;
//! assert_eq!(kept.indices(), [0, 1]);
//! # Ok::<(), shafer::Error>(())
//! ```

mod audit;
mod binomial;
mod calibration;
mod calibrator;
mod equal;
mod labelled;
mod martingale;
mod online;
mod rank;
mod risk;
mod score;
mod scores;
#[cfg(feature = "serde")]
mod serial;

pub use audit::{Audit, Misses};
pub use binomial::{binomial_tail, clopper_pearson};
pub use calibration::{Calibration, Strata, Threshold};
pub use calibrator::Calibrator;
pub use equal::{AtLevel, at_levels};
pub use labelled::Labelled;
pub use martingale::ExchangeabilityTest;
pub use online::AdaptiveThreshold;
pub use rank::{confident_rank, conformal_rank, rows_needed};
pub use risk::Losses;
pub use score::Score;
pub use scores::{Scores, WeightedScores};
