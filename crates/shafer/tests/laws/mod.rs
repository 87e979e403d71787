//! What must hold of a method whatever its input, bits of any kind included. The property tests
//! and the fuzz targets (`fuzz/` at the root of the repository) both check these; they differ in
//! where the input comes from.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each user has its part")]

use half::{bf16, f16};
use shafer::{CsrRows, Element, Error, Logits, Method, Result, RowCounts, Threads};

/// An element type with its bits and its rounding.
pub trait Bits: Element {
    /// Relative error of rounding to the nearest, doubled for good measure.
    const EPSILON: f64;
    /// The spacing of the smallest numbers.
    const SMALLEST: f64;

    /// Any value at all, from the low bits.
    fn from_low_bits(bits: u64) -> Self;
}

impl Bits for f32 {
    const EPSILON: f64 = f32::EPSILON as f64;
    const SMALLEST: f64 = 1.5e-45;

    fn from_low_bits(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }
}

impl Bits for f64 {
    const EPSILON: f64 = f64::EPSILON;
    const SMALLEST: f64 = 5e-324;

    fn from_low_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }
}

impl Bits for f16 {
    const EPSILON: f64 = 1.0 / 1024.0;
    const SMALLEST: f64 = 6e-8;

    fn from_low_bits(bits: u64) -> Self {
        Self::from_bits(bits as u16)
    }
}

impl Bits for bf16 {
    const EPSILON: f64 = 1.0 / 128.0;
    const SMALLEST: f64 = 1e-40;

    fn from_low_bits(bits: u64) -> Self {
        Self::from_bits(bits as u16)
    }
}

/// How far the sum of a row of probabilities may be from 1.
fn sum_tolerance<E: Bits>(classes: usize) -> f64 {
    // What is computed in f32 has its sum rounded in f32 too.
    let computed: f64 = if size_of::<E>() == 8 { 1e-9 } else { 1e-5 };
    computed + E::EPSILON + classes as f64 * E::SMALLEST
}

/// A transform, with parameters that it may have to refuse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    Softmax,
    Evidential { rounds: usize },
    Sparsemax,
    SparsegenLin { lambda: f64 },
    SparsegenHg { q: f64 },
    Entmax { alpha: f64 },
    TopK { k: usize },
    TopP { p: f64 },
    MinP { p: f64 },
    TopNSigma { n: f64 },
    MinProbability { p: f64 },
    MinEvidence { w: f64 },
}

impl Choice {
    /// The method, if the parameters are what its documentation allows; the crate must agree.
    pub fn build(self) -> Option<Method> {
        let share = |p: f64| p > 0.0 && p <= 1.0;
        let (made, allowed) = match self {
            Self::Softmax => (Ok(Method::SOFTMAX), true),
            Self::Sparsemax => (Ok(Method::SPARSEMAX), true),
            Self::Evidential { rounds } => (Method::evidential(rounds), rounds > 0),
            Self::SparsegenLin { lambda } => {
                (Method::sparsegen_lin(lambda), lambda.is_finite() && lambda < 1.0)
            }
            Self::SparsegenHg { q } => (Method::sparsegen_hg(q), q.is_finite() && q >= 0.0),
            Self::Entmax { alpha } => {
                (Method::entmax(alpha), alpha.is_finite() && (alpha == 1.0 || alpha >= 1.000_001))
            }
            Self::TopK { k } => (Method::top_k(k), k > 0),
            Self::TopP { p } => (Method::top_p(p), share(p)),
            Self::MinP { p } => (Method::min_p(p), share(p)),
            Self::TopNSigma { n } => (Method::top_n_sigma(n), n.is_finite() && n > 0.0),
            Self::MinProbability { p } => (Method::min_probability(p), share(p)),
            Self::MinEvidence { w } => (Method::min_evidence(w), w.is_finite()),
        };
        assert_eq!(made.is_ok(), allowed, "{self:?}");
        made.ok()
    }

