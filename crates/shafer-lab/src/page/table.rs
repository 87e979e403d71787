//! Tables of numbers.

use std::fmt::{Display, Write as _};

use askama::Template;

use super::escaped;
use crate::drawing::colour::of_method;

/// A table that scrolls sideways where the screen is narrower.
#[derive(Template)]
#[template(path = "page/table.html")]
pub(crate) struct Table {
    class: &'static str,
    caption: String,
    head: Vec<Vec<Heading>>,
    rows: Vec<(Cell, Vec<Cell>)>,
}

/// The heading of one or more columns.
pub(crate) struct Heading {
    content: Cell,
    columns: usize,
    rows: usize,
}

/// The markup of a cell.
pub(crate) struct Cell(String);

impl Table {
    pub(crate) fn new(class: &'static str, caption: impl Into<String>) -> Self {
        Self { class, caption: caption.into(), head: Vec::new(), rows: Vec::new() }
    }

    /// Adds a row of headings.
    pub(crate) fn head(mut self, headings: impl IntoIterator<Item = impl Into<Heading>>) -> Self {
        self.head.push(headings.into_iter().map(Into::into).collect());
        self
    }

    pub(crate) fn row(&mut self, heading: impl Into<Cell>, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push((heading.into(), cells.into_iter().collect()));
    }
}

impl Heading {
    /// Spans columns.
    pub(crate) fn over(columns: usize, text: impl Into<Cell>) -> Self {
        Self { content: text.into(), columns, rows: 1 }
    }

    /// Spans two rows of headings.
    pub(crate) fn tall(text: impl Into<Cell>) -> Self {
        Self { content: text.into(), columns: 1, rows: 2 }
    }
}

impl<T: Into<Cell>> From<T> for Heading {
    fn from(text: T) -> Self {
        Self::over(1, text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self(escaped(text))
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl Cell {
    pub(crate) fn number(number: impl Display) -> Self {
        number.to_string().into()
    }

    /// With this number of decimals; a dash if it is missing.
    pub(crate) fn decimal(number: Option<f64>, decimals: usize) -> Self {
        number.map_or_else(|| "–".to_owned(), |x| format!("{x:.decimals$}")).into()
    }

    /// A mean with its standard error.
    pub(crate) fn mean(mean: Option<f64>, se: Option<f64>, decimals: usize) -> Self {
        let Self(mut html) = Self::decimal(mean, decimals);
        if let Some(se) = se {
            let _ = write!(html, " <small>± {se:.decimals$}</small>");
        }
        Self(html)
    }

    /// Adds the number of infinite values.
    pub(crate) fn infinite(mut self, count: usize) -> Self {
        if count > 0 {
            let _ = write!(self.0, r#" <span class="infinite">+{count}∞</span>"#);
        }
        self
    }

    pub(crate) fn bold_if(self, best: bool) -> Self {
        if best { Self(format!("<b>{}</b>", self.0)) } else { self }
    }

    /// A method with its colour.
    pub(crate) fn method(title: &str) -> Self {
        Self(format!(r#"<i style="background:{}"></i>{}"#, of_method(title), escaped(title)))
    }

    /// The state of a training.
    pub(crate) fn state(diverged: bool, collapsed: bool) -> Self {
        let failed = |state| Self(format!(r#"<span class="fails">{state}</span>"#));
        match (diverged, collapsed) {
            (true, _) => failed("diverged"),
            (_, true) => failed("collapsed"),
            _ => "trained".into(),
        }
    }
}

/// Whether a mean is the lowest of several when all are rounded to these decimals.
pub(crate) fn is_lowest(
    mean: Option<f64>,
    all: impl Iterator<Item = f64>,
    decimals: usize,
) -> bool {
    let shown = |mean: f64| format!("{mean:.decimals$}");
    mean.is_some() && mean.map(shown) == all.min_by(f64::total_cmp).map(shown)
}
