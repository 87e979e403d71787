//! `shafer demo`: shows the method on trained networks that are built into the program.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use askama::Template;
use serde::Serialize;

use crate::atomic;
use crate::drawing::{Figure, write_figures};
use crate::experiments::images::{self, ImageResults, QueryBars, title};
use crate::experiments::pedestrians::{Exemplar, crossing, paths};
use crate::method::{EVIDENTIAL, SOFTMAX, SPARSEMAX};
use crate::page::escaped;
use crate::page::figures::{document, figure_sections};
use crate::terminal::{Colours, distributions};

/// The number of samples in the paper's figure.
const SAMPLES: usize = 25;
const TITLE: &str = "Sparse without losing modes";
const METHODS: [&str; 3] = [SOFTMAX, SPARSEMAX, EVIDENTIAL];

#[derive(Template)]
#[template(path = "demo/page.html")]
struct Page<'a> {
    title: &'a str,
    claim: &'a str,
    /// Markup.
    sections: &'a str,
}

/// The results of the demo.
#[derive(Serialize)]
pub(crate) struct Demo {
    pub(crate) report: PathBuf,
    pub(crate) figures: Vec<PathBuf>,
    pub(crate) networks: Vec<Network>,
    /// Synthetic pedestrians with their predictions.
    pub(crate) pedestrians: Vec<Exemplar>,
}

/// The results of one network.
#[derive(Serialize)]
pub(crate) struct Network {
    data_set: String,
    queries: Vec<String>,
    exemplar: images::Exemplar,
}

/// Evaluates the networks and writes the report into a folder.
pub(crate) fn demo(out: &Path) -> Result<Demo> {
    let results = images::demo_results(SAMPLES)?;
    let figures: Vec<(&ImageResults, Vec<Figure>)> =
        results.iter().map(|results| (results, images::of_exemplar(results))).collect();
    let mut files = Vec::new();
    let mut sections = String::new();
    for (results, figures) in &figures {
        files.extend(write_figures(out, figures, &format!("{}-", results.data_set))?);
        let title = title(&results.data_set);
        let _ = write!(
            sections,
            "<section class=\"set\"><h2>{}: {}</h2>{}</section>\n{}",
            escaped(title),
            escaped(&results.queries.join(" or ")),
            errors_table(results),
            images::figure_html(results, figures)?
        );
    }
    let claim = claim(&results);
    let pedestrians = crossing()?;
    let note =
        "Six synthetic pedestrians with crossing paths; the network was trained on real ones.";
    let figure: Vec<Figure> = paths(&pedestrians, note).into_iter().collect();
    files.extend(write_figures(out, &figure, "pedestrians-")?);
    let _ = write!(
        sections,
        "<section class=\"set\"><h2>Pedestrians: where they go</h2></section>\n{}",
        figure_sections("pedestrians", &figure, |_| None)?
    );
    let body = Page { title: TITLE, claim: &claim, sections: &sections }.render()?;
    let page = document("demo", TITLE, &body)?;
    let report = out.join("report.html");
    atomic::write(&report, page.as_bytes())?;
    let networks = results
        .into_iter()
        .map(|results| {
            let exemplar = results.exemplar.context("a network without images")?;
            Ok(Network { data_set: results.data_set, queries: results.queries, exemplar })
        })
        .collect::<Result<_>>()?;
    Ok(Demo { report, figures: files, networks, pedestrians })
}

/// The target classes that a method drops.
fn missed(bars: &QueryBars, method: &str) -> Vec<usize> {
    let Some(found) = bars.methods.get(method) else { return Vec::new() };
    let pairs = bars.target.iter().zip(&found.probabilities).enumerate();
    pairs.filter(|(_, (target, p))| **target > 0.0 && **p == 0.0).map(|(class, _)| class).collect()
}

/// Whether a method keeps exactly the target classes.
fn is_exact(bars: &QueryBars, method: &str) -> bool {
    bars.methods.get(method).is_some_and(|found| {
        bars.target
            .iter()
            .zip(&found.probabilities)
            .all(|(target, p)| (*target > 0.0) == (*p > 0.0))
    })
}