    /// Whether a row without a fault may still be refused: sparsehourglass needs a scale, which
    /// the sum of the logits or `q` must give.
    fn may_refuse(self, row: &[f64], temperature: f64) -> bool {
        let Self::SparsegenHg { q } = self else { return false };
        // The sum is taken before the division.
        let large =
            row.iter().any(|x| x.is_finite() && x.abs().max((x / temperature).abs()) > 1e290);
        !(1e-6..=1e290).contains(&q) || large
    }
}

/// Packed rows with mask, temperature and threads.
#[derive(Clone, Debug)]
pub struct Batch<E> {
    pub logits: Vec<E>,
    /// Divides the number of logits.
    pub classes: usize,
    /// One entry a class, or one a logit.
    pub mask: Option<Vec<bool>>,
    /// In the range that is allowed.
    pub temperature: f64,
    pub parallel: bool,
}

impl<E: Bits> Batch<E> {
    fn threads(&self) -> Threads {
        if self.parallel { Threads::All } else { Threads::One }
    }

    fn other_threads(&self) -> Threads {
        if self.parallel { Threads::One } else { Threads::AtMost(3) }
    }

    pub fn logits(&self) -> Logits<'_, E> {
        let mut logits = Logits::rows(&self.logits, self.classes).unwrap();
        if let Some(mask) = &self.mask {
            logits = logits.mask(mask).unwrap();
        }
        logits.temperature(self.temperature).unwrap()
    }

    /// The rows as the transforms are to see them: `-inf` for a masked class, whatever was there.
    pub fn rows(&self) -> Vec<Vec<f64>> {
        let masked = |i: usize| match &self.mask {
            None => false,
            Some(mask) if mask.len() == self.logits.len() => !mask[i],
            Some(mask) => !mask[i % self.classes],
        };
        let seen = |(i, x): (usize, &E)| if masked(i) { f64::NEG_INFINITY } else { x.to_f64() };
        let all: Vec<f64> = self.logits.iter().enumerate().map(seen).collect();
        all.chunks(self.classes).map(<[f64]>::to_vec).collect()
    }

    /// Whether the call was accepted. It must have been, unless there is a reason to refuse it; and
    /// the reason must be the first there is.
    fn accepted(&self, choice: Choice, result: &Result<RowCounts>) -> bool {
        let rows = self.rows();
        if let Choice::TopK { k } = choice
            && k > self.classes
        {
            assert!(matches!(result, Err(Error::Parameter { name: "k", .. })), "{result:?}");
            return false;
        }
        if rows.iter().any(|row| choice.may_refuse(row, self.temperature)) {
            assert!(result.is_err() || rows.iter().all(|row| fault(row).is_none()), "{result:?}");
            return result.is_ok();
        }
        let fault = rows.iter().enumerate().find_map(|(i, row)| Some((i, fault(row)?)));
        match (fault, result) {
            (None, Ok(report)) => {
                assert_eq!(report.rows, rows.len());
                true
            }
            (Some((at, Fault::Value(expected))), Err(Error::Value { row, column, .. })) => {
                assert_eq!((*row, *column), (at, expected));
                false
            }
            (Some((at, Fault::Masked)), Err(Error::Row { row, .. })) => {
                assert_eq!(*row, at);
                false
            }
            (fault, result) => panic!("{result:?} where the first fault is {fault:?}"),
        }
    }
}

/// What keeps a row from having a distribution.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// NaN or `+inf` in this column.
    Value(usize),
    /// Everything is masked.
    Masked,
}

fn fault(row: &[f64]) -> Option<Fault> {
    let bad = row.iter().position(|x| x.is_nan() || *x == f64::INFINITY);
    let masked = row.iter().all(|&x| x == f64::NEG_INFINITY);
    bad.map(Fault::Value).or(masked.then_some(Fault::Masked))
}

