//! When the paper's rule keeps more than anybody wants.

/// From how many classes on the hint is given.
const MANY: usize = 1000;

/// By how much the kept classes must outnumber the effective ones.
const FACTOR: f64 = 10.0;

const ALTERNATIVES: &str = "more rounds, min-p or entmax keep fewer";

/// Says so if the evidential method keeps many more classes than the effective number of classes of its
/// distribution: at thousands of classes, about half of a row lies above its mean.
pub(crate) fn hint(classes: usize, kept: f64, effective: f64) -> Option<String> {
    (classes >= MANY && kept > FACTOR * effective).then(|| {
        format!(
            "evidential keeps {kept:.0} classes, but the effective number is {effective:.1}: most \
             kept classes are negligible, and {ALTERNATIVES}"
        )
    })
}

/// The same where only the number of kept classes is known.
pub(crate) fn hint_by_size(classes: usize, kept: f64) -> Option<String> {
    (classes >= MANY && kept > classes as f64 / FACTOR).then(|| {
        format!(
            "with {classes} classes, most kept ones may be negligible: `shafer compare` tells; \
             {ALTERNATIVES}"
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
