//! `shafer compare`: compares methods over all rows of a file.
//!
//! One pass over the file computes a [`Comparison`]; text, JSON and HTML only render it.

mod curve;
mod html;
mod measure;
mod sample;
mod svg;
mod table;
#[cfg(test)]
mod tests;
mod top;
mod totals;
mod truth;

use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

use anyhow::Result;
use half::{bf16, f16};
use rayon::prelude::*;
use serde::Serialize;
use shafer::{CsrRows, Element, Error, Logits, Method, Threads};
use shafer_data::Dtype;

use crate::calibrate::{EqualGuarantee, Retained};
use crate::groups::in_file;
use crate::labels::Labels;
use crate::progress::Progress;
use crate::sparsify::Typed;
use crate::stream::{Rows, Shape};
use crate::summary::SizeSummary;
use crate::words::counted;
use crate::{interrupt, memory};

use curve::{Curve, Curves};
pub(crate) use html::html;
use measure::{Reference, RowNumbers};
use sample::{Sample, SampleRow};
use top::{Scored, Top};
use totals::{Totals, bins};
use truth::TruthReport;

/// The results of all methods on a file.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) input: String,
    pub(crate) dtype: String,
    pub(crate) rows: usize,
    pub(crate) classes: usize,
    pub(crate) temperature: f64,
    /// Rows in which the evidence favours no class.
    pub(crate) vacuous: usize,
    /// The effective number of classes of softmax (exp of its entropy), mean over rows.
    pub(crate) softmax_effective_classes: Option<f64>,
    /// The rows with the most conflict `kappa` between the evidence for different classes, scored by
    /// `-ln(1 - kappa)`.
    pub(crate) most_conflict: Vec<Scored>,
    /// The rows with the most disagreement between methods. The score is the probability that, of two random
    /// methods, exactly one keeps a class drawn from softmax.
    pub(crate) most_disagreement: Vec<Scored>,
    pub(crate) threads: usize,
    pub(crate) seconds: f64,
    /// The bins of the histograms, as inclusive ranges of support sizes.
    pub(crate) bins: Vec<(usize, usize)>,
    pub(crate) methods: Vec<MethodReport>,
    /// Methods at equal guarantee, with labels only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) equal_guarantee: Option<EqualGuarantee>,
    /// Classes kept against probability dropped for a range of parameters; computed for the page only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) curves: Vec<Curve>,
    /// Single rows for the page; JSON would be thousands of lines longer with them.
    #[serde(skip)]
    sample: Sample,
}

/// Fails if there is not enough memory to compare methods on these rows.
pub(crate) fn check_memory(rows: &Rows) -> Result<()> {
    /// Bytes per class: the reference values of a row, the counts of each method, and the sample.
    const A_CLASS: usize = 256;
    let classes = rows.shape().classes;
    let read = rows.held().saturating_mul(rows.dtype().size() + 1);
    let bytes = read.saturating_add(classes.saturating_mul(A_CLASS));
    memory::check(bytes, &format!("rows of {}", counted(classes, "class")))
}

/// The results of one method. Means are over the rows for which it yields a distribution, and `None` if there
/// are no such rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct MethodReport {
    /// The name with the parameter.
    pub(crate) name: String,
    /// The number of rows with a distribution.
    pub(crate) rows: u64,
    pub(crate) kept: Option<SizeSummary>,
    /// The number of kept classes with a probability above 1%, mean over rows.
    pub(crate) kept_above_one_percent: Option<f64>,
    /// The effective number of classes (exp of the entropy of the method's distribution), mean over rows.
    pub(crate) effective_classes: Option<f64>,
    /// The total softmax probability of the kept classes, mean over rows.
    pub(crate) softmax_mass_kept: Option<f64>,
    /// The total softmax probability of the dropped classes, mean over rows.
    pub(crate) softmax_mass_dropped: Option<f64>,
    /// The share of rows in which the arg-max of softmax (the first of ties) is an arg-max of the method.
    pub(crate) argmax_agreement: Option<f64>,
    /// The share of the evidential support (the classes with direct evidence in their favour) that the method
    /// keeps, mean over the rows that are not vacuous.
    pub(crate) evidential_support_kept: Option<f64>,
    /// The share of these rows in which it keeps the whole evidential support.
    pub(crate) evidential_support_kept_whole: Option<f64>,
    /// The total variation distance from softmax, mean over rows.
    pub(crate) total_variation: Option<f64>,
    /// The Jensen-Shannon divergence from softmax in nats, at most ln 2, mean over rows.
    pub(crate) jensen_shannon: Option<f64>,
    /// Accuracy and loss, with labels only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) truth: Option<TruthReport>,
    /// The time to compute the sparse rows on all threads, without reading.
    pub(crate) microseconds_per_row: Option<f64>,
    /// The number of rows without a distribution.
    pub(crate) failed: u64,
    pub(crate) first_failure: Option<Failure>,
    /// The number of rows in each bin of support sizes.
    pub(crate) histogram: Vec<u64>,
    /// The rows with the most softmax probability dropped, which is the score.
    pub(crate) most_dropped: Vec<Scored>,
}