/// Checks a row of probabilities against the logits that it comes from.
fn distribution<E: Bits>(choice: Choice, row: &[f64], p: &[f64]) {
    for (k, (&x, &p)) in row.iter().zip(p).enumerate() {
        assert!((0.0..=1.0 + sum_tolerance::<E>(1)).contains(&p), "{choice:?}, class {k}: {p:e}");
        assert!(p == 0.0 || x > f64::NEG_INFINITY, "{choice:?}: class {k} is masked, not {p:e}");
    }
    let sum: f64 = p.iter().sum();
    let tolerance = sum_tolerance::<E>(p.len());
    assert!((sum - 1.0).abs() <= tolerance, "{choice:?}: the sum is {sum:e} for {row:?}");
    let best = first_largest(row);
    let most = p.iter().copied().fold(0.0, f64::max);
    assert!(p[best] > 0.0, "{choice:?}: the largest logit of {row:?} is dropped");
    assert!(most <= p[best] * (1.0 + 1e-5), "{choice:?}: {p:?} for {row:?}");
    if let Some(kept) = exact_support(choice, row) {
        for (k, (&kept, &p)) in kept.iter().zip(p).enumerate() {
            assert!(kept || p == 0.0, "{choice:?}: class {k} of {row:?} is not to be kept");
        }
    }
}

fn first_largest(row: &[f64]) -> usize {
    (0..row.len()).reduce(|best, k| if row[k] > row[best] { k } else { best }).unwrap()
}

/// The classes to be kept, where plain arithmetic is exact.
fn exact_support(choice: Choice, row: &[f64]) -> Option<Vec<bool>> {
    let unmasked = |&x: &f64| x > f64::NEG_INFINITY;
    let mut kept: Vec<bool> = row.iter().map(unmasked).collect();
    match choice {
        Choice::Softmax => Some(kept),
        Choice::TopK { k } => {
            let mut order: Vec<usize> = (0..row.len()).filter(|&i| kept[i]).collect();
            // Stable: of equal logits the first win. Zeros of either sign are equal.
            order.sort_by(|&a, &b| row[b].partial_cmp(&row[a]).unwrap());
            for &dropped in order.iter().skip(k) {
                kept[dropped] = false;
            }
            Some(kept)
        }
        Choice::Evidential { rounds } => {
            // Multiples of 1/8 that are small enough: sums and products of them are exact.
            let exact = |&x: &f64| x.abs() <= 1024.0 && (x * 8.0).fract() == 0.0;
            if !row.iter().filter(|x| unmasked(x)).all(exact) {
                return None;
            }
            // Every round drops a class or is the last.
            for _ in 0..rounds.min(row.len()) {
                let left = || row.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(x, _)| *x);
                let (sum, count) = (left().sum::<f64>(), left().count() as f64);
                let next: Vec<bool> =
                    row.iter().zip(&kept).map(|(x, kept)| *kept && x * count > sum).collect();
                if !next.contains(&true) {
                    break;
                }
                kept = next;
            }
            Some(kept)
        }
        _ => None,
    }
}

fn wide<E: Element>(values: &[E]) -> Vec<f64> {
    values.iter().map(|x| x.to_f64()).collect()
}

/// An output in which whatever is not written shows.
fn unwritten<E: Element>(len: usize) -> Vec<E> {
    vec![E::from_f64(f64::NAN); len]
}

/// `dense`: distributions, whatever the output held, and the same ones on threads.
pub fn dense<E: Bits>(choice: Choice, batch: &Batch<E>) {
    let Some(method) = choice.build() else { return };
    let logits = batch.logits();
    let mut out: Vec<E> = unwritten(logits.len());
    let mut longer: Vec<E> = unwritten(logits.len() + 1);
    let refused = method.dense_into(&logits, batch.threads(), &mut longer);
    assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
    let result = method.dense_into(&logits, batch.threads(), &mut out);
    let mut other: Vec<E> = unwritten(logits.len());
    let again = method.dense_into(&logits, batch.other_threads(), &mut other);
    assert_eq!(format!("{result:?}"), format!("{again:?}"), "NaN in an error differs from itself");
    if !batch.accepted(choice, &result) {
        return;
    }
    assert!(out == other, "{choice:?} differs on threads");
    alone(method, batch, &out);
    for (row, p) in batch.rows().iter().zip(out.chunks(batch.classes)) {
        distribution::<E>(choice, row, &wide(p));
    }
}

