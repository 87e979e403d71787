//! Lists of logits: a checked column.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::DataType;
use shafer::{Logits, Threads};

use crate::{Error, Result};

/// A column of lists of logits: `List`, `LargeList` or `FixedSizeList` of `Float16`, `Float32` or `Float64`.
///
/// It has been checked that no row is empty and no value inside a row is null. The numbers are not copied.
///
/// ```
/// use arrow_array::{FixedSizeListArray, types::Float32Type};
/// use shafer::Method;
/// use shafer_arrow::LogitLists;
///
/// let rows = [Some([Some(2.0), Some(1.5), Some(-1.0)]), None];
/// let column = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 3);
/// let logits = LogitLists::new(&column)?;
/// assert_eq!(logits.len(), 2);
/// assert_eq!(logits.support_size(Method::EVIDENTIAL)?.value(0), 2);
/// # Ok::<(), shafer_arrow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LogitLists {
    pub(crate) kind: DataType,
    pub(crate) values: ArrayRef,
    ends: Ends,
    pub(crate) nulls: Option<NullBuffer>,
    pub(crate) temperature: f64,
    pub(crate) threads: Threads,
}

/// Where rows begin and end.
#[derive(Clone, Debug)]
enum Ends {
    Small(OffsetBuffer<i32>),
    Large(OffsetBuffer<i64>),
    Fixed { rows: usize, classes: usize },
}

/// Rows of equal length, one after the other.
pub(crate) struct Run {
    /// The number of the first row.
    pub(crate) first: usize,
    pub(crate) rows: usize,
    pub(crate) classes: usize,
    /// Their values.
    pub(crate) values: Range<usize>,
}

impl LogitLists {
    /// Checks a column of lists.
    ///
    /// ```
    /// use arrow_array::Int64Array;
    /// use shafer_arrow::LogitLists;
    ///
    /// let error = LogitLists::new(&Int64Array::from(vec![1])).unwrap_err().to_string();
    /// assert_eq!(error, "the logits are Int64, but must be lists of f16, f32 or f64");
    /// ```
    pub fn new(column: &dyn Array) -> Result<Self> {
        Self::check_type(column.data_type())?;
        let (values, ends) = if let Some(lists) = column.as_list_opt::<i32>() {
            (lists.values(), Ends::Small(lists.offsets().clone()))
        } else if let Some(lists) = column.as_list_opt::<i64>() {
            (lists.values(), Ends::Large(lists.offsets().clone()))
        } else {
            let lists = column.as_fixed_size_list();
            let classes = lists.value_length() as usize;
            (lists.values(), Ends::Fixed { rows: lists.len(), classes })
        };
        let this = Self {
            kind: column.data_type().clone(),
            values: values.clone(),
            ends,
            nulls: column.nulls().cloned().filter(|nulls| nulls.null_count() > 0),
            temperature: 1.0,
            threads: Threads::One,
        };
        this.check_rows()?;
        Ok(this)
    }

