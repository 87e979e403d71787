//! Colours that colour-blind people can tell apart.

use std::fmt;

use crate::method;

/// Red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) [u8; 3]);

impl fmt::Display for Colour {
    /// As in SVG and CSS.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([red, green, blue]) = self;
        write!(f, "#{red:02X}{green:02X}{blue:02X}")
    }
}

const fn colour(rgb: u32) -> Colour {
    let [_, red, green, blue] = rgb.to_be_bytes();
    Colour([red, green, blue])
}

/// Words and axes.
pub(crate) const INK: Colour = colour(0x0022_2222);
/// Less important words and lines.
pub(crate) const SOFT: Colour = colour(0x005A_5A60);
/// Lines of a grid.
pub(crate) const GRID: Colour = colour(0x00E2_E2E6);
/// Lines behind other lines.
pub(crate) const FAINT: Colour = colour(0x00B8_B8BE);
/// The background.
pub(crate) const PAPER: Colour = colour(0x00FF_FFFF);
/// Errors.
pub(crate) const WRONG: Colour = colour(0x00C8_1E1E);
/// Series that are not methods, in turn: those colours of the palette of Okabe and Ito that can be seen on white and on
/// black.
pub(crate) const SERIES: [Colour; 6] = [
    colour(0x0000_72B2),
    colour(0x00D5_5E00),
    colour(0x0000_9E73),
    colour(0x00CC_79A7),
    colour(0x0056_B4E9),
    colour(0x00B7_9F00),
];

/// The colour of a method; the name may be followed by its parameter.
///
/// The paper's three have the paper's colours. Those and the projections are of the palette of Okabe and Ito, without
/// its yellow and black, which are invisible on white or on black.
pub(crate) fn of_method(title: &str) -> Colour {
    match title.split(' ').next().unwrap_or_default() {
        method::EVIDENTIAL => colour(0x0000_9E73),
        method::SOFTMAX => colour(0x0056_B4E9),
        method::SPARSEMAX => colour(0x00E6_9F00),
        "sparsegen-lin" => colour(0x00D5_5E00),
        "sparsegen-hg" => colour(0x0000_72B2),
        "entmax" => colour(0x00CC_79A7),
        "top-k" => colour(0x00AA_4499),
        "top-p" => colour(0x0088_8888),
        "top-n-sigma" => colour(0x0066_4422),
        "min-probability" => colour(0x0088_2255),
        "min-evidence" => colour(0x0033_9977),
        _ => colour(0x00B7_9F00),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn methods_have_colours_of_their_own_and_the_papers_three_those_of_the_paper() {
        let title = |choice: &method::Choice| choice.method(10).unwrap().0;
        let titles: Vec<String> = method::Choice::all().iter().map(title).collect();
        let colours: Vec<String> = titles.iter().map(|t| of_method(t).to_string()).collect();
        assert_eq!(colours[..3], ["#009E73", "#56B4E9", "#E69F00"]);
        for (place, colour) in colours.iter().enumerate() {
            assert!(!colours[..place].contains(colour), "{}", titles[place]);
        }
    }
}
