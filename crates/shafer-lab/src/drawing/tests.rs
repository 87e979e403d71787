//! Checks of figures as a reader sees them: everything is on the paper, and no words overlap.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use roxmltree::{Document, Node};

use super::*;

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

/// What is off the paper, and words that lie on other words.
pub(crate) fn faults(drawing: &Drawing, title: &str) -> Vec<String> {
    let svg = drawing.svg(title, Background::White).unwrap();
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

/// Checks every figure, as a whole and panel by panel.
pub(crate) fn assert_no_faults(figures: &[Figure]) {
    for figure in figures {
        assert_eq!(faults(&figure.drawing(), &figure.title), [""; 0], "{}", figure.name);
        assert!(!figure.drawing().png().unwrap().is_empty());
        for panel in &figure.panels {
            assert_eq!(faults(&panel.drawing, &panel.title), [""; 0], "{}", panel.title);
        }
    }
}

pub(crate) fn names(figures: &[Figure]) -> Vec<&'static str> {
    figures.iter().map(|figure| figure.name).collect()
}

#[test]
fn a_picture_has_the_size_of_its_drawing_and_shows_it() {
    let mut drawing = Drawing::new(40.0, 20.0);
    drawing.rectangle([10.0, 5.0], 10.0, 10.0, WRONG);
    let bytes = drawing.png().unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), (80, 40));
    let pixel = |x: usize, y: usize| &pixels[4 * (y * 80 + x)..][..3];
    assert_eq!(pixel(30, 20), WRONG.0);
    assert_eq!(pixel(5, 20), [255; 3]);
}