    /// Checks that a type is one of lists of logits.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use arrow_schema::{DataType, Field};
    /// use shafer_arrow::LogitLists;
    ///
    /// let lists = |of| DataType::List(Arc::new(Field::new("item", of, true)));
    /// assert!(LogitLists::check_type(&lists(DataType::Float16)).is_ok());
    /// assert!(LogitLists::check_type(&lists(DataType::Utf8)).is_err());
    /// ```
    pub fn check_type(found: &DataType) -> Result<()> {
        if let DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _) = found
            && let DataType::Float16 | DataType::Float32 | DataType::Float64 = field.data_type()
        {
            return Ok(());
        }
        let expected = "lists of f16, f32 or f64";
        Err(Error::Type { what: "logits", expected, found: found.to_string() })
    }

    /// Divides all logits by a temperature, as [`Logits::temperature`].
    ///
    /// ```
    /// use arrow_array::{ListArray, cast::AsArray, types::Float64Type};
    /// use shafer::Method;
    /// use shafer_arrow::LogitLists;
    ///
    /// let rows = [Some(vec![Some(9.0_f64.ln()), Some(0.0)])];
    /// let column = ListArray::from_iter_primitive::<Float64Type, _, _>(rows);
    /// let p = LogitLists::new(&column)?.temperature(2.0)?.dense(Method::SOFTMAX)?;
    /// let p = p.as_list::<i32>().values().as_primitive::<Float64Type>().value(0);
    /// assert!((p - 0.75).abs() < 1e-15); // not 0.9
    /// # Ok::<(), shafer_arrow::Error>(())
    /// ```
    pub fn temperature(mut self, temperature: f64) -> Result<Self> {
        Logits::row(&[0.0])
            .and_then(|row| row.temperature(temperature))
            .map_err(|error| Error::at(0, error))?;
        self.temperature = temperature;
        Ok(self)
    }

    /// Uses several threads for [`sparse`](Self::sparse), [`dense`](Self::dense) and
    /// [`support_size`](Self::support_size). Results are the same to the bit.
    ///
    /// ```
    /// use arrow_array::{ListArray, types::Float64Type};
    /// use shafer::{Method, Threads};
    /// use shafer_arrow::LogitLists;
    ///
    /// let rows = (0..1000).map(|row| Some((0..8).map(move |k| Some(f64::from(row * k % 7)))));
    /// let column = ListArray::from_iter_primitive::<Float64Type, _, _>(rows);
    /// let logits = LogitLists::new(&column)?;
    /// let one = logits.dense(Method::EVIDENTIAL)?;
    /// assert_eq!(&logits.threads(Threads::All).dense(Method::EVIDENTIAL)?, &one);
    /// # Ok::<(), shafer_arrow::Error>(())
    /// ```
    #[must_use]
    pub fn threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }

    /// The number of rows, null ones included.
    ///
    /// ```
    /// use arrow_array::{ListArray, types::Float64Type};
    /// use shafer_arrow::LogitLists;
    ///
    /// let column = ListArray::from_iter_primitive::<Float64Type, Vec<_>, _>([None, None]);
    /// assert_eq!(LogitLists::new(&column)?.len(), 2);
    /// # Ok::<(), shafer_arrow::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        match &self.ends {
            Ends::Small(offsets) => offsets.len() - 1,
            Ends::Large(offsets) => offsets.len() - 1,
            Ends::Fixed { rows, .. } => *rows,
        }
    }

    /// Whether there are no rows.
    ///
    /// ```
    /// use arrow_array::{ListArray, types::Float64Type};
    /// use shafer_arrow::LogitLists;
    ///
    /// let column = ListArray::from_iter_primitive::<Float64Type, Vec<_>, _>([]);
    /// assert!(LogitLists::new(&column)?.is_empty());
    /// # Ok::<(), shafer_arrow::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of a row.
    pub(crate) fn row(&self, row: usize) -> Range<usize> {
        match &self.ends {
            Ends::Small(offsets) => offsets[row] as usize..offsets[row + 1] as usize,
            Ends::Large(offsets) => offsets[row] as usize..offsets[row + 1] as usize,
            Ends::Fixed { classes, .. } => row * classes..(row + 1) * classes,
        }
    }

    /// The values of all rows.
    pub(crate) fn extent(&self) -> Range<usize> {
        match self.len() {
            0 => 0..0,
            rows => self.row(0).start..self.row(rows - 1).end,
        }
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// The rows that are not null, in runs of equal length.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        let mut next = 0;
        std::iter::from_fn(move || {
            while next < self.len() && self.is_null(next) {
                next += 1;
            }
            if next == self.len() {
                return None;
            }
            let first = next;
            let Range { start, mut end } = self.row(first);
            let classes = end - start;
            next += 1;
            if let (Ends::Fixed { rows, .. }, None) = (&self.ends, &self.nulls) {
                next = *rows;
                end = rows * classes;
            }
            while next < self.len() && !self.is_null(next) {
                let row = self.row(next);
                if row.len() != classes {
                    break;
                }
                end = row.end;
                next += 1;
            }
            Some(Run { first, rows: next - first, classes, values: start..end })
        })
    }

    fn check_rows(&self) -> Result<()> {
        let nulls = self.values.nulls().filter(|nulls| nulls.null_count() > 0);
        for Run { first, rows, classes, values } in self.runs() {
            if classes == 0 {
                return Err(Error::Empty { row: first });
            }
            let Some(nulls) = nulls else { continue };
            let nulls = nulls.slice(values.start, rows * classes);
            if nulls.null_count() > 0
                && let Some(place) = (0..nulls.len()).find(|&place| nulls.is_null(place))
            {
                return Err(Error::Null { row: first + place / classes, column: place % classes });
            }
        }
        Ok(())
    }
}

/// Calls a generic method with the Arrow type of the values.
macro_rules! typed {
    ($lists:expr, $method:ident ( $($argument:expr),* )) => {
        match $lists.values.data_type() {
            arrow_schema::DataType::Float16 => {
                $lists.$method::<arrow_array::types::Float16Type>($($argument),*)
            }
            arrow_schema::DataType::Float32 => {
                $lists.$method::<arrow_array::types::Float32Type>($($argument),*)
            }
            // The types were checked: it is Float64.
            _ => $lists.$method::<arrow_array::types::Float64Type>($($argument),*),
        }
    };
}

pub(crate) use typed;

impl LogitLists {
    /// The values of a run as a batch of the crate `shafer`.
    pub(crate) fn batch<'a, E: shafer::Element>(
        &self,
        values: &'a [E],
        run: &Run,
    ) -> Result<Logits<'a, E>> {
        Logits::rows(&values[run.values.clone()], run.classes)
            .and_then(|rows| rows.temperature(self.temperature))
            .map_err(|error| Error::at(run.first, error))
    }
}
