//! Matrix products on slices.

/// A matrix in a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    /// Distance in the slice between neighbours in a column, and between neighbours in a row.
    strides: [usize; 2],
}

impl<'a> Matrix<'a> {
    /// Row after row.
    pub(crate) fn new(values: &'a [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(values.len(), rows * columns, "a matrix of {rows} x {columns}");
        Self { values, rows, columns, strides: [columns, 1] }
    }

    /// Rows and columns swapped, without moving a number.
    pub(crate) fn transposed(self) -> Self {
        let [row, column] = self.strides;
        Self { rows: self.columns, columns: self.rows, strides: [column, row], ..self }
    }
}

/// What a product does with the numbers that its output has before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Overwrite,
    Add,
}

/// Writes `a b`, row after row, or adds it to what is there. Runs on the calling thread.
pub(crate) fn product(a: Matrix<'_>, b: Matrix<'_>, output: &mut [f32], mode: Output) {
    assert_eq!(a.columns, b.rows, "the inner sizes of a product differ");
    assert_eq!(output.len(), a.rows * b.columns, "the output of a product has another size");
    let add = mode == Output::Add;
    // SAFETY: a `Matrix` spans exactly the elements of its slice: `values.len() == rows * columns`, and
    // its strides are those of one of the two orders, so that row i and column j are at
    // i * strides[0] + j * strides[1] < rows * columns. The output is row-major and has as many
    // elements as it needs by the assertion above. It is borrowed mutably, so it overlaps neither input.
    // The other flags concern complex numbers.
    #[allow(unsafe_code, reason = "the gemm crate has no safe interface")]
    unsafe {
        gemm::gemm(
            a.rows,
            b.columns,
            a.columns,
            output.as_mut_ptr(),
            1,
            b.columns as isize,
            add,
            a.values.as_ptr(),
            a.strides[1] as isize,
            a.strides[0] as isize,
            b.values.as_ptr(),
            b.strides[1] as isize,
            b.strides[0] as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Random};

    fn numbers(seed: u64, count: usize) -> Vec<f32> {
        let mut random = Random::new(seed, Purpose::Noise, 0);
        (0..count).map(|_| 2.0 * random.uniform() - 1.0).collect()
    }

    #[test]
    fn products_equal_plain_loops_in_every_orientation() {
        for [rows, inner, columns] in [[1, 1, 1], [3, 5, 2], [17, 33, 40], [4, 0, 3], [65, 8, 19]] {
            let (a, b) = (numbers(1, rows * inner), numbers(2, inner * columns));
            // The same two matrices, stored column after column.
            let by_columns = |values: &[f32], rows: usize, columns: usize| -> Vec<f32> {
                (0..rows * columns).map(|i| values[i % rows * columns + i / rows]).collect()
            };
            let (a_columns, b_columns) =
                (by_columns(&a, rows, inner), by_columns(&b, inner, columns));
            let lefts =
                [Matrix::new(&a, rows, inner), Matrix::new(&a_columns, inner, rows).transposed()];
            let rights = [
                Matrix::new(&b, inner, columns),
                Matrix::new(&b_columns, columns, inner).transposed(),
            ];
            for (left, right, mode) in lefts
                .into_iter()
                .flat_map(|left| rights.map(|right| (left, right)))
                .flat_map(|(l, r)| [Output::Overwrite, Output::Add].map(|mode| (l, r, mode)))
            {
                let mut output = numbers(3, rows * columns);
                let before = output.clone();
                product(left, right, &mut output, mode);
                for (i, (found, before)) in output.iter().zip(&before).enumerate() {
                    let (row, column) = (i / columns, i % columns);
                    let terms = (0..inner).map(|k| {
                        f64::from(a[row * inner + k]) * f64::from(b[k * columns + column])
                    });
                    let kept = if mode == Output::Add { f64::from(*before) } else { 0.0 };
                    let expected = kept + terms.sum::<f64>();
                    assert!((f64::from(*found) - expected).abs() < 1e-5, "{rows} x {columns}");
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "the inner sizes of a product differ")]
    fn products_of_matrices_that_do_not_fit_panic() {
        product(
            Matrix::new(&[0.0; 6], 2, 3),
            Matrix::new(&[0.0; 4], 2, 2),
            &mut [0.0; 4],
            Output::Overwrite,
        );
    }
}
