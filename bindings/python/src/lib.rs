//! The extension module of the Python package `shafer`, `shafer._core`.
//!
//! Files mirror those of the core. What Python programs see is in `python/shafer/__init__.py`, with the types of this
//! module in `python/shafer/_core.pyi`.
#![allow(
    clippy::too_many_arguments,
    clippy::doc_markdown,
    clippy::needless_pass_by_value,
    reason = "functions of Python have keyword arguments, and documentation in reStructuredText"
)]

mod array;
mod arrow;
mod belief;
mod calibrate;
mod capsule;
mod data;
mod distance;
mod error;
mod evidence;
mod head;
mod mass_function;
mod models;
mod product;
mod rows;
mod sample;
mod threads;
mod transforms;

use pyo3::prelude::*;

/// The compiled part of shafer.
#[pymodule(gil_used = false)]
#[pyo3(name = "_core")]
mod core {
    #[pymodule_export]
    use crate::{
        arrow::{arrow_addresses, sparsify_arrow},
        belief::Belief,
        calibrate::{
            Calibration, calibrate, class_scores, count_misses, exact_interval, label_scores,
            ln_capital, needed, p_values, risk_column, weighted_p_values, weighted_thresholds,
        },
        data::{ArrayReader, open},
        distance::{
            bhattacharyya, jensen_shannon, target_distribution, total_variation, wasserstein_1,
        },
        evidence::Evidence,
        head::Head,
        mass_function::{Combination, MassFunction},
        models::{HeadCandidate, heads, load_head},
        product::{BestJoints, Joint, Product},
        sample::{draw_csr, draw_dense},
        transforms::{
            dense_into, entmax, evidential, min_evidence, min_p, min_probability, parse, softmax,
            sparsegen_hg, sparsegen_lin, sparsemax, sparsify, support_size, top_k, top_n_sigma,
            top_p, vjp, vjp_into,
        },
    };
}
