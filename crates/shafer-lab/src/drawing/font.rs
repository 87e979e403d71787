//! The font of figures: widths and outlines of text.

use std::sync::LazyLock;

use tiny_skia::{Path, PathBuilder};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// The font family of SVG files. The fallbacks are at most as wide as the first.
pub(crate) const FAMILY: &str = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";

static REGULAR: LazyLock<Option<Face<'static>>> =
    LazyLock::new(|| Face::parse(include_bytes!("font/DejaVuSans.ttf"), 0).ok());
static BOLD: LazyLock<Option<Face<'static>>> =
    LazyLock::new(|| Face::parse(include_bytes!("font/DejaVuSans-Bold.ttf"), 0).ok());

/// The width of words.
pub(crate) fn width(words: &str, size: f64, bold: bool) -> f64 {
    // The tests parse both fonts; if that fails anyway, an estimate keeps figures usable.
    let Some(face) = face(bold) else { return 0.7 * size * words.chars().count() as f64 };
    advances(face, words).map(|(_, advance)| advance).sum::<f64>() * size / em(face)
}

/// The outline of text that starts at the origin; `None` if it is empty.
pub(crate) fn outline(words: &str, size: f64, bold: bool) -> Option<Path> {
    let face = face(bold)?;
    let scale = size / em(face);
    let mut pen = Pen { path: PathBuilder::new(), scale: scale as f32, x: 0.0 };
    for (glyph, advance) in advances(face, words) {
        // A space has no outline.
        let _ = face.outline_glyph(glyph, &mut pen);
        pen.x += (advance * scale) as f32;
    }
    pen.path.finish()
}

/// Draws glyphs, whose y grows upwards, one after the other.
struct Pen {
    path: PathBuilder,
    scale: f32,
    x: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + self.scale * x, -self.scale * y)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

fn face(bold: bool) -> Option<&'static Face<'static>> {
    if bold { BOLD.as_ref() } else { REGULAR.as_ref() }
}

fn em(face: &Face<'_>) -> f64 {
    f64::from(face.units_per_em())
}

/// The glyphs of text with their advances. A character without a glyph is a box.
fn advances<'a>(face: &'a Face<'_>, words: &'a str) -> impl Iterator<Item = (GlyphId, f64)> + 'a {
    words.chars().map(|character| {
        let id = face.glyph_index(character).unwrap_or_default();
        (id, f64::from(face.glyph_hor_advance(id).unwrap_or_default()))
    })
}

/// Wraps text at a width; a longer single word stays whole.
pub(crate) fn wrapped(words: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), size, false) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_fonts_can_be_read() {
        for bold in [false, true] {
            assert!(face(bold).is_some());
        }
        // The advance of DejaVu Sans is 1401 of 2048 for an A.
        assert!((width("A", 2048.0, false) - 1401.0).abs() < 1e-9);
        assert!(width("mean", 12.0, true) > width("mean", 12.0, false));
    }

    #[test]
    fn every_character_of_a_figure_has_a_glyph() {
        for bold in [false, true] {
            for character in "azAZ09 .,:;()%±∞×–−µé✕▲→".chars() {
                assert!(
                    face(bold).and_then(|face| face.glyph_index(character)).is_some(),
                    "{character}"
                );
            }
        }
    }

    #[test]
    fn lines_are_no_wider_than_asked_for() {
        let lines = wrapped("one two three four five six seven", 10.0, 80.0);
        assert!(lines.len() > 1 && lines.iter().all(|line| width(line, 10.0, false) <= 80.0));
        assert_eq!(lines.join(" "), "one two three four five six seven");
    }
}
