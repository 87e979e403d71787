//! Several independent categorical variables at once.

mod best;
mod scaled;

pub use best::BestJoints;

use scaled::Scaled;

use crate::error::{check_index, check_length};
use crate::normalise::{check_indices, normalised};
use crate::{Element, Error, Result};

/// The joint distribution of independent categorical variables: two of five classes each have 25
/// joint classes, eight of 32 have 10^12.
///
/// A joint class is one class of every variable, and its probability is the product
/// `p(z) = prod_i p_i(z_i)`. Nothing here enumerates the joint classes, so that their number does
/// not matter.
///
/// The support of a variable is what its row stores: the classes of positive probability of a
/// dense row, and all listed classes of a compressed one, even those whose value has underflowed
/// to 0. Each row is divided by its sum in double precision, so that rows rounded to f16 or bf16
/// are welcome.
///
/// ```
/// use shafer::Product;
///
/// let product = Product::dense(&[&[0.5, 0.25, 0.25], &[0.0, 0.75, 0.25]])?;
/// assert_eq!(product.variables(), 2);
/// assert_eq!(product.support_size(), 6);
/// assert_eq!(product.probability(&[0, 1])?, 0.375);
/// let best = product.best(2);
/// assert_eq!((best[0].classes.as_slice(), best[0].probability), ([0, 1].as_slice(), 0.375));
/// assert_eq!((best[1].classes.as_slice(), best[1].probability), ([1, 1].as_slice(), 0.1875));
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    /// Never empty.
    variables: Vec<Variable>,
}

/// One class of every variable, and its probability.
///
/// ```
/// use shafer::{Joint, Product};
///
/// let product = Product::dense(&[&[0.25, 0.75], &[0.5, 0.5]])?;
/// let best = Joint { classes: vec![1, 0], probability: 0.375 };
/// assert_eq!(product.iter_best().next(), Some(best));
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Joint {
    /// The class of each variable.
    pub classes: Vec<usize>,
    /// The product of their probabilities, as of [`Product::probability`].
    pub probability: f64,
}

#[derive(Clone, Debug, PartialEq)]
struct Variable {
    /// The number of classes, in the support or not.
    len: usize,
    /// The support in increasing order; never empty.
    classes: Vec<usize>,
    /// The probability of each class of the support.
    values: Vec<f64>,
    /// Positions of the classes of positive probability, the most probable first and equals in
    /// increasing order; never empty, since the values sum to 1.
    ranked: Vec<usize>,
    /// The first position of probability zero, if a compressed row lists any.
    first_zero: Option<usize>,
}

impl Variable {
    fn new(len: usize, classes: Vec<usize>, values: Vec<f64>) -> Self {
        let mut ranked: Vec<usize> = (0..values.len()).filter(|&at| values[at] > 0.0).collect();
        // Stable: equals stay in increasing order.
        ranked.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
        let first_zero = values.iter().position(|&p| p == 0.0);
        Self { len, classes, values, ranked, first_zero }
    }

    /// The probability of a class, or nothing outside of the support.
    fn value(&self, class: usize) -> Result<Option<f64>> {
        check_index("class", class, self.len)?;
        Ok(self.classes.binary_search(&class).ok().map(|at| self.values[at]))
    }
}

