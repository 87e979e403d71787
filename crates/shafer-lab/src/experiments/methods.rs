//! The methods that experiments compare.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::method::{Choice, EVIDENTIAL, SOFTMAX, SPARSEMAX};

/// A method with its title: the name, with the parameter where it has one.
pub(crate) type Method = (String, shafer::Method);

/// The methods that results have, each with its default parameter. Top-n-sigma and
/// min-probability are newer than the results.
pub(crate) fn all(classes: usize) -> Result<Vec<Method>> {
    let methods = Choice::all().into_iter().map(|choice| choice.method(classes));
    let known = |method: &Result<Method>| {
        let newer = ["top-n-sigma", "min-probability"];
        !method.as_ref().is_ok_and(|(_, method)| newer.contains(&method.name()))
    };
    methods.filter(known).collect()
}

/// A method in results: its name as a key of tables, and its title.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MethodName {
    pub(crate) name: String,
    pub(crate) title: String,
}

impl MethodName {
    pub(crate) fn of((title, method): &Method) -> Self {
        Self { name: method.name().to_owned(), title: title.clone() }
    }
}

/// The paper's three methods, then the other projections onto the simplex, then the cut-offs: one plot each, as more
/// than four curves with bands cannot be told apart. Evidential is the last of each.
pub(crate) fn groups(methods: &[MethodName]) -> [Vec<&MethodName>; 3] {
    let ours = methods.iter().find(|method| method.name == EVIDENTIAL);
    let mut groups = [const { Vec::new() }; 3];
    for method in methods.iter().filter(|method| method.name != EVIDENTIAL) {
        let group = match method.name.as_str() {
            SOFTMAX | SPARSEMAX => 0,
            "sparsegen-lin" | "sparsegen-hg" | "entmax" => 1,
            _ => 2,
        };
        groups[group].push(method);
    }
    for group in groups.iter_mut().filter(|group| !group.is_empty()) {
        group.extend(ours);
    }
    groups
}
