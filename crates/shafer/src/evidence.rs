//! Evidence for and against each class: the weights that the closed form needs.

use crate::error::{check_index, check_length};
use crate::method::check_row;
use crate::numerics::Centre;
use crate::{Element, Error, Result};

/// The total evidential weights of every class: `w+_k` for it and `w-_k` against it.
///
/// By equations 4 and 5 of the paper each weight is a simple mass function, of `{z_k}` or of its
/// complement; [`Belief`](crate::Belief) is their combination. A masked class has
/// `w-_k = +inf` and `w+_k = 0`: it is outside the frame, and nothing brings it back.
///
/// ```
/// use shafer::Evidence;
///
/// let evidence = Evidence::from_logits(&[3.0, 1.0, 0.5, -0.5])?;
/// assert_eq!(evidence.positive(), [2.0, 0.0, 0.0, 0.0]);
/// assert_eq!(evidence.negative(), [0.0, 0.0, 0.5, 1.5]);
/// assert_eq!(evidence.support(), [0]);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    positive: Vec<f64>,
    negative: Vec<f64>,
    /// How many classes have `w- = 0`; one of them is enough to empty the product of equation 6a.
    undoubted: usize,
    unmasked: usize,
    vacuous: bool,
}

impl Evidence {
    /// Evidence from weights `w+` and `w-` (the sums over the features below equation 6b).
    ///
    /// All weights are at least 0; they are finite, but for `w-_k = +inf` of a masked class,
    /// which must have `w+_k = 0`. At least one class is not masked.
    ///
    /// ```
    /// use shafer::{Error, Evidence};
    ///
    /// let evidence = Evidence::new(vec![1.5, 0.25], vec![0.0, 2.0])?;
    /// assert_eq!(evidence.classes(), 2);
    /// let error = Evidence::new(vec![1.0, -0.5], vec![0.0, 0.0]).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "row 0, column 1: positive weight is -0.5, but must be finite and at least 0",
    /// );
    /// # Ok::<(), Error>(())
    /// ```
    pub fn new(positive: Vec<f64>, negative: Vec<f64>) -> Result<Self> {
        if positive.is_empty() {
            return Err(Error::Empty { what: "the positive weights" });
        }
        check_length("the negative weights", positive.len(), negative.len())?;
        for (column, (&value, &against)) in positive.iter().zip(&negative).enumerate() {
            let wrong = |what, value, rule| Error::Value { what, row: 0, column, value, rule };
            if !(value.is_finite() && value >= 0.0) {
                return Err(wrong("positive weight", value, "must be finite and at least 0"));
            }
            if against.is_nan() || against < 0.0 {
                let rule = "must be at least 0, or +inf for a masked class";
                return Err(wrong("negative weight", against, rule));
            }
            if against == f64::INFINITY && value > 0.0 {
                let rule = "must be 0 for a masked class, whose negative weight is +inf";
                return Err(wrong("positive weight", value, rule));
            }
        }
        Self::checked(positive, negative)
    }

