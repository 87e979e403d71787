//! The page of an experiment with pedestrians.

use std::fmt::Write as _;

use anyhow::Result;

use super::folds::PAPER_SCENE;
use super::results::{Distances, Metric, PedestrianResults, SceneResults};
use super::text::{self, seeds};
use super::{figures, paper};
use crate::drawing::Figure;
use crate::drawing::colour::of_method;
use crate::experiments::report::{Report, Results as _, made};
use crate::method::EVIDENTIAL;
use crate::page::figures::{document, figure_sections};
use crate::page::{escaped, filled};

const PAGE: &str = include_str!("page.html");

impl Report for PedestrianResults {
    fn name(&self) -> &str {
        Self::KIND
    }

    fn summary(&self) -> String {
        text::text(self)
    }

    fn figures(&self) -> Vec<Figure> {
        figures::all(self)
    }

    fn page(&self, figures: &[Figure]) -> Result<String> {
        let facts = format!(
            "A network over {} joint latent classes is trained for each scene and seed, on the other \
             scenes; every method reads the same logits. {}.",
            self.classes,
            seeds(self.seeds)
        );
        let number = |name: &str| (name == "paths").then_some(4);
        let scenes: Vec<&str> = self.scenes.keys().map(String::as_str).collect();
        let data_set = format!("ETH/UCY: {}", scenes.join(", "));
        let (machine, seconds) = (&self.machine, self.wall_seconds);
        let made = made(&self.revision, machine, seconds, &data_set, &self.config)?;
        let all = |of: fn(&Self, &str, &SceneResults) -> String| -> String {
            self.ordered_scenes().map(|(name, scene)| of(self, name, scene)).collect()
        };
        let title = "Pedestrians: the paper's experiment and ours";
        let body = filled!(
            PAGE,
            &[
                ("title", &escaped(title)),
                ("facts", &escaped(&facts)),
                ("notes", &self.notes()),
                ("paper", &self.beside_paper()),
                ("figures", &figure_sections(Self::KIND, figures, number)?),
                ("values", &all(Self::values)),
                ("decoding", &self.decoding()),
                ("seeds", &self.trainings()),
                ("made", &made),
            ],
        );
        Ok(document("report", title, &body))
    }
}

/// The beginning of a table that may be wider than the screen.
fn table(caption: &str, head: &str) -> String {
    let caption = escaped(caption);
    format!(
        r#"<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table class="values"><caption>{caption}</caption><thead>{head}</thead><tbody>
"#
    )
}

const TABLE_END: &str = "</tbody></table></div>\n";

fn cell(metric: &Metric, best: bool) -> String {
    let number = |x: f64| format!("{x:.3}");
    let mut text = metric.mean.map_or_else(|| "–".to_owned(), number);
    if let Some(se) = metric.se {
        let _ = write!(text, " <small>± {}</small>", number(se));
    }
    if best { format!("<b>{text}</b>") } else { text }
}

impl PedestrianResults {
    fn notes(&self) -> String {
        let mut html = String::new();
        if self.diverged > 0 {
            let _ = write!(
                html,
                "<li>{} of {} trainings diverged. They are in no mean.</li>",
                self.diverged,
                self.trainings.len()
            );
        }
        if self.scenes.contains_key(PAPER_SCENE) {
            let _ = write!(
                html,
                "<li>{PAPER_SCENE} is the paper's slice: whoever is there at random time steps of the \
                 last fifth of the ETH scene, with a whole history. Futures are cut to what is known, so that errors are \
                 smaller than with whole ones. The other scenes have whole futures.</li>"
            );
        }
        html
    }

