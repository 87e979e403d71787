//! The figures of synthetic results.

use roxmltree::{Document, Node};

use crate::drawing::Background;
use crate::drawing::tests::{assert_no_faults, names};
use crate::experiments::pedestrians::figures::all;
use crate::experiments::pedestrians::results::PedestrianResults;
use crate::experiments::pedestrians::synthetic::results;

#[test]
fn everything_is_on_the_paper_and_no_words_overlap() {
    let mut results = results();
    let check = |results: &PedestrianResults, expected: &[&str]| {
        let figures = all(results);
        assert_eq!(names(&figures), expected);
        assert_no_faults(&figures);
    };
    check(&results, &["paths", "kept", "reach"]);
    // A pedestrian who stands, is seen for the first time, and has no known future.
    let exemplar = &mut results.scenes.get_mut("eth_paper").unwrap().exemplars[0];
    exemplar.history.truncate(1);
    exemplar.truth.clear();
    exemplar.paths.iter_mut().flatten().for_each(|place| *place = [0.0; 2]);
    check(&results, &["paths", "kept", "reach"]);
    results.scenes.values_mut().for_each(|scene| scene.exemplars.clear());
    check(&results, &["kept", "reach"]);
}

#[test]
fn maps_have_the_same_scale_along_both_axes() {
    let results = results();
    let figure = all(&results).swap_remove(0);
    let svg = figure.panels[0].drawing.svg("", Background::None).unwrap();
    let document = Document::parse(&svg).unwrap();
    // Two labels of each axis, and what they say.
    let labels = |anchor: &str, axis: &str| -> Vec<(f64, f64)> {
        let number = |n: Node<'_, '_>| {
            let value: f64 = n.text()?.parse().ok()?;
            Some((value, n.attribute(axis)?.parse().ok()?))
        };
        document
            .descendants()
            .filter(|n| n.attribute("text-anchor") == Some(anchor))
            .filter_map(number)
            .collect()
    };
    let scale = |labels: &[(f64, f64)]| (labels[1].1 - labels[0].1) / (labels[1].0 - labels[0].0);
    let (x, y) = (scale(&labels("middle", "x")), scale(&labels("end", "y")));
    assert!((x + y).abs() < 0.1 && x > 1.0, "{x} {y}");
}