/// How far a compressed row may be from a dense one, whose value is `p`: what is computed in `f32` is added in another
/// order if the row is long and the method does not list what it keeps, and then rounded.
fn layout_tolerance<E: Bits>(choice: Choice, classes: usize, p: f64) -> f64 {
    let lists = match choice {
        Choice::TopK { .. }
        | Choice::TopP { .. }
        | Choice::MinProbability { .. }
        | Choice::Sparsemax
        | Choice::SparsegenLin { .. }
        | Choice::SparsegenHg { .. } => true,
        Choice::Entmax { alpha } => alpha != 1.0,
        Choice::Softmax
        | Choice::Evidential { .. }
        | Choice::MinP { .. }
        | Choice::TopNSigma { .. }
        | Choice::MinEvidence { .. } => false,
    };
    if lists || classes <= 32 || size_of::<E>() == 8 {
        return 0.0;
    }
    p * E::EPSILON.max(4.0 * f64::from(f32::EPSILON)) + E::SMALLEST
}

/// One to three rows of a batch have the same bits when they are a batch of their own.
fn alone<E: Bits>(method: Method, batch: &Batch<E>, dense: &[E]) {
    let rows = batch.logits.len() / batch.classes;
    for (first, count) in [(0, 1), (0, 2), (rows / 2, 1), (rows.saturating_sub(3), 3)] {
        let range = first * batch.classes..(first + count) * batch.classes;
        let Some(logits) = batch.logits.get(range.clone()) else { continue };
        let mask = batch.mask.as_ref().map(|mask| {
            if mask.len() == batch.logits.len() { &mask[range.clone()] } else { &mask[..] }.to_vec()
        });
        let few = Batch { logits: logits.to_vec(), mask, ..batch.clone() };
        let found = method.dense(&few.logits(), Threads::One).unwrap();
        assert!(found == dense[range], "{count} rows from row {first} on, alone: {few:?}");
    }
}

/// `compressed`: what `dense` says, without the zeros.
pub fn compressed<E: Bits>(choice: Choice, batch: &Batch<E>) {
    let Some(method) = choice.build() else { return };
    let logits = batch.logits();
    let mut rows = CsrRows::new();
    let result = method.csr_into(&logits, batch.threads(), &mut rows);
    if !batch.accepted(choice, &result) {
        return;
    }
    let threads = method.csr(&logits, batch.other_threads()).unwrap();
    assert!(rows == threads, "{choice:?} differs on threads");
    let mut again = threads;
    method.csr_into(&logits, batch.threads(), &mut again).unwrap();
    assert!(rows == again, "{choice:?} differs in a buffer that held rows");

    assert_eq!((rows.rows(), rows.classes()), (logits.row_count(), batch.classes));
    assert_eq!(rows.indptr().len(), rows.rows() + 1);
    assert_eq!((rows.indices().len(), rows.values().len()), (rows.nnz(), rows.nnz()));
    assert_eq!(rows.row(rows.rows()), None);
    let mut dense: Vec<E> = unwritten(logits.len());
    assert_eq!(method.dense_into(&logits, batch.threads(), &mut dense), result);
    let expanded = rows.to_dense();
    for (i, (row, (indices, values))) in batch.rows().iter().zip(rows.iter()).enumerate() {
        assert_eq!(rows.row(i), Some((indices, values)));
        assert!(indices.windows(2).all(|pair| pair[0] < pair[1]), "{choice:?}: {indices:?}");
        let here = i * batch.classes..(i + 1) * batch.classes;
        let (p, expected) = (wide(&expanded[here.clone()]), wide(&dense[here]));
        distribution::<E>(choice, row, &p);
        for (k, (&a, &b)) in p.iter().zip(&expected).enumerate() {
            let kept = indices.binary_search(&(k as u32)).is_ok();
            assert!(kept || b == 0.0, "{choice:?}: dense keeps class {k} of {row:?}");
            assert!(!kept || row[k] > f64::NEG_INFINITY);
            let error = (a - b).abs();
            assert!(
                error <= layout_tolerance::<E>(choice, row.len(), b),
                "{choice:?}: {a:e}, dense {b:e}"
            );
        }
        if let Some(kept) = exact_support(choice, row) {
            let kept: Vec<u32> =
                (0..).zip(kept).filter(|(_, kept)| *kept).map(|(k, _)| k).collect();
            assert_eq!(indices, kept, "{choice:?} of {row:?}");
        }
    }
}

