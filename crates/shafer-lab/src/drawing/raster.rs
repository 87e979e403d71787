//! Drawings and images as PNG.

use anyhow::{Context as _, Result};
use tiny_skia::{
    Color, FillRule, FilterQuality, IntSize, LineJoin, Paint, PathBuilder, Pixmap, PixmapPaint,
    Shader, Stroke as Line, StrokeDash, Transform,
};

use super::canvas::{Anchor, Drawing, Item, Point, TextStyle};
use super::colour::{Colour, PAPER};
use super::font;
use super::image::Image;

/// Pixels of the file for one of the drawing: enough for print.
const SCALE: f32 = 2.0;

impl Drawing {
    /// The drawing on white paper.
    pub(crate) fn png(&self) -> Result<Vec<u8>> {
        let pixels = |length: f64| (length * f64::from(SCALE)).ceil() as u32;
        let mut sheet = Pixmap::new(pixels(self.width), pixels(self.height))
            .context("a figure is empty, or too large for a picture")?;
        sheet.fill(opaque(PAPER));
        for item in &self.items {
            draw(&mut sheet, item)?;
        }
        sheet.encode_png().context("cannot make a PNG")
    }
}

fn draw(sheet: &mut Pixmap, item: &Item) -> Result<()> {
    let scale = Transform::from_scale(SCALE, SCALE);
    match item {
        Item::Shape { points, closed, fill, stroke } => {
            let mut path = PathBuilder::new();
            for (place, [x, y]) in points.iter().enumerate() {
                let (x, y) = (*x as f32, *y as f32);
                if place == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
            }
            if *closed {
                path.close();
            }
            // A single point has no extent and is not seen in an SVG either.
            let Some(path) = path.finish() else { return Ok(()) };
            if let Some(fill) = fill {
                let paint = paint(fill.colour, fill.opacity);
                sheet.fill_path(&path, &paint, FillRule::Winding, scale, None);
            }
            if let Some(stroke) = stroke {
                let dash = stroke.dash.iter().map(|length| *length as f32).collect();
                let line = Line {
                    width: stroke.width as f32,
                    line_join: LineJoin::Round,
                    dash: StrokeDash::new(dash, 0.0),
                    ..Line::default()
                };
                sheet.stroke_path(&path, &paint(stroke.colour, 1.0), &line, scale, None);
            }
        }
        Item::Text { at, words, style } => {
            if let Some(path) = font::outline(words, style.size, style.bold) {
                let place = placed(words, *at, style).post_scale(SCALE, SCALE);
                sheet.fill_path(&path, &paint(style.colour, 1.0), FillRule::Winding, place, None);
            }
        }
        Item::Picture { at: [x, y], width, height, image } => {
            let picture = pixmap(image)?;
            let (wide, high) = (picture.width() as f32, picture.height() as f32);
            let place = Transform::from_scale(*width as f32 / wide, *height as f32 / high)
                .post_translate(*x as f32, *y as f32)
                .post_scale(SCALE, SCALE);
            // Small images are enlarged without smoothing.
            let paint = PixmapPaint { quality: FilterQuality::Nearest, ..PixmapPaint::default() };
            sheet.draw_pixmap(0, 0, picture.as_ref(), &paint, place, None);
        }
        Item::Titled { items, .. } => {
            for item in items {
                draw(sheet, item)?;
            }
        }
    }
    Ok(())
}

/// Moves text that starts at the origin to its position.
fn placed(words: &str, [x, y]: Point, style: &TextStyle) -> Transform {
    let width = font::width(words, style.size, style.bold);
    let back = match style.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => width / 2.0,
        Anchor::End => width,
    };
    let turn = if style.upright { -90.0 } else { 0.0 };
    Transform::from_translate(-back as f32, 0.0)
        .post_rotate(turn)
        .post_translate(x as f32, y as f32)
}

fn opaque(Colour([red, green, blue]): Colour) -> Color {
    Color::from_rgba8(red, green, blue, 255)
}

fn paint(colour: Colour, opacity: f64) -> Paint<'static> {
    let mut colour = opaque(colour);
    colour.apply_opacity(opacity as f32);
    Paint { shader: Shader::SolidColor(colour), ..Paint::default() }
}

fn pixmap(image: &Image) -> Result<Pixmap> {
    let size = IntSize::from_wh(image.width() as u32, image.height() as u32);
    size.and_then(|size| Pixmap::from_vec(image.rgba(), size)).context("an image is too large")
}
