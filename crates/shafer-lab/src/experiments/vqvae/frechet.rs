//! The Fréchet distance between two sets of features, taken as normal distributions.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

/// The mean and the covariance of features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Moments {
    mean: Vec<f64>,
    /// Row by row, with n - 1 degrees of freedom.
    covariance: Vec<f64>,
}

impl Moments {
    /// Of rows of features; `None` for fewer than two rows.
    pub(super) fn of(features: &[f32], size: usize) -> Option<Self> {
        let rows = features.len() / size;
        if rows < 2 {
            return None;
        }
        let mut mean = vec![0.0; size];
        for row in features.chunks_exact(size) {
            mean.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
        }
        for sum in &mut mean {
            *sum /= rows as f64;
        }
        let mut covariance = vec![0.0; size * size];
        let mut centred = vec![0.0; size];
        for row in features.chunks_exact(size) {
            for ((centred, &x), mean) in centred.iter_mut().zip(row).zip(&mean) {
                *centred = f64::from(x) - mean;
            }
            for (sums, &x) in covariance.chunks_exact_mut(size).zip(&centred) {
                sums.iter_mut().zip(&centred).for_each(|(sum, y)| *sum += x * y);
            }
        }
        for sum in &mut covariance {
            *sum /= (rows - 1) as f64;
        }
        Some(Self { mean, covariance })
    }

    /// The squared Fréchet distance, as the Fréchet inception distance has it:
    /// `|m - n|^2 + tr(A + B - 2 (A B)^(1/2))`.
    ///
    /// The last trace is the sum of the square roots of the eigenvalues of `A B`, which are those of `L' B L` for
    /// `A = L L'`.
    pub(super) fn distance(&self, other: &Self) -> Result<f64> {
        let size = self.mean.len();
        if other.mean.len() != size {
            bail!("{size} features cannot be compared with {}", other.mean.len());
        }
        let means: f64 = self.mean.iter().zip(&other.mean).map(|(a, b)| (a - b) * (a - b)).sum();
        let trace = |matrix: &[f64]| matrix.iter().step_by(size + 1).sum::<f64>();
        let root = cholesky(&self.covariance, size);
        let product = sandwich(&root, &other.covariance, size);
        let roots: f64 =
            eigenvalues(product, size).into_iter().map(|value| value.max(0.0).sqrt()).sum();
        let distance = means + trace(&self.covariance) + trace(&other.covariance) - 2.0 * roots;
        Ok(distance.max(0.0))
    }
}

/// The lower triangle `L` with `L L' = matrix`, of a positive semidefinite matrix: directions without variance are
/// columns of zeros.
fn cholesky(matrix: &[f64], size: usize) -> Vec<f64> {
    let largest = matrix.iter().step_by(size + 1).copied().fold(0.0, f64::max);
    let mut root = vec![0.0; size * size];
    for column in 0..size {
        let product = |root: &[f64], row: usize| -> f64 {
            let [a, b] = [row, column].map(|row| &root[row * size..][..column]);
            a.iter().zip(b).map(|(x, y)| x * y).sum()
        };
        let pivot = matrix[column * size + column] - product(&root, column);
        if pivot <= 1e-14 * largest {
            continue;
        }
        let pivot = pivot.sqrt();
        root[column * size + column] = pivot;
        for row in column + 1..size {
            root[row * size + column] = (matrix[row * size + column] - product(&root, row)) / pivot;
        }
    }
    root
}

/// `root' matrix root`.
fn sandwich(root: &[f64], matrix: &[f64], size: usize) -> Vec<f64> {
    let product = |left: &dyn Fn(usize, usize) -> f64, right: &[f64]| {
        let mut result = vec![0.0; size * size];
        for (row, sums) in result.chunks_exact_mut(size).enumerate() {
            for (inner, right) in right.chunks_exact(size).enumerate() {
                let factor = left(row, inner);
                sums.iter_mut().zip(right).for_each(|(sum, x)| *sum += factor * x);
            }
        }
        result
    };
    let right = product(&|row, column| matrix[row * size + column], root);
    product(&|row, column| root[column * size + row], &right)
}

