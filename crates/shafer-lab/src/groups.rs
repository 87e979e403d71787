//! Several variables side by side along the axis of the classes, each with a separate distribution.

use std::ops::Range;

use anyhow::{Result, bail};
use shafer::{CsrRows, Element, Logits};

use crate::stream::Shape;

/// The class ranges of groups with these sizes.
pub(crate) fn ranges(sizes: &[usize], classes: usize) -> Result<Vec<Range<usize>>> {
    let list = || sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    if let Some(empty) = sizes.iter().position(|&size| size == 0) {
        bail!("--groups {}: group {empty} has no classes, but needs at least one", list());
    }
    let sum = sizes.iter().fold(0, |sum: usize, &size| sum.saturating_add(size));
    if sum != classes {
        bail!("--groups {}: has {sum} classes in total, but the axis has {classes}", list());
    }
    let mut end = 0;
    let ranges = sizes.iter().map(|&size| {
        end += size;
        end - size..end
    });
    Ok(ranges.collect())
}

/// Logits in memory, in the layout of their file.
#[derive(Clone, Copy)]
pub(crate) struct Array<'a, E> {
    pub(crate) logits: &'a [E],
    pub(crate) shape: Shape,
    /// One entry per class or per logit.
    pub(crate) mask: Option<&'a [bool]>,
    pub(crate) temperature: f64,
}

impl<E: Element> Array<'_, E> {
    /// Calls `work` with the rows of one group. `part` is a scratch buffer for its part of the mask.
    pub(crate) fn with_group<T>(
        self,
        group: &Range<usize>,
        part: &mut Vec<bool>,
        work: impl FnOnce(&Logits<'_, E>) -> shafer::Result<T>,
    ) -> shafer::Result<T> {
        let Self { logits, shape, mask, temperature } = self;
        let Shape { classes, inner } = shape;
        let dimensions = [logits.len() / shape.slab(), group.len(), inner];
        let strides = [shape.slab() as isize, inner as isize, 1];
        let input = if inner == 1 && group.len() == classes {
            Logits::rows(logits, classes)?
        } else {
            Logits::strided(logits, &dimensions, &strides, group.start * inner, 1)?
        };
        let input = input.temperature(temperature)?;
        let Some(mask) = mask else { return work(&input) };
        if mask.len() == classes {
            return work(&input.mask(&mask[group.clone()])?);
        }
        part.clear();
        for slab in mask.chunks_exact(shape.slab()) {
            part.extend_from_slice(&slab[slab_part(group, inner)]);
        }
        work(&input.mask(part)?)
    }
}

/// The elements of a group in each slab of an array.
fn slab_part(group: &Range<usize>, inner: usize) -> Range<usize> {
    group.start * inner..group.end * inner
}

/// Concatenates the dense arrays of groups along the axis of the classes.
pub(crate) fn join_dense<E: Element>(
    parts: &[Vec<E>],
    groups: &[Range<usize>],
    shape: Shape,
    whole: &mut Vec<E>,
) {
    whole.resize(parts.iter().map(Vec::len).sum(), E::default());
    for (part, group) in parts.iter().zip(groups) {
        let place = slab_part(group, shape.inner);
        let slabs = whole.chunks_exact_mut(shape.slab()).zip(part.chunks_exact(place.len()));
        for (slab, part) in slabs {
            slab[place.clone()].copy_from_slice(part);
        }
    }
}

/// Compressed rows of all groups, concatenated.
pub(crate) struct JoinedRows<E> {
    pub(crate) indptr: Vec<usize>,
    pub(crate) indices: Vec<u32>,
    pub(crate) values: Vec<E>,
}

impl<E> Default for JoinedRows<E> {
    fn default() -> Self {
        Self { indptr: Vec::new(), indices: Vec::new(), values: Vec::new() }
    }
}

impl<E: Element> JoinedRows<E> {
    /// Replaces the rows by the concatenated rows of the groups.
    pub(crate) fn join(&mut self, parts: &[CsrRows<E>], groups: &[Range<usize>]) {
        self.indptr.clear();
        self.indptr.push(0);
        self.indices.clear();
        self.values.clear();
        for row in 0..parts.first().map_or(0, CsrRows::rows) {
            for (part, group) in parts.iter().zip(groups) {
                let (classes, values) = part.row(row).unwrap_or_default();
                let start = group.start as u32;
                self.indices.extend(classes.iter().map(|class| start + class));
                self.values.extend_from_slice(values);
            }
            self.indptr.push(self.values.len());
        }
    }
}

