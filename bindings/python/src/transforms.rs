//! The methods over arrays: `sparsify`, and a function for each method.

use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use shafer::{CsrRows, Logits, Method, RowCounts, Threads};

use crate::array::{Array, Output, Typed, View, booleans, typed};
use crate::error::OrRaise;
use crate::threads::{compute, threads};

/// A method from its text. Words may be joined by `_`, as in the names of the functions.
pub(crate) fn method(text: &str) -> PyResult<Method> {
    if text.contains('_') { text.replace('_', "-").parse() } else { text.parse() }.or_raise()
}

/// What a call asks for besides its logits and its output.
struct Options<'a, 'py> {
    method: Method,
    axis: isize,
    temperature: f64,
    mask: Option<&'a Bound<'py, PyAny>>,
    threads: Option<usize>,
}

/// Checked logits, without objects of the interpreter.
struct Batch<'a> {
    method: Method,
    view: &'a View,
    axis: usize,
    temperature: f64,
    mask: Option<Vec<bool>>,
    threads: Threads,
}

impl Options<'_, '_> {
    fn check<'a>(&self, view: &'a View) -> PyResult<Batch<'a>> {
        let axis = view.axis(self.axis)?;
        let mask = self.mask.map(|mask| mask_of(mask, view, axis)).transpose()?;
        let (method, temperature) = (self.method, self.temperature);
        Ok(Batch { method, view, axis, temperature, mask, threads: threads(self.threads)? })
    }

    /// The call on logits that are not yet an array of NumPy, with a native type: converts them, calls again, and gives
    /// back the kind of array that came.
    fn convert<'py>(
        &self,
        logits: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        sparse: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        static CONVERT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = logits.py();
        let convert = CONVERT.import(py, "shafer._convert", "sparsify")?;
        let options = PyDict::new(py);
        options.set_item(intern!(py, "axis"), self.axis)?;
        options.set_item(intern!(py, "temperature"), self.temperature)?;
        options.set_item(intern!(py, "mask"), self.mask)?;
        options.set_item(intern!(py, "out"), out)?;
        options.set_item(intern!(py, "sparse"), sparse)?;
        options.set_item(intern!(py, "threads"), self.threads)?;
        convert.call((logits, self.method.to_string()), Some(&options))
    }
}

/// A mask in the form of the core: an entry for each class, or for each logit.
fn mask_of(mask: &Bound<'_, PyAny>, view: &View, axis: usize) -> PyResult<Vec<bool>> {
    static MASK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let fits = |shape: &[usize]| shape == view.shape || shape == [view.shape[axis]];
    if let Some((_, mask)) = booleans(mask).filter(|(shape, _)| fits(shape)) {
        return Ok(mask);
    }
    let py = mask.py();
    let convert = MASK.import(py, "shafer._convert", "mask")?;
    let converted = convert.call1((mask, view.shape.clone(), axis))?;
    let converted = booleans(&converted).filter(|(shape, _)| fits(shape));
    converted.map(|(_, mask)| mask).ok_or_else(|| PyTypeError::new_err("mask is not an array"))
}

impl Batch<'_> {
    fn logits<E: Typed>(&self) -> shafer::Result<Logits<'_, E>> {
        let logits = self.view.logits(self.axis)?.temperature(self.temperature)?;
        match &self.mask {
            Some(mask) => logits.mask(mask),
            None => Ok(logits),
        }
    }

    fn dense(&self, py: Python<'_>, mut out: Output) -> PyResult<()> {
        compute(py, self.view.size(), self.threads, || {
            typed!(self.view.dtype, E => {
                let logits = self.logits::<E>().or_raise()?;
                self.method.dense_into(&logits, self.threads, out.elements()).or_raise()?;
            });
            Ok(())
        })
    }

    /// Compressed rows as SciPy has them.
    fn sparse<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        typed!(self.view.dtype, E => {
            let parts = compute(py, self.view.size(), self.threads, || {
                let logits = self.logits::<E>().or_raise()?;
                csr_parts(&logits, |rows| self.method.csr_into(&logits, self.threads, rows))
            })?;
            csr_object(py, parts)
        })
    }
}

