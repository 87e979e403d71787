//! Sparse categorical distributions that keep their modes.
//!
//! A network whose last layer is linear and feeds a softmax gives every class some probability, with
//! or without evidence for it. This crate reads the same layer as evidence in the sense of Dempster
//! and Shafer, and keeps the classes that the evidence supports directly. It implements Itkina,
//! Ivanovic, Senanayake, Kochenderfer and Pavone, *Evidential Sparsification of Multimodal Latent
//! Spaces in Conditional Variational Autoencoders* (`NeurIPS` 2020): the transform, the theory behind
//! it, and the transforms that it is compared with. Nothing is trained or tuned.
//!
//! The crate works on slices. It does no input or output; randomness is an argument.
//!
//! # Example
//!
//! One row:
//!
//! ```
//! use shafer::Method;
//!
//! let logits = [-0.4, 1.7, -0.9, 0.7, -0.1, 2.0, -1.3, 1.2, -0.5, 1.0];
//! let kept = |method: Method| -> shafer::Result<Vec<usize>> {
//!     let p = method.row(&logits)?;
//!     Ok((0..p.len()).filter(|&k| p[k] > 0.0).collect())
//! };
//! assert_eq!(kept(Method::SOFTMAX)?.len(), 10);
//! assert_eq!(kept(Method::SPARSEMAX)?, [1, 5]);
//! assert_eq!(kept(Method::EVIDENTIAL)?, [1, 3, 5, 7, 9]);
//! # Ok::<(), shafer::Error>(())
//! ```
//!
//! A batch in compressed sparse row form, and what the evidence says about one of its rows:
//!
//! ```
//! use shafer::{Belief, CsrRows, Evidence, Logits, Method, Threads};
//!
//! let logits = [2.0_f32, 1.5, -1.0, -2.5, 0.3, 0.3, 0.3, 0.3];
//! let batch = Logits::rows(&logits, 4)?;
//! let mut rows = CsrRows::new(); // Its memory can be used again for the next batch.
//! let counts = Method::EVIDENTIAL.csr_into(&batch, Threads::All, &mut rows)?;
//! assert_eq!(rows.indptr(), [0, 2, 6]);
//! assert_eq!(rows.row(0).map(|(classes, _)| classes), Some(&[0, 1][..]));
//! assert_eq!(counts.vacuous, 1); // The second row favours no class: all four are kept.
//!
//! let belief = Belief::new(&Evidence::from_logits(&logits[..4])?);
//! assert!(belief.belief([0, 1])? > 0.9); // Committed to these two,
//! assert!(belief.internal_conflict() > 0.5); // and undecided between them.
//! # Ok::<(), shafer::Error>(())
//! ```
//!
//! Another method, some classes excluded, a temperature, and a draw from each row with any generator
//! of `rand` 0.10 (`rand_core::Rng`):
//!
//! ```
//! use rand::{SeedableRng, rngs::StdRng};
//! use shafer::{Logits, Method, Threads};
//!
//! let logits = [2.0_f32, 1.5, -1.0, -2.5, 0.3, 0.3, 0.3, 0.3];
//! let batch = Logits::rows(&logits, 4)?.mask(&[true, false, true, true])?.temperature(0.5)?;
//! let method: Method = "min-p:p=0.1".parse()?; // Or Method::min_p(0.1)?.
//! let rows = method.csr(&batch, Threads::One)?;
//! let mut classes = [0; 2];
//! rows.sample_into(&mut StdRng::seed_from_u64(1), &mut classes)?;
//! assert_eq!(rows.indices(), [0, 0, 2, 3]); // Class 1 is excluded.
//! assert_eq!(classes[0], 0);
//! # Ok::<(), shafer::Error>(())
//! ```
//!
//! # Contents
//!
//! | | |
//! |---|---|
//! | **Transforms** | [`Method`] with its methods `dense`, `csr`, `sizes_into` and `vjp`; [`Logits`] (rows, any axis, mask, temperature), [`CsrRows`], [`RowCounts`], [`Threads`], [`Element`] |
//! | **Theory** | [`Head`], [`Construction`], [`EvidentialParameters`], [`Evidence`]: a linear layer as evidence; [`Belief`]: belief, plausibility and conflict in closed form, `O(K)`; [`MassFunction`], [`ClassSet`], [`Combination`]: the power set of small frames and Dempster's rule |
//! | **Several variables** | [`Product`], [`Joint`], [`BestJoints`] |
//! | **Metrics** | [`bhattacharyya`], [`wasserstein_1`], [`wasserstein_1_unit`], [`total_variation`], [`jensen_shannon`]; the paper's [`target_distribution`] |
//! | **Sampling** | [`sample_dense`], [`sample_csr`], [`CsrRows::sample_into`], [`Sampler`] |
//! | **Guarantees** | [`calibrate`]: how often is the true class dropped, and the threshold for a given rate |
//! | **Errors** | [`Error`], [`Result`] |
//!
//! # Features
//!
//! - `half` (default): rows of `f16` and `bf16`, from the crate `half`. They are computed in `f32`.
//! - `parallel` (default): [`Threads::All`] uses the current `rayon` pool.
//! - `ndarray`: `Logits::array` takes arrays and views of `ndarray`.
//! - `rand`: [`Sampler`] implements `rand::distr::Distribution<usize>`.
//! - `serde`: [`Method`] is serialised as its text; [`calibrate::Calibration`] is serialised too.
//!
//! # Accuracy
//!
//! - Which classes [`Method::EVIDENTIAL`] keeps is decided by the sign of `l_k - mean(l)`, with the
//!   mean accumulated in double precision or better, never by comparing a rounded mass with 0. The
//!   class of the largest logit is always kept.
//! - Probabilities are within `1e-6` of the true value in `f32` and `1e-11` in `f64`, relative, down
//!   to where numbers underflow. Half types are rounded once from `f32`. Sparsemax, sparsegen and
//!   entmax have an absolute error of `1e-10` on top: a small probability there is the difference of
//!   two numbers. Each width is tested against plain loops in double precision, `f32` and `f64` also
//!   against fixtures with 60 digits.
//! - [`Belief`] agrees with Dempster's rule on the power set to `1e-12`, and works in log space.
//! - A row has the same result, to the bit, alone or in a batch, on one thread or on many. Dense and
//!   compressed rows keep the same classes with the same probabilities, to the bit for `f64` and for
//!   rows of at most 32 classes; longer rows of `f32` can differ by four units in the last place, and
//!   those of half types by one. So can different instruction sets.
//! - `NaN` and `+inf` are errors that name the row and the column. `-inf` masks a class.
//!
//! # Performance
//!
//! - Time is linear in the length of the row; no whole row is sorted. Each further round of
//!   [`Method::evidential`] reads the row once more, [`Method::top_p`] reads it once for each step of
//!   a bisection, and the projections iterate over their candidates only.
//! - Work memory is allocated once a call and thread, not once a row. [`CsrRows`] keeps its memory
//!   from one use to the next.
//! - `f32` rows run on vector instructions that are chosen at run time. `f64` rows run plain loops.
//! - A row of [`Method::EVIDENTIAL`] is read from memory once and its result written to memory once,
//!   as long as both fit the second-level cache. `cargo bench -p shafer` measures every method
//!   against a memcpy of the same buffer.
//!
//! # Safety
//!
//! The only `unsafe` is a prefetch instruction (`kernel/prefetch.rs`), which never faults. The lint
//! `unsafe_code` forbids it everywhere else.

mod belief;
pub mod calibrate;
mod class_set;
mod csr;
mod distance;
mod element;
mod engine;
mod error;
mod evidence;
mod head;
mod kernel;
mod logits;
mod mass_function;
mod method;
#[cfg(feature = "ndarray")]
mod ndarray;
mod normalise;
mod numerics;
mod product;
mod rows;
mod sample;
mod target;
mod threads;

pub use belief::Belief;
pub use class_set::{ClassSet, Classes};
pub use csr::{CsrRows, Iter};
pub use distance::{
    bhattacharyya, jensen_shannon, total_variation, wasserstein_1, wasserstein_1_unit,
};
pub use element::Element;
pub use error::{Error, Result};
pub use evidence::Evidence;
pub use head::{Construction, EvidentialParameters, Head};
pub use logits::Logits;
pub use mass_function::{Combination, MassFunction};
pub use method::{Method, RowCounts};
pub use product::{BestJoints, Joint, Product};
pub use sample::{Sampler, sample_csr, sample_dense};
pub use target::target_distribution;
pub use threads::Threads;

/// The examples of the README are tests too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
