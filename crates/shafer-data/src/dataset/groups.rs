//! Groups of classes: the values that an experiment conditions on.

use serde::Deserialize;

use crate::{Error, Result};

/// Which group each class belongs to, such as even and odd digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Groups {
    /// The names of the groups.
    pub names: Vec<String>,
    /// For each class, the index of its group.
    pub of_class: Vec<u8>,
}

impl Groups {
    /// The group of each label.
    ///
    /// ```
    /// let mnist = shafer_data::dataset::set("mnist")?;
    /// let groups = &mnist.images.as_ref().unwrap().groups;
    /// assert_eq!(groups.names, ["even", "odd"]);
    /// assert_eq!(groups.of_labels(&[7, 2, 1, 0])?, [1, 0, 1, 0]);
    /// assert!(groups.of_labels(&[10]).is_err());
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn of_labels(&self, labels: &[u8]) -> Result<Vec<u8>> {
        let group = |(i, &label): (usize, &u8)| {
            self.of_class.get(usize::from(label)).copied().ok_or_else(|| {
                let classes = self.of_class.len();
                let problem = format!("label {i} is {label}, but there are {classes} classes");
                Error::request(&self.names.join("/"), problem)
            })
        };
        labels.iter().enumerate().map(group).collect()
    }
}