/// The numbers that SciPy has for values of a type: it has none of 16 bits.
pub(crate) trait Packed: Typed {
    type Number: numpy::Element;
    fn pack(values: Vec<Self>) -> Vec<Self::Number>;
}

macro_rules! packed {
    ($($type:ty => $number:ty, $pack:expr;)*) => {$(
        impl Packed for $type {
            type Number = $number;
            fn pack(values: Vec<Self>) -> Vec<$number> {
                let pack: fn(Vec<Self>) -> Vec<$number> = $pack;
                pack(values)
            }
        }
    )*};
}

packed! {
    f64 => f64, |values| values;
    f32 => f32, |values| values;
    half::f16 => f32, |values| values.into_iter().map(f32::from).collect();
    half::bf16 => f32, |values| values.into_iter().map(f32::from).collect();
}

/// Compressed rows, without objects of the interpreter.
pub(crate) struct CsrParts<V> {
    rows: usize,
    classes: usize,
    /// Of 32 bits if they fit.
    pointers: Result<Vec<i32>, Vec<i64>>,
    indices: Vec<i32>,
    values: Vec<V>,
}

/// The compressed rows that `fill` makes of these logits.
pub(crate) fn csr_parts<E: Packed>(
    logits: &Logits<'_, E>,
    fill: impl FnOnce(&mut CsrRows<E>) -> shafer::Result<RowCounts>,
) -> PyResult<CsrParts<E::Number>> {
    if i32::try_from(logits.classes()).is_err() {
        let message = "sparse rows have at most 2147483647 classes";
        return Err(PyValueError::new_err(message));
    }
    check_memory::<i64>(logits.row_count())?;
    let mut rows = CsrRows::new();
    fill(&mut rows).or_raise()?;
    let (count, classes, small) = (rows.rows(), rows.classes(), rows.indptr_i32());
    let (pointers, indices, values) = rows.into_parts();
    Ok(CsrParts {
        rows: count,
        classes,
        pointers: small.ok_or(pointers),
        // Each is less than the number of classes, which is an i32.
        indices: bytemuck::allocation::cast_vec(indices),
        values: E::pack(values),
    })
}

pub(crate) fn csr_object<V: numpy::Element>(
    py: Python<'_>,
    parts: CsrParts<V>,
) -> PyResult<Bound<'_, PyAny>> {
    static CSR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let CsrParts { rows, classes, pointers, indices, values } = parts;
    let values = PyArray1::from_vec(py, values);
    // Both of one type: SciPy would copy the other.
    let (indices, pointers) = match pointers {
        Ok(small) => (indices.into_pyarray(py).into_any(), small.into_pyarray(py).into_any()),
        Err(pointers) => {
            let indices = indices.into_iter().map(i64::from).collect::<Vec<_>>();
            (indices.into_pyarray(py).into_any(), pointers.into_pyarray(py).into_any())
        }
    };
    let csr = CSR.import(py, "shafer._convert", "csr_array")?;
    csr.call1((values, indices, pointers, rows, classes))
}

/// An error if the output cannot be allocated: strides of 0 can describe more rows than memory holds.
fn check_memory<T>(numbers: usize) -> PyResult<()> {
    Vec::<T>::new()
        .try_reserve_exact(numbers)
        .map_err(|_| PyMemoryError::new_err(format!("there is no memory for {numbers} rows")))
}