impl Product {
    /// The product of dense rows, one a variable; their lengths may differ.
    ///
    /// There must be at least one row, and each must be finite, not negative, and sum to 1 within
    /// 0.01.
    ///
    /// ```
    /// use shafer::Product;
    ///
    /// let product = Product::dense(&[&[0.5_f32, 0.5, 0.0][..], &[1.0]])?;
    /// assert_eq!(product.support_size(), 2);
    /// assert!(Product::dense(&[&[0.5, 0.4]]).is_err());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn dense<E: Element, S: AsRef<[E]>>(rows: &[S]) -> Result<Self> {
        let variable = |(row, values): (usize, &S)| {
            let values = normalised(values.as_ref(), "row", row)?;
            let len = values.len();
            let (classes, values) =
                values.into_iter().enumerate().filter(|(_, p)| *p > 0.0).unzip();
            Ok(Variable::new(len, classes, values))
        };
        Self::new(rows.iter().enumerate().map(variable).collect::<Result<_>>()?)
    }

    /// The product of compressed rows, one a variable: its number of classes, the classes of its
    /// support in increasing order, and their probabilities.
    ///
    /// The probabilities follow the rules of [`Product::dense`].
    ///
    /// ```
    /// use shafer::Product;
    ///
    /// let product = Product::csr(&[
    ///     (1000, &[7, 500], &[0.25, 0.75]),
    ///     (1000, &[3, 999], &[1.0, 0.0]),
    /// ])?;
    /// assert_eq!(product.support_size(), 4);
    /// assert_eq!(product.probability(&[500, 3])?, 0.75);
    /// assert!(product.contains(&[500, 999])?);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn csr<E: Element>(rows: &[(usize, &[u32], &[E])]) -> Result<Self> {
        let variable = |(row, &(len, indices, values)): (usize, &(usize, &[u32], &[E]))| {
            check_indices(indices, values.len(), row)?;
            if let Some(&last) = indices.last() {
                check_index("class", last as usize, len)?;
            }
            let classes = indices.iter().map(|&index| index as usize).collect();
            Ok(Variable::new(len, classes, normalised(values, "row", row)?))
        };
        Self::new(rows.iter().enumerate().map(variable).collect::<Result<_>>()?)
    }

    fn new(variables: Vec<Variable>) -> Result<Self> {
        if variables.is_empty() {
            return Err(Error::Empty { what: "rows" });
        }
        Ok(Self { variables })
    }

    /// The number of variables.
    ///
    /// ```
    /// assert_eq!(shafer::Product::dense(&[[0.5, 0.5]; 3])?.variables(), 3);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn variables(&self) -> usize {
        self.variables.len()
    }

    /// The number of joint classes in the support, `prod_i |supp p_i|`, or `u128::MAX` if there
    /// are more.
    ///
    /// ```
    /// use shafer::Product;
    ///
    /// assert_eq!(Product::dense(&[[0.5, 0.25, 0.25]; 4])?.support_size(), 81);
    /// assert_eq!(Product::dense(&[[0.5, 0.5]; 128])?.support_size(), u128::MAX);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn support_size(&self) -> u128 {
        let sizes = self.variables.iter().map(|variable| variable.classes.len() as u128);
        sizes.fold(1, u128::saturating_mul)
    }

    /// Whether a joint class is in the support: every one of its classes in that of its variable.
    ///
    /// Fails for the wrong number of classes and for a class that does not exist.
    ///
    /// ```
    /// let product = shafer::Product::dense(&[[0.5, 0.5, 0.0]; 2])?;
    /// assert!(product.contains(&[0, 1])?);
    /// assert!(!product.contains(&[0, 2])?);
    /// assert!(product.contains(&[0, 3]).is_err());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn contains(&self, classes: &[usize]) -> Result<bool> {
        Ok(self.values(classes)?.iter().all(Option::is_some))
    }

    /// The probability `prod_i p_i(z_i)` of a joint class; 0 outside of the support.
    ///
    /// The factors are always multiplied in the order of the variables and rounded to 53 bits
    /// each time; only the end result can underflow. Fails as [`Product::contains`] does.
    ///
    /// ```
    /// let product = shafer::Product::dense(&[[0.5, 0.25, 0.25, 0.0]; 3])?;
    /// assert_eq!(product.probability(&[0, 1, 2])?, 0.03125);
    /// assert_eq!(product.probability(&[0, 1, 3])?, 0.0);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn probability(&self, classes: &[usize]) -> Result<f64> {
        let values = self.values(classes)?;
        let positive = values.into_iter().map(|value| value.filter(|&p| p > 0.0));
        let factors: Option<Vec<f64>> = positive.collect();
        Ok(factors.map_or(0.0, |factors| Scaled::product(factors.into_iter()).to_f64()))
    }

    /// The logarithm `sum_i ln p_i(z_i)` of a joint probability, which does not underflow however
    /// many variables there are; negative infinity outside of the support.
    ///
    /// Fails as [`Product::contains`] does.
    ///
    /// ```
    /// let product = shafer::Product::dense(&vec![[0.5, 0.5]; 2000])?;
    /// let zeros = vec![0; 2000];
    /// assert_eq!(product.probability(&zeros)?, 0.0);
    /// assert!((product.ln_probability(&zeros)? + 2000.0 * 2.0_f64.ln()).abs() < 1e-9);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn ln_probability(&self, classes: &[usize]) -> Result<f64> {
        Ok(self.values(classes)?.into_iter().map(|value| value.unwrap_or(0.0).ln()).sum())
    }

    /// The `k` most probable joint classes of the support, or all if there are fewer, in the order
    /// of [`Product::iter_best`].
    ///
    /// Takes `O(k n (n + log k))` time and `O(k n)` memory for `n` variables, whatever the size of
    /// the support.
    ///
    /// ```
    /// // 10^12 joint classes; any of the first 256 takes one of the two best of each variable.
    /// let row: Vec<f64> = (0..32).map(|k| if k < 2 { 0.35 } else { 0.01 }).collect();
    /// let best = shafer::Product::dense(&vec![row; 8])?.best(257);
    /// assert_eq!(best[0].classes, [0; 8]);
    /// assert_eq!(best[255].classes, [1; 8]);
    /// assert!(best[256].probability < best[255].probability);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn best(&self, k: usize) -> Vec<Joint> {
        let mut best = self.iter_best();
        best.limit(k);
        best.take(k).collect()
    }

    /// All joint classes of the support from the most to the least probable, generated lazily;
    /// equal probabilities in lexicographic order of the classes.
    ///
    /// The probabilities compared are those of [`Product::probability`] before any underflow: the
    /// order is right even where [`Joint::probability`] itself becomes 0. If the probabilities of two
    /// classes of a variable differ by a few units in the last place only, rounding can make the
    /// products equal; then the more probable class may come first instead.
    ///
    /// ```
    /// let product = shafer::Product::dense(&[[0.5, 0.25, 0.25]; 2])?;
    /// let best: Vec<_> = product.iter_best().map(|joint| (joint.classes, joint.probability)).collect();
    /// assert_eq!(best.len(), 9);
    /// assert_eq!(best[0], (vec![0, 0], 0.25));
    /// // Four are equally probable.
    /// assert_eq!(best[1], (vec![0, 1], 0.125));
    /// assert_eq!(best[2], (vec![0, 2], 0.125));
    /// assert_eq!(best[3], (vec![1, 0], 0.125));
    /// assert_eq!(best[4], (vec![2, 0], 0.125));
    /// assert_eq!(best[5], (vec![1, 1], 0.0625));
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn iter_best(&self) -> BestJoints<'_> {
        BestJoints::new(self)
    }

    /// The probability of each class, checked.
    fn values(&self, classes: &[usize]) -> Result<Vec<Option<f64>>> {
        check_length("classes", self.variables.len(), classes.len())?;
        self.variables.iter().zip(classes).map(|(variable, &class)| variable.value(class)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All joint classes of the support, sorted by what the documentation says.
    fn enumerate(product: &Product) -> Vec<Joint> {
        let mut all = vec![Vec::new()];
        for variable in &product.variables {
            let extend = |classes: &Vec<usize>| {
                let classes = classes.clone();
                let extended = move |&class: &usize| [classes.as_slice(), &[class]].concat();
                variable.classes.iter().map(extended).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(extend).collect();
        }
        let mut all: Vec<Joint> = all
            .into_iter()
            .map(|classes| Joint { probability: product.probability(&classes).unwrap(), classes })
            .collect();
        // Already lexicographic, and the sort is stable.
        all.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        all
    }

    /// Rows of small whole weights: many ties, and zeros.
    fn weights() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(0_u8..4, 1..6)
            .prop_filter("a positive sum", |weights| weights.iter().any(|&weight| weight > 0))
            .prop_map(|weights| {
                let sum: f64 = weights.iter().copied().map(f64::from).sum();
                weights.iter().map(|&weight| f64::from(weight) / sum).collect()
            })
    }

    fn random() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(0.001..1.0, 1..6).prop_map(|weights| {
            let sum: f64 = weights.iter().sum();
            weights.iter().map(|weight| weight / sum).collect()
        })
    }

    proptest! {
        #[test]
        fn dense_rows_agree_with_enumeration(
            rows in prop::collection::vec(prop_oneof![weights(), random()], 1..5),
            k in 0_usize..700,
        ) {
            let product = Product::dense(&rows).unwrap();
            let expected = enumerate(&product);
            prop_assert_eq!(product.support_size(), expected.len() as u128);
            prop_assert_eq!(&product.iter_best().collect::<Vec<_>>(), &expected);
            prop_assert_eq!(&product.best(k), &expected[..k.min(expected.len())]);
        }

        #[test]
        fn compressed_rows_agree_with_enumeration(
            rows in prop::collection::vec(weights(), 1..5),
            k in 0_usize..700,
        ) {
            // Class 3 i + 1 for position i, zeros included.
            let indices: Vec<u32> = (0..5).map(|i| 3 * i + 1).collect();
            let rows: Vec<(usize, &[u32], &[f64])> =
                rows.iter().map(|row| (14, &indices[..row.len()], row.as_slice())).collect();
            let product = Product::csr(&rows).unwrap();
            let expected = enumerate(&product);
            prop_assert_eq!(product.support_size(), expected.len() as u128);
            prop_assert_eq!(&product.iter_best().collect::<Vec<_>>(), &expected);
            prop_assert_eq!(&product.best(k), &expected[..k.min(expected.len())]);
            for joint in &expected {
                prop_assert!(product.contains(&joint.classes).unwrap());
                let ln = product.ln_probability(&joint.classes).unwrap();
                prop_assert!(
                    ln == joint.probability.ln() || (ln - joint.probability.ln()).abs() < 1e-12
                );
            }
        }

        #[test]
        fn near_ties_lose_and_repeat_nothing(
            steps in prop::collection::vec(prop::collection::vec(0_u64..3, 4), 4),
            k in 0_usize..300,
        ) {
            // Probabilities a unit in the last place apart: products tie by rounding alone.
            let near = |step: &u64| f64::from_bits(0.25_f64.to_bits() + step);
            let rows: Vec<Vec<f64>> = steps.iter().map(|row| row.iter().map(near).collect()).collect();
            let product = Product::dense(&rows).unwrap();
            let all: Vec<Joint> = product.iter_best().collect();
            let expected = enumerate(&product);
            prop_assert!(all.windows(2).all(|pair| pair[0].probability >= pair[1].probability));
            let sorted = |joints: &[Joint]| {
                let mut classes: Vec<Vec<usize>> =
                    joints.iter().map(|joint| joint.classes.clone()).collect();
                classes.sort();
                classes
            };
            prop_assert_eq!(sorted(&all), sorted(&expected));
            prop_assert_eq!(&product.best(k), &all[..k.min(all.len())]);
        }

        #[test]
        fn scaled_numbers_round_trip(bits in 1_u64..0x3ff0_0000_0000_0000) {
            let value = f64::from_bits(bits);
            prop_assert_eq!(Scaled::new(value).to_f64(), value);
        }

        #[test]
        fn scaled_products_are_those_of_doubles(a in 1e-100..1.0, b in 1e-100..1.0, c in 1e-100..1.0) {
            prop_assert_eq!(Scaled::product([a, b, c].into_iter()).to_f64(), a * b * c);
        }
    }

    #[test]
    fn a_thousand_of_a_trillion() {
        let row = |i: usize| {
            let weights: Vec<f64> =
                (0..32).map(|k| f64::exp(((k * 7 + i) % 32) as f64 / 8.0)).collect();
            let sum: f64 = weights.iter().sum();
            weights.into_iter().map(|weight| (weight / sum) as f32).collect::<Vec<f32>>()
        };
        let rows: Vec<Vec<f32>> = (0..8).map(row).collect();
        let product = Product::dense(&rows).unwrap();
        assert_eq!(product.support_size(), 1 << 40);
        let best = product.best(1000);
        assert_eq!(best.len(), 1000);
        for pair in best.windows(2) {
            let ordered = pair[0].probability > pair[1].probability
                || (pair[0].probability == pair[1].probability
                    && pair[0].classes < pair[1].classes);
            assert!(ordered, "{pair:?}");
        }
        // Nothing outside of the list beats its end: try every change of one class of the best.
        let end = best[999].probability;
        let mut known: Vec<&[usize]> = best.iter().map(|joint| joint.classes.as_slice()).collect();
        known.sort();
        for joint in &best {
            for at in 0..8 {
                for class in 0..32 {
                    let mut classes = joint.classes.clone();
                    classes[at] = class;
                    let listed = known.binary_search(&classes.as_slice()).is_ok();
                    assert!(listed || product.probability(&classes).unwrap() <= end);
                }
            }
        }
    }

    #[test]
    fn a_uniform_trillion_is_lexicographic() {
        let product = Product::dense(&[[1.0 / 32.0; 32]; 8]).unwrap();
        for (i, joint) in product.best(2000).iter().enumerate() {
            assert_eq!(joint.classes, [0, 0, 0, 0, 0, i / 1024, i / 32 % 32, i % 32]);
        }
    }

    #[test]
    fn underflow_does_not_lose_the_order() {
        let product = Product::dense(&vec![[0.5, 0.25, 0.25]; 3000]).unwrap();
        let best = product.best(3);
        assert_eq!(best[0].probability, 0.0);
        assert!(best[0].classes.iter().all(|&class| class == 0));
        assert_eq!(best[1].classes.iter().sum::<usize>(), 1);
        assert_eq!(best[1].classes[2999], 1);
        assert_eq!(best[2].classes[2999], 2);
    }

    #[test]
    fn zeros_listed_in_huge_products_come_last() {
        let row: (usize, &[u32], &[f64]) = (9, &[1, 4, 8], &[0.0, 1.0, 0.0]);
        let product = Product::csr(&[row; 64]).unwrap();
        let best = product.best(3);
        assert_eq!(best[0], Joint { classes: vec![4; 64], probability: 1.0 });
        assert_eq!(best[1], Joint { classes: vec![1; 64], probability: 0.0 });
        assert_eq!(best[2].classes[63], 4);
    }

    #[cfg(feature = "half")]
    #[test]
    fn rounded_half_rows_are_normalised() {
        let product = Product::dense(&[[half::bf16::from_f64(1.0 / 3.0); 3]]).unwrap();
        assert!((product.probability(&[2]).unwrap() - 1.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn broken_rows_are_named() {
        let none: [[f64; 1]; 0] = [];
        assert_eq!(Product::dense(&none), Err(Error::Empty { what: "rows" }));
        let empty: [&[f64]; 2] = [&[1.0], &[]];
        assert_eq!(Product::dense(&empty), Err(Error::Empty { what: "row" }));
        let negative = Product::dense(&[[0.5, 0.5], [1.5, -0.5]]);
        assert!(matches!(negative, Err(Error::Value { row: 1, column: 1, .. })));
        assert!(matches!(Product::dense(&[[0.5, 0.4]]), Err(Error::Row { row: 0, .. })));
        let compressed = |len, indices: &[u32]| Product::csr(&[(len, indices, &[0.5, 0.5])]);
        assert!(matches!(compressed(5, &[3, 3]), Err(Error::Value { what: "index", .. })));
        assert!(matches!(compressed(5, &[3, 5]), Err(Error::Index { index: 5, len: 5, .. })));
        assert!(matches!(compressed(5, &[3]), Err(Error::Length { expected: 2, found: 1, .. })));
        let product = compressed(5, &[1, 3]).unwrap();
        assert!(matches!(product.probability(&[1, 3]), Err(Error::Length { .. })));
        assert!(matches!(product.contains(&[5]), Err(Error::Index { .. })));
        assert_eq!(product.ln_probability(&[2]).unwrap(), f64::NEG_INFINITY);
    }
}
