//! `shafer compare`: methods side by side over a whole file.
//!
//! One pass over the file gives a [`Comparison`]; the text, the JSON and the page show it and
//! compute nothing of their own.

mod curve;
mod html;
mod interval;
mod labels;
mod measure;
mod sample;
mod svg;
mod table;
#[cfg(test)]
mod tests;
mod top;
mod totals;

use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

use anyhow::Result;
use half::{bf16, f16};
use rayon::prelude::*;
use serde::Serialize;
use shafer::{
    CompressedRows, Element, Error, Evidential, Logits, Softmax, Transform, TransformExt as _,
};
use shafer_data::Dtype;

use crate::groups::in_file;
use crate::progress::Progress;
use crate::sparsify::Typed;
use crate::stream::{Rows, Shape};
use crate::summary::SizeSummary;
use crate::words::counted;
use crate::{interrupt, memory};

use curve::{Curve, Curves};
pub(crate) use html::html;
pub(crate) use labels::Labels;
use labels::TruthReport;
use measure::{Reference, RowNumbers};
use sample::{Sample, SampleRow};
use top::{Scored, Top};
use totals::{Totals, bins};

/// What all methods make of a file.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) input: String,
    pub(crate) dtype: String,
    pub(crate) rows: usize,
    pub(crate) classes: usize,
    pub(crate) temperature: f64,
    /// Rows in which the evidence favours no class.
    pub(crate) vacuous: usize,
    /// The effective number of classes of softmax, the exponential of its entropy; the mean over rows.
    pub(crate) softmax_effective_classes: Option<f64>,
    /// The rows with the most conflict between the evidence for different classes. The score is
    /// `-ln(1 - kappa)`, where `kappa` is that conflict.
    pub(crate) most_conflict: Vec<Scored>,
    /// The rows that methods disagree about most. The score is the probability that two of them, chosen
    /// at random, treat a class that is drawn from softmax differently: one keeps it, the other drops it.
    pub(crate) most_disagreement: Vec<Scored>,
    pub(crate) threads: usize,
    pub(crate) seconds: f64,
    /// The support sizes that are counted together in the histograms, both ends included.
    pub(crate) bins: Vec<(usize, usize)>,
    pub(crate) methods: Vec<MethodReport>,
    /// Classes kept against probability dropped as parameters change, with a page only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) curves: Vec<Curve>,
    /// Rows to look at. They are for the page: thousands of lines of them would bury the numbers.
    #[serde(skip)]
    sample: Sample,
}

/// Fails if memory has no room to compare methods on these rows.
pub(crate) fn check_memory(rows: &Rows) -> Result<()> {
    /// Of each class: what a row is measured by, the counts of each method, and the rows to look at.
    const A_CLASS: usize = 256;
    let classes = rows.shape().classes;
    let read = rows.held().saturating_mul(rows.dtype().size() + 1);
    let bytes = read.saturating_add(classes.saturating_mul(A_CLASS));
    memory::check(bytes, &format!("rows of {}", counted(classes, "class")))
}

/// What one method makes of a file. Means are over the rows that it gives a distribution for, and
/// are missing if there are none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct MethodReport {
    /// With its parameter.
    pub(crate) name: String,
    /// The number of rows that it gives a distribution for.
    pub(crate) rows: u64,
    pub(crate) kept: Option<SizeSummary>,
    /// Of the kept classes, those that the method gives a probability above 1%; the mean over rows.
    pub(crate) kept_above_one_percent: Option<f64>,
    /// The effective number of classes, the exponential of the entropy of the method's distribution; the
    /// mean over rows.
    pub(crate) effective_classes: Option<f64>,
    /// The softmax probability of the kept classes, all together; the mean over rows.
    pub(crate) softmax_mass_kept: Option<f64>,
    /// The softmax probability of the dropped classes, all together; the mean over rows.
    pub(crate) softmax_mass_dropped: Option<f64>,
    /// The share of rows in which the first of the classes that softmax finds most probable is
    /// among those that the method does.
    pub(crate) argmax_agreement: Option<f64>,
    /// The share of the evidential support (the classes with direct evidence in their favour) that the
    /// method keeps, too; the mean over rows that are not vacuous.
    pub(crate) evidential_support_kept: Option<f64>,
    /// The share of these rows in which it keeps all of them.
    pub(crate) evidential_support_kept_whole: Option<f64>,
    /// From softmax; the mean over rows.
    pub(crate) total_variation: Option<f64>,
    /// The divergence from softmax in nats, at most ln 2; the mean over rows.
    pub(crate) jensen_shannon: Option<f64>,
    /// How it fares by the true classes, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) truth: Option<TruthReport>,
    /// To compute the sparse rows with all threads, reading not included.
    pub(crate) microseconds_per_row: Option<f64>,
    /// Rows that it gives no distribution for.
    pub(crate) failed: u64,
    pub(crate) first_failure: Option<Failure>,
    /// How many rows have a support size within each of the bins.
    pub(crate) histogram: Vec<u64>,
    /// The rows in which it drops the most softmax probability, which is the score.
    pub(crate) most_dropped: Vec<Scored>,
}

/// Why a method gave no distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Failure {
    pub(crate) row: usize,
    pub(crate) reason: String,
}

/// A transform, and what to call it beside others.
type Named = (String, Box<dyn Transform>);

