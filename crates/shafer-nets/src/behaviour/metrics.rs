//! Metrics of predictions, in double precision.

use crate::{Error, Result};

/// A point of the plane, in metres.
pub type Point = [f64; 2];

/// The lower bound of log-densities, as in Trajectron++: otherwise a single improbable step dominates the
/// mean.
pub const LOG_DENSITY_FLOOR: f64 = -20.0;

/// The distances of a path from the truth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Displacement {
    /// The average displacement error (ADE): the mean distance over the steps, in metres.
    pub average: f64,
    /// The final displacement error (FDE): the distance at the last step, in metres.
    pub last: f64,
}

impl Displacement {
    /// The displacement over the steps of the truth; further steps of the path are ignored.
    ///
    /// ```
    /// use shafer_nets::behaviour::Displacement;
    ///
    /// let path = [[1.0, 0.0], [2.0, 0.0], [9.0, 9.0]];
    /// let found = Displacement::of(&path, &[[1.0, 1.0], [2.0, 3.0]])?;
    /// assert_eq!(found, Displacement { average: 2.0, last: 3.0 });
    /// # Ok::<(), shafer_nets::Error>(())
    /// ```
    pub fn of(path: &[Point], truth: &[Point]) -> Result<Self> {
        check_truth(path.len(), truth)?;
        let distance = |(p, t): (&Point, &Point)| (p[0] - t[0]).hypot(p[1] - t[1]);
        let (mut sum, mut last) = (0.0, 0.0);
        for pair in path.iter().zip(truth) {
            last = distance(pair);
            sum += last;
        }
        Ok(Self { average: sum / truth.len() as f64, last })
    }
}

fn check_truth(steps: usize, truth: &[Point]) -> Result<()> {
    if truth.is_empty() {
        return Err(Error::data("truth", "must have at least one step, but is empty"));
    }
    if steps < truth.len() {
        return Err(Error::data(
            "path",
            format!("has {steps} steps, but the truth has {}", truth.len()),
        ));
    }
    Ok(())
}

/// One Gaussian of a mixture over the plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Component {
    /// The logarithm of its weight.
    pub log_weight: f64,
    /// The mean.
    pub mean: Point,
    /// The standard deviations of x and y.
    pub sigmas: [f64; 2],
    /// The correlation, between -1 and 1.
    pub correlation: f64,
}

/// The log-density of a mixture.
///
/// ```
/// use shafer_nets::behaviour::{Component, mixture_log_density};
///
/// let round = Component { log_weight: 0.0, mean: [1.0, 0.0], sigmas: [1.0; 2], correlation: 0.0 };
/// let found = mixture_log_density(&[round], [1.0, 0.0]);
/// assert!((found + (2.0 * std::f64::consts::PI).ln()).abs() < 1e-12);
/// ```
pub fn mixture_log_density(components: &[Component], at: Point) -> f64 {
    let terms = components.iter().map(|c| {
        let [u, v] = [0, 1].map(|axis| (at[axis] - c.mean[axis]) / c.sigmas[axis]);
        let rest = 1.0 - c.correlation * c.correlation;
        let square = (u * u + v * v - 2.0 * c.correlation * u * v) / rest;
        let area = std::f64::consts::TAU.ln() + c.sigmas[0].ln() + c.sigmas[1].ln();
        c.log_weight - 0.5 * square - area - 0.5 * rest.ln()
    });
    log_sum_exp(terms)
}

fn log_sum_exp(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = terms.clone().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + terms.map(|term| (term - largest).exp()).sum::<f64>().ln()
}

/// The log-density at a point by a Gaussian kernel density estimate of samples. The bandwidth is Scott's,
/// `n^(-1/6)`, as in `scipy.stats.gaussian_kde`.
///
/// Samples on a line have no such density, which is an error.
///
/// ```
/// use shafer_nets::behaviour::kernel_log_density;
///
/// let corners = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]];
/// let middle = kernel_log_density(&corners, [0.5, 0.5])?;
/// assert!(middle > kernel_log_density(&corners, [2.0, 2.0])?);
/// # Ok::<(), shafer_nets::Error>(())
/// ```
pub fn kernel_log_density(samples: &[Point], at: Point) -> Result<f64> {
    let singular = |why: &str| Err(Error::data("samples", format!("have no density: {why}")));
    if samples.len() < 3 {
        return singular("there are fewer than three");
    }
    let n = samples.len() as f64;
    let mean = [0, 1].map(|axis| samples.iter().map(|s| s[axis]).sum::<f64>() / n);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for s in samples {
        let (x, y) = (s[0] - mean[0], s[1] - mean[1]);
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    let scale = n.powf(-1.0 / 3.0) / (n - 1.0);
    let (xx, xy, yy) = (xx * scale, xy * scale, yy * scale);
    let determinant = xx * yy - xy * xy;
    // A determinant within the rounding error of its products counts as 0.
    if determinant.is_nan() || determinant <= 1e-14 * xx * yy {
        return singular("they lie on a line, or are not finite");
    }
    let exponents = samples.iter().map(|s| {
        let (x, y) = (at[0] - s[0], at[1] - s[1]);
        -0.5 * (yy * x * x - 2.0 * xy * x * y + xx * y * y) / determinant
    });
    Ok(log_sum_exp(exponents) - n.ln() - std::f64::consts::TAU.ln() - 0.5 * determinant.ln())
}

/// The negative log-likelihood of the truth (KDE-NLL): by [`kernel_log_density`] of the samples at each
/// step, bounded below by [`LOG_DENSITY_FLOOR`], averaged over the steps. A step whose samples have no
/// density counts with the bound.
///
/// `samples` are paths with at least as many steps as the truth.
pub fn kernel_nll<P: AsRef<[Point]>>(samples: &[P], truth: &[Point]) -> Result<f64> {
    for path in samples {
        check_truth(path.as_ref().len(), truth)?;
    }
    check_truth(truth.len(), truth)?;
    let mut points = Vec::with_capacity(samples.len());
    let mut sum = 0.0;
    for (step, &at) in truth.iter().enumerate() {
        points.clear();
        points.extend(samples.iter().map(|path| path.as_ref()[step]));
        let density = kernel_log_density(&points, at).unwrap_or(LOG_DENSITY_FLOOR);
        sum -= density.max(LOG_DENSITY_FLOOR);
    }
    Ok(sum / truth.len() as f64)
}
