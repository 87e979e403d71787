//! Figures as a reader sees them: everything on the paper, and no words on other words.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use roxmltree::{Document, Node};

use super::*;
use crate::behaviour::BehaviourResults;
use crate::behaviour::synthetic::results as behaviour_results;
use crate::experiment::synthetic::{meta, record, results};

/// Left, top, right and bottom of words.
fn extent(node: &Node<'_, '_>) -> [f64; 4] {
    let number = |name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap();
    let (x, y, size) = (number("x"), number("y"), number("font-size"));
    let bold = node.attribute("font-weight").is_some();
    let width = font::width(node.text().unwrap_or_default(), size, bold);
    let back = match node.attribute("text-anchor") {
        None => 0.0,
        Some("middle") => width / 2.0,
        Some("end") => width,
        Some(other) => panic!("{other}"),
    };
    // Capitals reach up to three quarters of the size, and little lies below the line.
    let (above, below) = (0.75 * size, 0.2 * size);
    match node.attribute("transform") {
        None => [x - back, y - above, x - back + width, y + below],
        Some(turn) => {
            assert!(turn.starts_with("rotate(-90 "), "{turn}");
            [x - above, y + back - width, x + below, y + back]
        }
    }
}

fn faults(drawing: &Drawing, title: &str) -> Vec<String> {
    let svg = drawing.svg(title, Paper::White).unwrap();
    let document = Document::parse(&svg).unwrap();
    let root = document.root_element();
    let edges: Vec<f64> =
        root.attribute("viewBox").unwrap().split(' ').map(|n| n.parse().unwrap()).collect();
    let (right, bottom) = (edges[2], edges[3]);
    let mut faults = Vec::new();
    let within = |x: f64, y: f64| {
        (-0.01..=right + 0.01).contains(&x) && (-0.01..=bottom + 0.01).contains(&y)
    };
    let mut texts: Vec<(String, [f64; 4])> = Vec::new();
    for node in root.descendants().filter(Node::is_element) {
        for attribute in node.attributes() {
            let value = attribute.value();
            if attribute.name() != "href" && (value.contains("NaN") || value.contains("inf")) {
                faults.push(format!("{}: {value}", attribute.name()));
            }
        }
        match node.tag_name().name() {
            "path" if node.attribute("fill") != Some("#FFFFFF") => {
                let numbers: Vec<f64> = node
                    .attribute("d")
                    .unwrap()
                    .split(['M', 'L', 'Z', ' '])
                    .filter(|n| !n.is_empty())
                    .map(|n| n.parse().unwrap())
                    .collect();
                assert!(numbers.len() >= 4 && numbers.len().is_multiple_of(2), "{numbers:?}");
                if let Some(point) = numbers.chunks(2).find(|p| !within(p[0], p[1])) {
                    faults.push(format!("a path leaves the paper at {point:?}"));
                }
            }
            "image" => {
                let n = |name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap();
                let (x, y) = (n("x"), n("y"));
                if !within(x, y) || !within(x + n("width"), y + n("height")) {
                    faults.push("an image leaves the paper".to_owned());
                }
                assert!(node.attribute("href").unwrap().starts_with("data:image/png;base64,iVBOR"));
            }
            "text" => {
                let extent = extent(&node);
                let words = node.text().unwrap_or_default().to_owned();
                if !within(extent[0], extent[1]) || !within(extent[2], extent[3]) {
                    faults.push(format!("{words:?} leaves the paper"));
                }
                for (other, [left, top, right, bottom]) in &texts {
                    let apart = extent[0] >= *right
                        || extent[2] <= *left
                        || extent[1] >= *bottom
                        || extent[3] <= *top;
                    if !apart {
                        faults.push(format!("{words:?} lies on {other:?}"));
                    }
                }
                texts.push((words, extent));
            }
            _ => {}
        }
    }
    faults
}

#[test]
fn everything_is_on_the_paper_and_no_words_lie_on_others() {
    let figures = all(&results());
    let names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
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
    assert_eq!(names, expected);
    for figure in &figures {
        assert_eq!(faults(&figure.drawing(), &figure.title), [""; 0], "{}", figure.name);
        for panel in &figure.panels {
            assert_eq!(faults(&panel.drawing, &panel.title), [""; 0], "{}", panel.title);
        }
    }
}

#[test]
fn figures_of_little_have_no_faults() {
    // One seed, one checkpoint, no images, no error to show.
    let mut record = record(1, 1.0, 1);
    record.latents = None;
    let results = ImageResults::aggregate(&meta(), &[record]).unwrap();
    let figures = all(&results);
    assert!(figures.iter().all(|figure| !["bars", "samples", "reduced"].contains(&figure.name)));
    for figure in figures {
        assert_eq!(faults(&figure.drawing(), &figure.title), [""; 0], "{}", figure.name);
        assert!(!figure.drawing().png().unwrap().is_empty());
    }
}

#[test]
fn figures_of_pedestrians_have_no_faults() {
    let mut results = behaviour_results();
    let check = |results: &BehaviourResults, expected: &[&str]| {
        let figures = of_behaviour(results);
        let names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
        assert_eq!(names, expected);
        for figure in figures {
            assert_eq!(faults(&figure.drawing(), &figure.title), [""; 0], "{}", figure.name);
            for panel in &figure.panels {
                assert_eq!(faults(&panel.drawing, &panel.title), [""; 0], "{}", panel.title);
            }
        }
    };
    check(&results, &["paths", "kept", "reach"]);
    // Somebody who stands, seen for the first time, with nothing known of the future.
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
    let results = behaviour_results();
    let figure = of_behaviour(&results).swap_remove(0);
    let svg = figure.panels[0].drawing.svg("", Paper::None).unwrap();
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

#[test]
fn curves_are_where_their_numbers_are() {
    let results = results();
    let figure = all(&results).into_iter().find(|figure| figure.name == "evolution").unwrap();
    assert_eq!(figure.panels.len(), 4);
    let svg = figure.panels[0].drawing.svg("", Paper::None).unwrap();
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

#[test]
fn a_picture_has_the_size_of_its_drawing_and_shows_it() {
    let mut drawing = Drawing::new(40.0, 20.0);
    drawing.rectangle([10.0, 5.0], 10.0, 10.0, colour::WRONG);
    let bytes = drawing.png().unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), (80, 40));
    let pixel = |x: usize, y: usize| &pixels[4 * (y * 80 + x)..][..3];
    assert_eq!(pixel(30, 20), colour::WRONG.0);
    assert_eq!(pixel(5, 20), [255; 3]);
}
