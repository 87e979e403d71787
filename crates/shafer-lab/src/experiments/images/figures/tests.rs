//! The figures of synthetic results.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use roxmltree::Document;

use super::*;
use crate::drawing::Background;
use crate::drawing::tests::{assert_no_faults, names};
use crate::experiments::images::synthetic::{meta, of_records, record, results};

#[test]
fn everything_is_on_the_paper_and_no_words_overlap() {
    let figures = all(&results());
    let expected = [
        "bars",
        "evolution",
        "evolution-projections",
        "evolution-cutoffs",
        "evolution-without-collapsed",
        "reduced",
        "reduced-without-collapsed",
        "samples",
        "kept",
        "evidence",
    ];
    assert_eq!(names(&figures), expected);
    assert_no_faults(&figures);
}

#[test]
fn figures_of_a_single_checkpoint_have_no_faults() {
    // One seed, no images, no error to show.
    let mut record = record(1, 1.0, 1);
    record.latents = None;
    let figures = all(&of_records(&meta(), &[record]).unwrap());
    assert!(names(&figures).iter().all(|name| !["bars", "samples", "reduced"].contains(name)));
    assert_no_faults(&figures);
}

#[test]
fn curves_are_where_their_numbers_are() {
    let results = results();
    let figure = all(&results).into_iter().find(|figure| figure.name == "evolution").unwrap();
    assert_eq!(figure.panels.len(), 4);
    let svg = figure.panels[0].drawing.svg("", Background::None).unwrap();
    let document = Document::parse(&svg).unwrap();
    let curve = document
        .descendants()
        .find(|n| n.attribute("stroke") == Some("#009E73") && n.attribute("fill") == Some("none"))
        .unwrap();
    let points: Vec<[f64; 2]> = curve
        .attribute("d")
        .unwrap()
        .split(['M', 'L'])
        .skip(1)
        .map(|point| {
            let (x, y) = point.split_once(' ').unwrap();
            [x.parse().unwrap(), y.parse().unwrap()]
        })
        .collect();
    let means = &results.evolution.bhattacharyya["even"]["evidential"].mean;
    assert_eq!(points.len(), means.len());
    // Two labels of the axis tell how a number becomes a place.
    let label = |text: &str| {
        let node = document.descendants().find(|n| n.text() == Some(text)).unwrap();
        node.attribute("y").unwrap().parse::<f64>().unwrap() - 4.0
    };
    let (zero, some) = (label("0.0"), label("0.4"));
    for ([_, y], mean) in points.iter().zip(means) {
        let expected = zero + (some - zero) * f64::from(mean.unwrap()) / 0.4;
        assert!((y - expected).abs() < 0.02, "{y} and {expected}");
    }
}