    /// The paper's table, and ours under each of its numbers.
    fn beside_paper(&self) -> String {
        let Some(scene) = self.scenes.get(PAPER_SCENE) else {
            return "<p>The paper tests on ETH only, and this run does not.</p>".to_owned();
        };
        let mut head = r#"<tr><th scope="col">metric</th><th scope="col">whose</th>"#.to_owned();
        for method in paper::METHODS {
            let _ = write!(
                head,
                r#"<th scope="col"><i style="background:{}"></i>{method}</th>"#,
                of_method(method)
            );
        }
        let mut html = table(&scene.title(PAPER_SCENE), &(head + "</tr>"));
        let parts = [
            ("drawn", &scene.direct, &paper::DIRECT),
            ("best of the five most likely", &scene.top5, &paper::TOP),
        ];
        for (title, ours, theirs) in parts {
            for (row, theirs) in theirs.iter().enumerate() {
                let ours: Vec<(&str, &Metric)> = paper::METHODS
                    .iter()
                    .filter_map(|method| Some(ours.get(*method)?.all()[row]))
                    .collect();
                let name = ours.first().map_or("", |(name, _)| name);
                let _ = write!(html, r#"<tr><th scope="row">{name}, {title}</th><td>paper</td>"#);
                for (mean, error) in theirs {
                    let _ = write!(html, "<td>{mean:.3} <small>± {error:.3}</small></td>");
                }
                html += "</tr>\n<tr><th scope=\"row\"></th><td>ours</td>";
                for (_, metric) in ours {
                    let _ = write!(html, "<td>{}</td>", cell(metric, false));
                }
                html += "</tr>\n";
            }
        }
        let ours: u64 = scene.kept.iter().sum();
        let (number, share) = paper::KEPT_MOST_OFTEN;
        let [fewest, most] = paper::KEPT;
        let _ = write!(
            html,
            r#"<tr><th scope="row">joint classes kept</th><td>paper</td><td></td><td></td><td>{fewest} to {most}, {:.1}% with {number}</td></tr>
<tr><th scope="row"></th><td>ours</td>"#,
            100.0 * share
        );
        for method in paper::METHODS {
            let Some(kept) = scene.kept_by_method.get(method) else { continue };
            let with = scene.kept.get(number).filter(|_| method == EVIDENTIAL && ours > 0);
            let with = with.map_or_else(String::new, |count| {
                format!(", {:.1}% with {number}", 100.0 * *count as f64 / ours as f64)
            });
            let _ = write!(html, "<td>{} to {}{with}</td>", kept.smallest, kept.largest);
        }
        html + "</tr>\n" + TABLE_END
    }

    /// Everything of one scene, for every method.
    fn values(&self, name: &str, scene: &SceneResults) -> String {
        let mut head = r#"<tr><th scope="col" rowspan="2">method</th><th scope="colgroup" colspan="3">drawn</th><th scope="colgroup" colspan="3">best of the five most likely</th><th scope="colgroup" colspan="2">best of 20 drawn</th><th scope="col" rowspan="2">kept, mean</th>"#.to_owned();
        let _ = write!(
            head,
            r#"<th scope="colgroup" colspan="{}">end near to a mode, %</th></tr><tr>"#,
            self.distances.len().max(1)
        );
        for metric in ["NLL", "ADE", "FDE", "NLL", "ADE", "FDE", "ADE", "FDE"] {
            let _ = write!(head, r#"<th scope="col">{metric}</th>"#);
        }
        for distance in &self.distances {
            let _ = write!(head, r#"<th scope="col">{distance} m</th>"#);
        }
        let mut html = table(&scene.title(name), &(head + "</tr>"));
        for method in &self.methods {
            let _ = write!(
                html,
                r#"<tr><th scope="row"><i style="background:{}"></i>{}</th>"#,
                of_method(&method.title),
                escaped(&method.title)
            );
            for errors in [&scene.direct, &scene.top5] {
                let Some(own) = errors.get(&method.name) else { continue };
                for (place, (_, metric)) in own.all().into_iter().enumerate() {
                    let best = is_lowest(metric, errors.values().map(|all| all.all()[place].1));
                    let _ = write!(html, "<td>{}</td>", cell(metric, best));
                }
            }
            let own = scene.best20.get(&method.name).map(Distances::all);
            for place in 0..2 {
                let all = scene.best20.values().map(|all| all.all()[place]);
                let text = own.map(|own| cell(own[place], is_lowest(own[place], all)));
                let _ = write!(html, "<td>{}</td>", text.as_deref().unwrap_or("–"));
            }
            let kept = scene.kept_by_method.get(&method.name);
            let kept = kept.map_or_else(|| "–".to_owned(), |kept| format!("{:.2}", kept.mean));
            let _ = write!(html, "<td>{kept}</td>");
            for share in scene.within.get(&method.name).into_iter().flatten() {
                let percent = share.mean.map_or_else(String::new, |x| format!("{:.1}", 100.0 * x));
                let _ = write!(html, "<td>{percent}</td>");
            }
            html += "</tr>\n";
        }
        html + TABLE_END
    }

    fn decoding(&self) -> String {
        let head = r#"<tr><th scope="col">scene</th><th scope="col">classes decoded, mean</th><th scope="col">of</th><th scope="col">kept, ms</th><th scope="col">all, ms</th><th scope="col">times as fast</th></tr>"#;
        let caption = "Mean paths of one pedestrian, one thread, median";
        let mut html = table(caption, head);
        for (name, scene) in self.ordered_scenes() {
            let decoding = scene.decoding;
            let _ = writeln!(
                html,
                r#"<tr><th scope="row">{}</th><td>{:.2}</td><td>{}</td><td>{:.3}</td><td>{:.3}</td><td>{:.2}</td></tr>"#,
                escaped(name),
                decoding.calls_kept,
                decoding.calls_all,
                decoding.milliseconds_kept,
                decoding.milliseconds_all,
                decoding.speedup
            );
        }
        html + TABLE_END
    }

    fn trainings(&self) -> String {
        let head = r#"<tr><th scope="col">left out</th><th scope="col">seed</th><th scope="col">state</th><th scope="col">iterations</th><th scope="col">seconds</th><th scope="col">reconstruction</th><th scope="col">KL</th><th scope="col">information</th></tr>"#;
        let mut html = table("Each training, with the losses of its last batch", head);
        for training in &self.trainings {
            let state = if training.diverged {
                r#"<span class="fails">diverged</span>"#
            } else {
                "trained"
            };
            let _ = write!(
                html,
                r#"<tr><th scope="row">{}</th><td>{}</td><td>{state}</td><td>{}</td><td>{:.1}</td>"#,
                escaped(&training.scene),
                training.seed,
                training.iterations,
                training.wall_seconds
            );
            let losses = training.losses.map(|l| [l.reconstruction, l.kl, l.information]);
            match losses {
                Some(losses) => {
                    for loss in losses {
                        let _ = write!(html, "<td>{loss:.3}</td>");
                    }
                }
                None => html += "<td>–</td><td>–</td><td>–</td>",
            }
            html += "</tr>\n";
        }
        html + TABLE_END
    }
}

/// Of those that look alike none is better.
fn is_lowest<'a>(metric: &Metric, all: impl Iterator<Item = &'a Metric>) -> bool {
    let shown = |metric: &Metric| metric.mean.map(|mean| format!("{mean:.3}"));
    let means = all.filter_map(|metric| metric.mean);
    let lowest = means.min_by(f64::total_cmp).map(|mean| format!("{mean:.3}"));
    metric.mean.is_some() && shown(metric) == lowest
}
