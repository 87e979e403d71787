//! Mass functions on the explicit power set of a small frame, and Dempster's rule.

use crate::error::{check_length, check_parameter};
use crate::{ClassSet, Error, Result};

/// A mass function `m : 2^Z -> [0, 1]` with `m({}) = 0` and masses that sum to 1.
///
/// It holds its focal sets one by one, so it is exact about anything but scales with their number:
/// it is the definition against which the closed form of [`Belief`](crate::Belief) is checked, and
/// the tool for evidence that has no closed form.
///
/// The example of the paper's appendix A: is a region occupied (class 0) or free (class 1)? Before
/// any measurement all mass lies on the whole frame. Ten contradictory measurements, five each
/// way, move it to the two hypotheses. A Bayesian starts at one half each and ends there.
///
/// ```
/// use shafer::{ClassSet, MassFunction};
///
/// let (occupied, free) = (ClassSet::singleton(0)?, ClassSet::singleton(1)?);
/// let unknown = ClassSet::full(2)?;
///
/// let mut region = MassFunction::vacuous(2)?;
/// assert_eq!(region.mass(unknown), 1.0);
/// assert_eq!(region.plausibility_transform(), [0.5, 0.5]);
///
/// for _ in 0..5 {
///     for hypothesis in [occupied, free] {
///         let measurement = MassFunction::simple(2, hypothesis, 0.6)?;
///         region = region.combine(&measurement)?.mass;
///     }
/// }
/// // Each side keeps 0.4^5 = 0.01024 of doubt; 0.01024 / (2 - 0.01024) is left unknown.
/// assert!((region.mass(unknown) - 0.01024 / 1.98976).abs() < 1e-15);
/// assert!((region.mass(occupied) - 0.98976 / 1.98976).abs() < 1e-15);
/// assert!((region.mass(free) - 0.98976 / 1.98976).abs() < 1e-15);
/// // The probabilities cannot tell the two situations apart.
/// assert!((region.plausibility_transform()[0] - 0.5).abs() < 1e-15);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MassFunction {
    classes: usize,
    /// Ascending, without repetition, without zero masses.
    focal: Vec<(ClassSet, f64)>,
}

/// The result of Dempster's rule: the combined mass function and the conflict it removed.
///
/// ```
/// use shafer::{ClassSet, MassFunction};
///
/// let a = MassFunction::simple(2, ClassSet::singleton(0)?, 0.5)?;
/// let b = MassFunction::simple(2, ClassSet::singleton(1)?, 0.5)?;
/// assert_eq!(a.combine(&b)?.conflict, 0.25);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Combination {
    /// The normalised combination.
    pub mass: MassFunction,
    /// The degree of conflict, `kappa`: the product mass of sets that do not meet.
    pub conflict: f64,
}

impl MassFunction {
    /// How far from 1 the masses may sum.
    const TOLERANCE: f64 = 1e-9;

