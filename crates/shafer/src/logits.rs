//! The input of a method: borrowed logits with their layout, mask and temperature.

use crate::element::Element;
use crate::error::{Error, Result, check_index, check_length, check_parameter};
use crate::kernel::Rate;

/// Rows of logits, borrowed, with a mask and a temperature.
///
/// ```
/// use shafer::{Logits, Method, Threads};
///
/// // Two rows of three classes.
/// let logits = [1.0, 0.0, -4.0, 0.5, 2.5, -3.0];
/// let p = Method::EVIDENTIAL.dense(&Logits::rows(&logits, 3)?, Threads::One)?;
/// // Kept is what lies above the row's mean, which is -1 and 0.
/// assert_eq!(p.iter().map(|&p| p > 0.0).collect::<Vec<_>>(), [true, true, false, true, true, false]);
///
/// // The same memory as three rows, along the other axis.
/// let columns = Logits::strided(&logits, &[2, 3], &[3, 1], 0, 0)?;
/// assert_eq!((columns.row_count(), columns.classes()), (3, 2));
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Logits<'a, E> {
    data: &'a [E],
    rows: usize,
    classes: usize,
    inner: usize,
    /// `None` if the rows are packed.
    strided: Option<Strided<'a>>,
    mask: Option<&'a [bool]>,
    temperature: f64,
}

/// Where rows that are not packed lie in memory. The bounds have been checked.
#[derive(Clone, Copy, Debug)]
struct Strided<'a> {
    shape: &'a [usize],
    strides: &'a [isize],
    offset: usize,
    axis: usize,
}

/// Within these bounds, every product with an `f32` logit is an `f32`.
const TEMPERATURES: std::ops::RangeInclusive<f64> = 1e-30..=1e30;

impl<'a, E: Element> Logits<'a, E> {
    /// One row.
    ///
    /// # Errors
    /// The row is empty.
    ///
    /// ```
    /// use shafer::Logits;
    /// assert_eq!(Logits::row(&[0.1_f32, 0.2]).unwrap().classes(), 2);
    /// ```
    pub fn row(logits: &'a [E]) -> Result<Self> {
        Self::rows(logits, logits.len())
    }

