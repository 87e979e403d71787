//! Distributions without their zeros.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type};
use arrow_array::{
    Array, ArrayRef, GenericListArray, OffsetSizeTrait, PrimitiveArray, StructArray,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields};
use shafer::{CsrRows, Element, Method, RowCounts};

use crate::lists::typed;
use crate::{Error, LogitLists, Result};

/// The data type of the result of [`LogitLists::sparse`] for logits of this type: lists, or large lists for large
/// lists, of structs with the fields `class` and `p`.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_schema::{DataType, Field};
///
/// let lists = DataType::List(Arc::new(Field::new("item", DataType::Float32, true)));
/// let sparse = shafer_arrow::sparse_type(&lists)?;
/// assert!(matches!(sparse, DataType::List(entry) if entry.name() == "item"));
/// # Ok::<(), shafer_arrow::Error>(())
/// ```
pub fn sparse_type(logits: &DataType) -> Result<DataType> {
    LogitLists::check_type(logits)?;
    Ok(match logits {
        DataType::LargeList(field) => DataType::LargeList(entry(field.data_type())),
        DataType::List(field) | DataType::FixedSizeList(field, _) => {
            DataType::List(entry(field.data_type()))
        }
        // The type was checked.
        other => other.clone(),
    })
}

/// A class and its probability. Classes are signed, as in SciPy and in Spark, which has no other integers.
fn fields(probability: &DataType) -> Fields {
    let field = |name, kind| Field::new(name, kind, false);
    [field("class", DataType::Int32), field("p", probability.clone())].into_iter().collect()
}

fn entry(probability: &DataType) -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Struct(fields(probability)), false))
}

impl LogitLists {
    /// The distributions as lists of kept classes, in ascending order, and their probabilities. Also returns the
    /// number of rows that are not null, and the number of rows with vacuous evidence.
    ///
    /// A kept class stays in its list even if its probability underflows to 0.
    ///
    /// ```
    /// use arrow_array::{ListArray, types::Float64Type};
    /// use shafer::Method;
    /// use shafer_arrow::{LogitLists, split};
    ///
    /// let rows = [Some(vec![Some(2.0), Some(2.0), Some(-4.0)]), Some(vec![Some(0.3), Some(0.3)])];
    /// let column = ListArray::from_iter_primitive::<Float64Type, _, _>(rows);
    /// let (sparse, counts) = LogitLists::new(&column)?.sparse(Method::EVIDENTIAL)?;
    /// assert_eq!(counts.vacuous, 1);
    /// let [classes, probabilities] = split(&sparse)?;
    /// let ones = ListArray::from_iter_primitive::<Float64Type, _, _>(vec![
    ///     Some(vec![Some(0.5), Some(0.5)]); 2
    /// ]);
    /// assert_eq!(arrow_array::cast::as_list_array(&probabilities).values(), ones.values());
    /// # Ok::<(), shafer_arrow::Error>(())
    /// ```
    pub fn sparse(&self, method: Method) -> Result<(ArrayRef, RowCounts)> {
        if matches!(self.kind, DataType::LargeList(_)) {
            typed!(self, sparse_of_large(method))
        } else {
            typed!(self, sparse_of_small(method))
        }
    }

    fn sparse_of_small<T: ArrowPrimitiveType<Native: Element>>(
        &self,
        method: Method,
    ) -> Result<(ArrayRef, RowCounts)> {
        let (parts, counts) = self.compressed::<T>(method)?;
        let last = parts.ends.last().copied().unwrap_or_default();
        i32::try_from(last).map_err(|_| Error::TooLong)?;
        let ends: Vec<i32> = parts.ends.iter().map(|&end| end as i32).collect();
        Ok((self.lists::<T, i32>(ends, parts.classes, parts.probabilities), counts))
    }

    fn sparse_of_large<T: ArrowPrimitiveType<Native: Element>>(
        &self,
        method: Method,
    ) -> Result<(ArrayRef, RowCounts)> {
        let (parts, counts) = self.compressed::<T>(method)?;
        Ok((self.lists::<T, i64>(parts.ends, parts.classes, parts.probabilities), counts))
    }