    /// A mass function on `classes` classes; masses given to the same set are added.
    ///
    /// ```
    /// use shafer::{ClassSet, MassFunction};
    ///
    /// let a = ClassSet::new([0, 1])?;
    /// let m = MassFunction::new(3, [(a, 0.25), (ClassSet::full(3)?, 0.5), (a, 0.25)])?;
    /// assert_eq!(m.mass(a), 0.5);
    /// assert!(MassFunction::new(3, [(a, 0.9)]).is_err());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn new(classes: usize, masses: impl IntoIterator<Item = (ClassSet, f64)>) -> Result<Self> {
        let frame = Self::frame(classes)?;
        let mut focal = Vec::new();
        let mut total = 0.0;
        for (column, (set, mass)) in masses.into_iter().enumerate() {
            let wrong = |what, rule| Error::Value { what, row: 0, column, value: mass, rule };
            if !(0.0..=1.0).contains(&mass) {
                return Err(wrong("mass", "must lie between 0 and 1"));
            }
            if set.is_empty() && mass > 0.0 {
                return Err(wrong("mass of the empty set", "must be 0"));
            }
            Self::inside(set, frame, classes)?;
            total += mass;
            focal.push((set, mass));
        }
        let holds = (total - 1.0).abs() <= Self::TOLERANCE;
        check_parameter("the sum of the masses", total, holds, "must be 1 within 1e-9")?;
        Ok(Self { classes, focal: merged(focal) })
    }

    /// All mass on the whole frame: nothing is known.
    ///
    /// ```
    /// use shafer::{ClassSet, MassFunction};
    ///
    /// assert_eq!(MassFunction::vacuous(3)?.mass(ClassSet::full(3)?), 1.0);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn vacuous(classes: usize) -> Result<Self> {
        let frame = Self::frame(classes)?;
        Ok(Self { classes, focal: vec![(frame, 1.0)] })
    }

    /// The simple mass function of equation 1: `m(A) = s`, `m(Z) = 1 - s`.
    ///
    /// ```
    /// use shafer::{ClassSet, MassFunction};
    ///
    /// let m = MassFunction::simple(3, ClassSet::new([0, 2])?, 0.25)?;
    /// assert_eq!(m.mass(ClassSet::new([0, 2])?), 0.25);
    /// assert_eq!(m.mass(ClassSet::full(3)?), 0.75);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn simple(classes: usize, set: ClassSet, support: f64) -> Result<Self> {
        let holds = (0.0..=1.0).contains(&support);
        check_parameter("support", support, holds, "must lie between 0 and 1")?;
        Self::simple_parts(classes, set, support, 1.0 - support)
    }

    /// The simple mass function of evidential weight `w = -ln(1 - s)` (equation 1): the `m+` and
    /// `m-` of equations 4 and 5, by the choice of `set`.
    ///
    /// ```
    /// use shafer::{ClassSet, MassFunction};
    ///
    /// let m = MassFunction::simple_from_weight(3, ClassSet::singleton(1)?, 2.0_f64.ln())?;
    /// assert!((m.mass(ClassSet::singleton(1)?) - 0.5).abs() < 1e-15);
    /// let certain = MassFunction::simple_from_weight(3, ClassSet::singleton(1)?, f64::INFINITY)?;
    /// assert_eq!(certain.mass(ClassSet::singleton(1)?), 1.0);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn simple_from_weight(classes: usize, set: ClassSet, weight: f64) -> Result<Self> {
        check_parameter("evidential weight", weight, weight >= 0.0, "must be at least 0")?;
        // Both parts from the weight: 1 - s would lose a small remainder.
        Self::simple_parts(classes, set, -(-weight).exp_m1(), (-weight).exp())
    }

    /// Dempster's rule (appendix A), for independent pieces of evidence:
    /// `m(A) = sum of m1(B) m2(C) over B and C that meet in A`, divided by `1 - kappa`.
    ///
    /// [`Error::TotalConflict`] if nothing remains to be divided, which includes products below
    /// the smallest number.
    ///
    /// ```
    /// use shafer::{ClassSet, Error, MassFunction};
    ///
    /// let (a, b) = (ClassSet::singleton(0)?, ClassSet::singleton(1)?);
    /// let combination =
    ///     MassFunction::simple(2, a, 0.5)?.combine(&MassFunction::simple(2, b, 0.5)?)?;
    /// assert_eq!(combination.conflict, 0.25);
    /// assert!((combination.mass.mass(a) - 1.0 / 3.0).abs() < 1e-15);
    ///
    /// let certain = MassFunction::simple(2, a, 1.0)?;
    /// let contrary = MassFunction::simple(2, b, 1.0)?;
    /// assert_eq!(certain.combine(&contrary), Err(Error::TotalConflict));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn combine(&self, other: &Self) -> Result<Combination> {
        check_length("the frame of the other mass function", self.classes, other.classes)?;
        let mut conflict = 0.0;
        let mut products = Vec::with_capacity(self.focal.len() * other.focal.len());
        for &(b, m1) in &self.focal {
            for &(c, m2) in &other.focal {
                let set = b.intersection(c);
                let product = m1 * m2;
                if set.is_empty() {
                    conflict += product;
                } else {
                    products.push((set, product));
                }
            }
        }
        let mut focal = merged(products);
        // What remains, added up directly: 1 - kappa would cancel under strong conflict.
        let remaining: f64 = focal.iter().map(|&(_, mass)| mass).sum();
        if remaining == 0.0 {
            return Err(Error::TotalConflict);
        }
        for (_, mass) in &mut focal {
            *mass /= remaining;
        }
        Ok(Combination { mass: Self { classes: self.classes, focal }, conflict })
    }

    /// The number of classes of the frame.
    ///
    /// ```
    /// assert_eq!(shafer::MassFunction::vacuous(3)?.classes(), 3);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The sets with mass and their masses, in ascending order of the sets.
    ///
    /// ```
    /// use shafer::{ClassSet, MassFunction};
    ///
    /// let m = MassFunction::simple(2, ClassSet::singleton(0)?, 0.25)?;
    /// let expected = [(ClassSet::singleton(0)?, 0.25), (ClassSet::full(2)?, 0.75)];
    /// assert_eq!(m.focal_sets(), expected);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn focal_sets(&self) -> &[(ClassSet, f64)] {
        &self.focal
    }

    /// The mass `m(A)` committed to exactly this set.
    ///
    /// ```
    /// use shafer::{ClassSet, MassFunction};
    ///
    /// let m = MassFunction::simple(3, ClassSet::singleton(0)?, 0.25)?;
    /// assert_eq!(m.mass(ClassSet::singleton(0)?), 0.25);
    /// assert_eq!(m.mass(ClassSet::new([0, 1])?), 0.0);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn mass(&self, set: ClassSet) -> f64 {
        self.focal.binary_search_by_key(&set, |&(b, _)| b).map_or(0.0, |index| self.focal[index].1)
    }

    /// The belief `Bel(A)`, the lower probability: the mass of all subsets of `A` (appendix A).
    ///
    /// ```
    /// use shafer::{ClassSet, MassFunction};
    ///
    /// let m = MassFunction::simple(3, ClassSet::singleton(0)?, 0.25)?;
    /// assert_eq!(m.belief(ClassSet::new([0, 1])?), 0.25);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn belief(&self, set: ClassSet) -> f64 {
        self.total(|b| b.is_subset(set))
    }

    /// The plausibility `Pl(A)`, the upper probability: the mass of all sets that meet `A`
    /// (appendix A).
    ///
    /// ```
    /// use shafer::{ClassSet, MassFunction};
    ///
    /// let m = MassFunction::simple(3, ClassSet::singleton(0)?, 0.25)?;
    /// assert_eq!(m.plausibility(ClassSet::new([1, 2])?), 0.75);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn plausibility(&self, set: ClassSet) -> f64 {
        self.total(|b| !b.intersection(set).is_empty())
    }

    /// The commonality `Q(A)`: the mass of all sets that contain `A`. Dempster's rule multiplies
    /// commonalities, up to the normalisation.
    ///
    /// ```
    /// use shafer::{ClassSet, MassFunction};
    ///
    /// let m = MassFunction::simple(3, ClassSet::new([0, 1])?, 0.25)?;
    /// assert_eq!(m.commonality(ClassSet::singleton(0)?), 1.0);
    /// assert_eq!(m.commonality(ClassSet::singleton(2)?), 0.75);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn commonality(&self, set: ClassSet) -> f64 {
        self.total(|b| set.is_subset(b))
    }

    /// The probabilities of equation 2: the plausibilities of the classes, normalised.
    ///
    /// ```
    /// use shafer::{ClassSet, MassFunction};
    ///
    /// // Plausibilities 1 and 0.5.
    /// let m = MassFunction::simple(2, ClassSet::singleton(0)?, 0.5)?;
    /// assert_eq!(m.plausibility_transform(), [2.0 / 3.0, 1.0 / 3.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn plausibility_transform(&self) -> Vec<f64> {
        let contour: Vec<f64> =
            (0..self.classes).map(|class| self.total(|b| b.contains(class))).collect();
        // At least 1: each focal set has a class, and the masses sum to 1.
        let total: f64 = contour.iter().sum();
        contour.into_iter().map(|plausibility| plausibility / total).collect()
    }

    fn total(&self, counts: impl Fn(ClassSet) -> bool) -> f64 {
        let total: f64 =
            self.focal.iter().filter(|&&(set, _)| counts(set)).map(|&(_, mass)| mass).sum();
        // An empty sum of floats is -0.
        total.max(0.0)
    }

    fn simple_parts(classes: usize, set: ClassSet, support: f64, rest: f64) -> Result<Self> {
        let frame = Self::frame(classes)?;
        Self::inside(set, frame, classes)?;
        let holds = !set.is_empty() || support == 0.0;
        check_parameter("support of the empty set", support, holds, "must be 0")?;
        if set == frame {
            return Self::vacuous(classes);
        }
        Ok(Self { classes, focal: merged(vec![(set, support), (frame, rest)]) })
    }

    fn frame(classes: usize) -> Result<ClassSet> {
        if classes == 0 {
            return Err(Error::Empty { what: "the frame" });
        }
        ClassSet::full(classes)
    }

    fn inside(set: ClassSet, frame: ClassSet, classes: usize) -> Result<()> {
        match set.iter().find(|&class| !frame.contains(class)) {
            Some(index) => Err(Error::Index { what: "class", index, len: classes }),
            None => Ok(()),
        }
    }
}