    /// Rows of `classes` values, one after the other. There may be no rows.
    ///
    /// # Errors
    /// `classes` is 0 or more than `u32::MAX`, or does not divide the number of logits.
    ///
    /// ```
    /// use shafer::Logits;
    /// assert_eq!(Logits::rows(&[0.0_f32; 12], 4)?.row_count(), 3);
    /// assert!(Logits::rows(&[0.0_f32; 12], 5).is_err());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn rows(logits: &'a [E], classes: usize) -> Result<Self> {
        check_classes(classes)?;
        let rows = logits.len() / classes;
        check_length("logits", logits.len().div_ceil(classes) * classes, logits.len())?;
        let (mask, temperature) = (None, 1.0);
        Ok(Self { data: logits, rows, classes, inner: 1, strided: None, mask, temperature })
    }

    /// The vectors along `axis` of a strided array: the element at index `i` is
    /// `data[offset + sum(i[d] * strides[d])]`. Strides count elements, and may be negative or 0.
    /// Rows are numbered in the C order of the other axes.
    ///
    /// # Errors
    /// Shape and strides differ in length, the axis does not exist or is empty, or an index falls
    /// outside `data`.
    ///
    /// ```
    /// use shafer::{Logits, Method, Threads};
    ///
    /// // A 2 x 2 array in Fortran order: [[0, 1], [2, 3]] along its last axis.
    /// let data = [0.0, 2.0, 1.0, 3.0];
    /// let rows = Logits::strided(&data, &[2, 2], &[1, 2], 0, 1)?;
    /// let p = Method::SOFTMAX.dense(&rows, Threads::One)?;
    /// assert!((p[1] - 1.0 / (1.0 + (-1.0_f64).exp())).abs() < 1e-15);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn strided(
        data: &'a [E],
        shape: &'a [usize],
        strides: &'a [isize],
        offset: usize,
        axis: usize,
    ) -> Result<Self> {
        check_length("strides", shape.len(), strides.len())?;
        check_index("axis", axis, shape.len())?;
        let classes = shape[axis];
        check_classes(classes)?;
        check_bounds(data.len(), shape, strides, offset)?;
        // Saturated only if another size is 0, and then so is the product.
        let product = |sizes: &[usize]| sizes.iter().copied().fold(1, usize::saturating_mul);
        let inner = product(&shape[axis + 1..]);
        let rows = product(&shape[..axis]).saturating_mul(inner);
        let strided = Some(Strided { shape, strides, offset, axis });
        Ok(Self { data, rows, classes, inner, strided, mask: None, temperature: 1.0 })
    }

    /// Masks out every class whose entry is `false`, as a logit of `-inf` does: it takes no part in
    /// any mean, sum or count, and its probability is 0. Its logit may be anything, even NaN. The
    /// mask has an entry for each class, or for each element in the C order of the array's shape.
    ///
    /// # Errors
    /// The mask has another length.
    ///
    /// ```
    /// use shafer::{Logits, Method, Threads};
    ///
    /// let logits = [3.0, 1.0, 1.0];
    /// let batch = Logits::row(&logits)?.mask(&[false, true, true])?;
    /// assert_eq!(Method::SOFTMAX.dense(&batch, Threads::One)?, [0.0, 0.5, 0.5]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn mask(mut self, mask: &'a [bool]) -> Result<Self> {
        if mask.len() != self.classes() && mask.len() != self.len() {
            return Err(Error::Length { what: "mask", expected: self.len(), found: mask.len() });
        }
        self.mask = Some(mask);
        Ok(self)
    }

    /// Divides every logit by `temperature`. It never changes which classes
    /// [`Method::EVIDENTIAL`](crate::Method::EVIDENTIAL) keeps.
    ///
    /// # Errors
    /// The temperature is not between 1e-30 and 1e30.
    ///
    /// ```
    /// use shafer::{Logits, Method, Threads};
    ///
    /// let batch = Logits::row(&[4.0, 0.0])?.temperature(2.0)?;
    /// let p = Method::SOFTMAX.dense(&batch, Threads::One)?;
    /// assert!((p[0] - 1.0 / (1.0 + (-2.0_f64).exp())).abs() < 1e-15);
    /// assert!(Logits::row(&[4.0, 0.0])?.temperature(-1.0).is_err());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn temperature(mut self, temperature: f64) -> Result<Self> {
        let holds = TEMPERATURES.contains(&temperature);
        let rule = "must be positive, from 1e-30 to 1e30";
        self.temperature = check_parameter("temperature", temperature, holds, rule)?;
        Ok(self)
    }

    /// The same at `factor` times the temperature.
    pub(crate) fn warmer(self, factor: f64) -> Result<Self> {
        self.temperature(self.temperature * factor)
    }

    /// The same at the temperature of other logits.
    pub(crate) fn temperature_of<F>(self, other: &Logits<'_, F>) -> Self {
        Self { temperature: other.temperature, ..self }
    }

    /// The number of classes in each row.
    ///
    /// ```
    /// assert_eq!(shafer::Logits::rows(&[0.0_f32; 12], 4)?.classes(), 4);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The number of rows.
    ///
    /// ```
    /// assert_eq!(shafer::Logits::rows(&[0.0_f32; 12], 4)?.row_count(), 3);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn row_count(&self) -> usize {
        self.rows
    }

    /// The number of logits: rows times classes.
    ///
    /// ```
    /// assert_eq!(shafer::Logits::rows(&[0.0_f32; 12], 4)?.len(), 12);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.rows * self.classes
    }

    /// Whether there are no rows.
    ///
    /// ```
    /// assert!(shafer::Logits::rows(&[0.0_f32; 0], 4)?.is_empty());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub(crate) fn rate(&self) -> Rate {
        Rate::new(self.temperature)
    }

    /// How many elements lie between neighbouring classes of a row in an array of this shape that
    /// is packed in C order, as every output is.
    pub(crate) fn inner(&self) -> usize {
        self.inner
    }

    /// Where the classes of a row lie in an output.
    pub(crate) fn places(&self, row: usize) -> impl Iterator<Item = usize> + use<E> {
        let (classes, inner) = (self.classes, self.inner);
        let first = packed_start(row, classes, inner);
        (0..classes).map(move |class| first + class * inner)
    }

    /// Rows `start..start + count`, packed and with the mask applied: the memory itself if it is like
    /// that, or a copy in `buffer`.
    pub(crate) fn block<'b>(
        &self,
        start: usize,
        count: usize,
        buffer: &'b mut Vec<E::Compute>,
    ) -> &'b [E::Compute]
    where
        'a: 'b,
    {
        let classes = self.classes;
        buffer.clear();
        let Some(strided) = self.strided else {
            let rows = &self.data[start * classes..][..count * classes];
            if let (Some(rows), None) = (E::as_compute(rows), self.mask) {
                return rows;
            }
            buffer.extend(rows.iter().map(|x| x.widen()));
            self.apply_mask(start, buffer);
            return buffer;
        };
        let step = strided.strides[strided.axis];
        for row in start..start + count {
            let first = strided.start(row);
            if step == 1 {
                buffer.extend(self.data[first..][..classes].iter().map(|x| x.widen()));
                continue;
            }
            buffer.extend(
                (0..classes).map(|class| {
                    self.data[first.wrapping_add_signed(class as isize * step)].widen()
                }),
            );
        }
        self.apply_mask(start, buffer);
        buffer
    }

    fn apply_mask(&self, start: usize, rows: &mut [E::Compute]) {
        use crate::kernel::Float;
        let Some(mask) = self.mask else { return };
        let (classes, inner) = (self.classes, self.inner);
        let by_class = mask.len() == classes;
        let step = if by_class { 1 } else { inner };
        for (i, row) in rows.chunks_exact_mut(classes).enumerate() {
            let first = if by_class { 0 } else { packed_start(start + i, classes, inner) };
            // Without a branch, so that the loop is vectorised.
            let apply = |(x, &kept): (&mut E::Compute, &bool)| {
                *x = if kept { *x } else { E::Compute::NEG_INFINITY };
            };
            if step == 1 {
                row.iter_mut().zip(&mask[first..]).for_each(apply);
            } else {
                row.iter_mut().zip(mask[first..].iter().step_by(step)).for_each(apply);
            }
        }
    }
}