/// The one way in for all functions.
fn transform<'py>(
    logits: &Bound<'py, PyAny>,
    options: &Options<'_, 'py>,
    out: Option<&Bound<'py, PyAny>>,
    sparse: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = logits.py();
    let Some(array) = Array::new(logits, false) else {
        return options.convert(logits, out, sparse);
    };
    let batch = options.check(&array.view)?;
    if sparse {
        if out.is_some() {
            let message = "out is for dense results; leave it out, or sparse=True";
            return Err(PyValueError::new_err(message));
        }
        return batch.sparse(py);
    }
    let Some(out) = out else {
        let result = array.zeros(&array.view.shape)?;
        let object = result.object.clone().into_any();
        batch.dense(py, fresh(result)?)?;
        return Ok(object);
    };
    let target = output_like(out, &array)?;
    if let Some(output) = Output::new(target, &[&array.view]) {
        batch.dense(py, output)?;
    } else {
        let result = array.zeros(&array.view.shape)?;
        let object = result.object.clone();
        batch.dense(py, fresh(result)?)?;
        out.set_item(py.Ellipsis(), object)?;
    }
    Ok(out.clone())
}

/// The memory of an array that has just been made.
pub(crate) fn fresh(array: Array<'_>) -> PyResult<Output> {
    Output::new(array, &[]).ok_or_else(|| PyValueError::new_err("NumPy made a read-only array"))
}

/// The output of the caller, if it has the type and the shape of the logits.
fn output_like<'py>(out: &Bound<'py, PyAny>, logits: &Array<'py>) -> PyResult<Array<'py>> {
    let Some(array) = Array::new(out, false).filter(|out| out.view.dtype == logits.view.dtype)
    else {
        let found = match out.getattr(intern!(out.py(), "dtype")) {
            Ok(dtype) => format!("an array of {dtype}"),
            Err(_) => format!("a {}", out.get_type().name()?),
        };
        let needed = logits.object.as_any().getattr(intern!(out.py(), "dtype"))?;
        let message =
            format!("out is {found}, but must be a NumPy array of {needed}, as the logits are");
        return Err(PyTypeError::new_err(message));
    };
    if array.view.shape != logits.view.shape {
        let (found, needed) = (&array.view.shape, &logits.view.shape);
        let message = format!("out has the shape {found:?}, but {needed:?} is needed");
        return Err(PyValueError::new_err(message));
    }
    if !array.is_writeable() {
        return Err(PyValueError::new_err("out is read-only"));
    }
    Ok(array)
}

/// Distributions of logits by a method, sparse by default.
///
/// Parameters
/// ----------
/// logits : array_like of float16, bfloat16, float32 or float64
///     Any shape with at least one axis, any strides. Integers and lists become float64. -inf masks a class; NaN and
///     +inf are errors. Tensors of torch and arrays of jax come back as such, with gradients; so do columns of lists
///     of Arrow (pyarrow, polars, DuckDB). See the README for both.
/// method : str
///     ``"evidential"``, ``"softmax"``, ``"sparsemax"``, ``"sparsegen-lin:lambda=0.5"``, ``"sparsegen-hg:q=1"``,
///     ``"entmax:alpha=1.5"``, ``"top-k:k=5"``, ``"top-p:p=0.9"``, ``"min-p:p=0.05"``, ``"top-n-sigma:n=1"``,
///     ``"min-probability:p=0.01"``, ``"min-evidence:w=0"``. Without a parameter, the value shown.
/// axis : int
///     The axis of the classes.
/// temperature : float
///     Divides the logits; from 1e-30 to 1e30.
/// mask : array_like of bool, optional
///     Classes to take into account, of the logits' shape, broadcast to it, or with an entry for each class. The others
///     have probability 0, and their logits may be anything.
/// out : numpy.ndarray, optional
///     Where to write the result: an array of the logits' shape and type. It may be the logits themselves.
/// sparse : bool
///     Returns a ``scipy.sparse.csr_array`` of one row for each distribution, in the C order of the other axes. Values
///     of 16 bits become float32, since SciPy has none.
/// threads : int, optional
///     The maximum number of threads; all cores by default. The result is the same to the bit.
///
/// Returns
/// -------
/// numpy.ndarray or scipy.sparse.csr_array
///     Probabilities of the shape and the type of the logits, or compressed rows.
///
/// Examples
/// --------
/// >>> import numpy as np, shafer
/// >>> logits = np.array([[0.1, 4.0, 3.8, -0.5, 0.2, -1.0]])
/// >>> shafer.sparsify(logits).round(4)
/// array([[0.    , 0.5498, 0.4502, 0.    , 0.    , 0.    ]])
/// >>> shafer.sparsify(logits, "top-k:k=1")
/// array([[0., 1., 0., 0., 0., 0.]])
/// >>> shafer.sparsify(logits, sparse=True).indices
/// array([1, 2], dtype=int32)
#[pyfunction]
#[pyo3(
    signature = (
        logits, method = "evidential", axis = -1, temperature = 1.0, mask = None, out = None, sparse = false,
        threads = None,
    ),
    text_signature = "(logits, method='evidential', axis=-1, temperature=1.0, mask=None, out=None, sparse=False, threads=None)",
)]
pub(crate) fn sparsify<'py>(
    logits: &Bound<'py, PyAny>,
    method: &str,
    axis: isize,
    temperature: f64,
    mask: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
    sparse: bool,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let method = self::method(method)?;
    transform(logits, &Options { method, axis, temperature, mask, threads }, out, sparse)
}