/// `support_sizes`: as many as `compressed` lists.
pub fn support_sizes<E: Bits>(choice: Choice, batch: &Batch<E>) {
    let Some(method) = choice.build() else { return };
    let logits = batch.logits();
    let mut sizes = vec![u32::MAX; logits.row_count()];
    let mut longer = vec![u32::MAX; logits.row_count() + 1];
    let refused = method.sizes_into(&logits, batch.threads(), &mut longer);
    assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
    let result = method.sizes_into(&logits, batch.threads(), &mut sizes);
    if !batch.accepted(choice, &result) {
        return;
    }
    let mut other = vec![u32::MAX; logits.row_count()];
    let again = method.sizes_into(&logits, batch.other_threads(), &mut other);
    assert_eq!((&again, &sizes), (&result, &other));
    let mut rows = CsrRows::new();
    assert_eq!(method.csr_into(&logits, batch.threads(), &mut rows), result);
    let stored: Vec<u32> = rows.iter().map(|(indices, _)| indices.len() as u32).collect();
    assert_eq!(sizes, stored, "{choice:?}");
    for (row, &size) in batch.rows().iter().zip(&sizes) {
        let unmasked = row.iter().filter(|&&x| x > f64::NEG_INFINITY).count();
        assert!(size >= 1 && size as usize <= unmasked, "{choice:?}: {size} of {row:?}");
    }
}

