//! What the evidence of a row says besides its distribution.

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, Datum, Float64Array};
use shafer::{Belief, Element, Evidence};

use crate::lists::typed;
use crate::sets::Sets;
use crate::{Error, LogitLists, Result};

impl LogitLists {
    /// The ignorance of each row: [`Belief::ignorance`].
    ///
    /// ```
    /// use arrow_array::{ListArray, types::Float64Type};
    /// use shafer_arrow::LogitLists;
    ///
    /// let column = ListArray::from_iter_primitive::<Float64Type, _, _>([Some(vec![Some(1.0), Some(-1.0)])]);
    /// let ignorance = LogitLists::new(&column)?.ignorance()?.value(0);
    /// assert!((ignorance - (-2.0_f64).exp()).abs() < 1e-15);
    /// # Ok::<(), shafer_arrow::Error>(())
    /// ```
    pub fn ignorance(&self) -> Result<Float64Array> {
        self.measure(|_, belief| Ok(Some(belief.ignorance())))
    }

    /// The conflict between the evidence for different classes, the paper's sign of several modes:
    /// [`Belief::internal_conflict`].
    ///
    /// ```
    /// use arrow_array::{ListArray, types::Float64Type};
    /// use shafer_arrow::LogitLists;
    ///
    /// let two_modes = vec![Some(2.0_f64.ln()), Some(2.0_f64.ln()), Some(-4.0_f64.ln())];
    /// let column = ListArray::from_iter_primitive::<Float64Type, _, _>([Some(two_modes)]);
    /// let conflict = LogitLists::new(&column)?.conflict()?.value(0);
    /// assert!((conflict - 0.25).abs() < 1e-15);
    /// # Ok::<(), shafer_arrow::Error>(())
    /// ```
    pub fn conflict(&self) -> Result<Float64Array> {
        self.measure(|_, belief| Ok(Some(belief.internal_conflict())))
    }

    /// The belief of a set of classes: [`Belief::belief`]. `sets` are lists of integers, one for each row, or a
    /// scalar of one list for all rows. A null set gives null.
    ///
    /// ```
    /// use arrow_array::{ListArray, Scalar, types::{Float64Type, Int64Type}};
    /// use shafer_arrow::LogitLists;
    ///
    /// let column = ListArray::from_iter_primitive::<Float64Type, _, _>([Some(vec![Some(1.0), Some(-1.0)])]);
    /// let first = Scalar::new(ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(0)])]));
    /// let belief = LogitLists::new(&column)?.belief(&first)?.value(0);
    /// assert!((belief - (1.0 - (-2.0_f64).exp())).abs() < 1e-15);
    /// # Ok::<(), shafer_arrow::Error>(())
    /// ```
    pub fn belief(&self, sets: &dyn Datum) -> Result<Float64Array> {
        let (sets, scalar) = sets.get();
        let sets = Sets::new(sets)?;
        if !scalar && sets.len() != self.len() || scalar && sets.len() != 1 {
            return Err(Error::Length { what: "sets", rows: self.len(), found: sets.len() });
        }
        self.measure(|row, belief| {
            let Some(set) = sets.get(if scalar { 0 } else { row }) else { return Ok(None) };
            let classes = belief.evidence().classes();
            let set = set.map(|class| match class {
                Some(class) => usize::try_from(class)
                    .ok()
                    .filter(|&class| class < classes)
                    .ok_or(Error::Class { row, class, classes }),
                None => Err(Error::Class { row, class: -1, classes }),
            });
            let set = set.collect::<Result<Vec<_>>>()?;
            belief.belief(set).map(Some).map_err(|error| Error::at(row, error))
        })
    }

    fn measure(
        &self,
        measure: impl Fn(usize, &Belief) -> Result<Option<f64>>,
    ) -> Result<Float64Array> {
        typed!(self, measure_of(measure))
    }

    fn measure_of<T: ArrowPrimitiveType<Native: Element>>(
        &self,
        measure: impl Fn(usize, &Belief) -> Result<Option<f64>>,
    ) -> Result<Float64Array> {
        let logits = self.values.as_primitive::<T>().values();
        let mut scaled = Vec::new();
        (0..self.len())
            .map(|row| {
                if self.is_null(row) {
                    return Ok(None);
                }
                let logits = &logits[self.row(row)];
                let evidence = if self.temperature == 1.0 {
                    Evidence::from_logits(logits)
                } else {
                    scaled.clear();
                    scaled.extend(logits.iter().map(|logit| logit.to_f64() / self.temperature));
                    Evidence::from_logits(&scaled)
                };
                let evidence = evidence.map_err(|error| Error::at(row, error))?;
                measure(row, &Belief::from(evidence))
            })
            .collect()
    }
}