/// The first row without a distribution, and the reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Failure {
    pub(crate) row: usize,
    pub(crate) reason: String,
}

/// A transform with its display name.
type Named = (String, Method);

/// The arguments of [`compare`].
pub(crate) struct Request {
    pub(crate) methods: Vec<Named>,
    pub(crate) temperature: f64,
    /// The true classes, if known.
    pub(crate) labels: Option<Labels>,
    /// Whether to compute the single rows and curves of the page.
    pub(crate) page: bool,
}

/// Runs methods over all rows.
pub(crate) fn compare(
    input: &str,
    rows: Rows,
    request: Request,
    progress: Progress,
) -> Result<Comparison> {
    let dtype = rows.dtype();
    let typed = match dtype {
        Dtype::F16 => typed::<f16>,
        Dtype::Bf16 => typed::<bf16>,
        Dtype::F32 => typed::<f32>,
        Dtype::F64 => typed::<f64>,
    };
    let start = Instant::now();
    let (shape, temperature) = (rows.shape(), request.temperature);
    let (found, equal_guarantee) = typed(rows, request, progress)?;
    let Found { methods, vacuous, rows, sample, .. } = found;
    let bins = bins(shape.classes);
    Ok(Comparison {
        input: input.to_owned(),
        dtype: dtype.to_string(),
        rows,
        classes: shape.classes,
        temperature,
        vacuous,
        softmax_effective_classes: (rows > 0).then(|| found.effective_classes / rows as f64),
        most_conflict: found.conflict.into_rows(),
        most_disagreement: found.disagreement.into_rows(),
        threads: rayon::current_num_threads(),
        seconds: start.elapsed().as_secs_f64(),
        methods: methods.into_iter().map(|method| method.report(&bins)).collect(),
        bins,
        equal_guarantee,
        curves: found.curves.map(Curves::report).unwrap_or_default(),
        sample,
    })
}

/// The target size of a chunk in logits: small enough to stay in the cache for all methods, large enough to
/// occupy all threads.
const CHUNK: usize = 1 << 18;

fn typed<E: Typed>(
    rows: Rows,
    request: Request,
    mut progress: Progress,
) -> Result<(Found, Option<EqualGuarantee>)> {
    let Request { methods, temperature, mut labels, page } = request;
    let shape = rows.shape();
    let mut retained = labels.is_some().then(|| Retained::new(shape.classes, temperature));
    let mut pass = Pass::<E>::new(shape.classes, methods, temperature, page)?;
    let groups = rows.groups().to_vec();
    let mut packed = Vec::new();
    rows.for_each(|block| {
        let logits = gathered(E::of(block.logits), shape, block.mask, &mut packed);
        let chunk = (CHUNK / shape.classes).max(1) * shape.classes;
        for logits in logits.chunks(chunk) {
            interrupt::check()?;
            let (first, rows) = (pass.found.rows, logits.len() / shape.classes);
            let labels = labels
                .as_mut()
                .map(|labels| labels.next(first, rows, shape.classes))
                .transpose()?;
            pass.add(logits, labels).map_err(|error| in_file(error, first, 0, &groups))?;
            if let (Some(retained), Some(labels)) = (&mut retained, labels) {
                retained.add(logits, labels);
            }
            progress.add(rows);
        }
        progress.expect(block.share_read);
        Ok(ControlFlow::Continue(()))
    })?;
    if let Some(labels) = &mut labels {
        labels.finish(pass.found.rows)?;
    }
    // Labels of masked classes are errors there; here they only cannot be kept.
    let equal = retained.map(|retained| retained.equal_guarantee().ok().flatten());
    Ok((pass.found, equal.flatten()))
}

