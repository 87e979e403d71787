//! The belief that evidence for and against single classes adds up to, in closed form.

use crate::error::check_index;
use crate::numerics::{Sum, ln_1m_exp, ln_exp_m1};
use crate::{Evidence, Result};

/// The mass function of equations 6a and 6b: all pieces of [`Evidence`] combined by Dempster's
/// rule, without enumerating the `2^K` sets.
///
/// Everything is `O(K)` or less and computed in log space, so a vocabulary of 131,072 classes with
/// logits of +-10,000 is no different from three classes. Masked classes are outside the frame:
/// they have no mass and no plausibility.
///
/// ```
/// use shafer::{Belief, Evidence};
///
/// // Weights ln 2 for class 0, ln 2 against class 1, nothing about class 2.
/// let w = 2.0_f64.ln();
/// let belief = Belief::new(&Evidence::new(vec![w, 0.0, 0.0], vec![0.0, w, 0.0])?);
/// // 1/C = (2 - 1) + 1, so {0} has mass 1/2; the rest is halved between {0, 2} and everything.
/// let close = |a: f64, b: f64| (a - b).abs() < 1e-15;
/// assert!(close(belief.normaliser(), 0.5));
/// assert!(close(belief.singleton(0)?, 0.5));
/// assert!(close(belief.mass([0, 2])?, 0.25));
/// assert!(close(belief.ignorance(), 0.25));
/// assert!(close(belief.belief([0, 2])?, 0.75));
/// assert!(close(belief.plausibility([1])?, 0.25));
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Belief {
    evidence: Evidence,
    /// The least `w-_k`. Where every class is contradicted, all masses have the factor
    /// `e^{-least}`; it is left out throughout, so that huge weights do not swallow the small
    /// differences between them.
    least: f64,
    /// `e^{least} / C = e^shift * total`, apart for the same reason.
    shift: f64,
    total: f64,
    /// `e^{least} (1 - prod_k (1 - e^{-w-_k}))` over the frame.
    compatible: f64,
    /// `sum_k -ln(1 - e^{-w-_k})` over the classes with `w-_k > 0`; the others would make it
    /// infinite, and nothing could be taken out again.
    doubt: Sum,
}

impl From<Evidence> for Belief {
    fn from(evidence: Evidence) -> Self {
        let (positive, negative) = (evidence.positive(), evidence.negative());
        let (least, compatible) = compatible(negative, 0..evidence.classes());
        let ln_for = positive.iter().zip(negative).map(|(&p, &n)| ln_exp_m1(p) - (n - least));
        let shift = ln_for.clone().fold(0.0, f64::max);
        let mut total: Sum = ln_for.map(|x| (x - shift).exp()).collect();
        total.add(compatible * (-shift).exp());
        let doubt = negative.iter().filter(|&&w| w > 0.0).map(|&w| -ln_1m_exp(w)).collect();
        Self { least, shift, total: total.value(), compatible, doubt, evidence }
    }
}

