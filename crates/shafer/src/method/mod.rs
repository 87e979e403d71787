//! The methods: logits in, distributions out.

mod entmax;
mod evidential;
mod min_evidence;
mod min_p;
mod min_probability;
pub(crate) mod project;
mod rule;
mod sparsegen;
mod text;
mod top_k;
mod top_n_sigma;
mod top_p;

pub(crate) use rule::{Kept, Rule, Scratch, check_row};

use crate::csr::CsrRows;
use crate::element::Element;
use crate::engine;
use crate::error::{Result, check_length, check_parameter};
use crate::logits::Logits;
use crate::threads::Threads;

/// A map from a row of logits to a distribution over its classes, with its parameter.
///
/// | constructor | text | what it keeps |
/// |---|---|---|
/// | [`EVIDENTIAL`](Self::EVIDENTIAL), [`evidential`](Self::evidential) | `evidential`, `evidential:rounds=2` | classes with direct evidence: above the mean logit |
/// | [`SOFTMAX`](Self::SOFTMAX) | `softmax` | all classes |
/// | [`SPARSEMAX`](Self::SPARSEMAX) | `sparsemax` | Euclidean projection onto the simplex |
/// | [`sparsegen_lin`](Self::sparsegen_lin) | `sparsegen-lin:lambda=0.5` | sparsemax with a regularisation |
/// | [`sparsegen_hg`](Self::sparsegen_hg) | `sparsegen-hg:q=1` | sparsemax of logits scaled by their sum |
/// | [`entmax`](Self::entmax) | `entmax:alpha=1.5` | between softmax and sparsemax |
/// | [`top_k`](Self::top_k) | `top-k:k=5` | the `k` largest logits |
/// | [`top_p`](Self::top_p) | `top-p:p=0.9` | the fewest classes that cover probability `p` |
/// | [`min_p`](Self::min_p) | `min-p:p=0.05` | classes at least `p` times as probable as the best |
/// | [`min_probability`](Self::min_probability) | `min-probability:p=0.01` | classes with a probability of at least `p` |
/// | [`min_evidence`](Self::min_evidence) | `min-evidence:w=0` | classes with a weight of evidence of at least `w` |
/// | [`top_n_sigma`](Self::top_n_sigma) | `top-n-sigma:n=1` | logits within `n` standard deviations of the largest |
///
/// A method is read from its text and printed as it; without a parameter the text stands for the
/// value in this table. With the feature `serde` it is serialised as its text.
///
/// After an error, the contents of an output are not specified.
///
/// ```
/// use shafer::Method;
///
/// let logits = [2.0, 1.2, -0.5, -3.0];
/// let kept = |method: Method| -> shafer::Result<usize> {
///     Ok(method.row(&logits)?.iter().filter(|&&p| p > 0.0).count())
/// };
/// assert_eq!(kept(Method::SOFTMAX)?, 4);
/// assert_eq!(kept(Method::EVIDENTIAL)?, 2);
/// assert_eq!(kept("top-k:k=3".parse()?)?, 3);
/// assert_eq!(Method::entmax(1.5)?.to_string(), "entmax:alpha=1.5");
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Method(Rule);

impl Default for Method {
    /// [`Method::EVIDENTIAL`].
    fn default() -> Self {
        Self::EVIDENTIAL
    }
}

/// What a call found out about its rows besides their distributions.
///
/// ```
/// use shafer::{Logits, Method, Threads};
///
/// let batch = Logits::rows(&[1.0, 1.0, 0.0, 2.0], 2)?;
/// let counts = Method::EVIDENTIAL.dense_into(&batch, Threads::One, &mut [0.0; 4])?;
/// assert_eq!((counts.rows, counts.vacuous), (2, 1));
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowCounts {
    /// The number of rows.
    pub rows: usize,
    /// The number of rows with vacuous evidence: two or more classes, all with the same logit.
    /// [`Method::evidential`] keeps all of them.
    pub vacuous: usize,
}

impl Method {
    /// Softmax: `p_k = exp(l_k / T) / sum_i exp(l_i / T)`, every class kept.
    ///
    /// In evidential terms it is the plausibility transformation (equation 2 of the paper) of the
    /// mass function of the last linear layer: each class gets what does not contradict it, supported
    /// or not.
    ///
    /// ```
    /// let p = shafer::Method::SOFTMAX.row(&[2.0_f64.ln(), 0.0, 0.0])?;
    /// assert!((p[0] - 0.5).abs() < 1e-15 && (p[1] - 0.25).abs() < 1e-15);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub const SOFTMAX: Self = Self(Rule::Softmax);

