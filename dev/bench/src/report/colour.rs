//! The colours of the plots, in light and in dark.

use plotters::style::RGBColor;
use std::fmt::Write as _;

/// A colour of a plot, by its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colour {
    /// The background.
    Paper,
    /// Texts and axes.
    Ink,
    /// Lines of the grid.
    Faint,
    /// Fencepost's versioned changes.
    Ours,
    /// The way that ours is compared with.
    Usual,
    /// Another usual way.
    Second,
    /// Adds of callers who share a client.
    Adds,
    /// Adds of callers with a client each.
    OwnAdds,
}

const ALL: [Colour; 8] = [
    Colour::Paper,
    Colour::Ink,
    Colour::Faint,
    Colour::Ours,
    Colour::Usual,
    Colour::Second,
    Colour::Adds,
    Colour::OwnAdds,
];

impl Colour {
    /// The colours for light and dark pages. Marks have a contrast of at least 3 to 1 with the paper of each.
    #[must_use]
    pub fn hex(self) -> (&'static str, &'static str) {
        match self {
            Colour::Paper => ("#FFFFFF", "#0F141A"),
            Colour::Ink => ("#1F2933", "#E4E9EE"),
            Colour::Faint => ("#D5DBE1", "#323C47"),
            Colour::Ours => ("#0B5CAD", "#6CB2FF"),
            Colour::Usual => ("#B8470B", "#F29257"),
            Colour::Second => ("#7A3E9D", "#CDA2F0"),
            Colour::Adds => ("#0E7A5A", "#45C09A"),
            Colour::OwnAdds => ("#7A6A00", "#D6C14A"),
        }
    }

    /// The colour in which it is drawn. A dark page replaces it by its style ([`dark`]).
    #[must_use]
    pub fn drawn(self) -> RGBColor {
        let [red, green, blue] = channels(self.hex().0);
        RGBColor(red, green, blue)
    }
}

fn channels(hex: &str) -> [u8; 3] {
    let digits = hex.trim_start_matches('#');
    [0, 2, 4].map(|at| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or_default())
}

/// The style that turns a drawing dark if the reader's system is.
///
/// A style wins over the attributes of the drawing. What knows no styles shows the drawing as it is, in light.
#[must_use]
pub fn dark() -> String {
    let mut style = "@media (prefers-color-scheme: dark) {".to_owned();
    for colour in ALL {
        let (light, dark) = colour.hex();
        let _cannot_fail = write!(
            style,
            " .plot [fill=\"{light}\"] {{ fill: {dark} }} .plot [stroke=\"{light}\"] {{ stroke: {dark} }}"
        );
    }
    style + " }"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relative luminance: <https://www.w3.org/TR/WCAG22/#dfn-relative-luminance>.
    fn luminance(hex: &str) -> f64 {
        let [red, green, blue] = channels(hex).map(|channel| {
            let share = f64::from(channel) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
        (one / other).max(other / one)
    }

    #[test]
    fn marks_and_texts_stand_out_in_light_and_dark() {
        let (light, dark) = Colour::Paper.hex();
        for colour in ALL.into_iter().filter(|colour| ![Colour::Paper, Colour::Faint].contains(colour)) {
            let least = if colour == Colour::Ink { 7.0 } else { 3.0 };
            let (in_light, in_dark) = (contrast(colour.hex().0, light), contrast(colour.hex().1, dark));
            assert!(in_light >= least && in_dark >= least, "{colour:?}: {in_light:.1} and {in_dark:.1}");
        }
    }

    #[test]
    fn a_dark_page_replaces_each_colour_of_a_drawing() {
        let style = dark();
        for colour in ALL {
            let (light, dark) = colour.hex();
            for part in ["fill", "stroke"] {
                assert!(style.contains(&format!(".plot [{part}=\"{light}\"] {{ {part}: {dark} }}")), "{colour:?}");
            }
            let RGBColor(red, green, blue) = colour.drawn();
            assert_eq!(format!("#{red:02X}{green:02X}{blue:02X}"), light, "as plotters writes it");
        }
    }
}