/// A function of a method: `$name($parameter = $default)` is `$method`.
macro_rules! function {
    ($(#[$doc:meta])* $name:ident $(($parameter:ident: $type:ty = $default:tt))? as $text:tt => $method:expr) => {
        $(#[$doc])*
        ///
        /// The other arguments are those of `sparsify`.
        #[pyfunction]
        #[pyo3(
            signature = (
                logits, $($parameter = $default,)? *, axis = -1, temperature = 1.0, mask = None, out = None,
                sparse = false, threads = None,
            ),
            text_signature = $text,
        )]
        pub(crate) fn $name<'py>(
            logits: &Bound<'py, PyAny>,
            $($parameter: $type,)?
            axis: isize,
            temperature: f64,
            mask: Option<&Bound<'py, PyAny>>,
            out: Option<&Bound<'py, PyAny>>,
            sparse: bool,
            threads: Option<usize>,
        ) -> PyResult<Bound<'py, PyAny>> {
            let method = $method;
            transform(logits, &Options { method, axis, temperature, mask, threads }, out, sparse)
        }
    };
}

function! {
    /// The classes with direct evidence: those above the mean logit, with the ratios of softmax (equation 10 of the
    /// paper). Further rounds repeat it among the survivors. A row of equal logits keeps all classes.
    ///
    /// >>> import shafer
    /// >>> shafer.evidential([1.0, 1.0, 0.0])
    /// array([0.5, 0.5, 0. ])
    /// >>> shafer.evidential([4.0, 3.0, 1.0, -9.0], rounds=2).round(3)
    /// array([0.731, 0.269, 0.   , 0.   ])
    evidential(rounds: usize = 1)
    as "(logits, rounds=1, *, axis=-1, temperature=1.0, mask=None, out=None, sparse=False, threads=None)"
    => Method::evidential(rounds).or_raise()?
}
function! {
    /// Softmax: every class is kept.
    ///
    /// >>> import shafer
    /// >>> shafer.softmax([0.0, 0.0])
    /// array([0.5, 0.5])
    softmax
    as "(logits, *, axis=-1, temperature=1.0, mask=None, out=None, sparse=False, threads=None)"
    => Method::SOFTMAX
}
function! {
    /// Sparsemax: the Euclidean projection onto the simplex (Martins and Astudillo, 2016).
    ///
    /// >>> import shafer
    /// >>> shafer.sparsemax([0.5, 0.0, -3.0])
    /// array([0.75, 0.25, 0.  ])
    sparsemax
    as "(logits, *, axis=-1, temperature=1.0, mask=None, out=None, sparse=False, threads=None)"
    => Method::SPARSEMAX
}
function! {
    /// Sparsemax with a regularisation `lam` < 1 (Laha et al., 2018): the larger, the sparser.
    ///
    /// >>> import shafer
    /// >>> shafer.sparsegen_lin([0.25, 0.0], lam=0.5)
    /// array([0.75, 0.25])
    sparsegen_lin(lam: f64 = 0.5)
    as "(logits, lam=0.5, *, axis=-1, temperature=1.0, mask=None, out=None, sparse=False, threads=None)"
    => Method::sparsegen_lin(lam).or_raise()?
}
function! {
    /// Sparsehourglass: sparsemax of logits scaled by their sum, with `q` >= 0 (Laha et al., 2018).
    ///
    /// >>> import shafer
    /// >>> shafer.sparsegen_hg([3.0, 1.0], q=0.0)
    /// array([0.75, 0.25])
    sparsegen_hg(q: f64 = 1.0)
    as "(logits, q=1.0, *, axis=-1, temperature=1.0, mask=None, out=None, sparse=False, threads=None)"
    => Method::sparsegen_hg(q).or_raise()?
}
function! {
    /// Entmax, between softmax (`alpha` 1) and sparsemax (2) (Peters, Niculae and Martins, 2019).
    ///
    /// >>> import shafer
    /// >>> shafer.entmax([1.0, 1.0, -2.0], alpha=1.5)
    /// array([0.5, 0.5, 0. ])
    entmax(alpha: f64 = 1.5)
    as "(logits, alpha=1.5, *, axis=-1, temperature=1.0, mask=None, out=None, sparse=False, threads=None)"
    => Method::entmax(alpha).or_raise()?
}
function! {
    /// The `k` largest logits, with the ratios of softmax.
    ///
    /// >>> import shafer
    /// >>> shafer.top_k([1.0, 0.0, 1.0], k=2)
    /// array([0.5, 0. , 0.5])
    top_k(k: usize = 5)
    as "(logits, k=5, *, axis=-1, temperature=1.0, mask=None, out=None, sparse=False, threads=None)"
    => Method::top_k(k).or_raise()?
}
function! {
    /// The fewest classes whose softmax probabilities sum to `p`, with the ratios of softmax.
    ///
    /// >>> import shafer
    /// >>> shafer.top_p([2.0, 2.0, -1.0], p=0.9)
    /// array([0.5, 0.5, 0. ])
    top_p(p: f64 = 0.9)
    as "(logits, p=0.9, *, axis=-1, temperature=1.0, mask=None, out=None, sparse=False, threads=None)"
    => Method::top_p(p).or_raise()?
}
function! {
    /// The classes at least `p` times as probable as the best, with the ratios of softmax.
    ///
    /// >>> import shafer
    /// >>> shafer.min_p([2.0, 2.0, -1.0], p=0.1)
    /// array([0.5, 0.5, 0. ])
    min_p(p: f64 = 0.05)
    as "(logits, p=0.05, *, axis=-1, temperature=1.0, mask=None, out=None, sparse=False, threads=None)"
    => Method::min_p(p).or_raise()?
}
function! {
    /// The logits within `n` standard deviations of the largest, with the ratios of softmax.
    ///
    /// >>> import shafer
    /// >>> shafer.top_n_sigma([2.0, 2.0, -1.0], n=1.0)
    /// array([0.5, 0.5, 0. ])
    top_n_sigma(n: f64 = 1.0)
    as "(logits, n=1.0, *, axis=-1, temperature=1.0, mask=None, out=None, sparse=False, threads=None)"
    => Method::top_n_sigma(n).or_raise()?
}

