//! Selection of the columns of a table.

use std::collections::HashMap;
use std::fmt;

use crate::entry::several;
use crate::npy::shortened;
use crate::{Delimiter, Error, Result};

/// Options for reading a table: the delimiter of a text, and the columns to read.
///
/// A column is selected by its name, by an inclusive range `first..last`, or by a pattern in which `*`
/// matches any text. The columns of a text without a header are named `0`, `1` and so on.
///
/// ```
/// use shafer_data::{Location, TableOptions, Values, open_with};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("logits.csv");
/// std::fs::write(&path, "lat;logit_0;logit_1\n52.5;1;2\n")?;
/// let location = Location { path: Some(path), name: None };
/// assert!(open_with(&location, &TableOptions::default()).is_err());
/// let options = TableOptions { exclude: vec!["lat".to_owned()], ..TableOptions::default() };
/// let mut reader = open_with(&location, &options)?;
/// assert_eq!(reader.columns().unwrap().taken, ["logit_0", "logit_1"]);
/// let mut block = Values::default();
/// reader.read(100, &mut block)?;
/// assert_eq!(block, Values::F64(vec![1.0, 2.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// The delimiter of a text. `None` recognises it.
    pub delimiter: Option<Delimiter>,
    /// The columns to read, in this order. If empty, all that can be logits.
    pub columns: Vec<String>,
    /// The columns to exclude.
    pub exclude: Vec<String>,
}

/// The columns that were selected, and those that were not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The names of the selected columns, in the order of the classes.
    pub taken: Vec<String>,
    /// The names of the other columns.
    pub left_out: Vec<String>,
    /// Whether a single column of lists is selected.
    pub lists: bool,
}

/// `logit_0 .. logit_9 (10), left out: id, time`.
impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.taken[..] {
            [only] if self.lists => write!(f, "{} (lists)", shown(only))?,
            names => f.write_str(&span(names))?,
        }
        if !self.left_out.is_empty() {
            write!(f, ", left out: {}", several(&self.left_out, |name| shown(name)))?;
        }
        Ok(())
    }
}

/// A name for display. The name of an index column can be empty.
fn shown(name: &str) -> String {
    if name.is_empty() { "``".to_owned() } else { shortened(name) }
}

/// A list of names, abbreviated if it is long.
fn span<S: AsRef<str>>(names: &[S]) -> String {
    match names {
        [first, .., last] if names.len() > 4 => {
            format!("{} .. {} ({})", shown(first.as_ref()), shown(last.as_ref()), names.len())
        }
        names => names.iter().map(|name| shown(name.as_ref())).collect::<Vec<_>>().join(", "),
    }
}

impl TableOptions {
    /// Whether columns are selected or excluded.
    pub(crate) fn choose(&self) -> bool {
        !self.columns.is_empty() || !self.exclude.is_empty()
    }

    /// The positions of the selected columns.
    pub(crate) fn positions<S: AsRef<str>>(&self, label: &str, names: &[S]) -> Result<Vec<usize>> {
        let mut wanted = vec![true; names.len()];
        for pattern in &self.exclude {
            for i in find(label, names, pattern)? {
                wanted[i] = false;
            }
        }
        let mut positions = Vec::new();
        let mut take = |i: usize| {
            // Each column once, however often it was selected.
            if std::mem::take(&mut wanted[i]) {
                positions.push(i);
            }
        };
        for pattern in &self.columns {
            find(label, names, pattern)?.into_iter().for_each(&mut take);
        }
        if self.columns.is_empty() {
            (0..names.len()).for_each(take);
        }
        if positions.is_empty() {
            let problem = format!("no column remains of {}", listing(names));
            return Err(Error::request(label, problem));
        }
        Ok(positions)
    }
}

/// The positions of the columns that a name, a range or a pattern matches.
fn find<S: AsRef<str>>(label: &str, names: &[S], pattern: &str) -> Result<Vec<usize>> {
    let named = |wanted: &str| -> Vec<usize> {
        (0..names.len()).filter(|&i| names[i].as_ref() == wanted).collect()
    };
    let mut found = named(pattern);
    if found.is_empty() && pattern.contains('*') {
        found = (0..names.len()).filter(|&i| fits(names[i].as_ref(), pattern)).collect();
    }
    if let (true, Some((first, last))) = (found.is_empty(), pattern.split_once(".."))
        && let ([first, ..], [.., last]) = (&named(first)[..], &named(last)[..])
    {
        found = (*first..=*last).collect();
    }
    if found.is_empty() {
        let (pattern, held) = (shortened(pattern), listing(names));
        return Err(Error::request(label, format!("has no column `{pattern}`; it holds {held}")));
    }
    Ok(found)
}

/// Whether a name matches a pattern, in which `*` matches any text.
fn fits(name: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(end)
}

fn listing<S: AsRef<str>>(names: &[S]) -> String {
    several(names, |name| format!("`{}`", shortened(name.as_ref())))
}

/// Names of columns that are not logits.
const OTHERS: [&str; 16] = [
    "",
    "id",
    "index",
    "row",
    "sample",
    "frame",
    "time",
    "timestamp",
    "date",
    "lat",
    "lon",
    "latitude",
    "longitude",
    "label",
    "target",
    "y_true",
];