/// `vjp`: nothing panics for probabilities of any kind; for those of the transform, the gradient is
/// 0 outside of the support, and moving all logits at once changes nothing.
pub fn vjp<E: Bits>(choice: Choice, batch: &Batch<E>, upstream: &[E], anything: &[E]) {
    let Some(method) = choice.build() else { return };
    let logits = batch.logits();
    let mut gradient: Vec<E> = unwritten(logits.len());
    method.vjp(&logits, batch.threads(), anything, upstream, &mut gradient).unwrap();
    let longer: Vec<E> = unwritten(logits.len() + 1);
    assert!(method.vjp(&logits, batch.threads(), &longer, upstream, &mut gradient).is_err());
    assert!(method.vjp(&logits, batch.threads(), anything, &longer, &mut gradient).is_err());
    assert!(method.vjp(&logits, batch.threads(), anything, upstream, &mut longer.clone()).is_err());

    let mut p: Vec<E> = unwritten(logits.len());
    if !batch.accepted(choice, &method.dense_into(&logits, batch.threads(), &mut p)) {
        return;
    }
    let kept = method.csr(&logits, batch.threads()).unwrap();
    let any: Vec<E> = anything.iter().copied().cycle().take(kept.nnz()).collect();
    if any.len() == kept.nnz() {
        method.csr_vjp(&logits, batch.threads(), &kept, &any, &mut gradient).unwrap();
    }
    gradient.fill(E::from_f64(f64::NAN));
    method.vjp(&logits, batch.threads(), &p, upstream, &mut gradient).unwrap();
    let mut other: Vec<E> = unwritten(logits.len());
    method.vjp(&logits, batch.other_threads(), &p, upstream, &mut other).unwrap();
    assert_eq!(format!("{gradient:?}"), format!("{other:?}"), "{choice:?} differs on threads");

    let tame = match choice {
        Choice::SparsegenLin { lambda } => (-10.0..=0.9).contains(&lambda),
        // Its gain moves with the logits.
        Choice::SparsegenHg { .. } => false,
        Choice::Entmax { alpha } => alpha <= 2.0,
        _ => true,
    } && (0.1..=10.0).contains(&batch.temperature);
    let rows = gradient.chunks(batch.classes).zip(p.chunks(batch.classes));
    for ((gradient, p), upstream) in rows.zip(upstream.chunks(batch.classes)) {
        let (gradient, p, upstream) = (wide(gradient), wide(p), wide(upstream));
        if !tame || !upstream.iter().all(|g| g.abs() <= 8.0) {
            continue;
        }
        for (k, (g, p)) in gradient.iter().zip(&p).enumerate() {
            assert!(g.is_finite(), "{choice:?}: {g} for class {k}");
            assert!(*p > 0.0 || *g == 0.0, "{choice:?}: {g} for class {k}, which is not kept");
        }
        let sum: f64 = gradient.iter().sum();
        let size: f64 = gradient.iter().map(|g| g.abs()).sum();
        // The mean is taken with probabilities whose sum is rounded; at most 8 / T, and 10 for the
        // steepest of the projections.
        let mean = 8.0 / batch.temperature * 10.0;
        let tolerance = (mean + size) * sum_tolerance::<E>(p.len());
        assert!(sum.abs() <= tolerance, "{choice:?}: the gradient sums to {sum:e}, not 0");
    }
}

/// An array with any strides: shape, strides, offset and axis.
#[derive(Clone, Debug)]
pub struct Array {
    pub shape: Vec<usize>,
    pub strides: Vec<isize>,
    pub offset: usize,
    pub axis: usize,
}

impl Array {
    /// Whether it is to be accepted for so many values.
    fn fits(&self, len: usize) -> bool {
        let Self { shape, strides, offset, axis } = self;
        if shape.len() != strides.len() || *axis >= shape.len() {
            return false;
        }
        if shape[*axis] == 0 || shape[*axis] > u32::MAX as usize {
            return false;
        }
        if shape.contains(&0) {
            return true;
        }
        // In floating point, which does not wrap.
        let mut ends = [*offset as f64; 2];
        let mut elements = 1_u128;
        for (&size, &stride) in shape.iter().zip(strides) {
            let reach = (size - 1) as f64 * stride as f64;
            ends[usize::from(reach > 0.0)] += reach;
            elements = elements.saturating_mul(size as u128);
        }
        // Rounding does not matter: data is short, and whatever ends within it is exact.
        ends[0] >= 0.0 && ends[1] < len as f64 && elements <= isize::MAX as u128
    }

    /// Position in memory of each class of each row, rows in the C order of the other axes; and
    /// where it belongs in an array of the same shape in C order.
    fn places(&self) -> Vec<Vec<(usize, usize)>> {
        let Self { shape, strides, offset, axis } = self;
        let elements: usize = shape.iter().product();
        let mut rows: Vec<Vec<(usize, usize)>> = Vec::new();
        let inner: usize = shape[axis + 1..].iter().product();
        rows.resize(elements / shape[*axis], Vec::new());
        for packed in 0..elements {
            let (mut rest, mut at) = (packed, *offset as isize);
            for (&size, &stride) in shape.iter().zip(strides).rev() {
                at += (rest % size) as isize * stride;
                rest /= size;
            }
            let row = packed / (inner * shape[*axis]) * inner + packed % inner;
            rows[row].push((at as usize, packed));
        }
        rows
    }
}