function! {
    /// The classes whose softmax probability is at least `p`, with the ratios of softmax. The best class is always kept.
    ///
    /// >>> import shafer
    /// >>> shafer.min_probability([2.0, 2.0, -1.0], p=0.1)
    /// array([0.5, 0.5, 0. ])
    min_probability(p: f64 = 0.01)
    as "(logits, p=0.01, *, axis=-1, temperature=1.0, mask=None, out=None, sparse=False, threads=None)"
    => Method::min_probability(p).or_raise()?
}
function! {
    /// The classes whose weight of evidence, the logit minus the mean, is at least `w`, with the ratios of softmax. A
    /// negative `w` keeps more than `evidential` does, a positive one fewer. The best class is always kept.
    ///
    /// >>> import shafer
    /// >>> shafer.min_evidence([2.0, 2.0, -1.0, -3.0], w=1.5)
    /// array([0.5, 0.5, 0. , 0. ])
    min_evidence(w: f64 = 0.0)
    as "(logits, w=0.0, *, axis=-1, temperature=1.0, mask=None, out=None, sparse=False, threads=None)"
    => Method::min_evidence(w).or_raise()?
}

/// The number of classes that a method keeps of each row, without computing probabilities.
///
/// The result has the shape of the logits without `axis`. The arguments are those of `sparsify`.
///
/// >>> import numpy as np, shafer
/// >>> shafer.support_size(np.array([[5.0, 4.0, 0.0], [1.0, 1.0, 1.0]]))
/// array([2, 3], dtype=uint32)
#[pyfunction]
#[pyo3(
    signature = (logits, method = "evidential", axis = -1, temperature = 1.0, mask = None, threads = None),
    text_signature = "(logits, method='evidential', axis=-1, temperature=1.0, mask=None, threads=None)",
)]
pub(crate) fn support_size<'py>(
    logits: &Bound<'py, PyAny>,
    method: &str,
    axis: isize,
    temperature: f64,
    mask: Option<&Bound<'py, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = logits.py();
    let array = array_of(logits)?;
    let method = self::method(method)?;
    let batch = Options { method, axis, temperature, mask, threads }.check(&array.view)?;
    let sizes = compute(py, array.view.size(), batch.threads, || {
        typed!(batch.view.dtype, E => {
            let logits = batch.logits::<E>().or_raise()?;
            check_memory::<u32>(logits.row_count())?;
            let mut sizes = vec![0; logits.row_count()];
            batch.method.sizes_into(&logits, batch.threads, &mut sizes).or_raise()?;
            Ok(sizes)
        })
    })?;
    let mut shape = batch.view.shape.clone();
    shape.remove(batch.axis);
    Ok(PyArray1::from_vec(py, sizes).reshape(shape)?.into_any())
}