/// The rows as a contiguous row-major array, with -inf for masked logits.
pub(crate) fn gathered<'a, E: Element>(
    logits: &'a [E],
    shape: Shape,
    mask: Option<&[bool]>,
    packed: &'a mut Vec<E>,
) -> &'a [E] {
    if shape.inner <= 1 && mask.is_none() {
        return logits;
    }
    packed.clear();
    let masked = E::from_f64(f64::NEG_INFINITY);
    for slab in (0..logits.len()).step_by(shape.slab()) {
        for first in slab..slab + shape.inner {
            let places = (first..slab + shape.slab()).step_by(shape.inner);
            let logit = |p: usize| if shape.takes_part(mask, p) { logits[p] } else { masked };
            packed.extend(places.map(logit));
        }
    }
    packed
}

/// The running results. Memory does not grow with the number of rows.
struct Found {
    rows: usize,
    vacuous: usize,
    methods: Vec<Totals>,
    /// The sum over rows, for softmax.
    effective_classes: f64,
    conflict: Top,
    disagreement: Top,
    sample: Sample,
    curves: Option<Curves>,
}

/// The pass over the rows: the running results and scratch buffers.
struct Pass<E> {
    found: Found,
    classes: usize,
    temperature: f64,
    // Scratch buffers.
    wide: Vec<f64>,
    softmax: Vec<f64>,
    supported: CsrRows<E>,
    output: CsrRows<E>,
    numbers: Vec<Option<RowNumbers>>,
    /// The number of methods that keep each class of each row, and that yield a distribution for each row.
    keepers: Vec<u16>,
    answers: Vec<u16>,
}

impl<E: Element> Pass<E> {
    fn new(
        classes: usize,
        methods: Vec<Named>,
        temperature: f64,
        page: bool,
    ) -> shafer::Result<Self> {
        let totals = |(name, method)| Totals::new(name, method, classes);
        Ok(Self {
            found: Found {
                rows: 0,
                vacuous: 0,
                methods: methods.into_iter().map(totals).collect(),
                effective_classes: 0.0,
                conflict: Top::default(),
                disagreement: Top::default(),
                sample: Sample::default(),
                curves: page.then(Curves::new).transpose()?,
            },
            classes,
            temperature,
            wide: Vec::new(),
            softmax: Vec::new(),
            supported: CsrRows::new(),
            output: CsrRows::new(),
            numbers: Vec::new(),
            keepers: Vec::new(),
            answers: Vec::new(),
        })
    }

    /// Adds contiguous rows. Errors count rows from the first of them.
    fn add(&mut self, logits: &[E], labels: Option<&[u32]>) -> shafer::Result<()> {
        let (found, classes) = (&mut self.found, self.classes);
        let input = Logits::rows(logits, classes)?.temperature(self.temperature)?;
        // Evidential first: it fails only for input that is invalid for every method.
        Method::EVIDENTIAL.csr_into(&input, Threads::All, &mut self.supported)?;
        // The reference is computed in f64 whatever the type of the logits.
        self.wide.clear();
        self.wide.extend(logits.iter().map(|logit| logit.to_f64()));
        self.softmax.resize(logits.len(), 0.0);
        let wide = Logits::rows(&self.wide, classes)?.temperature(self.temperature)?;
        Method::SOFTMAX.dense_into(&wide, Threads::All, &mut self.softmax)?;

        let reference = Reference::new(
            classes,
            &self.wide,
            self.temperature,
            &self.softmax,
            &self.supported,
            labels,
        );
        let rows = found.rows..found.rows + logits.len() / classes;
        let one = |row| Logits::row(row)?.temperature(self.temperature);
        self.keepers.clear();
        self.keepers.resize(logits.len(), 0);
        self.answers.clear();
        self.answers.resize(rows.len(), 0);
        // The warm-up allocates buffers and wakes threads, and is not timed.
        let warm_up = found.rows == 0;
        for totals in &mut found.methods {
            if warm_up {
                let _ = totals.method.csr_into(&input, Threads::All, &mut self.output);
            }
            let output = Output::new(totals.method, &input, logits, one, &mut self.output)?;
            reference.measure(&output, &mut self.keepers, &mut self.numbers);
            totals.add(&self.numbers, &output, rows.start);
            for (answers, numbers) in self.answers.iter_mut().zip(&self.numbers) {
                *answers += u16::from(numbers.is_some());
            }
        }
        let disagreement = reference.disagreement(&self.keepers, &self.answers);
        for (row, (facts, disagreement)) in
            rows.clone().zip(reference.facts().iter().zip(disagreement))
        {
            found.vacuous += usize::from(facts.support.is_none());
            found.effective_classes += facts.effective_classes;
            found.conflict.add(row, facts.conflict);
            found.disagreement.add(row, disagreement);
        }
        found.rows = rows.end;
        if let Some(curves) = &mut found.curves {
            curves.add(&input, &self.softmax, |method, take| {
                take(&Output::new(method, &input, logits, one, &mut self.output)?);
                Ok(())
            })?;
            found.show(rows, &reference, |row, method| {
                method.csr(&one(&logits[row * classes..(row + 1) * classes])?, Threads::One)
            });
        }
        Ok(())
    }
}