impl Belief {
    /// The combination of all evidence.
    ///
    /// ```
    /// use shafer::{Belief, Evidence};
    ///
    /// let vacuous = Belief::new(&Evidence::from_logits(&[0.3, 0.3])?);
    /// assert_eq!(vacuous.ignorance(), 1.0);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn new(evidence: &Evidence) -> Self {
        Self::from(evidence.clone())
    }

    /// The evidence that the belief was built from.
    ///
    /// ```
    /// use shafer::{Belief, Evidence};
    ///
    /// let evidence = Evidence::from_logits(&[1.0, 0.0])?;
    /// assert_eq!(Belief::new(&evidence).evidence(), &evidence);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// The mass of one class alone, `O(1)` (equation 6a):
    /// `m({z_k}) = C e^{-w-_k} (e^{w+_k} - 1 + prod_{l != k} (1 - e^{-w-_l}))`.
    ///
    /// It can round to 0 where [`Evidence::supports`] knows it is not.
    ///
    /// ```
    /// use shafer::{Belief, Evidence};
    ///
    /// let belief = Belief::new(&Evidence::from_logits(&[1.0, -1.0])?);
    /// // C = e^-1, and the evidence against class 1 leaves only class 0.
    /// let expected = (-1.0_f64).exp() * (1.0_f64.exp() - (-1.0_f64).exp());
    /// assert!((belief.singleton(0)? - expected).abs() < 1e-15);
    /// assert_eq!(belief.singleton(1)?, 0.0);
    /// assert!(belief.singleton(2).is_err());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn singleton(&self, class: usize) -> Result<f64> {
        self.check(class)?;
        Ok(self.singleton_unchecked(class))
    }

    /// The masses of all classes alone (equation 6a).
    ///
    /// ```
    /// use shafer::{Belief, Evidence};
    ///
    /// let belief = Belief::new(&Evidence::from_logits(&[1.0, 1.0, -2.0])?);
    /// let masses = belief.singletons();
    /// // 1/C = 2 (e - 1) + 1.
    /// let expected = 1.0_f64.exp_m1() / (2.0 * 1.0_f64.exp_m1() + 1.0);
    /// assert!((masses[0] - expected).abs() < 1e-15);
    /// assert_eq!(masses[2], 0.0);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn singletons(&self) -> Vec<f64> {
        (0..self.evidence.classes()).map(|class| self.singleton_unchecked(class)).collect()
    }

    /// The mass of exactly this set, given as a [`ClassSet`](crate::ClassSet) or any classes:
    /// equation 6a for one class, 6b for more,
    /// `m(A) = C prod_{k not in A} (1 - e^{-w-_k}) prod_{k in A} e^{-w-_k}`; 0 for the empty set.
    ///
    /// ```
    /// use shafer::{Belief, Evidence};
    ///
    /// let belief = Belief::new(&Evidence::from_logits(&[1.0, 1.0, -2.0])?);
    /// let c = 1.0 / (2.0 * 1.0_f64.exp_m1() + 1.0);
    /// let expected = c * (1.0 - (-2.0_f64).exp());
    /// assert!((belief.mass([0, 1])? - expected).abs() < 1e-15);
    /// assert_eq!(belief.mass([1, 0, 1])?, belief.mass([0, 1])?);
    /// assert_eq!(belief.mass([0, 2])?, 0.0);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn mass(&self, set: impl IntoIterator<Item = usize>) -> Result<f64> {
        let members = self.members(set)?;
        let mut inside = members.iter().enumerate().filter(|&(_, &member)| member);
        match (inside.next(), inside.next()) {
            (None, _) => Ok(0.0),
            (Some((class, _)), None) => Ok(self.singleton_unchecked(class)),
            _ => {
                let mut sum = Sum::from_iter([self.least]);
                for (&w, &member) in self.evidence.negative().iter().zip(&members) {
                    // -inf where the set holds a masked class or leaves out an undoubted one.
                    sum.add(if member { -w } else { ln_1m_exp(w) });
                }
                Ok(self.normalised(sum.value()).min(1.0))
            }
        }
    }

    /// The mass of the whole frame, `m(Z) = C prod_k e^{-w-_k}`: the ignorance that is left.
    ///
    /// The frame is the classes that are not masked. If it is one class, its mass is 1.
    ///
    /// ```
    /// use shafer::{Belief, Evidence};
    ///
    /// let belief = Belief::new(&Evidence::from_logits(&[1.0, -1.0])?);
    /// assert!((belief.ignorance() - (-2.0_f64).exp()).abs() < 1e-15);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn ignorance(&self) -> f64 {
        if self.evidence.unmasked() == 1 {
            return 1.0;
        }
        let mut sum = Sum::from_iter([self.least]);
        for &weight in self.evidence.negative().iter().filter(|w| w.is_finite()) {
            sum.add(-weight);
        }
        self.normalised(sum.value()).min(1.0)
    }

    /// The belief, or lower probability, of a set: the mass of all its subsets (appendix A), with
    /// `f_k = e^{-w-_k} (e^{w+_k} - 1)` and `g_k = 1 - e^{-w-_k}` summed to
    /// `Bel(A) = C [sum_{k in A} f_k + prod_{k not in A} g_k (1 - prod_{k in A} g_k)]`.
    ///
    /// ```
    /// use shafer::{Belief, Evidence};
    ///
    /// let belief = Belief::new(&Evidence::from_logits(&[1.0, 1.0, -2.0])?);
    /// let pair = belief.mass([0])? + belief.mass([1])? + belief.mass([0, 1])?;
    /// assert!((belief.belief([0, 1])? - pair).abs() < 1e-15);
    /// assert_eq!(belief.belief([])?, 0.0);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn belief(&self, set: impl IntoIterator<Item = usize>) -> Result<f64> {
        let members = self.members(set)?;
        let negative = self.evidence.negative();
        let inside = (0..members.len()).filter(|&class| members[class]);
        // -inf, and its exponential 0, if the set leaves out an undoubted class.
        let outside: Sum = negative
            .iter()
            .zip(&members)
            .filter(|&(_, &member)| !member)
            .map(|(&w, _)| ln_1m_exp(w))
            .collect();
        let larger = outside.value().exp() * self.compatible_with(inside.clone());
        Ok((self.direct(inside) + larger).min(1.0))
    }

    /// The plausibility, or upper probability, of a set: `Pl(A) = 1 - Bel(complement of A)`
    /// (appendix A), in the form that does not cancel,
    /// `Pl(A) = C [sum_{k in A} e^{-w-_k} (e^{w+_k} - 1) + 1 - prod_{k in A} (1 - e^{-w-_k})]`.
    ///
    /// ```
    /// use shafer::{Belief, Evidence};
    ///
    /// let belief = Belief::new(&Evidence::from_logits(&[1.0, 1.0, -2.0])?);
    /// let expected = 1.0 - belief.belief([0])?;
    /// assert!((belief.plausibility([1, 2])? - expected).abs() < 1e-15);
    /// assert_eq!(belief.plausibility([])?, 0.0);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn plausibility(&self, set: impl IntoIterator<Item = usize>) -> Result<f64> {
        let members = self.members(set)?;
        let inside = (0..members.len()).filter(|&class| members[class]);
        Ok((self.direct(inside.clone()) + self.compatible_with(inside)).min(1.0))
    }

    /// The plausibility of each class, `pl(z_k) = C e^{w+_k - w-_k}`.
    ///
    /// ```
    /// use shafer::{Belief, Evidence};
    ///
    /// let belief = Belief::new(&Evidence::from_logits(&[1.0, -1.0])?);
    /// let contour = belief.contour();
    /// assert!((contour[0] - 1.0).abs() < 1e-15);
    /// assert!((contour[1] - (-2.0_f64).exp()).abs() < 1e-15);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn contour(&self) -> Vec<f64> {
        self.net().map(|weight| self.normalised(weight).min(1.0)).collect()
    }

    /// The plausibility of one class, `O(1)`: what [`contour`](Self::contour) has for it.
    ///
    /// ```
    /// use shafer::{Belief, Evidence};
    ///
    /// let belief = Belief::new(&Evidence::from_logits(&[1.0, -1.0])?);
    /// assert_eq!(belief.class_plausibility(1)?, belief.contour()[1]);
    /// assert!(belief.class_plausibility(2).is_err());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn class_plausibility(&self, class: usize) -> Result<f64> {
        self.check(class)?;
        let weight = self.evidence.positive()[class] - self.evidence.negative()[class];
        Ok(self.normalised(weight).min(1.0))
    }

    /// The probabilities of equation 2, the normalised [`contour`](Self::contour): softmax of the
    /// logits that the evidence came from.
    ///
    /// ```
    /// use shafer::{Belief, Evidence};
    ///
    /// let belief = Belief::new(&Evidence::from_logits(&[3.0_f64.ln(), 0.0])?);
    /// let probabilities = belief.plausibility_transform();
    /// assert!((probabilities[0] - 0.75).abs() < 1e-15);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn plausibility_transform(&self) -> Vec<f64> {
        let largest = self.net().fold(f64::NEG_INFINITY, f64::max);
        let mut probabilities: Vec<f64> =
            self.net().map(|weight| (weight - largest).exp()).collect();
        let total = probabilities.iter().copied().collect::<Sum>().value();
        for probability in &mut probabilities {
            *probability /= total;
        }
        probabilities
    }

    /// The logarithm of the normaliser `C` of equations 6a and 6b,
    /// `1/C = sum_k e^{-w-_k} (e^{w+_k} - 1) + 1 - prod_k (1 - e^{-w-_k})`.
    ///
    /// ```
    /// use shafer::{Belief, Evidence};
    ///
    /// let belief = Belief::new(&Evidence::from_logits(&[1e4, -1e4])?);
    /// assert_eq!(belief.ln_normaliser(), -1e4);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn ln_normaliser(&self) -> f64 {
        (self.least - self.shift) - self.total.ln()
    }

    /// The normaliser `C` itself; 0 or infinity where [`ln_normaliser`](Self::ln_normaliser) is
    /// out of the range of a float.
    ///
    /// ```
    /// use shafer::{Belief, Evidence};
    ///
    /// let belief = Belief::new(&Evidence::from_logits(&[1.0, 1.0, -2.0])?);
    /// assert!((belief.normaliser() - 1.0 / (2.0 * 1.0_f64.exp_m1() + 1.0)).abs() < 1e-15);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn normaliser(&self) -> f64 {
        (self.least - self.shift).exp() / self.total
    }

    /// Dempster's degree of conflict `kappa` between all the evidence for classes and all the
    /// evidence against classes: `1 - eta+ eta- / C` with `1/eta+ = 1 + sum_k (e^{w+_k} - 1)` and
    /// `1/eta- = 1 - prod_k (1 - e^{-w-_k})`.
    ///
    /// Evidence conflicts in this way only through classes with weights both for and against,
    /// so it is 0 for evidence from logits, where no class has both.
    ///
    /// ```
    /// use shafer::{Belief, Evidence};
    ///
    /// let w = 2.0_f64.ln();
    /// // Half a mass on {0} meets half a mass on everything but 0.
    /// let belief = Belief::new(&Evidence::new(vec![w, 0.0, 0.0], vec![w, 0.0, 0.0])?);
    /// assert!((belief.degree_of_conflict() - 0.25).abs() < 1e-15);
    /// let belief = Belief::new(&Evidence::from_logits(&[3.0, 1.0, -2.0])?);
    /// assert_eq!(belief.degree_of_conflict(), 0.0);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn degree_of_conflict(&self) -> f64 {
        // As the sum of what conflicts: {k} with mass eta+ (e^{w+_k} - 1) misses every set of the
        // negative evidence without k, mass 1 - eta- e^{-w-_k}. 1 - eta+ eta- / C would cancel.
        let shift = self.weights().map(|(positive, _)| ln_exp_m1(positive)).fold(0.0, f64::max);
        let mut total: Sum =
            self.weights().map(|(positive, _)| (ln_exp_m1(positive) - shift).exp()).collect();
        total.add((-shift).exp());
        let conflict: Sum = self
            .weights()
            .filter(|&(positive, _)| positive > 0.0)
            .map(|(positive, negative)| {
                let missed = 1.0 - (self.least - negative).exp() / self.compatible;
                (ln_exp_m1(positive) - shift).exp() * missed.max(0.0)
            })
            .collect();
        (conflict.value() / total.value()).clamp(0.0, 1.0)
    }

    /// The conflict of the evidence for different classes with itself, the paper's sign of
    /// multimodality: combining the positive simple masses without normalising leaves
    /// `1 - prod_k e^{-w+_k} (1 + sum_k (e^{w+_k} - 1))` on the empty set.
    ///
    /// ```
    /// use shafer::{Belief, Evidence};
    ///
    /// let w = 2.0_f64.ln();
    /// // Half a mass on {0} meets half a mass on {1}.
    /// let belief = Belief::new(&Evidence::new(vec![w, w, 0.0], vec![0.0, 0.0, 3.0])?);
    /// assert!((belief.internal_conflict() - 0.25).abs() < 1e-15);
    /// let one_mode = Belief::new(&Evidence::from_logits(&[9.0, 0.0, 0.0])?);
    /// assert_eq!(one_mode.internal_conflict(), 0.0);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn internal_conflict(&self) -> f64 {
        /// Two classes with more weight than this conflict with certainty, to the last digit.
        const CERTAIN: f64 = 600.0;

        // The probability that at least two of independent events with probabilities 1 - e^{-w+}
        // happen. Adding them one at a time, the next event meets exactly one before it with
        // probability e^{-sum w+} sum (e^{w+} - 1). Nothing is ever subtracted, and with the
        // largest weight last nothing overflows.
        let positive = self.evidence.positive();
        let classes = 0..positive.len();
        let last = classes.clone().max_by(|&a, &b| positive[a].total_cmp(&positive[b]));
        let (mut weight, mut odds, mut conflict) = (Sum::default(), Sum::default(), Sum::default());
        for class in classes.filter(|&class| Some(class) != last).chain(last) {
            let next = positive[class];
            conflict.add((-weight.value()).exp() * odds.value() * -(-next).exp_m1());
            if next > CERTAIN && Some(class) != last {
                return 1.0;
            }
            weight.add(next);
            odds.add(next.exp_m1());
        }
        conflict.value().min(1.0)
    }

    /// The weights for and against each class.
    fn weights(&self) -> impl Iterator<Item = (f64, f64)> + Clone {
        let (positive, negative) = (self.evidence.positive(), self.evidence.negative());
        positive.iter().copied().zip(negative.iter().copied())
    }

    fn singleton_unchecked(&self, class: usize) -> f64 {
        let negative = self.evidence.negative()[class];
        if negative.is_infinite() {
            return 0.0;
        }
        if self.evidence.unmasked() == 1 {
            return 1.0;
        }
        let direct = self.direct(std::iter::once(class));
        if !self.evidence.others_doubted(class) {
            return direct.min(1.0);
        }
        let own = if negative > 0.0 { -ln_1m_exp(negative) } else { 0.0 };
        let others = self.doubt.without(own).max(0.0);
        (direct + self.normalised((self.least - negative) - others)).min(1.0)
    }

    /// `C sum_k e^{-w-_k} (e^{w+_k} - 1)`: what the evidence for these classes alone commits.
    fn direct(&self, classes: impl Iterator<Item = usize>) -> f64 {
        let (positive, negative) = (self.evidence.positive(), self.evidence.negative());
        classes
            .map(|class| {
                self.normalised(ln_exp_m1(positive[class]) - (negative[class] - self.least))
            })
            .collect::<Sum>()
            .value()
    }

    /// `C (1 - prod_k (1 - e^{-w-_k}))` over these classes: what the sets that hold one of them get
    /// from the evidence against the others.
    fn compatible_with(&self, classes: impl Iterator<Item = usize> + Clone) -> f64 {
        let (least, compatible) = compatible(self.evidence.negative(), classes);
        self.normalised(self.least - least) * compatible
    }

    /// `w+_k - w-_k`, up to the constant that [`normalised`](Self::normalised) leaves out.
    fn net(&self) -> impl Iterator<Item = f64> + Clone {
        self.weights().map(|(positive, negative)| positive - (negative - self.least))
    }

    /// `C e^{x - least}`.
    fn normalised(&self, x: f64) -> f64 {
        (x - self.shift).exp() / self.total
    }

    fn members(&self, set: impl IntoIterator<Item = usize>) -> Result<Vec<bool>> {
        let mut members = vec![false; self.evidence.classes()];
        for class in set {
            self.check(class)?;
            members[class] = true;
        }
        Ok(members)
    }

    fn check(&self, class: usize) -> Result<()> {
        check_index("class", class, self.evidence.classes())
    }
}

/// The least weight of some classes and `e^{least} (1 - prod_k (1 - e^{-w_k}))`, which lies between
/// 1 and their number; infinity and 0 if there are none or only masked ones.
fn compatible(negative: &[f64], classes: impl Iterator<Item = usize> + Clone) -> (f64, f64) {
    /// Above this weight the product is 1 minus the sum of the `e^{-w}` to the last digit, and
    /// they may be below the smallest number.
    const CERTAIN: f64 = 600.0;

    let least = classes.clone().map(|class| negative[class]).fold(f64::INFINITY, f64::min);
    let value = if least == 0.0 {
        1.0
    } else if least == f64::INFINITY {
        0.0
    } else if least > CERTAIN {
        classes.map(|class| (least - negative[class]).exp()).collect::<Sum>().value()
    } else {
        let doubt: Sum = classes.map(|class| -ln_1m_exp(negative[class])).collect();
        -(-doubt.value()).exp_m1() * least.exp()
    };
    (least, value)
}