/// The vector-Jacobian product: the gradient, with respect to the logits, of the inner product of `upstream` with the
/// `probabilities` that the method gives for them.
///
/// All three have one shape and type. The choice of classes is held fixed, which is the derivative almost everywhere.
///
/// >>> import shafer
/// >>> shafer.vjp([0.0, 0.0], [0.5, 0.5], [1.0, 0.0], "softmax")
/// array([ 0.25, -0.25])
#[pyfunction]
#[pyo3(
    signature = (
        logits, probabilities, upstream, method = "evidential", axis = -1, temperature = 1.0, mask = None,
        threads = None,
    ),
    text_signature = "(logits, probabilities, upstream, method='evidential', axis=-1, temperature=1.0, mask=None, threads=None)",
)]
pub(crate) fn vjp<'py>(
    logits: &Bound<'py, PyAny>,
    probabilities: &Bound<'py, PyAny>,
    upstream: &Bound<'py, PyAny>,
    method: &str,
    axis: isize,
    temperature: f64,
    mask: Option<&Bound<'py, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = array_of(logits)?;
    let probabilities = packed(probabilities, &array, "probabilities")?;
    let upstream = packed(upstream, &array, "upstream")?;
    let method = self::method(method)?;
    let batch = Options { method, axis, temperature, mask, threads }.check(&array.view)?;
    let gradient = array.zeros(&array.view.shape)?;
    let object = gradient.object.clone().into_any();
    batch.vjp(logits.py(), &probabilities.view, &upstream.view, fresh(gradient)?)?;
    Ok(object)
}

impl Batch<'_> {
    fn vjp(&self, py: Python<'_>, p: &View, upstream: &View, mut out: Output) -> PyResult<()> {
        compute(py, self.view.size(), self.threads, || {
            typed!(self.view.dtype, E => {
                let logits = self.logits::<E>().or_raise()?;
                let (p, upstream) = (p.memory(), upstream.memory());
                self.method.vjp(&logits, self.threads, p, upstream, out.elements()).or_raise()?;
            });
            Ok(())
        })
    }
}

