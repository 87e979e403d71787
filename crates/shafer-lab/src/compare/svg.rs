//! SVG plots with all coordinates in percent. Text is HTML outside the SVG, so that it stays legible on narrow
//! screens.

use std::fmt::Write as _;

use crate::drawing::colour::Colour;

/// Maps numbers to percent of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// From 0 to this value.
    Linear(f64),
    /// From the first to the second value, both above 0.
    Log(f64, f64),
}

impl Scale {
    pub(super) fn place(self, x: f64) -> f64 {
        let share = match self {
            Self::Linear(end) if end > 0.0 => x / end,
            Self::Log(start, end) if x > 0.0 && end > start => {
                (x / start).ln() / (end / start).ln()
            }
            _ => 0.0,
        };
        (100.0 * share).clamp(0.0, 100.0)
    }

    /// Ticks at powers of ten on a logarithmic scale, thinned out to at most `most`, with 2 and 5 between them on a
    /// short scale.
    pub(super) fn decades(self, most: usize) -> Vec<Tick> {
        let Self::Log(start, end) = self else { return Vec::new() };
        let (first, last) =
            ((start.log10() - 1e-9).ceil() as i32, (end.log10() + 1e-9).floor() as i32);
        let step = ((last - first) as usize / most.max(1) + 1).min(100);
        let factors: &[i32] = if last - first < 2 && first >= 0 { &[1, 2, 5] } else { &[1] };
        (first..=last)
            .step_by(step)
            .flat_map(|power| factors.iter().map(move |factor| (power, f64::from(*factor))))
            .map(|(power, factor)| {
                let value = factor * 10_f64.powi(power);
                let label = if power < -3 { format!("1e{power}") } else { format!("{value}") };
                (value, Tick { place: self.place(value), label })
            })
            .filter(|(value, _)| *value <= end * (1.0 + 1e-9))
            .map(|(_, tick)| tick)
            .collect()
    }
}

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// In percent of the axis.
    pub(super) place: f64,
    pub(super) label: String,
}