    /// The distribution of one row.
    ///
    /// ```
    /// let p = shafer::Method::EVIDENTIAL.row(&[1.0, 1.0, 0.0])?;
    /// assert_eq!(p, [0.5, 0.5, 0.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn row<E: Element>(&self, logits: &[E]) -> Result<Vec<E>> {
        self.dense(&Logits::row(logits)?, Threads::One)
    }

    /// The distributions of all rows, zeros included, as an array of the logits' shape in C order.
    ///
    /// ```
    /// use shafer::{Logits, Method, Threads};
    ///
    /// let batch = Logits::rows(&[0.5, 0.0, 3.0, 0.0], 2)?;
    /// assert_eq!(Method::SPARSEMAX.dense(&batch, Threads::One)?, [0.75, 0.25, 1.0, 0.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn dense<E: Element>(&self, logits: &Logits<'_, E>, threads: Threads) -> Result<Vec<E>> {
        let mut out = vec![E::default(); logits.len()];
        self.dense_into(logits, threads, &mut out)?;
        Ok(out)
    }

    /// As [`dense`](Self::dense), into memory of the caller.
    ///
    /// ```
    /// use shafer::{Logits, Method, Threads};
    ///
    /// let mut out = [0.0; 4];
    /// let batch = Logits::rows(&[0.5, 0.0, 3.0, 0.0], 2)?;
    /// Method::SPARSEMAX.dense_into(&batch, Threads::One, &mut out)?;
    /// assert_eq!(out, [0.75, 0.25, 1.0, 0.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn dense_into<E: Element>(
        &self,
        logits: &Logits<'_, E>,
        threads: Threads,
        out: &mut [E],
    ) -> Result<RowCounts> {
        check_length("output", logits.len(), out.len())?;
        E::dense(self.0, logits, threads, out, &mut [])
    }

    /// As [`dense_into`](Self::dense_into), with the number of kept classes of each row.
    ///
    /// ```
    /// use shafer::{Logits, Method, Threads};
    ///
    /// let (mut out, mut sizes) = ([0.0; 4], [0; 2]);
    /// let batch = Logits::rows(&[0.5, 0.0, 3.0, 0.0], 2)?;
    /// Method::SPARSEMAX.dense_and_sizes_into(&batch, Threads::One, &mut out, &mut sizes)?;
    /// assert_eq!((out, sizes), ([0.75, 0.25, 1.0, 0.0], [2, 1]));
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn dense_and_sizes_into<E: Element>(
        &self,
        logits: &Logits<'_, E>,
        threads: Threads,
        out: &mut [E],
        sizes: &mut [u32],
    ) -> Result<RowCounts> {
        check_length("output", logits.len(), out.len())?;
        check_length("sizes", logits.row_count(), sizes.len())?;
        E::dense(self.0, logits, threads, out, sizes)
    }

    /// The number of kept classes of each row, without their probabilities.
    ///
    /// ```
    /// use shafer::{Logits, Method, Threads};
    ///
    /// let mut sizes = [0; 2];
    /// let batch = Logits::rows(&[5.0, 4.0, 0.0, 1.0, 1.0, 1.0], 3)?;
    /// let counts = Method::EVIDENTIAL.sizes_into(&batch, Threads::One, &mut sizes)?;
    /// assert_eq!(sizes, [2, 3]);
    /// assert_eq!(counts.vacuous, 1);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn sizes_into<E: Element>(
        &self,
        logits: &Logits<'_, E>,
        threads: Threads,
        sizes: &mut [u32],
    ) -> Result<RowCounts> {
        check_length("sizes", logits.row_count(), sizes.len())?;
        E::dense(self.0, logits, threads, &mut [], sizes)
    }

    /// The distributions of all rows in compressed sparse row form.
    ///
    /// The values are those of [`dense`](Self::dense), to the bit for `f64` and for rows of at most 32
    /// classes. Longer rows of other types can differ in the last digits: sums are taken in another
    /// order.
    ///
    /// ```
    /// use shafer::{Logits, Method, Threads};
    ///
    /// let batch = Logits::rows(&[0.5, 0.0, 3.0, 0.0], 2)?;
    /// let rows = Method::SPARSEMAX.csr(&batch, Threads::One)?;
    /// assert_eq!(rows.indices(), [0, 1, 0]);
    /// assert_eq!(rows.values(), [0.75, 0.25, 1.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn csr<E: Element>(&self, logits: &Logits<'_, E>, threads: Threads) -> Result<CsrRows<E>> {
        let mut rows = CsrRows::new();
        self.csr_into(logits, threads, &mut rows)?;
        Ok(rows)
    }

    /// As [`csr`](Self::csr), in place of what `rows` holds, with its memory.
    ///
    /// ```
    /// use shafer::{CsrRows, Logits, Method, Threads};
    ///
    /// let mut rows = CsrRows::new();
    /// for logits in [[0.5, 0.0], [3.0, 0.0]] {
    ///     Method::SPARSEMAX.csr_into(&Logits::row(&logits)?, Threads::One, &mut rows)?;
    /// }
    /// assert_eq!((rows.indices(), rows.values()), (&[0][..], &[1.0][..]));
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn csr_into<E: Element>(
        &self,
        logits: &Logits<'_, E>,
        threads: Threads,
        rows: &mut CsrRows<E>,
    ) -> Result<RowCounts> {
        E::csr(self.0, logits, threads, rows)
    }

    /// The vector-Jacobian product: the gradient, with respect to the logits, of the inner product
    /// of `upstream` with the `probabilities` that [`dense`](Self::dense) gives for them. All arrays
    /// have the logits' shape, in C order; the logits themselves may be strided.
    ///
    /// The choice of classes is held fixed: that is the derivative almost everywhere.
    ///
    /// ```
    /// use shafer::{Logits, Method, Threads};
    ///
    /// let logits = Logits::row(&[0.0, 0.0])?;
    /// let mut gradient = [0.0; 2];
    /// Method::SOFTMAX.vjp(&logits, Threads::One, &[0.5, 0.5], &[1.0, 0.0], &mut gradient)?;
    /// assert_eq!(gradient, [0.25, -0.25]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn vjp<E: Element>(
        &self,
        logits: &Logits<'_, E>,
        threads: Threads,
        probabilities: &[E],
        upstream: &[E],
        gradient: &mut [E],
    ) -> Result<()> {
        check_length("probabilities", logits.len(), probabilities.len())?;
        check_length("upstream", logits.len(), upstream.len())?;
        engine::vjp(self.0, logits, threads, gradient, |row, p, up| {
            for (class, place) in logits.places(row).enumerate() {
                p[class] = probabilities[place].widen();
                up[class] = upstream[place].widen();
            }
        })
    }

    /// As [`vjp`](Self::vjp), for the `probabilities` that [`csr`](Self::csr) gives, with an
    /// `upstream` gradient for each stored one. The gradient has the logits' shape.
    ///
    /// ```
    /// use shafer::{Logits, Method, Threads};
    ///
    /// let logits = Logits::row(&[1.0, 1.0, 0.0])?;
    /// let p = Method::EVIDENTIAL.csr(&logits, Threads::One)?;
    /// let mut gradient = [0.0; 3];
    /// Method::EVIDENTIAL.csr_vjp(&logits, Threads::One, &p, &[1.0, 0.0], &mut gradient)?;
    /// assert_eq!(gradient, [0.25, -0.25, 0.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn csr_vjp<E: Element>(
        &self,
        logits: &Logits<'_, E>,
        threads: Threads,
        probabilities: &CsrRows<E>,
        upstream: &[E],
        gradient: &mut [E],
    ) -> Result<()> {
        check_length("probabilities", logits.row_count(), probabilities.rows())?;
        check_length("upstream", probabilities.nnz(), upstream.len())?;
        if probabilities.rows() > 0 {
            check_length("a row of probabilities", logits.classes(), probabilities.classes())?;
        }
        engine::vjp(self.0, logits, threads, gradient, |row, p, up| {
            p.fill(Default::default());
            up.fill(Default::default());
            let pointers = &probabilities.indptr()[row..row + 2];
            let entries = pointers[0] as usize..pointers[1] as usize;
            let kept = probabilities.indices()[entries.clone()].iter();
            let values = probabilities.values()[entries.clone()].iter().zip(&upstream[entries]);
            for (&class, (value, gradient)) in kept.zip(values) {
                p[class as usize] = value.widen();
                up[class as usize] = gradient.widen();
            }
        })
    }
}

/// A probability as the parameter of a method.
fn share(p: f64) -> Result<f64> {
    check_parameter("p", p, p > 0.0 && p <= 1.0, "must be greater than 0 and at most 1")
}
