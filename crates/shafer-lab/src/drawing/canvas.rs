//! A drawing in memory: shapes, text and images.

use super::colour::Colour;
use super::image::Image;

/// Distances from the left and from the top.
pub(crate) type Point = [f64; 2];

/// Items in the order in which they are painted. The unit is a CSS pixel.
#[derive(Clone, Debug)]
pub(crate) struct Drawing {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub(crate) enum Item {
    Shape {
        points: Vec<Point>,
        closed: bool,
        fill: Option<Fill>,
        stroke: Option<Stroke>,
    },
    Text {
        at: Point,
        words: String,
        style: TextStyle,
    },
    Picture {
        at: Point,
        width: f64,
        height: f64,
        image: Image,
    },
    /// Items with a tooltip.
    Titled {
        title: String,
        items: Vec<Item>,
    },
}

impl Item {
    fn shift(&mut self, [right, down]: Point) {
        let shifted = |[x, y]: Point| [x + right, y + down];
        match self {
            Self::Shape { points, .. } => points.iter_mut().for_each(|p| *p = shifted(*p)),
            Self::Text { at, .. } | Self::Picture { at, .. } => *at = shifted(*at),
            Self::Titled { items, .. } => items.iter_mut().for_each(|i| i.shift([right, down])),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) colour: Colour,
    pub(crate) opacity: f64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stroke {
    pub(crate) colour: Colour,
    pub(crate) width: f64,
    /// Lengths of dashes and gaps; empty for a solid line.
    pub(crate) dash: &'static [f64],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TextStyle {
    pub(crate) size: f64,
    pub(crate) bold: bool,
    pub(crate) anchor: Anchor,
    /// Whether it is turned to read from bottom to top.
    pub(crate) upright: bool,
    pub(crate) colour: Colour,
}

/// The part of the text that is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Stroke {
    pub(crate) fn new(colour: Colour, width: f64) -> Self {
        Self { colour, width, dash: &[] }
    }
}

impl From<Colour> for Fill {
    fn from(colour: Colour) -> Self {
        Self { colour, opacity: 1.0 }
    }
}

impl TextStyle {
    pub(crate) fn new(size: f64, colour: Colour) -> Self {
        Self { size, bold: false, anchor: Anchor::Start, upright: false, colour }
    }

    pub(crate) fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub(crate) fn upright(self) -> Self {
        Self { upright: true, ..self }
    }

    pub(crate) fn anchor(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }
}

impl Drawing {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { width, height, items: Vec::new() }
    }

    pub(crate) fn width(&self) -> f64 {
        self.width
    }

    pub(crate) fn line(&mut self, points: &[Point], stroke: Stroke) {
        let (points, stroke) = (points.to_vec(), Some(stroke));
        self.items.push(Item::Shape { points, closed: false, fill: None, stroke });
    }

    pub(crate) fn area(&mut self, points: Vec<Point>, fill: impl Into<Fill>) {
        self.items.push(Item::Shape {
            points,
            closed: true,
            fill: Some(fill.into()),
            stroke: None,
        });
    }

    pub(crate) fn rectangle(
        &mut self,
        [x, y]: Point,
        width: f64,
        height: f64,
        fill: impl Into<Fill>,
    ) {
        self.area(corners([x, y], width, height), fill);
    }

    pub(crate) fn frame(&mut self, at: Point, width: f64, height: f64, stroke: Stroke) {
        let (points, stroke) = (corners(at, width, height), Some(stroke));
        self.items.push(Item::Shape { points, closed: true, fill: None, stroke });
    }

    pub(crate) fn text(&mut self, at: Point, style: TextStyle, words: impl Into<String>) {
        self.items.push(Item::Text { at, words: words.into(), style });
    }

    pub(crate) fn picture(&mut self, at: Point, width: f64, height: f64, image: &Image) {
        self.items.push(Item::Picture { at, width, height, image: image.clone() });
    }

    /// Gives a tooltip to what `draw` paints.
    pub(crate) fn titled(&mut self, title: &str, draw: impl FnOnce(&mut Self)) {
        let mut part = Self::new(self.width, self.height);
        draw(&mut part);
        self.items.push(Item::Titled { title: title.to_owned(), items: part.items });
    }

    /// Paints another drawing on this one.
    pub(crate) fn place(&mut self, other: &Self, at: Point) {
        self.items.extend(other.items.iter().cloned().map(|mut item| {
            item.shift(at);
            item
        }));
    }
}

fn corners([x, y]: Point, width: f64, height: f64) -> Vec<Point> {
    vec![[x, y], [x + width, y], [x + width, y + height], [x, y + height]]
}