/// The labels of the x axis.
pub(super) fn labels_below(ticks: &[Tick]) -> String {
    let mut html = r#"<div class="xs axis">"#.to_owned();
    for Tick { place, label } in ticks {
        let _ = write!(html, r#"<span style="left:{place:.2}%">{label}</span>"#);
    }
    html + "</div>"
}

/// A plot with axes: labels to the left and below, grid lines, and the drawing.
pub(super) fn framed(class: &str, ys: &[Tick], xs: &[Tick], drawn: &str) -> String {
    let mut html = format!(r#"<div class="frame {class}"><div class="ys">"#);
    for Tick { place, label } in ys {
        let _ = write!(html, r#"<span style="bottom:{place:.2}%">{label}</span>"#);
    }
    html += r#"</div><svg class="area" width="100%" height="100%" aria-hidden="true">"#;
    for Tick { place, .. } in ys {
        let y = 100.0 - place;
        let _ = write!(
            html,
            r#"<line x1="0" x2="100%" y1="{y:.2}%" y2="{y:.2}%" stroke="currentColor" stroke-opacity="0.18"/>"#
        );
    }
    for Tick { place, .. } in xs {
        let _ = write!(
            html,
            r#"<line x1="{place:.2}%" x2="{place:.2}%" y1="97%" y2="100%" stroke="currentColor"/>"#
        );
    }
    html + drawn + "</svg>" + &labels_below(xs) + "</div>"
}

/// A horizontal bar up to `value`, with a vertical line at `mark`.
pub(super) fn bar(value: f64, mark: f64, scale: Scale, colour: Colour) -> String {
    let width = scale.place(value);
    // A line on the edge would be clipped in half.
    let mark = scale.place(mark).clamp(0.3, 99.7);
    format!(
        r#"<svg class="bar" width="100%" height="22" aria-hidden="true"><line x1="0" y1="21.5" x2="100%" y2="21.5" stroke="currentColor" stroke-opacity="0.2"/><rect x="0" y="4" width="{width:.3}%" height="14" fill="{colour}" stroke="currentColor" stroke-width="0.5"/><line x1="{mark:.3}%" x2="{mark:.3}%" y1="1" y2="20" stroke="currentColor" stroke-width="2"/></svg>"#
    )
}

/// The columns of a histogram, with names as tooltips.
pub(super) fn columns(counts: &[u64], names: &[String], scale: Scale, colour: Colour) -> String {
    let width = 100.0 / counts.len().max(1) as f64;
    let mut svg = String::new();
    for (place, (&count, name)) in counts.iter().zip(names).enumerate() {
        if count > 0 {
            // Keeps one row in a million visible.
            let height = scale.place(count as f64).max(1.5);
            let _ = write!(
                svg,
                r#"<rect x="{:.3}%" y="{:.3}%" width="{:.3}%" height="{height:.3}%" fill="{colour}"><title>{name}</title></rect>"#,
                (place as f64 + 0.05) * width,
                100.0 - height,
                0.9 * width
            );
        }
    }
    svg
}

/// A point of a curve.
pub(super) struct Point {
    /// In percent from the left.
    pub(super) x: f64,
    /// In percent from the bottom.
    pub(super) y: f64,
    /// The tooltip.
    pub(super) name: String,
    /// Whether to emphasise it.
    pub(super) marked: bool,
}

/// A polyline with markers.
pub(super) fn curve(points: &[Point], colour: Colour) -> String {
    let mut svg = String::new();
    for pair in points.windows(2) {
        let _ = write!(
            svg,
            r#"<line x1="{:.2}%" y1="{:.2}%" x2="{:.2}%" y2="{:.2}%" stroke="{colour}" stroke-width="2"/>"#,
            pair[0].x,
            100.0 - pair[0].y,
            pair[1].x,
            100.0 - pair[1].y
        );
    }
    for point in points {
        let (radius, stroke) = if point.marked { (8, 2.5) } else { (4, 0.5) };
        let _ = write!(
            svg,
            r#"<circle cx="{:.2}%" cy="{:.2}%" r="{radius}" fill="{colour}" stroke="currentColor" stroke-width="{stroke}"><title>{}</title></circle>"#,
            point.x,
            100.0 - point.y,
            point.name
        );
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED: Colour = Colour([255, 0, 0]);

    #[test]
    fn bars_stay_on_their_scale() {
        let scale = Scale::Linear(10.0);
        assert!(bar(5.0, 7.0, scale, RED).contains(r#"width="50.000%""#));
        assert!(bar(5.0, 7.0, scale, RED).contains(r#"x1="70.000%""#));
        assert!(bar(0.0, 0.0, Scale::Linear(0.0), RED).contains(r#"width="0.000%""#));
        let scale = Scale::Log(0.1, 1000.0);
        assert_eq!([0.1, 10.0, 1000.0].map(|x| scale.place(x)), [0.0, 50.0, 100.0]);
        assert_eq!([0.0, 0.01, 1e9].map(|x| scale.place(x)), [0.0, 0.0, 100.0]);
    }

    #[test]
    fn decades_are_few_and_in_place() {
        let labels = |scale: Scale, most| {
            scale.decades(most).into_iter().map(|tick| tick.label).collect::<Vec<_>>()
        };
        assert_eq!(labels(Scale::Log(0.5, 8000.0), 6), ["1", "10", "100", "1000"]);
        assert_eq!(labels(Scale::Log(1e-6, 1.0), 4), ["1e-6", "1e-4", "0.01", "1"]);
        assert_eq!(labels(Scale::Log(0.9, 11.0), 6), ["1", "2", "5", "10"]);
        assert!(Scale::Linear(3.0).decades(4).is_empty());
    }

    #[test]
    fn histograms_show_what_there_is() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let svg = columns(&[0, 1, 1_000_000], &names, Scale::Linear(1e6), RED);
        assert_eq!(svg.matches("<rect").count(), 2);
        assert!(svg.contains(r#"height="1.500%""#) && svg.contains(r#"height="100.000%""#));
        let svg = columns(&[0, 1000, 1_000_000], &names, Scale::Log(1.0, 1e6), RED);
        assert!(svg.contains(r#"height="50.000%""#), "{svg}");
    }
}
