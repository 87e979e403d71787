//! A hint for rows of many classes, of which the paper's rule keeps too many.

/// The hint is for rows of at least this many classes.
const MANY: usize = 1000;

/// The hint is for rows with at least this many kept classes per effective class.
const FACTOR: f64 = 10.0;

const ALTERNATIVES: &str = "more rounds, min-p or entmax keep fewer";

/// A hint if the evidential method keeps many more classes than the effective number of classes: of
/// thousands of classes, about half lie above the mean of the row.
pub(crate) fn hint(classes: usize, kept: f64, effective: f64) -> Option<String> {
    (classes >= MANY && kept > FACTOR * effective).then(|| {
        format!(
            "evidential keeps {kept:.0} classes, but the effective number is {effective:.1}: most \
             kept classes are negligible, and {ALTERNATIVES}"
        )
    })
}

/// The same, if only the number of kept classes is known.
pub(crate) fn hint_by_size(classes: usize, kept: f64) -> Option<String> {
    (classes >= MANY && kept > classes as f64 / FACTOR).then(|| {
        format!(
            "of {classes} classes, most kept ones may be negligible; `shafer compare` shows by how \
             much; {ALTERNATIVES}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_many_classes_of_which_most_are_negligible() {
        assert!(hint(8000, 4000.0, 12.0).is_some_and(|hint| hint.contains("keeps 4000 classes")));
        // Few classes; and many that are all probable.
        assert_eq!((hint(999, 500.0, 1.0), hint(8000, 4000.0, 3900.0)), (None, None));
        assert!(hint_by_size(8000, 4000.0).is_some());
        assert_eq!((hint_by_size(8000, 3.0), hint_by_size(10, 5.0)), (None, None));
    }
}
