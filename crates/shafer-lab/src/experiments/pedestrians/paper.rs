//! Facts of the paper: table 2 and section 3.2.

use crate::method::{EVIDENTIAL, SOFTMAX, SPARSEMAX};

/// The order of the columns.
pub(crate) const METHODS: [&str; 3] = [SOFTMAX, SPARSEMAX, EVIDENTIAL];

/// Mean and error, for each method.
type Row = [(f64, f64); 3];

/// NLL, ADE and FDE of paths drawn from each distribution.
pub(crate) const DIRECT: [Row; 3] = [
    [(4.698, 0.443), (4.698, 0.443), (4.686, 0.453)],
    [(0.558, 0.001), (0.558, 0.001), (0.559, 0.001)],
    [(1.141, 0.002), (1.141, 0.002), (1.142, 0.002)],
];

/// The same, best of the five most likely joint classes.
pub(crate) const TOP: [Row; 3] = [
    [(3.951, 0.425), (4.360, 0.422), (3.862, 0.419)],
    [(0.376, 0.021), (0.397, 0.021), (0.376, 0.021)],
    [(0.757, 0.049), (0.802, 0.051), (0.753, 0.050)],
];

/// The fewest and the most joint classes that evidential keeps of 25.
pub(crate) const KEPT: [usize; 2] = [2, 12];
/// The most frequent number of them, and its share.
pub(crate) const KEPT_MOST_OFTEN: (usize, f64) = (6, 0.517);
