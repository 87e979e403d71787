//! The page of the results.

use anyhow::Result;
use askama::Template;

use super::results::{ByMethod, VqVaeResults};
use super::{figures, paper, text};
use crate::drawing::Figure;
use crate::experiments::report::{Made, Report, Results as _};
use crate::page::figures::{document, figure_sections};
use crate::page::{Cell, Table};

#[derive(Template)]
#[template(path = "experiments/vqvae/page.html")]
struct Page<'a> {
    title: &'a str,
    results: &'a VqVaeResults,
    notes: Vec<String>,
    judged: Table,
    kept: Table,
    /// Markup.
    figures: String,
    made: Made<'a>,
}

impl Report for VqVaeResults {
    fn name(&self) -> &str {
        Self::KIND
    }

    fn summary(&self) -> String {
        text::for_terminal(self)
    }

    fn figures(&self) -> Vec<Figure> {
        figures::all(self)
    }

    fn page(&self, figures: &[Figure]) -> Result<String> {
        let Self { revision, machine, wall_seconds, data_set, config, .. } = self;
        let title = format!("VQ-VAE on {}: the paper's experiment and ours", self.data_set);
        let page = Page {
            title: &title,
            results: self,
            notes: text::notes(self),
            judged: self.judged(),
            kept: self.kept_table(),
            figures: figure_sections(Self::KIND, figures, |_| None)?,
            made: Made::new(revision, machine, *wall_seconds, data_set, config)?,
        };
        document("report", &title, &page.render()?)
    }
}

impl VqVaeResults {
    fn judged(&self) -> Table {
        let head = [
            "",
            "accuracy, %",
            "top 5, %",
            "the paper: accuracy, top 5",
            "diversity",
            "Fréchet distance",
        ];
        let mut table = Table::new("values", "Sampled and real images").head(head);
        for (key, title) in text::rows(self) {
            let percent = |table: &ByMethod<f64>| table.get(key).map(|share| 100.0 * share);
            let share = |table, errors| Cell::mean(percent(table), percent(errors), 1);
            let number = |table: &ByMethod<f64>| Cell::decimal(table.get(key).copied(), 3);
            let theirs = paper::numbers(&self.data_set, key)
                .map_or_else(none, |paper| format!("{:.1}, {:.1}", paper.accuracy, paper.top5));
            let cells = [
                share(&self.accuracy, &self.accuracy_se),
                share(&self.top5, &self.top5_se),
                theirs.into(),
                number(&self.diversity),
                number(&self.frechet),
            ];
            table.row(title, cells);
        }
        table
    }

    fn kept_table(&self) -> Table {
        let head = [
            "",
            "kept, mean",
            "median",
            "99%",
            "largest",
            "dropped, %",
            "by the largest, %",
            "the paper, %",
            "kept of those in use, %",
            "largest of those, %",
            "mass",
            "missed",
        ];
        let mut table = Table::new("values", "Kept codes of held-out images").head(head);
        for method in &self.methods {
            let Some(kept) = self.kept.get(&method.name) else { continue };
            let theirs = paper::numbers(&self.data_set, &method.name)
                .and_then(|paper| paper.reduction)
                .map_or_else(none, |reduction| format!("{reduction:.0}"));
            let cells = [
                Cell::decimal(Some(kept.mean), 1),
                Cell::number(kept.median),
                Cell::number(kept.p99),
                Cell::number(kept.max),
                text::percent(kept.reduction_mean).into(),
                text::percent(kept.reduction_max).into(),
                theirs.into(),
                text::percent(kept.of_used_mean).into(),
                text::percent(kept.of_used_max).into(),
                Cell::decimal(Some(kept.mass), 4),
                Cell::decimal(Some(kept.missed), 4),
            ];
            table.row(&method.title, cells);
        }
        table
    }
}

fn none() -> String {
    "–".to_owned()
}
