//! Sparse categorical distributions that keep their modes.
//!
//! A network whose last layer is linear and feeds a softmax gives every class some probability,
//! whether anything speaks for the class or not. This crate reads the same layer as evidence, in
//! the sense of Dempster and Shafer, and keeps the classes that the evidence supports directly. It
//! implements Itkina, Ivanovic, Senanayake, Kochenderfer and Pavone, *Evidential Sparsification of
//! Multimodal Latent Spaces in Conditional Variational Autoencoders* (`NeurIPS` 2020): the transform,
//! the theory behind it, and the transforms that it is compared with. Nothing is trained or tuned.
//!
//! Slices go in, slices come out. There are no files, no tensors and no clocks; randomness is an
//! argument.
//!
//! # Example
//!
//! ```
//! use shafer::{Evidential, Softmax, Sparsemax, TransformExt};
//!
//! fn main() -> Result<(), shafer::Error> {
//!     let logits = [-0.4, 1.7, -0.9, 0.7, -0.1, 2.0, -1.3, 1.2, -0.5, 1.0];
//!     let kept = |p: Vec<f64>| (0..p.len()).filter(|&k| p[k] > 0.0).collect::<Vec<_>>();
//!
//!     assert_eq!(kept(Softmax.row(&logits)?).len(), 10);
//!     assert_eq!(kept(Sparsemax.row(&logits)?), [1, 5]);
//!     assert_eq!(kept(Evidential::default().row(&logits)?), [1, 3, 5, 7, 9]);
//!     Ok(())
//! }
//! ```
//!
//! Many rows at once, without an allocation a row, and what the evidence says about one of them:
//!
//! ```
//! use shafer::{Belief, CompressedRows, Evidence, Evidential, Logits, TransformExt};
//!
//! let logits = [2.0_f32, 1.5, -1.0, -2.5, 0.3, 0.3, 0.3, 0.3];
//! let mut rows = CompressedRows::new();
//! let report = Evidential::default().compressed_into(&Logits::rows(&logits, 4)?, &mut rows)?;
//! assert_eq!(rows.row(0).map(|(classes, _)| classes), Some(&[0, 1][..]));
//! assert_eq!(report.vacuous, 1); // The second row favours no class: all four are kept.
//!
//! let belief = Belief::new(&Evidence::from_logits(&logits[..4])?);
//! assert!(belief.belief(&[0, 1])? > 0.9); // Committed to these two,
//! assert!(belief.internal_conflict() > 0.5); // and undecided between them.
//! # Ok::<(), shafer::Error>(())
//! ```
//!
//! # What is here
//!
//! | for | items |
//! |---|---|
//! | logits to distributions | [`Transform`] and [`TransformExt`]; [`Evidential`], [`Softmax`], [`Sparsemax`], [`SparsegenLin`], [`SparsegenHg`], [`Entmax`], [`TopK`], [`TopP`], [`MinP`] |
//! | input and output | [`Logits`] (rows, any axis, mask, temperature, threads), [`CompressedRows`], [`Report`], [`Element`] |
//! | a layer as evidence | [`Head`], [`Construction`], [`EvidentialParameters`], [`Evidence`] |
//! | what the evidence adds up to | [`Belief`]: the closed form, `O(K)` for any number of classes |
//! | the theory on small frames | [`MassFunction`], [`ClassSet`], [`Combination`]: the explicit power set and Dempster's rule |
//! | several variables | [`Product`], [`Joint`], [`BestJoints`] |
//! | drawing classes | [`sample_dense`], [`sample_compressed`], [`Sampler`] |
//! | evaluation | [`bhattacharyya`], [`wasserstein_1`], [`wasserstein_1_unit`], [`total_variation`], [`jensen_shannon`]; the paper's [`target`] |
//! | what can go wrong | [`Error`], [`Result`] |
//!
//! # Features
//!
//! Both are on by default.
//!
//! - `half`: rows of `f16` and `bf16`, from the crate `half`. They are computed in `f32`.
//! - `parallel`: [`Logits::parallel`] shares rows out among the threads of the current `rayon` pool.
//!   Without the feature it changes nothing.
//!
//! # Accuracy
//!
//! - Which classes [`Evidential`] keeps is decided by the sign of `l_k - mean(l)`, with the mean
//!   accumulated in double precision or better. It is never decided by comparing a rounded mass
//!   with 0. The class of the largest logit is always kept.
//! - Probabilities are within `1e-6` of the true value in `f32` and `1e-11` in `f64`, relative, down
//!   to where numbers underflow. Half types are rounded once from `f32`. A class that sparsemax,
//!   sparsegen or entmax keeps by a hair is the difference of two numbers: `1e-10`, absolute, comes
//!   on top. Each width is tested against plain loops in double precision, and `f32` and `f64`
//!   against fixtures made with 60 digits.
//! - [`Belief`] agrees with Dempster's rule on the power set to `1e-12`, and works in log space.
//! - A row has the same result, to the bit, alone or in a batch, on one thread or on many. Dense and
//!   compressed rows of 256 classes and more can differ by four units in the last place, and so can
//!   different instruction sets.
//! - `NaN` and `+inf` are errors that name the row and the column. `-inf` masks a class.
//!
//! # Performance
//!
//! - Time is linear in the length of the row; no whole row is sorted. [`Evidential`] reads the row
//!   once more for each further round, [`TopP`] once for each step of a bisection, and the
//!   projections iterate over their candidates only.
//! - Work memory is allocated once a call and thread, not once a row. [`CompressedRows`] keeps its
//!   memory from one use to the next.
//! - `f32` rows run on vector instructions that are chosen at run time. `f64` rows run plain loops.
//! - A row of [`Evidential`] comes from memory once and goes to memory once, as long as the row and
//!   its result fit the second-level cache. `cargo bench -p shafer` measures every transform
//!   against a memcpy of the same buffer.
//!
//! # Safety
//!
//! `unsafe` code talks to the processor about memory, in two small files. `kernel/prefetch.rs` asks it
//! to prefetch: one instruction that reads nothing the program could see and never faults.
//! `kernel/stream.rs` writes whole cache lines past the caches, where a result is larger than they
//! are. The lint `unsafe_code` forbids it everywhere else.

mod belief;
mod block;
mod class_set;
mod compressed;
#[cfg(feature = "parallel")]
mod counted;
mod distance;
mod element;
mod engine;
mod error;
mod evidence;
mod head;
#[cfg(feature = "parallel")]
mod in_order;
mod kernel;
mod logits;
mod mass_function;
mod normalise;
mod numerics;
mod product;
mod sample;
mod sink;
mod target;
#[cfg(feature = "parallel")]
mod threads;
mod transform;

pub use belief::Belief;
pub use class_set::ClassSet;
pub use compressed::CompressedRows;
pub use distance::{
    bhattacharyya, jensen_shannon, total_variation, wasserstein_1, wasserstein_1_unit,
};
pub use element::Element;
pub use error::{Error, Result};
pub use evidence::Evidence;
pub use head::{Construction, EvidentialParameters, Head};
pub use logits::Logits;
pub use mass_function::{Combination, MassFunction};
pub use product::{BestJoints, Joint, Product};
pub use sample::{Sampler, sample_compressed, sample_dense};
pub use target::target;
pub use transform::{
    Entmax, Evidential, MinP, Report, Softmax, SparsegenHg, SparsegenLin, Sparsemax, TopK, TopP,
    Transform, TransformExt,
};

/// The examples of the README are tests too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