/// For `shafer.torch`: as `sparsify` into `out`, with bfloat16 as int16.
#[pyfunction]
pub(crate) fn dense_into<'py>(
    logits: &Bound<'py, PyAny>,
    method: &str,
    axis: isize,
    temperature: f64,
    mask: Option<&Bound<'py, PyAny>>,
    out: &Bound<'py, PyAny>,
    threads: Option<usize>,
) -> PyResult<()> {
    let unsupported = || PyTypeError::new_err("unsupported array");
    let array = Array::new(logits, true).ok_or_else(unsupported)?;
    let method = self::method(method)?;
    let batch = Options { method, axis, temperature, mask, threads }.check(&array.view)?;
    let out = Array::new(out, true).and_then(|out| Output::new(out, &[&array.view]));
    batch.dense(logits.py(), out.ok_or_else(unsupported)?)
}

/// For `shafer.torch`: as `vjp` into `out`, with bfloat16 as int16. All but the logits are in C order.
#[pyfunction]
pub(crate) fn vjp_into<'py>(
    logits: &Bound<'py, PyAny>,
    probabilities: &Bound<'py, PyAny>,
    upstream: &Bound<'py, PyAny>,
    method: &str,
    axis: isize,
    temperature: f64,
    mask: Option<&Bound<'py, PyAny>>,
    out: &Bound<'py, PyAny>,
    threads: Option<usize>,
) -> PyResult<()> {
    let unsupported = || PyTypeError::new_err("unsupported array");
    let array = Array::new(logits, true).ok_or_else(unsupported)?;
    let p = Array::new(probabilities, true).ok_or_else(unsupported)?;
    let upstream = Array::new(upstream, true).ok_or_else(unsupported)?;
    if !p.view.is_packed_as(&array.view) || !upstream.view.is_packed_as(&array.view) {
        return Err(unsupported());
    }
    let method = self::method(method)?;
    let batch = Options { method, axis, temperature, mask, threads }.check(&array.view)?;
    let out = Array::new(out, true)
        .and_then(|out| Output::new(out, &[&array.view, &p.view, &upstream.view]));
    batch.vjp(logits.py(), &p.view, &upstream.view, out.ok_or_else(unsupported)?)
}

/// An array of the caller, converted if it is not of NumPy or of another type.
fn array_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
    static ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if let Some(array) = Array::new(object, false) {
        return Ok(array);
    }
    let converted = ARRAY.import(object.py(), "shafer._convert", "array")?.call1((object,))?;
    Array::new(&converted, false).ok_or_else(|| PyTypeError::new_err("unsupported array"))
}

/// An array in C order, of the type and the shape of `like`.
fn packed<'py>(object: &Bound<'py, PyAny>, like: &Array<'py>, what: &str) -> PyResult<Array<'py>> {
    let py = object.py();
    let dtype = like.object.as_any().getattr(intern!(py, "dtype"))?;
    let numpy = py.import(intern!(py, "numpy"))?;
    let array = numpy.call_method1(intern!(py, "ascontiguousarray"), (object, dtype))?;
    match Array::new(&array, false) {
        Some(array) if array.view.is_packed_as(&like.view) => Ok(array),
        Some(array) => {
            let (found, needed) = (&array.view.shape, &like.view.shape);
            let message = format!("{what} have the shape {found:?}, but {needed:?} is needed");
            Err(PyValueError::new_err(message))
        }
        None => Err(PyTypeError::new_err(format!("{what} are not an array of numbers"))),
    }
}

/// A method's full text, its name, and the value of its parameter (NaN if it has none): for `shafer.torch`.
#[pyfunction]
pub(crate) fn parse(method: &str) -> PyResult<(String, &'static str, f64)> {
    let method = self::method(method)?;
    let value = method.parameter().map_or(f64::NAN, |(_, value)| value);
    Ok((method.to_string(), method.name(), value))
}