    fn compressed<T: ArrowPrimitiveType<Native: Element>>(
        &self,
        method: Method,
    ) -> Result<(Parts<T::Native>, RowCounts)> {
        let logits = self.values.as_primitive::<T>().values();
        let mut counts = RowCounts::default();
        let mut rows = CsrRows::new();
        let mut parts = Parts { ends: vec![0], classes: Vec::new(), probabilities: Vec::new() };
        for run in self.runs() {
            if i32::try_from(run.classes).is_err() {
                return Err(Error::TooLong);
            }
            let found = method
                .csr_into(&self.batch(logits, &run)?, self.threads, &mut rows)
                .map_err(|error| Error::at(run.first, error))?;
            counts.rows += found.rows;
            counts.vacuous += found.vacuous;
            if run.rows == self.len() {
                let (ends, classes, probabilities) = rows.into_parts();
                return Ok((Parts { ends, classes, probabilities }, counts));
            }
            // Lists of rows that are null are empty.
            let before = parts.classes.len() as i64;
            parts.ends.resize(run.first + 1, before);
            parts.ends.extend(rows.indptr()[1..].iter().map(|end| before + end));
            parts.classes.extend_from_slice(rows.indices());
            parts.probabilities.extend_from_slice(rows.values());
        }
        parts.ends.resize(self.len() + 1, parts.classes.len() as i64);
        Ok((parts, counts))
    }

    fn lists<T: ArrowPrimitiveType, O: OffsetSizeTrait>(
        &self,
        ends: Vec<O>,
        classes: Vec<u32>,
        probabilities: Vec<T::Native>,
    ) -> ArrayRef {
        // Each is less than the length of a row, which is an i32.
        let count = classes.len();
        let classes = ScalarBuffer::<i32>::new(Buffer::from_vec(classes), 0, count);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(PrimitiveArray::<Int32Type>::new(classes, None)),
            Arc::new(PrimitiveArray::<T>::new(probabilities.into(), None)),
        ];
        let entries = Arc::new(StructArray::new(fields(&T::DATA_TYPE), columns, None));
        let offsets = OffsetBuffer::new(ends.into());
        let entry = entry(&T::DATA_TYPE);
        Arc::new(GenericListArray::<O>::new(entry, offsets, entries, self.nulls.clone()))
    }
}

/// Rows in compressed form.
struct Parts<E> {
    ends: Vec<i64>,
    classes: Vec<u32>,
    probabilities: Vec<E>,
}

/// The two columns of a column of [`LogitLists::sparse`]: lists of classes, and lists of probabilities. Nothing is
/// copied.
///
/// ```
/// use arrow_array::{ListArray, cast::AsArray, types::{Float64Type, Int32Type}};
/// use shafer::Method;
/// use shafer_arrow::{LogitLists, split};
///
/// let column = ListArray::from_iter_primitive::<Float64Type, _, _>([Some(vec![Some(0.0), Some(1.0)])]);
/// let (sparse, _) = LogitLists::new(&column)?.sparse(Method::EVIDENTIAL)?;
/// let [classes, probabilities] = split(&sparse)?;
/// assert_eq!(classes.as_list::<i32>().values().as_primitive::<Int32Type>().values(), &[1]);
/// assert_eq!(probabilities.as_list::<i32>().values().as_primitive::<Float64Type>().values(), &[1.0]);
/// assert!(split(&classes).is_err());
/// # Ok::<(), shafer_arrow::Error>(())
/// ```
pub fn split(sparse: &dyn Array) -> Result<[ArrayRef; 2]> {
    let parts = match sparse.data_type() {
        DataType::List(_) => split_lists(sparse.as_list::<i32>()),
        DataType::LargeList(_) => split_lists(sparse.as_list::<i64>()),
        _ => None,
    };
    let expected = "lists of a struct of class and p";
    let found = || sparse.data_type().to_string();
    parts.ok_or_else(|| Error::Type { what: "distributions", expected, found: found() })
}

fn split_lists<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> Option<[ArrayRef; 2]> {
    let entries = lists.values().as_struct_opt()?;
    let column = |i: usize| -> Option<ArrayRef> {
        let values = entries.columns().get(i)?;
        let field = Arc::new(Field::new("item", values.data_type().clone(), false));
        let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
        GenericListArray::<O>::try_new(field, offsets, values.clone(), nulls)
            .ok()
            .map(|lists| Arc::new(lists) as ArrayRef)
    };
    Some([column(0)?, column(1)?])
}
