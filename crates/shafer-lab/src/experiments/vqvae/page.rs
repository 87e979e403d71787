//! The page of the results.

use std::fmt::Write as _;

use anyhow::Result;

use super::results::{ByMethod, VqVaeResults};
use super::{figures, paper, text};
use crate::drawing::Figure;
use crate::experiments::report::{Report, Results as _, made};
use crate::page::figures::{document, figure_sections};
use crate::page::{escaped, filled};

const PAGE: &str = include_str!("page.html");

impl Report for VqVaeResults {
    fn name(&self) -> &str {
        Self::KIND
    }

    fn summary(&self) -> String {
        text::summary(self)
    }

    fn figures(&self) -> Vec<Figure> {
        figures::all(self)
    }

    fn page(&self, figures: &[Figure]) -> Result<String> {
        let [rows, columns] = self.grid;
        let title = format!("VQ-VAE on {}: the paper's experiment and ours", self.data_set);
        let facts = format!(
            "Images of {} x {} pixels as {rows} x {columns} codes of {}. {} images of each of {} classes are sampled \
             from a PixelCNN by each method; {} held-out images.",
            self.image,
            self.image,
            self.codebook.codes,
            self.samples,
            self.classes.len(),
            self.held_out
        );
        let (machine, seconds) = (&self.machine, self.wall_seconds);
        let made = made(&self.revision, machine, seconds, &self.data_set, &self.config)?;
        let mut notes = String::new();
        for note in text::notes(self) {
            let _ = write!(notes, "<li>{}</li>", escaped(&note));
        }
        let body = filled!(
            PAGE,
            &[
                ("title", &escaped(&title)),
                ("facts", &escaped(&facts)),
                ("notes", &notes),
                ("table", &self.judged()),
                ("kept", &self.kept_table()),
                ("figures", &figure_sections(Self::KIND, figures, |_| None)?),
                ("made", &made),
            ],
        );
        Ok(document("report", &title, &body))
    }
}

/// A table that may be wider than the screen.
fn table(caption: &str, head: &[&str], rows: &str) -> String {
    let mut cells = String::new();
    for name in head {
        let _ = write!(cells, r#"<th scope="col">{name}</th>"#);
    }
    format!(
        r#"<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table class="values"><caption>{caption}</caption><thead><tr>{cells}</tr></thead><tbody>
{rows}</tbody></table></div>
"#
    )
}

const NONE: &str = "–";

impl VqVaeResults {
    fn judged(&self) -> String {
        let mut rows = String::new();
        for (key, title) in text::rows(self) {
            let share = |table: &ByMethod<f64>, errors: &ByMethod<f64>| {
                let cell = |share, se| {
                    format!("{} <small>± {}</small>", text::percent(share), text::percent(se))
                };
                let both = table.get(key).zip(errors.get(key));
                both.map_or_else(|| NONE.to_owned(), |(&share, &se)| cell(share, se))
            };
            let number = |table: &ByMethod<f64>| {
                table.get(key).map_or_else(|| NONE.to_owned(), |value| format!("{value:.3}"))
            };
            let theirs = paper::numbers(&self.data_set, key);
            let theirs = theirs.map_or_else(
                || NONE.to_owned(),
                |paper| format!("{:.1}, {:.1}", paper.accuracy, paper.top5),
            );
            let _ = writeln!(
                rows,
                r#"<tr><th scope="row">{}</th><td>{}</td><td>{}</td><td>{theirs}</td><td>{}</td><td>{}</td></tr>"#,
                escaped(title),
                share(&self.accuracy, &self.accuracy_se),
                share(&self.top5, &self.top5_se),
                number(&self.diversity),
                number(&self.frechet),
            );
        }
        let head = [
            "",
            "accuracy, %",
            "top 5, %",
            "the paper: accuracy, top 5",
            "diversity",
            "Fréchet distance",
        ];
        table("Sampled and real images", &head, &rows)
    }

    fn kept_table(&self) -> String {
        let mut rows = String::new();
        for method in &self.methods {
            let Some(kept) = self.kept.get(&method.name) else { continue };
            let theirs = paper::numbers(&self.data_set, &method.name);
            let theirs = theirs.and_then(|paper| paper.reduction);
            let theirs =
                theirs.map_or_else(|| NONE.to_owned(), |reduction| format!("{reduction:.0}"));
            let _ = writeln!(
                rows,
                r#"<tr><th scope="row">{}</th><td>{:.1}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{theirs}</td><td>{}</td><td>{:.4}</td><td>{:.4}</td></tr>"#,
                escaped(&method.title),
                kept.mean,
                kept.median,
                kept.p99,
                kept.max,
                text::percent(kept.reduction_mean),
                text::percent(kept.reduction_max),
                text::percent(kept.of_used_mean),
                kept.mass,
                kept.missed,
            );
        }
        let head = [
            "",
            "kept, mean",
            "median",
            "99%",
            "largest",
            "dropped, %",
            "by the largest, %",
            "the paper",
            "kept of those in use, %",
            "mass",
            "missed",
        ];
        table("Kept codes of held-out images", &head, &rows)
    }
}