/// Sorts by set, adds the masses of equal sets and drops sets without mass.
fn merged(mut focal: Vec<(ClassSet, f64)>) -> Vec<(ClassSet, f64)> {
    focal.sort_unstable_by_key(|&(set, _)| set);
    focal.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    focal.retain(|&(_, mass)| mass > 0.0);
    focal
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn set(classes: &[usize]) -> ClassSet {
        ClassSet::new(classes.iter().copied()).unwrap()
    }

    #[test]
    fn rejects_what_is_not_a_mass_function() {
        let full = set(&[0, 1]);
        assert!(matches!(MassFunction::vacuous(0), Err(Error::Empty { .. })));
        assert!(matches!(MassFunction::vacuous(65), Err(Error::Index { .. })));
        assert!(matches!(MassFunction::new(2, []), Err(Error::Parameter { .. })));
        for mass in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            let result = MassFunction::new(2, [(full, mass)]);
            assert!(matches!(result, Err(Error::Value { column: 0, .. })), "{mass}");
            assert!(MassFunction::simple(2, set(&[0]), mass).is_err());
        }
        let empty = MassFunction::new(2, [(full, 0.5), (ClassSet::EMPTY, 0.5)]);
        assert!(matches!(empty, Err(Error::Value { column: 1, .. })));
        let outside = MassFunction::new(2, [(set(&[2]), 1.0)]);
        assert_eq!(outside, Err(Error::Index { what: "class", index: 2, len: 2 }));
        assert!(MassFunction::simple(2, ClassSet::EMPTY, 0.5).is_err());
        assert!(MassFunction::simple_from_weight(2, set(&[0]), f64::NAN).is_err());
        assert!(MassFunction::simple_from_weight(2, set(&[0]), -1.0).is_err());
        let (two, three) = (MassFunction::vacuous(2).unwrap(), MassFunction::vacuous(3).unwrap());
        assert!(matches!(two.combine(&three), Err(Error::Length { expected: 2, found: 3, .. })));
    }

    #[test]
    fn support_of_nothing_and_of_everything_is_vacuous() {
        let vacuous = MassFunction::vacuous(2).unwrap();
        assert_eq!(MassFunction::simple(2, set(&[0, 1]), 0.3).unwrap(), vacuous);
        assert_eq!(MassFunction::simple(2, set(&[0]), 0.0).unwrap(), vacuous);
        assert_eq!(MassFunction::simple(2, ClassSet::EMPTY, 0.0).unwrap(), vacuous);
    }

    #[test]
    fn combining_multiplies_commonalities() {
        let m1 = MassFunction::new(3, [(set(&[0]), 0.2), (set(&[0, 1]), 0.3), (set(&[1, 2]), 0.5)]);
        let m2 = MassFunction::new(3, [(set(&[2]), 0.4), (set(&[0, 2]), 0.35), (set(&[1]), 0.25)]);
        let (m1, m2) = (m1.unwrap(), m2.unwrap());
        let Combination { mass, conflict } = m1.combine(&m2).unwrap();
        for bits in 1_usize..8 {
            let a = set(&(0..3).filter(|class| bits >> class & 1 == 1).collect::<Vec<_>>());
            let product = m1.commonality(a) * m2.commonality(a) / (1.0 - conflict);
            assert!((mass.commonality(a) - product).abs() < 1e-15, "{a:?}");
        }
    }

    #[test]
    fn combining_with_certain_singletons_is_bayes_rule() {
        // Prior 0.2, 0.3, 0.5 as a mass function on singletons; likelihoods 1, 0.5, 0.1 as the
        // plausibilities of a consonant mass function.
        let prior = MassFunction::new(3, [(set(&[0]), 0.2), (set(&[1]), 0.3), (set(&[2]), 0.5)]);
        let likelihood =
            MassFunction::new(3, [(set(&[0]), 0.5), (set(&[0, 1]), 0.4), (set(&[0, 1, 2]), 0.1)]);
        let posterior = prior.unwrap().combine(&likelihood.unwrap()).unwrap().mass;
        let evidence = 0.2 * 1.0 + 0.3 * 0.5 + 0.5 * 0.1;
        assert!((posterior.mass(set(&[0])) - 0.2 / evidence).abs() < 1e-15);
        assert!((posterior.mass(set(&[1])) - 0.15 / evidence).abs() < 1e-15);
        assert!((posterior.mass(set(&[2])) - 0.05 / evidence).abs() < 1e-15);
    }
}
