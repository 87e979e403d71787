//! Plots. They are as wide as they are shown, and words stay outside: scaled down to a telephone,
//! words in a drawing could not be read.

use std::fmt::Write as _;

use crate::figure::colour::Colour;

/// A bar from 0 to `value`, and a mark at another value, on a scale that ends at `largest`.
pub(super) fn bar(value: f64, mark: f64, largest: f64, colour: Colour) -> String {
    let place = |x: f64| if largest > 0.0 { (100.0 * x / largest).clamp(0.0, 100.0) } else { 0.0 };
    let (width, mark) = (place(value), place(mark));
    // A line on the very edge would be cut in half.
    let mark = mark.clamp(0.3, 99.7);
    format!(
        r#"<svg class="bar" width="100%" height="22" aria-hidden="true"><line x1="0" y1="21.5" x2="100%" y2="21.5" stroke="currentColor" stroke-opacity="0.2"/><rect x="0" y="4" width="{width:.3}%" height="14" fill="{colour}" stroke="currentColor" stroke-width="0.5"/><line x1="{mark:.3}%" x2="{mark:.3}%" y1="1" y2="20" stroke="currentColor" stroke-width="2"/></svg>"#
    )
}

/// Columns side by side, as high as the counts; each says what it counts when pointed at.
pub(super) fn histogram(counts: &[u64], names: &[String], colour: Colour) -> String {
    const HEIGHT: f64 = 60.0;
    let largest = counts.iter().copied().max().unwrap_or(0).max(1);
    let mut svg = format!(
        r#"<svg class="histogram" viewBox="0 0 {} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true">"#,
        counts.len().max(1)
    );
    for (place, (&count, name)) in counts.iter().zip(names).enumerate() {
        if count > 0 {
            // One row among a million should still be seen.
            let height = (HEIGHT * count as f64 / largest as f64).max(1.0);
            let _ = write!(
                svg,
                r#"<rect x="{:.2}" y="{:.3}" width="0.9" height="{height:.3}" fill="{colour}"><title>{name}</title></rect>"#,
                place as f64 + 0.05,
                HEIGHT - height
            );
        }
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED: Colour = Colour([255, 0, 0]);

    #[test]
    fn bars_stay_on_their_scale() {
        assert!(bar(5.0, 7.0, 10.0, RED).contains(r#"width="50.000%""#));
        assert!(bar(5.0, 7.0, 10.0, RED).contains(r#"x1="70.000%""#));
        assert!(bar(0.0, 0.0, 0.0, RED).contains(r#"width="0.000%""#));
    }

    #[test]
    fn histograms_show_what_there_is() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let svg = histogram(&[0, 1, 1_000_000], &names, RED);
        assert_eq!(svg.matches("<rect").count(), 2);
        assert!(svg.contains(r#"height="1.000""#) && svg.contains(r#"height="60.000""#));
    }
}