fn numbers(classes: &[usize]) -> String {
    if classes.is_empty() {
        return "none".to_owned();
    }
    classes.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// The sentence above the panels, with counts over all of them.
fn claim(results: &[ImageResults]) -> String {
    let panels: Vec<&QueryBars> = results
        .iter()
        .filter_map(|results| results.exemplar.as_ref())
        .flat_map(|exemplar| exemplar.queries.values())
        .collect();
    let exact = |method| panels.iter().filter(|bars| is_exact(bars, method)).count();
    let lossy = |method| panels.iter().filter(|bars| !missed(bars, method).is_empty()).count();
    format!(
        "In {1} of {0} panels, {EVIDENTIAL} keeps exactly the target classes; {SPARSEMAX} in {2}. \
         Evidential misses a target class in {3} panels, {SPARSEMAX} in {4}.",
        panels.len(),
        exact(EVIDENTIAL),
        exact(SPARSEMAX),
        lossy(EVIDENTIAL),
        lossy(SPARSEMAX)
    )
}

/// Wrong samples and missed target classes, by query and method.
fn errors_table(results: &ImageResults) -> String {
    let mut table = format!(
        "<table><thead><tr><th>query and method</th><th>wrong of {SAMPLES} samples</th>\
         <th>target classes missed</th></tr></thead><tbody>"
    );
    let latents = results.exemplar.as_ref().map_or(&[][..], |exemplar| &exemplar.latents);
    // The figure shows the label of a class, not its index.
    let name = |class: &usize| match latents.get(*class).and_then(|latent| latent.judged.as_ref()) {
        Some(judged) => format!("{class} ({})", escaped(&judged.label)),
        None => class.to_string(),
    };
    let queries = results.exemplar.iter().flat_map(|exemplar| &exemplar.queries);
    for (query, bars) in queries {
        for method in METHODS {
            let wrong = bars.methods.get(method).and_then(|bars| bars.wrong_samples);
            let missed: Vec<String> = missed(bars, method).iter().map(name).collect();
            let _ = write!(
                table,
                "<tr><th scope=\"row\">{}: {method}</th><td>{}</td><td>{}</td></tr>",
                escaped(query),
                wrong.map_or_else(String::new, |wrong| wrong.to_string()),
                if missed.is_empty() { "none".to_owned() } else { missed.join(", ") }
            );
        }
    }
    table + "</tbody></table>"
}

impl Demo {
    /// The text for the terminal.
    pub(crate) fn text(&self, colours: Colours) -> String {
        let mut text = "\
Each network generates images from ten latent classes, given a query. Bars are the
probabilities of the classes by three methods; a dot is a class that is dropped.
The target is softmax without the classes that are likelier under the other query.

"
        .to_owned();
        for network in &self.networks {
            text += &network.text(colours);
        }
        text += &self.pedestrians_text();
        let _ = writeln!(
            text,
            "A classifier names the classes by their images.\nThe report has images, samples and \
             paths:\n{}",
            self.report.display()
        );
        text
    }
}

impl Demo {
    fn pedestrians_text(&self) -> String {
        let kept = |method: &str| {
            let kept = self.pedestrians.iter().filter_map(|p| Some(p.kept.get(method)?.len()));
            let (fewest, most) = (kept.clone().min().unwrap_or(0), kept.max().unwrap_or(0));
            if fewest == most { fewest.to_string() } else { format!("{fewest} to {most}") }
        };
        format!(
            "{} crossing pedestrians: of {} modes, {EVIDENTIAL} keeps {}, {SPARSEMAX} {}\n\n",
            self.pedestrians.len(),
            self.pedestrians.first().map_or(0, |pedestrian| pedestrian.paths.len()),
            kept(EVIDENTIAL),
            kept(SPARSEMAX)
        )
    }
}

impl Network {
    fn text(&self, colours: Colours) -> String {
        let mut text = String::new();
        let latents = self.exemplar.latents.iter().enumerate();
        let labels: Vec<String> = latents
            .map(|(class, latent)| match &latent.judged {
                Some(judged) => format!("{class} {}", judged.label),
                None => class.to_string(),
            })
            .collect();
        for query in &self.queries {
            let Some(bars) = self.exemplar.queries.get(query) else { continue };
            let rows: Vec<(&str, &[f64])> = METHODS
                .iter()
                .filter_map(|method| Some((*method, &bars.methods.get(*method)?.probabilities[..])))
                .collect();
            let title = format!("{}, query: {query}", title(&self.data_set));
            text += &distributions(&title, &labels, &rows, colours);
            let wrong = METHODS.iter().filter_map(|method| {
                let bars = bars.methods.get(*method)?;
                Some(format!("{method} {}", bars.wrong_samples?))
            });
            let wrong: Vec<String> = wrong.collect();
            let _ = writeln!(text, "wrong of {SAMPLES} samples: {}", wrong.join(", "));
            let missed =
                METHODS.map(|method| format!("{method} {}", numbers(&missed(bars, method))));
            let _ = writeln!(text, "target classes missed: {}\n", missed.join("; "));
        }
        text
    }
}