/// The most elements that a strided array is worked through for; strides of 0 allow any number.
const SMALL: usize = 1 << 13;

/// Strided arrays: refused exactly if an index falls outside, and otherwise the same to the bit as
/// the packed rows. `mask` is repeated as often as needed.
pub fn strided<E: Bits>(choice: Choice, data: &[E], array: &Array, mask: &[bool], by_class: bool) {
    let Some(method) = choice.build() else { return };
    let made = Logits::strided(data, &array.shape, &array.strides, array.offset, array.axis);
    assert_eq!(made.is_ok(), array.fits(data.len()), "{array:?} of {}: {made:?}", data.len());
    let Ok(logits) = made else { return };
    let classes = array.shape[array.axis];
    assert_eq!(logits.classes(), classes);
    assert_eq!(logits.is_empty(), array.shape.contains(&0));
    if logits.len() > SMALL || classes > SMALL {
        return;
    }
    let places = if logits.is_empty() { Vec::new() } else { array.places() };
    assert_eq!(logits.row_count(), places.len());
    let len = if by_class { classes } else { logits.len() };
    let mask: Vec<bool> = mask.iter().copied().cycle().take(len).collect();
    let masked = mask.len() == len;
    let logits = if masked { logits.mask(&mask).unwrap() } else { logits };
    let in_order = |places: &[Vec<(usize, usize)>]| {
        places.iter().flatten().map(|&(from, _)| data[from]).collect::<Vec<E>>()
    };
    let packed_mask: Vec<bool> = if by_class || !masked {
        mask.clone()
    } else {
        places.iter().flatten().map(|&(_, to)| mask[to]).collect()
    };
    let packed = in_order(&places);
    let rows = Logits::rows(&packed, classes).unwrap();
    let rows = if masked { rows.mask(&packed_mask).unwrap() } else { rows };

    let (mut a, mut b): (Vec<E>, Vec<E>) = (unwritten(logits.len()), unwritten(logits.len()));
    let strided = method.dense_into(&logits, Threads::One, &mut a);
    let result = method.dense_into(&rows, Threads::One, &mut b);
    assert_eq!(format!("{strided:?}"), format!("{result:?}"));
    let compressed = method.csr(&logits, Threads::One);
    let mut sizes = vec![0; logits.row_count()];
    let counted = method.sizes_into(&logits, Threads::One, &mut sizes);
    // Any bits as probabilities and from above: they are read from the same places as the output.
    let probabilities: Vec<E> = data.iter().copied().cycle().take(logits.len()).collect();
    let probabilities = if data.is_empty() { a.clone() } else { probabilities };
    let mut gradient: Vec<E> = unwritten(logits.len());
    method.vjp(&logits, Threads::One, &probabilities, &probabilities, &mut gradient).unwrap();
    let reordered: Vec<E> = places.iter().flatten().map(|&(_, to)| probabilities[to]).collect();
    let mut expected: Vec<E> = unwritten(logits.len());
    method.vjp(&rows, Threads::One, &reordered, &reordered, &mut expected).unwrap();
    for (&(_, to), expected) in places.iter().flatten().zip(&expected) {
        assert_eq!(format!("{:?}", gradient[to]), format!("{expected:?}"), "{choice:?}: gradient");
    }
    if result.is_err() {
        assert!(compressed.is_err() && counted.is_err());
        return;
    }
    for (&(_, to), expected) in places.iter().flatten().zip(&b) {
        assert!(a[to] == *expected, "{choice:?} of {array:?}");
    }
    assert!(compressed.unwrap() == method.csr(&rows, Threads::One).unwrap());
    let mut expected = vec![0; logits.row_count()];
    method.sizes_into(&rows, Threads::One, &mut expected).unwrap();
    assert_eq!(sizes, expected);
}
