//! Sets of classes of a small frame, as bits of one word.

use std::fmt;

use crate::{Error, Result};

/// A set of classes, numbered from 0, out of a frame of at most 64.
///
/// The subsets `A` of the frame `Z` that a [`MassFunction`](crate::MassFunction) gives mass to.
/// The set does not know its frame: [`full`](Self::full) and [`complement`](Self::complement) are
/// told how many classes there are.
///
/// ```
/// use shafer::ClassSet;
///
/// let a = ClassSet::new([0, 2])?;
/// let b = a.complement(4)?;
/// assert_eq!(b.iter().collect::<Vec<_>>(), [1, 3]);
/// assert!(a.intersection(b).is_empty());
/// assert_eq!(a.union(b), ClassSet::full(4)?);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassSet(u64);

impl ClassSet {
    /// The largest frame that sets can be drawn from.
    ///
    /// ```
    /// assert_eq!(shafer::ClassSet::MAX_CLASSES, 64);
    /// ```
    pub const MAX_CLASSES: usize = u64::BITS as usize;

    /// The empty set, which never has mass.
    ///
    /// ```
    /// assert_eq!(shafer::ClassSet::EMPTY.len(), 0);
    /// ```
    pub const EMPTY: Self = Self(0);

    /// The set of the given classes; repeating one changes nothing.
    ///
    /// ```
    /// use shafer::{ClassSet, Error};
    ///
    /// assert_eq!(ClassSet::new([5, 1, 5])?.len(), 2);
    /// let error = ClassSet::new([1, 64]).unwrap_err();
    /// assert_eq!(error, Error::Index { what: "class", index: 64, len: 64 });
    /// # Ok::<(), Error>(())
    /// ```
    pub fn new(classes: impl IntoIterator<Item = usize>) -> Result<Self> {
        classes
            .into_iter()
            .try_fold(Self::EMPTY, |set, class| Ok(set.union(Self::singleton(class)?)))
    }

    /// The empty set; the same as [`EMPTY`](Self::EMPTY).
    ///
    /// ```
    /// assert!(shafer::ClassSet::empty().is_empty());
    /// ```
    pub const fn empty() -> Self {
        Self::EMPTY
    }

    /// The whole frame `Z` of `classes` classes.
    ///
    /// ```
    /// use shafer::ClassSet;
    ///
    /// assert_eq!(ClassSet::full(64)?.len(), 64);
    /// assert!(ClassSet::full(65).is_err());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub const fn full(classes: usize) -> Result<Self> {
        match classes {
            // To shift by the whole width is not defined.
            0 => Ok(Self::EMPTY),
            1..=Self::MAX_CLASSES => Ok(Self(u64::MAX >> (Self::MAX_CLASSES - classes))),
            _ => Err(Error::Index { what: "class", index: classes - 1, len: Self::MAX_CLASSES }),
        }
    }

    /// The set `{z_k}` of one class.
    ///
    /// ```
    /// use shafer::ClassSet;
    ///
    /// assert!(ClassSet::singleton(3)?.contains(3));
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub const fn singleton(class: usize) -> Result<Self> {
        if class >= Self::MAX_CLASSES {
            return Err(Error::Index { what: "class", index: class, len: Self::MAX_CLASSES });
        }
        Ok(Self(1 << class))
    }

    /// Whether `class` is in the set; false for a class that no frame has.
    ///
    /// ```
    /// use shafer::ClassSet;
    ///
    /// let set = ClassSet::new([0, 2])?;
    /// assert!(set.contains(2) && !set.contains(1) && !set.contains(1000));
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub const fn contains(self, class: usize) -> bool {
        class < Self::MAX_CLASSES && self.0 >> class & 1 == 1
    }

    /// Whether every class of this set is in `other`.
    ///
    /// ```
    /// use shafer::ClassSet;
    ///
    /// assert!(ClassSet::new([1])?.is_subset(ClassSet::new([0, 1])?));
    /// assert!(!ClassSet::new([2])?.is_subset(ClassSet::new([0, 1])?));
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub const fn is_subset(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// The classes in both sets.
    ///
    /// ```
    /// use shafer::ClassSet;
    ///
    /// let both = ClassSet::new([0, 1])?.intersection(ClassSet::new([1, 2])?);
    /// assert_eq!(both, ClassSet::singleton(1)?);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The classes in either set.
    ///
    /// ```
    /// use shafer::ClassSet;
    ///
    /// let either = ClassSet::singleton(0)?.union(ClassSet::singleton(1)?);
    /// assert_eq!(either, ClassSet::full(2)?);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The classes of a frame of `classes` classes that are not in the set.
    ///
    /// ```
    /// use shafer::ClassSet;
    ///
    /// assert_eq!(ClassSet::singleton(0)?.complement(3)?, ClassSet::new([1, 2])?);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn complement(self, classes: usize) -> Result<Self> {
        Ok(Self(Self::full(classes)?.0 & !self.0))
    }

    /// The number of classes in the set.
    ///
    /// ```
    /// assert_eq!(shafer::ClassSet::new([7, 9])?.len(), 2);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether the set has no class.
    ///
    /// ```
    /// assert!(!shafer::ClassSet::singleton(63)?.is_empty());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The classes in ascending order.
    ///
    /// ```
    /// assert!(shafer::ClassSet::new([63, 0])?.iter().eq([0, 63]));
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn iter(self) -> Classes {
        self.into_iter()
    }
}

impl IntoIterator for ClassSet {
    type Item = usize;
    type IntoIter = Classes;

    fn into_iter(self) -> Classes {
        Classes(self)
    }
}

/// The iterator over a [`ClassSet`]: its classes in ascending order.
#[derive(Clone, Debug)]
pub struct Classes(ClassSet);

impl Iterator for Classes {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let class = self.0.0.trailing_zeros() as usize;
        // Clears the lowest bit.
        self.0.0 &= self.0.0.wrapping_sub(1);
        (class < ClassSet::MAX_CLASSES).then_some(class)
    }
}

impl fmt::Debug for ClassSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn the_full_frame_has_its_classes_and_no_others() {
        for classes in 0..=ClassSet::MAX_CLASSES {
            let full = ClassSet::full(classes).unwrap();
            assert!(full.iter().eq(0..classes));
            assert_eq!(full.complement(classes).unwrap(), ClassSet::EMPTY);
        }
        assert!(ClassSet::full(usize::MAX).is_err());
    }

    #[test]
    fn prints_as_a_set() {
        assert_eq!(format!("{:?}", ClassSet::new([2, 0]).unwrap()), "{0, 2}");
    }
}