/// Translates the row and column of an error from a block of a group to the file.
pub(crate) fn in_file(
    mut error: shafer::Error,
    first: usize,
    number: usize,
    groups: &[Range<usize>],
) -> anyhow::Error {
    match &mut error {
        shafer::Error::Value { row, column, .. } => {
            *row += first;
            *column += groups[number].start;
            return error.into();
        }
        shafer::Error::Row { row, .. }
        | shafer::Error::Label { row, .. }
        | shafer::Error::Group { row, .. } => *row += first,
        _ => {}
    }
    if groups.len() == 1 {
        return error.into();
    }
    let Range { start, end } = groups[number];
    anyhow::Error::new(error).context(format!("group {number} (classes {start} to {})", end - 1))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use shafer::{Method, Threads};

    #[test]
    fn sizes_become_ranges() {
        assert_eq!(ranges(&[2, 1, 3], 6).unwrap(), [0..2, 2..3, 3..6]);
        let error = ranges(&[5, 5], 12).unwrap_err().to_string();
        assert_eq!(error, "--groups 5,5: has 10 classes in total, but the axis has 12");
        let error = ranges(&[5, 0], 5).unwrap_err().to_string();
        assert_eq!(error, "--groups 5,0: group 1 has no classes, but needs at least one");
        assert!(ranges(&[usize::MAX, 2], 1).is_err());
    }

    /// Against one row of one group at a time, gathered by hand.
    #[test]
    fn groups_are_transformed_by_themselves() {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        let (outer, classes, sizes) = (13, 9, [4, 2, 3]);
        let groups = ranges(&sizes, classes).unwrap();
        for inner in [1, 5] {
            let shape = Shape { classes, inner };
            let count = outer * shape.slab();
            let logits: Vec<f64> = (0..count).map(|_| next() as f64 / f64::from(1 << 29)).collect();
            // The first class of each group always takes part.
            let of_class = |class: usize, chance: u64| [0, 4, 6].contains(&class) || chance > 0;
            let by_class: Vec<bool> = (0..classes).map(|k| of_class(k, next() % 3)).collect();
            let by_logit: Vec<bool> =
                (0..count).map(|i| of_class(i / inner % classes, next() % 3)).collect();
            for mask in [None, Some(&by_class), Some(&by_logit)] {
                let array = Array {
                    logits: &logits,
                    shape,
                    mask: mask.map(Vec::as_slice),
                    temperature: 0.7,
                };
                let (mut dense, mut sparse) = (Vec::new(), Vec::new());
                for group in &groups {
                    let part = &mut Vec::new();
                    dense.push(vec![0.0; outer * group.len() * inner]);
                    array
                        .with_group(group, part, |input| {
                            sparse.push(Method::EVIDENTIAL.csr(input, Threads::One)?);
                            Method::SOFTMAX.dense_into(
                                input,
                                Threads::One,
                                dense.last_mut().unwrap(),
                            )
                        })
                        .unwrap();
                }
                let (mut whole, mut rows) = (Vec::new(), JoinedRows::default());
                join_dense(&dense, &groups, shape, &mut whole);
                rows.join(&sparse, &groups);
                for row in 0..outer * inner {
                    let place =
                        |class: usize| (row / inner * classes + class) * inner + row % inner;
                    let (mut kept, mut probabilities) = (Vec::new(), Vec::new());
                    for group in &groups {
                        let one = |class: usize| match mask {
                            Some(mask) if mask.len() == classes && !mask[class] => {
                                f64::NEG_INFINITY
                            }
                            Some(mask) if mask.len() > classes && !mask[place(class)] => {
                                f64::NEG_INFINITY
                            }
                            _ => logits[place(class)] / 0.7,
                        };
                        let one: Vec<f64> = group.clone().map(one).collect();
                        for (class, p) in Method::SOFTMAX.row(&one).unwrap().into_iter().enumerate()
                        {
                            assert!((whole[place(group.start + class)] - p).abs() < 1e-12);
                        }
                        for (class, p) in
                            Method::EVIDENTIAL.row(&one).unwrap().into_iter().enumerate()
                        {
                            if p > 0.0 {
                                kept.push((group.start + class) as u32);
                                probabilities.push(p);
                            }
                        }
                    }
                    let found = rows.indptr[row]..rows.indptr[row + 1];
                    assert_eq!(rows.indices[found.clone()], kept);
                    for (a, b) in rows.values[found].iter().zip(&probabilities) {
                        assert!((a - b).abs() < 1e-12);
                    }
                }
            }
        }
    }
}