impl Found {
    /// Adds rows of a chunk to the sample. `output` transforms one row, counted from the first of the chunk.
    fn show<E: Element>(
        &mut self,
        rows: Range<usize>,
        reference: &Reference<'_>,
        output: impl Fn(usize, Method) -> shafer::Result<CsrRows<E>>,
    ) {
        let Self { methods, conflict, disagreement, sample, .. } = self;
        let interesting = |row| {
            conflict.has(row)
                || disagreement.has(row)
                || methods.iter().any(|totals| totals.most_dropped.has(row))
        };
        sample.add(rows.clone(), interesting, |number| {
            let row = number - rows.start;
            let (facts, softmax) = (&reference.facts()[row], reference.softmax(row));
            let mut shown = SampleRow {
                conflict: facts.conflict,
                effective_classes: facts.effective_classes,
                true_class: reference.label(row),
                ..SampleRow::new(number, softmax)
            };
            for totals in methods.iter() {
                shown.push(softmax, output(row, totals.method));
            }
            shown
        });
    }
}

/// The output of a method for a chunk.
struct Output<'a, E> {
    rows: OutputRows<'a, E>,
    time: Duration,
}

enum OutputRows<'a, E> {
    All(&'a CsrRows<E>),
    /// Row by row, if some rows failed.
    Each(Vec<shafer::Result<CsrRows<E>>>),
}

impl<'a, E: Element> Output<'a, E> {
    /// Transforms all rows at once, and row by row only if that fails.
    fn new<'b>(
        method: Method,
        input: &Logits<'_, E>,
        logits: &'b [E],
        one: impl Fn(&'b [E]) -> shafer::Result<Logits<'b, E>> + Sync,
        buffer: &'a mut CsrRows<E>,
    ) -> shafer::Result<Self> {
        let start = Instant::now();
        match method.csr_into(input, Threads::All, buffer) {
            Ok(_) => {
                let time = start.elapsed();
                return Ok(Self { rows: OutputRows::All(buffer), time });
            }
            // Evidential accepted the input, so this method has no distribution for some row.
            Err(Error::Row { .. } | Error::Value { .. }) => {}
            Err(error) => return Err(error),
        }
        let start = Instant::now();
        let rows = logits
            .par_chunks_exact(input.classes())
            .map(|row| method.csr(&one(row)?, Threads::One))
            .collect();
        Ok(Self { rows: OutputRows::Each(rows), time: start.elapsed() })
    }

    /// The kept classes of a row and their probabilities.
    fn row(&self, row: usize) -> Result<(&[u32], &[E]), &Error> {
        match &self.rows {
            OutputRows::All(rows) => Ok(rows.row(row).unwrap_or_default()),
            OutputRows::Each(rows) => match &rows[row] {
                Ok(rows) => Ok(rows.row(0).unwrap_or_default()),
                Err(error) => Err(error),
            },
        }
    }
}
