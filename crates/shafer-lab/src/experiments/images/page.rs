//! The page of the results.

use anyhow::Result;
use askama::Template;

use super::claims::{self, Answer, Verdict};
use super::paper::{self, DataSet};
use super::results::{ImageResults, TargetFrom, Training};
use super::{figures, tables, text};
use crate::drawing::Figure;
use crate::experiments::report::{Made, Report};
use crate::page::Table;
use crate::page::figures::{document, figure_sections};

#[derive(Template)]
#[template(path = "experiments/images/page.html")]
struct Page<'a> {
    title: &'a str,
    results: &'a ImageResults,
    notes: Vec<String>,
    claims: Vec<Answer>,
    values: Vec<Table>,
    improvements: Vec<Table>,
    /// Markup.
    figures: String,
    collapsed: String,
    diverged: String,
    trainings: Table,
    made: Made<'a>,
}

impl Report for ImageResults {
    fn name(&self) -> &str {
        &self.data_set
    }

    fn summary(&self) -> String {
        text::summary(self)
    }

    fn figures(&self) -> Vec<Figure> {
        figures::all(self)
    }

    fn page(&self, figures: &[Figure]) -> Result<String> {
        let Self { revision, machine, wall_seconds, data_set, config, .. } = self;
        let title = &format!("{}: the paper's experiment and ours", paper::title(&self.data_set));
        let page = Page {
            title,
            results: self,
            notes: self.notes(),
            claims: claims::answers(self),
            values: tables::values(self),
            improvements: tables::improvements(self),
            figures: figure_html(self, figures)?,
            collapsed: self.seeds_with(|training| training.collapsed && !training.diverged),
            diverged: self.seeds_with(|training| training.diverged),
            trainings: tables::trainings(self),
            made: Made::new(revision, machine, *wall_seconds, data_set, config)?,
        };
        document("report", title, &page.render()?)
    }
}

/// A section for each figure.
pub(crate) fn figure_html(results: &ImageResults, figures: &[Figure]) -> Result<String> {
    let data_set = DataSet::named(&results.data_set);
    figure_sections(&results.data_set, figures, |name| data_set?.figure(name))
}

impl ImageResults {
    /// Caveats of the numbers.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.collapsed > 0 {
            notes.push(format!(
                "Posterior collapse in {} of {} seeds. Numbers are over all seeds unless they say \
                 otherwise.",
                self.collapsed, self.seeds
            ));
        }
        if self.diverged > 0 {
            notes.push(format!(
                "{} of {} seeds diverged. They have no distribution to measure and are in no mean.",
                self.diverged, self.seeds
            ));
        }
        let mut distances = self.final_values.bhattacharyya.values().flat_map(|row| row.values());
        if distances.any(|summary| summary.infinite > 0) {
            notes.push(
                "The Bhattacharyya distance of a distribution without a class of the target is \
                 infinite. Means are over the finite distances; +n∞ counts the others."
                    .to_owned(),
            );
        }
        let paper = DataSet::named(&self.data_set).map(DataSet::seeds);
        if let Some(paper) = paper.filter(|paper| *paper > self.seeds) {
            notes.push(format!("The paper has {paper} seeds, this run {}.", self.seeds));
        }
        notes
    }

    /// The seeds of some trainings, with their fractions.
    fn seeds_with(&self, condition: fn(&Training) -> bool) -> String {
        let seeds = self.trainings.iter().filter(|training| condition(training));
        let seeds: Vec<String> = seeds
            .map(|Training { seed, fraction, .. }| {
                if *fraction < 1.0 {
                    format!("{seed} (fraction {fraction})")
                } else {
                    seed.to_string()
                }
            })
            .collect();
        if seeds.is_empty() { "none".to_owned() } else { seeds.join(", ") }
    }
}