/// Names that programs give to an index column.
pub(crate) fn names_index(name: &str) -> bool {
    ["", "id", "index", "unnamed: 0"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The positions of the names that share a prefix followed by a number, if they are the majority.
pub(crate) fn family<'a>(names: &[&'a str]) -> Option<(&'a str, Vec<usize>)> {
    let mut stems: HashMap<&str, Vec<usize>> = HashMap::new();
    for (i, name) in names.iter().enumerate() {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        if stem.len() < name.len() {
            stems.entry(stem).or_default().push(i);
        }
    }
    // On a tie, the first prefix.
    let most = stems
        .into_iter()
        .max_by_key(|(_, members)| (members.len(), std::cmp::Reverse(members[0])))?;
    (most.1.len() > 1 && 2 * most.1.len() >= names.len()).then_some(most)
}

/// The reason why these columns cannot all be logits, if there is one.
pub(crate) fn implausible(names: &[&str]) -> Option<String> {
    let odd: Vec<&str> = match family(names) {
        Some((stem, members)) if members.len() < names.len() => {
            let mut member = vec![false; names.len()];
            for &i in &members {
                member[i] = true;
            }
            let others: Vec<&str> =
                (0..names.len()).filter(|&i| !member[i]).map(|i| names[i]).collect();
            let family: Vec<&str> = members.iter().map(|&i| names[i]).collect();
            let how = if others.iter().any(|name| name.starts_with(stem)) {
                format!(
                    "--columns '{}..{}'",
                    shortened(family[0]),
                    shortened(family[family.len() - 1])
                )
            } else {
                format!("--columns '{}*'", shortened(stem))
            };
            let (others, family) = (listing(&others), span(&family));
            return Some(format!(
                "has {others} beside {family}; say which columns are logits, as in {how}, or \
                 --exclude the others"
            ));
        }
        Some(_) => return None,
        None => {
            let other = |name: &&&str| OTHERS.iter().any(|known| name.eq_ignore_ascii_case(known));
            names.iter().filter(other).copied().collect()
        }
    };
    (!odd.is_empty()).then(|| {
        format!(
            "has a column {}, which does not look like a class; say which columns are logits with \
             --columns, or leave it out with --exclude",
            listing(&odd)
        )
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const NAMES: [&str; 6] = ["id", "logit_0", "logit_1", "logit_2", "a*b", "lat"];

    fn positions(columns: &[&str], exclude: &[&str]) -> Result<Vec<usize>> {
        let texts = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let (columns, exclude) = (texts(columns), texts(exclude));
        TableOptions { columns, exclude, ..TableOptions::default() }.positions("t", &NAMES)
    }

    #[test]
    fn names_ranges_and_patterns() {
        assert_eq!(positions(&["lat", "logit_0..logit_2"], &[]).unwrap(), [5, 1, 2, 3]);
        assert_eq!(positions(&["logit_1", "logit_*"], &[]).unwrap(), [2, 1, 3]);
        assert_eq!(positions(&["l*t*"], &["lat"]).unwrap(), [1, 2, 3]);
        assert_eq!(positions(&["a*b"], &[]).unwrap(), [4]);
        assert_eq!(positions(&[], &["id", "*a*"]).unwrap(), [1, 2, 3]);
        assert!(!fits("aba", "ab*ba") && fits("abba", "ab*ba") && fits("a", "**"));
        let error = positions(&["logit_9"], &[]).unwrap_err().to_string();
        assert_eq!(
            error,
            "t: has no column `logit_9`; it holds `id`, `logit_0`, `logit_1`, `logit_2`, `a*b`, `lat`"
        );
        assert!(positions(&["logit_2..logit_0"], &[]).is_err());
        assert!(positions(&[], &["absent"]).is_err());
        let error = positions(&["id"], &["id"]).unwrap_err().to_string();
        assert!(error.starts_with("t: no column remains of `id`"), "{error}");
    }

    #[test]
    fn what_does_not_belong() {
        assert_eq!(implausible(&["cat", "dog", "bird"]), None);
        assert_eq!(implausible(&["class 0", "class 1"]), None);
        assert_eq!(implausible(&["0", "1", "2"]), None);
        // No prefix has a majority.
        assert_eq!(implausible(&["boeing737", "boeing747", "a320", "a380", "dc10"]), None);
        let found = implausible(&["lat", "l0", "l1", "lon"]).unwrap();
        assert_eq!(
            found,
            "has `lat`, `lon` beside l0, l1; say which columns are logits, as in --columns 'l0..l1', or \
             --exclude the others"
        );
        assert!(implausible(&["x0", "x1", "l0", "l1"]).is_some());
        assert!(implausible(&["row", "class", "probability"]).unwrap().contains("`row`"));
    }

    #[test]
    fn taken_columns_are_said() {
        let columns = |taken: &[&str], lists| Columns {
            taken: taken.iter().map(|&name| name.to_owned()).collect(),
            left_out: vec!["id".to_owned(), String::new()],
            lists,
        };
        assert_eq!(
            columns(&["l0", "l1", "l2", "l3", "l4"], false).to_string(),
            "l0 .. l4 (5), left out: id, ``"
        );
        assert_eq!(columns(&["a", "b"], false).to_string(), "a, b, left out: id, ``");
        assert_eq!(columns(&["logits"], true).to_string(), "logits (lists), left out: id, ``");
    }
}
