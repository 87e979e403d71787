//! Distributions with their zeros.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{
    ArrayRef, FixedSizeListArray, Int32Array, LargeListArray, ListArray, OffsetSizeTrait,
    PrimitiveArray,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use shafer::{Element, Method};

use crate::lists::typed;
use crate::{Error, LogitLists, Result};

impl LogitLists {
    /// The distributions with their zeros, as a column of the type of the logits.
    ///
    /// ```
    /// use arrow_array::{ListArray, cast::AsArray, types::Float64Type};
    /// use shafer::Method;
    /// use shafer_arrow::LogitLists;
    ///
    /// let rows = [Some(vec![Some(0.5), Some(0.0)]), Some(vec![Some(7.0)])];
    /// let column = ListArray::from_iter_primitive::<Float64Type, _, _>(rows);
    /// let p = LogitLists::new(&column)?.dense(Method::SPARSEMAX)?;
    /// let p = p.as_list::<i32>().values().as_primitive::<Float64Type>();
    /// assert_eq!(p.values(), &[0.75, 0.25, 1.0]);
    /// # Ok::<(), shafer_arrow::Error>(())
    /// ```
    pub fn dense(&self, method: Method) -> Result<ArrayRef> {
        typed!(self, dense_of(method))
    }

    fn dense_of<T: ArrowPrimitiveType<Native: Element>>(&self, method: Method) -> Result<ArrayRef> {
        let logits = self.values.as_primitive::<T>().values();
        let extent = self.extent();
        // Rows that are null keep their places.
        let mut out = vec![T::Native::default(); extent.len()];
        for run in self.runs() {
            let place = run.values.start - extent.start..run.values.end - extent.start;
            method
                .dense_into(&self.batch(logits, &run)?, self.threads, &mut out[place])
                .map_err(|error| Error::at(run.first, error))?;
        }
        let values = Arc::new(PrimitiveArray::<T>::new(out.into(), None));
        let nulls = self.nulls.clone();
        Ok(match &self.kind {
            DataType::FixedSizeList(field, classes) => {
                let field = Arc::clone(field);
                Arc::new(FixedSizeListArray::new(field, *classes, values, nulls))
            }
            DataType::LargeList(field) => {
                let offsets = self.offsets(|end| end as i64);
                Arc::new(LargeListArray::new(field.clone(), offsets, values, nulls))
            }
            DataType::List(field) => {
                let offsets = self.offsets(|end| end as i32);
                Arc::new(ListArray::new(field.clone(), offsets, values, nulls))
            }
            // The type was checked.
            other => arrow_array::new_empty_array(other),
        })
    }

    /// The offsets of rows whose values begin at 0.
    fn offsets<O: OffsetSizeTrait>(&self, offset: impl Fn(usize) -> O) -> OffsetBuffer<O> {
        let start = self.extent().start;
        let ends = (0..self.len()).map(|row| offset(self.row(row).end - start));
        let all: Vec<O> = std::iter::once(offset(0)).chain(ends).collect();
        OffsetBuffer::new(ScalarBuffer::from(all))
    }

    /// The number of classes with positive probability. A class whose probability underflows counts.
    ///
    /// It is 0 in a row that is null. With [`Method::EVIDENTIAL`] these are the classes above the mean logit.
    ///
    /// ```
    /// use arrow_array::{ListArray, types::Float64Type};
    /// use shafer::Method;
    /// use shafer_arrow::LogitLists;
    ///
    /// let rows = [Some(vec![Some(4.0), Some(3.0), Some(-9.0)])];
    /// let column = ListArray::from_iter_primitive::<Float64Type, _, _>(rows);
    /// let logits = LogitLists::new(&column)?;
    /// assert_eq!(logits.support_size(Method::EVIDENTIAL)?.values(), &[2]);
    /// assert_eq!(logits.support_size(Method::SOFTMAX)?.values(), &[3]);
    /// # Ok::<(), shafer_arrow::Error>(())
    /// ```
    pub fn support_size(&self, method: Method) -> Result<Int32Array> {
        typed!(self, support_size_of(method))
    }

    fn support_size_of<T: ArrowPrimitiveType<Native: Element>>(
        &self,
        method: Method,
    ) -> Result<Int32Array> {
        let logits = self.values.as_primitive::<T>().values();
        let mut sizes = vec![0; self.len()];
        for run in self.runs() {
            let rows = run.first..run.first + run.rows;
            method
                .sizes_into(&self.batch(logits, &run)?, self.threads, &mut sizes[rows])
                .map_err(|error| Error::at(run.first, error))?;
        }
        let sizes: Vec<i32> = sizes.into_iter().map(|size| size as i32).collect();
        Ok(Int32Array::new(sizes.into(), self.nulls.clone()))
    }
}
