//! The page of the results.

use anyhow::Result;
use askama::Template;

use super::folds::PAPER_SCENE;
use super::results::{Distances, Metric, PedestrianResults, SceneResults};
use super::{figures, paper, text};
use crate::drawing::Figure;
use crate::experiments::report::{Made, Report, Results as _};
use crate::method::EVIDENTIAL;
use crate::page::figures::{document, figure_sections};
use crate::page::{Cell, Heading, Table, is_lowest};
use crate::words::counted;

#[derive(Template)]
#[template(path = "experiments/pedestrians/page.html")]
struct Page<'a> {
    title: &'a str,
    results: &'a PedestrianResults,
    seeds: String,
    paper: Option<Table>,
    /// Markup.
    figures: String,
    values: Vec<Table>,
    decoding: Table,
    trainings: Table,
    made: Made<'a>,
}

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
        let Self { revision, machine, wall_seconds, config, .. } = self;
        let scenes: Vec<&str> = self.scenes.keys().map(String::as_str).collect();
        let data_set = format!("ETH/UCY: {}", scenes.join(", "));
        let title = "Pedestrians: the paper's experiment and ours";
        let page = Page {
            title,
            results: self,
            seeds: counted(self.seeds, "seed"),
            paper: self.scenes.get(PAPER_SCENE).map(beside_paper),
            figures: figure_sections(Self::KIND, figures, |name| (name == "paths").then_some(4))?,
            values: self.ordered_scenes().map(|(name, scene)| self.values(name, scene)).collect(),
            decoding: self.decoding(),
            trainings: self.trainings(),
            made: Made::new(revision, machine, *wall_seconds, &data_set, config)?,
        };
        document("report", title, &page.render()?)
    }
}

fn cell(metric: &Metric) -> Cell {
    Cell::mean(metric.mean, metric.se, 3)
}

/// Bold if it is the lowest.
fn compared<'a>(metric: &Metric, all: impl Iterator<Item = &'a Metric>) -> Cell {
    cell(metric).bold_if(is_lowest(metric.mean, all.filter_map(|metric| metric.mean), 3))
}

/// The paper's table, and ours under each of its numbers.
fn beside_paper(scene: &SceneResults) -> Table {
    let text = |text: &str| Cell::from(text);
    let methods = paper::METHODS.map(Cell::method);
    let mut table = Table::new("values", scene.title(PAPER_SCENE))
        .head([text("metric"), text("whose")].into_iter().chain(methods));
    let parts = [
        ("drawn", &scene.direct, &paper::DIRECT),
        ("best of the five most likely", &scene.top5, &paper::TOP),
    ];
    for (title, ours, theirs) in parts {
        for (row, theirs) in theirs.iter().enumerate() {
            let ours =
                paper::METHODS.iter().filter_map(|method| Some(ours.get(*method)?.all()[row]));
            let ours: Vec<(&str, &Metric)> = ours.collect();
            let name = ours.first().map_or("", |(name, _)| name);
            let theirs = theirs.iter().map(|&(mean, error)| Cell::mean(Some(mean), Some(error), 3));
            table.row(format!("{name}, {title}"), std::iter::once(text("paper")).chain(theirs));
            let ours = ours.into_iter().map(|(_, metric)| cell(metric));
            table.row("", std::iter::once(text("ours")).chain(ours));
        }
    }
    let (number, share) = paper::KEPT_MOST_OFTEN;
    let [fewest, most] = paper::KEPT;
    let with = |share: f64| format!(", {:.1}% with {number}", 100.0 * share);
    let theirs = format!("{fewest} to {most}{}", with(share));
    table.row("joint classes kept", [text("paper"), text(""), text(""), theirs.into()]);
    let all: u64 = scene.kept.iter().sum();
    let ours = paper::METHODS.iter().filter_map(|&method| {
        let kept = scene.kept_by_method.get(method)?;
        let count = scene.kept.get(number).filter(|_| method == EVIDENTIAL && all > 0);
        let share = count.map_or_else(String::new, |count| with(*count as f64 / all as f64));
        Some(format!("{} to {}{share}", kept.smallest, kept.largest).into())
    });
    table.row("", std::iter::once(text("ours")).chain(ours));
    table
}

impl PedestrianResults {
    /// Everything of one scene, for every method.
    fn values(&self, name: &str, scene: &SceneResults) -> Table {
        let groups = [
            Heading::tall("method"),
            Heading::over(3, "drawn"),
            Heading::over(3, "best of the five most likely"),
            Heading::over(2, "best of 20 drawn"),
            Heading::tall("kept, mean"),
            Heading::over(self.distances.len().max(1), "end near a mode, %"),
        ];
        let metrics = ["NLL", "ADE", "FDE", "NLL", "ADE", "FDE", "ADE", "FDE"].map(str::to_owned);
        let distances = self.distances.iter().map(|distance| format!("{distance} m"));
        let mut table = Table::new("values", scene.title(name))
            .head(groups)
            .head(metrics.into_iter().chain(distances));
        for method in &self.methods {
            let mut cells = Vec::new();
            for errors in [&scene.direct, &scene.top5] {
                let Some(own) = errors.get(&method.name) else { continue };
                cells.extend(own.all().into_iter().enumerate().map(|(place, (_, metric))| {
                    compared(metric, errors.values().map(|all| all.all()[place].1))
                }));
            }
            let own = scene.best20.get(&method.name).map(Distances::all);
            cells.extend((0..2).map(|place| match own {
                Some(own) => {
                    compared(own[place], scene.best20.values().map(|all| all.all()[place]))
                }
                None => Cell::decimal(None, 3),
            }));
            let kept = scene.kept_by_method.get(&method.name);
            cells.push(Cell::decimal(kept.map(|kept| kept.mean), 2));
            let within = scene.within.get(&method.name).into_iter().flatten();
            cells.extend(within.map(|share| Cell::decimal(share.mean.map(|x| 100.0 * x), 1)));
            table.row(Cell::method(&method.title), cells);
        }
        table
    }

    fn decoding(&self) -> Table {
        let mut table = Table::new("values", "Mean paths of one pedestrian, one thread, median")
            .head(["scene", "classes decoded, mean", "of", "kept, ms", "all, ms", "speedup"]);
        for (name, scene) in self.ordered_scenes() {
            let decoding = scene.decoding;
            let cells = [
                Cell::decimal(Some(decoding.calls_kept), 2),
                Cell::number(decoding.calls_all),
                Cell::decimal(Some(decoding.milliseconds_kept), 3),
                Cell::decimal(Some(decoding.milliseconds_all), 3),
                Cell::decimal(Some(decoding.speedup), 2),
            ];
            table.row(name, cells);
        }
        table
    }

    fn trainings(&self) -> Table {
        let caption = "Each training, with the losses of its last batch";
        let mut table = Table::new("values", caption).head([
            "left out",
            "seed",
            "state",
            "iterations",
            "seconds",
            "reconstruction",
            "KL",
            "information",
        ]);
        for training in &self.trainings {
            let loss = |of: fn(&shafer_nets::behaviour::Losses) -> f64| {
                Cell::decimal(training.losses.as_ref().map(of), 3)
            };
            let cells = [
                Cell::number(training.seed),
                Cell::state(training.diverged, false),
                Cell::number(training.iterations),
                Cell::decimal(Some(training.wall_seconds), 1),
                loss(|losses| losses.reconstruction),
                loss(|losses| losses.kl),
                loss(|losses| losses.information),
            ];
            table.row(&training.scene, cells);
        }
        table
    }
}