    /// The evidence that the paper reads from logits (equations 7 to 9): `w_k = l_k - mean(l)`,
    /// all of it for the class if positive, all of it against the class if negative.
    ///
    /// A logit of `-inf` masks its class, which takes no part in the mean. The mean is held in
    /// twice the working precision, so that rounding it does not flip the sign of a weight. The
    /// largest logit of a row that is not constant always has `w+ > 0`, even where its weight is
    /// below the smallest number. Weights saturate at `f64::MAX`.
    ///
    /// ```
    /// use shafer::Evidence;
    ///
    /// let masked = Evidence::from_logits(&[2.0_f32, f32::NEG_INFINITY, 1.0])?;
    /// assert_eq!(masked.positive(), [0.5, 0.0, 0.0]);
    /// assert_eq!(masked.negative(), [0.0, f64::INFINITY, 0.5]);
    /// assert!(Evidence::from_logits(&[0.0, f64::NAN]).is_err());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn from_logits<E: Element>(logits: &[E]) -> Result<Self> {
        if logits.is_empty() {
            return Err(Error::Empty { what: "the row of logits" });
        }
        check_row(logits, 0)?;
        let unmasked = logits.iter().map(|logit| logit.to_f64()).filter(|l| l.is_finite());
        let Some(centre) = Centre::new(unmasked.clone()) else {
            unreachable!("some class is not masked")
        };
        let room = || Vec::with_capacity(logits.len());
        let (mut positive, mut negative) = (room(), room());
        for logit in logits {
            let logit = logit.to_f64();
            let weight = if logit.is_finite() { centre.deviation(logit) } else { logit };
            positive.push(weight.max(0.0));
            negative.push((-weight).max(0.0));
        }
        // Some logits lie below the mean but none above it: the deviation of the largest is
        // positive and was rounded to 0. The next number up keeps its sign.
        let below = negative.iter().any(|&w| w > 0.0 && w.is_finite());
        if below && positive.iter().all(|&w| w == 0.0) {
            let largest = unmasked.fold(f64::NEG_INFINITY, f64::max);
            for (logit, (positive, negative)) in
                logits.iter().zip(positive.iter_mut().zip(&mut negative))
            {
                if logit.to_f64() == largest {
                    *positive = f64::from_bits(1);
                    *negative = 0.0;
                }
            }
        }
        Self::checked(positive, negative)
    }

    /// From weights that are known to be in range.
    fn checked(mut positive: Vec<f64>, mut negative: Vec<f64>) -> Result<Self> {
        for weight in positive.iter_mut().chain(&mut negative) {
            // Turns -0 into 0.
            *weight += 0.0;
        }
        let unmasked = negative.iter().filter(|w| w.is_finite()).count();
        if unmasked == 0 {
            return Err(Error::Row { row: 0, rule: "every class is masked" });
        }
        let undoubted = negative.iter().filter(|&&w| w == 0.0).count();
        let vacuous = undoubted == unmasked && positive.iter().all(|&w| w == 0.0);
        Ok(Self { positive, negative, undoubted, unmasked, vacuous })
    }

    /// The weights `w+_k` for each class.
    ///
    /// ```
    /// let evidence = shafer::Evidence::from_logits(&[1.0, 0.0])?;
    /// assert_eq!(evidence.positive(), [0.5, 0.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn positive(&self) -> &[f64] {
        &self.positive
    }

    /// The weights `w-_k` against each class; `+inf` for a masked class.
    ///
    /// ```
    /// let evidence = shafer::Evidence::from_logits(&[1.0, 0.0])?;
    /// assert_eq!(evidence.negative(), [0.0, 0.5]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn negative(&self) -> &[f64] {
        &self.negative
    }

    /// The number of classes, masked ones included.
    ///
    /// ```
    /// let evidence = shafer::Evidence::from_logits(&[1.0, f64::NEG_INFINITY])?;
    /// assert_eq!(evidence.classes(), 2);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn classes(&self) -> usize {
        self.positive.len()
    }

    /// The number of classes that are not masked: the size of the frame.
    ///
    /// ```
    /// let evidence = shafer::Evidence::from_logits(&[1.0, f64::NEG_INFINITY])?;
    /// assert_eq!(evidence.unmasked(), 1);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn unmasked(&self) -> usize {
        self.unmasked
    }

    /// Whether there is no evidence at all, as for logits that are all equal.
    ///
    /// ```
    /// use shafer::Evidence;
    ///
    /// assert!(Evidence::from_logits(&[0.1, 0.1, 0.1])?.is_vacuous());
    /// assert!(!Evidence::from_logits(&[0.1, 0.2, 0.1])?.is_vacuous());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn is_vacuous(&self) -> bool {
        self.vacuous
    }

    /// Whether the filter of equation 10 keeps class `class`.
    ///
    /// It does when the singleton mass of equation 6a is not 0, decided from the signs of the
    /// weights: there is evidence for the class, or evidence against every other one. A mass too
    /// small for a float still counts. Vacuous evidence favours no class, so all are kept that
    /// are not masked.
    ///
    /// ```
    /// use shafer::Evidence;
    ///
    /// let evidence = Evidence::new(vec![0.0, 0.0, 0.0], vec![0.0, 1.0, 1.0])?;
    /// assert!(evidence.supports(0)?); // everything else is contradicted
    /// assert!(!evidence.supports(1)?);
    /// assert!(evidence.supports(3).is_err());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn supports(&self, class: usize) -> Result<bool> {
        check_index("class", class, self.classes())?;
        Ok(self.keeps(class))
    }

    /// All classes that [`supports`](Self::supports) is true of, in ascending order.
    ///
    /// Never empty for evidence from logits. Other evidence can leave all mass on larger sets,
    /// and then no class is supported.
    ///
    /// ```
    /// use shafer::Evidence;
    ///
    /// assert_eq!(Evidence::from_logits(&[0.0, 2.0, 1.5, -1.0])?.support(), [1, 2]);
    /// assert_eq!(Evidence::from_logits(&[0.5, 0.5])?.support(), [0, 1]);
    /// assert!(Evidence::new(vec![0.0; 3], vec![0.0, 0.0, 1.0])?.support().is_empty());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn support(&self) -> Vec<usize> {
        (0..self.classes()).filter(|&class| self.keeps(class)).collect()
    }

    fn keeps(&self, class: usize) -> bool {
        self.negative[class].is_finite()
            && (self.vacuous || self.positive[class] > 0.0 || self.others_doubted(class))
    }

    /// Whether every other unmasked class has `w- > 0`: the product of equation 6a is not empty.
    pub(crate) fn others_doubted(&self, class: usize) -> bool {
        self.undoubted == usize::from(self.negative[class] == 0.0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn names_what_is_wrong() {
        assert!(matches!(Evidence::new(vec![], vec![]), Err(Error::Empty { .. })));
        assert!(matches!(Evidence::new(vec![0.0], vec![]), Err(Error::Length { .. })));
        let masked = Evidence::new(vec![0.0, 1.0], vec![0.0, f64::INFINITY]);
        assert!(matches!(masked, Err(Error::Value { column: 1, .. })));
        let all = Evidence::new(vec![0.0], vec![f64::INFINITY]);
        assert_eq!(all, Err(Error::Row { row: 0, rule: "every class is masked" }));
        assert!(matches!(Evidence::from_logits::<f32>(&[]), Err(Error::Empty { .. })));
        let all = Evidence::from_logits(&[f64::NEG_INFINITY; 2]);
        assert!(matches!(all, Err(Error::Row { row: 0, .. })));
        let infinite = Evidence::from_logits(&[0.0, f64::INFINITY]).unwrap_err();
        let expected = "row 0, column 1: logit is inf, but must be finite, or -inf for a masked \
                        class";
        assert_eq!(infinite.to_string(), expected);
    }

    #[test]
    fn one_unit_in_the_last_place_is_enough() {
        for base in [1.0_f64, 0.1, 1e-300, 1e300, -3.0, 0.0, f64::MIN_POSITIVE] {
            for below in 1..20 {
                for above in 1..20 {
                    let mut logits = vec![base; below];
                    logits.resize(below + above, base.next_up());
                    let evidence = Evidence::from_logits(&logits).unwrap();
                    let support: Vec<usize> = (below..below + above).collect();
                    assert_eq!(evidence.support(), support, "{base} {below} {above}");
                }
            }
        }
    }

    #[test]
    fn equal_logits_are_vacuous_at_any_length() {
        for classes in [1, 2, 3, 7, 1000, 131_072] {
            for logit in [0.1, 1e4 / 3.0, f64::MAX, -0.0, f64::from_bits(1)] {
                let evidence = Evidence::from_logits(&vec![logit; classes]).unwrap();
                assert!(evidence.is_vacuous());
                assert_eq!(evidence.support().len(), classes);
            }
        }
    }

    #[test]
    fn the_largest_logits_stay_finite() {
        let evidence =
            Evidence::from_logits(&[f64::MAX, f64::MIN, f64::MIN, f64::NEG_INFINITY]).unwrap();
        assert_eq!(evidence.positive(), [f64::MAX, 0.0, 0.0, 0.0]);
        assert!((evidence.negative()[1] / f64::MAX - 2.0 / 3.0).abs() < 1e-15);
        assert_eq!(evidence.support(), [0]);
    }
}