/// What to compare, and how.
pub(crate) struct Request {
    pub(crate) methods: Vec<Named>,
    pub(crate) temperature: f64,
    /// The true classes, if they are known.
    pub(crate) labels: Option<Labels>,
    /// Whether there will be a page, which shows rows and curves.
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
    let found = typed(rows, request, progress)?;
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
        curves: found.curves.map(Curves::report).unwrap_or_default(),
        sample,
    })
}

/// How many logits are worked on at once, more or less: all methods go over them, so they should
/// stay in the cache, and enough of them that all threads have work.
const CHUNK: usize = 1 << 18;

fn typed<E: Typed>(rows: Rows, request: Request, mut progress: Progress) -> Result<Found> {
    let Request { methods, temperature, mut labels, page } = request;
    let shape = rows.shape();
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
            progress.add(rows);
        }
        progress.expect(block.share_read);
        Ok(ControlFlow::Continue(()))
    })?;
    if let Some(labels) = &mut labels {
        labels.finish(pass.found.rows)?;
    }
    Ok(pass.found)
}

/// One row after the other, in the order of their numbers, with -inf for what is masked: by class,
/// or by logit.
fn gathered<'a, E: Element>(
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

/// What has been found so far. Its memory does not grow with the number of rows.
struct Found {
    rows: usize,
    vacuous: usize,
    methods: Vec<Totals>,
    /// Of softmax, all rows together.
    effective_classes: f64,
    conflict: Top,
    disagreement: Top,
    sample: Sample,
    curves: Option<Curves>,
}

/// The way through the rows.
struct Pass<E> {
    found: Found,
    classes: usize,
    temperature: f64,
    // Used again for each chunk.
    wide: Vec<f64>,
    softmax: Vec<f64>,
    supported: CompressedRows<E>,
    output: CompressedRows<E>,
    numbers: Vec<Option<RowNumbers>>,
    /// How many methods keep each class of each row, and give a distribution for each row.
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
        let totals = |(name, transform)| Totals::new(name, transform, classes);
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
            supported: CompressedRows::new(),
            output: CompressedRows::new(),
            numbers: Vec::new(),
            keepers: Vec::new(),
            answers: Vec::new(),
        })
    }

    /// Adds rows that lie one after the other. Errors count rows from the first of them.
    fn add(&mut self, logits: &[E], labels: Option<&[u32]>) -> shafer::Result<()> {
        let (found, classes) = (&mut self.found, self.classes);
        let input = Logits::rows(logits, classes)?.temperature(self.temperature)?.parallel(true);
        // The evidential support comes first: what fails here is bad for every method.
        Evidential::default().compressed_into(&input, &mut self.supported)?;
        // What the others are measured by is exact whatever type the logits are stored in.
        self.wide.clear();
        self.wide.extend(logits.iter().map(|logit| logit.to_f64()));
        self.softmax.resize(logits.len(), 0.0);
        let wide = Logits::rows(&self.wide, classes)?.temperature(self.temperature)?;
        Softmax.dense(&wide.parallel(true), &mut self.softmax)?;

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
        // The first time brings buffers into being and threads to their feet, and is not counted.
        let warm_up = found.rows == 0;
        for totals in &mut found.methods {
            if warm_up {
                let _ = totals.transform.compressed_into(&input, &mut self.output);
            }
            let output = Output::new(&*totals.transform, &input, logits, one, &mut self.output)?;
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
            curves.add(&input, &self.softmax, |transform, take| {
                take(&Output::new(transform, &input, logits, one, &mut self.output)?);
                Ok(())
            })?;
            found.show(rows, &reference, |row, transform| {
                transform.compressed(&one(&logits[row * classes..(row + 1) * classes])?)
            });
        }
        Ok(())
    }
}

impl Found {
    /// Puts rows of a chunk into the sample. `output` is what a transform makes of one, counted from the
    /// first of the chunk.
    fn show<E: Element>(
        &mut self,
        rows: Range<usize>,
        reference: &Reference<'_>,
        output: impl Fn(usize, &dyn Transform) -> shafer::Result<CompressedRows<E>>,
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
                shown.push(softmax, output(row, &*totals.transform));
            }
            shown
        });
    }
}

/// What a method made of a chunk.
struct Output<'a, E> {
    rows: OutputRows<'a, E>,
    time: Duration,
}

enum OutputRows<'a, E> {
    All(&'a CompressedRows<E>),
    /// One by one, because some could not be computed.
    Each(Vec<shafer::Result<CompressedRows<E>>>),
}

impl<'a, E: Element> Output<'a, E> {
    /// Rows are computed all together, and one by one only if some of them fail.
    fn new<'b>(
        transform: &dyn Transform,
        input: &Logits<'_, E>,
        logits: &'b [E],
        one: impl Fn(&'b [E]) -> shafer::Result<Logits<'b, E>> + Sync,
        buffer: &'a mut CompressedRows<E>,
    ) -> shafer::Result<Self> {
        let start = Instant::now();
        match transform.compressed_into(input, buffer) {
            Ok(_) => {
                let time = start.elapsed();
                return Ok(Self { rows: OutputRows::All(buffer), time });
            }
            // The input is fine, as other methods have shown: this one has no answer for it.
            Err(Error::Row { .. } | Error::Value { .. }) => {}
            Err(error) => return Err(error),
        }
        let start = Instant::now();
        let rows = logits
            .par_chunks_exact(input.classes())
            .map(|row| transform.compressed(&one(row)?))
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