impl Strided<'_> {
    /// The position of class 0 of a row.
    fn start(&self, row: usize) -> usize {
        let (mut rest, mut position) = (row, self.offset);
        for dimension in (0..self.shape.len()).rev().filter(|&dimension| dimension != self.axis) {
            let index = rest % self.shape[dimension];
            rest /= self.shape[dimension];
            position = position.wrapping_add_signed(index as isize * self.strides[dimension]);
        }
        position
    }
}

/// Where class 0 of a row lies in an array packed in C order, of which `inner` elements lie between
/// neighbouring classes.
pub(crate) fn packed_start(row: usize, classes: usize, inner: usize) -> usize {
    row / inner * classes * inner + row % inner
}

fn check_classes(classes: usize) -> Result<()> {
    if classes == 0 {
        return Err(Error::Empty { what: "a row of logits" });
    }
    let (holds, rule) = (u32::try_from(classes).is_ok(), "must be less than 2^32");
    check_parameter("the number of classes", classes as f64, holds, rule).map(drop)
}

/// The lowest and the highest index must both lie inside.
fn check_bounds(len: usize, shape: &[usize], strides: &[isize], offset: usize) -> Result<()> {
    if shape.contains(&0) {
        return Ok(());
    }
    let (mut low, mut high) = (offset as i128, offset as i128);
    let mut elements = 1_u128;
    for (&size, &stride) in shape.iter().zip(strides) {
        elements = elements.saturating_mul(size as u128);
        let reach = (size as i128 - 1) * stride as i128;
        // The sum of several reaches can overflow.
        low = low.saturating_add(reach.min(0));
        high = high.saturating_add(reach.max(0));
    }
    for end in [low, high] {
        // What is negative does not exist either.
        let index = usize::try_from(end).unwrap_or(usize::MAX);
        check_index("the strides reach element", index, len)?;
    }
    // Strides of 0 can describe more elements than any output could hold.
    let holds = elements <= isize::MAX as u128;
    check_parameter("the number of logits", elements as f64, holds, "must fit in memory").map(drop)
}