/// The eigenvalues of a symmetric matrix, by Jacobi's rotations: all pairs in turn until nothing is left beside the
/// diagonal.
fn eigenvalues(mut matrix: Vec<f64>, size: usize) -> Vec<f64> {
    const MOST_SWEEPS: usize = 60;
    let norm: f64 = matrix.iter().map(|x| x * x).sum();
    for _ in 0..MOST_SWEEPS {
        let mut beside = 0.0;
        for row in 0..size {
            for column in row + 1..size {
                let value = matrix[row * size + column];
                beside += 2.0 * value * value;
                if value != 0.0 {
                    rotate(&mut matrix, size, row, column);
                }
            }
        }
        if beside <= 1e-28 * norm {
            break;
        }
    }
    matrix.into_iter().step_by(size + 1).collect()
}

/// Makes the entry at `[p, q]` zero.
fn rotate(matrix: &mut [f64], size: usize, p: usize, q: usize) {
    let at = |row: usize, column: usize| row * size + column;
    let theta = (matrix[at(q, q)] - matrix[at(p, p)]) / (2.0 * matrix[at(p, q)]);
    let tangent = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let cosine = 1.0 / tangent.hypot(1.0);
    let sine = tangent * cosine;
    for k in 0..size {
        let (x, y) = (matrix[at(k, p)], matrix[at(k, q)]);
        matrix[at(k, p)] = cosine * x - sine * y;
        matrix[at(k, q)] = sine * x + cosine * y;
    }
    for k in 0..size {
        let (x, y) = (matrix[at(p, k)], matrix[at(q, k)]);
        matrix[at(p, k)] = cosine * x - sine * y;
        matrix[at(q, k)] = sine * x + cosine * y;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} and {b}");
    }

    fn features(rows: usize, factor: usize, modulus: usize, scale: f32) -> Vec<f32> {
        let value = |i: usize| (((i * factor) % modulus) as f64 / modulus as f64) as f32 * scale;
        (0..rows * 4).map(value).collect()
    }

    /// NumPy and SciPy: `x` is `((37 * np.arange(160)) % 101 / 101).astype(np.float32).reshape(40, 4)`, `y` is
    /// `np.float32(1.5) * ((53 * np.arange(120)) % 97 / 97).astype(np.float32).reshape(30, 4)`, both then in double
    /// precision; `A, B, m = np.cov(x.T), np.cov(y.T), x.mean(0) - y.mean(0)`;
    /// `m @ m + np.trace(A + B - 2 * scipy.linalg.sqrtm(A @ B).real)`. For singular covariances the trace is
    /// `2 * np.sqrt(np.maximum(np.linalg.eigvals(A @ B).real, 0)).sum()`.
    #[test]
    fn distances_against_scipy() {
        let (mut x, y) = (features(40, 37, 101, 1.0), features(30, 53, 97, 1.5));
        let of = |features: &[f32]| Moments::of(features, 4).unwrap();
        let (a, b) = (of(&x), of(&y));
        close(a.distance(&b).unwrap(), 0.427_145_529_239_624_9);
        close(b.distance(&a).unwrap(), 0.427_145_529_239_624_9);
        close(a.distance(&a).unwrap(), 0.0);
        // Fewer rows than features.
        assert!((of(&x[..12]).distance(&b).unwrap() - 0.694_646_048_154_036).abs() < 1e-7);
        // A feature without variance.
        x.iter_mut().skip(2).step_by(4).for_each(|x| *x = 0.25);
        assert!((of(&x).distance(&b).unwrap() - 0.741_377_635_721_439_7).abs() < 1e-7);
        assert_eq!(Moments::of(&x[..4], 4), None);
        let error = a.distance(&Moments::of(&x, 5).unwrap()).unwrap_err().to_string();
        assert_eq!(error, "4 features cannot be compared with 5");
    }

    /// `np.linalg.eigvalsh` of the Hilbert matrix of five rows.
    #[test]
    fn eigenvalues_against_numpy() {
        let hilbert = (0..25).map(|i| 1.0 / f64::from(i / 5 + i % 5 + 1)).collect();
        let mut found = eigenvalues(hilbert, 5);
        found.sort_by(f64::total_cmp);
        let expected = [
            3.287_928_772_166_708_4e-6,
            3.058_980_401_511_414e-4,
            0.011_407_491_623_419_655,
            0.208_534_218_611_013_32,
            1.567_050_691_098_230_7,
        ];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-13, "{found} and {expected}");
        }
    }
}
