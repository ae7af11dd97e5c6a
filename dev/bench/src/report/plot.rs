//! [`Plot`]: one picture of a report, drawn as SVG.

use super::bars::Bars;
use super::canvas::{Area, WIDTH};
use super::colour;
use super::escape::escaped;
use super::lines::Lines;
use crate::figure::Measured;
use plotters::prelude::{IntoDrawingArea, SVGBackend};

/// A picture of figures that are in a table, too.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The name of its file, without the ending.
    pub name: &'static str,
    /// The title, which is in the picture.
    pub title: String,
    /// What it shows, in a sentence or two under the picture.
    pub about: String,
    /// The picture itself.
    pub drawing: Drawing,
}

/// The kinds of plots.
#[derive(Clone, Debug)]
pub enum Drawing {
    /// Lines over two axes.
    Lines(Lines),
    /// Bars with their figures.
    Bars(Bars),
}

impl Plot {
    /// The picture as a file of its own.
    ///
    /// # Errors
    /// It could not be drawn.
    pub fn file(&self) -> Measured<String> {
        self.svg(&format!("<style>{}</style>\n", colour::dark()))
    }

    /// The picture for the page, which has its style already.
    ///
    /// # Errors
    /// It could not be drawn.
    pub fn inline(&self) -> Measured<String> {
        self.svg("")
    }

    /// The figures in words, as a screen reader reads them.
    #[must_use]
    pub fn in_words(&self) -> String {
        let figures = match &self.drawing {
            Drawing::Lines(lines) => lines.in_words(),
            Drawing::Bars(bars) => bars.in_words(),
        };
        format!("{} {figures}", self.about)
    }

    fn svg(&self, style: &str) -> Measured<String> {
        let height = match &self.drawing {
            Drawing::Lines(lines) => lines.height(),
            Drawing::Bars(bars) => bars.height(),
        };
        let mut svg = String::new();
        let area: Area<'_> = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        area.fill(&colour::Colour::Paper.drawn()).map_err(|error| error.to_string())?;
        match &self.drawing {
            Drawing::Lines(lines) => lines.draw(&area, &self.title),
            Drawing::Bars(bars) => bars.draw(&area, &self.title),
        }
        .map_err(|error| error.to_string())?;
        area.present().map_err(|error| error.to_string())?;
        drop(area);
        let (name, title, words) = (self.name, escaped(&self.title), escaped(&self.in_words()));
        let labelled = format!("<svg class=\"plot\" role=\"img\" aria-labelledby=\"{name}-title {name}-desc\" ");
        let labels = format!("<title id=\"{name}-title\">{title}</title>\n<desc id=\"{name}-desc\">{words}</desc>\n");
        let svg = svg.replacen("<svg ", &labelled, 1).replacen(">\n", &format!(">\n{labels}{style}"), 1);
        Ok(svg.replace(" opacity=\"1\"", ""))
    }
}
