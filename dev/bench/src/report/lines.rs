//! Lines over two axes.

use super::canvas::{Area, WIDTH};
use super::colour::Colour;
use super::scale::Scale;
use crate::figure::Figure;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use std::error::Error;
use std::fmt::Write as _;

const TITLE: i32 = 36;
const LEGEND_ROW: i32 = 25;
const PLOT: u32 = 350;
const FONT: &str = "sans-serif";
/// The most points of a line that are told in words.
const TOLD: usize = 6;

/// Lines over two axes.
#[derive(Clone, Debug)]
pub struct Lines {
    /// The axis from left to right.
    pub x: Axis,
    /// The axis from bottom to top.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it shows, with the unit.
    pub title: String,
    /// Whether each step is a multiple of the one before.
    pub is_logarithmic: bool,
}

/// A line.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its colour.
    pub colour: Colour,
    /// Its points. A figure without a value has no point.
    pub points: Vec<(Figure, Figure)>,
    /// Every so many points have a mark, and the last one. Marks tell lines apart without colours.
    pub marks_every: usize,
}

impl Series {
    /// The points that have a place.
    #[must_use]
    pub fn places(&self) -> Vec<(f64, f64)> {
        self.points.iter().filter_map(|(x, y)| Some((x.value()?, y.value()?))).collect()
    }
}

impl Lines {
    /// The height of the picture.
    #[must_use]
    pub fn height(&self) -> u32 {
        self.top().unsigned_abs() + PLOT
    }

    /// Where the axes begin, below the title and the legend.
    fn top(&self) -> i32 {
        TITLE + LEGEND_ROW * i32::try_from(self.series.len().div_ceil(2)).unwrap_or_default()
    }

    /// The points in words. Of a long line, some of them.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut words = format!("From left to right: {}. From bottom to top: {}.", self.x.title, self.y.title);
        for series in &self.series {
            let points: Vec<_> = series.points.iter().filter(|(x, y)| x.value().and(y.value()).is_some()).collect();
            let every = points.len().div_ceil(TOLD).max(1);
            let mut told: Vec<_> = points.iter().rev().step_by(every).map(|(x, y)| format!("{y} at {x}")).collect();
            told.reverse();
            let told = if told.is_empty() { "nothing".to_owned() } else { told.join(", ") };
            let _cannot_fail = write!(words, " {}: {told}.", series.name);
        }
        words
    }

    fn scale(&self, axis: &Axis, of: fn((f64, f64)) -> f64) -> Scale {
        let values: Vec<_> = self.series.iter().flat_map(Series::places).map(of).collect();
        if axis.is_logarithmic { Scale::logarithmic(&values) } else { Scale::linear(&values) }
    }

    /// Draws the picture.
    ///
    /// # Errors
    /// The drawing fails.
    pub fn draw(&self, area: &Area<'_>, title: &str) -> Result<(), Box<dyn Error>> {
        let (ink, faint) = (Colour::Ink.drawn(), Colour::Faint.drawn());
        let font = |size: u32| (FONT, size).into_font().color(&ink);
        area.draw(&Text::new(title.to_owned(), (12, 10), (FONT, 23).into_font().style(FontStyle::Bold).color(&ink)))?;
        self.draw_legend(area)?;
        let (_, below) = area.split_vertically(self.top());
        let mut chart = ChartBuilder::on(&below)
            .margin_top(10)
            .margin_right(36)
            .margin_left(8)
            .margin_bottom(6)
            .x_label_area_size(54)
            .y_label_area_size(74)
            .build_cartesian_2d(self.scale(&self.x, |(x, _)| x), self.scale(&self.y, |(_, y)| y))?;
        let (x, y) = (self.scale(&self.x, |(x, _)| x), self.scale(&self.y, |(_, y)| y));
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT).bold_line_style(faint).axis_style(ink);
        let (on_x, on_y) = (|value: &f64| x.format_ext(value), |value: &f64| y.format_ext(value));
        mesh.x_label_formatter(&on_x).y_label_formatter(&on_y);
        mesh.x_desc(&self.x.title).y_desc(&self.y.title);
        mesh.axis_desc_style(font(20)).label_style(font(20)).draw()?;
        for series in &self.series {
            let places = series.places();
            chart.draw_series(LineSeries::new(places.iter().copied(), series.colour.drawn().stroke_width(3)))?;
            for (index, place) in places.iter().enumerate() {
                if (index + 1).is_multiple_of(series.marks_every) || index + 1 == places.len() {
                    area.draw(&mark(chart.backend_coord(place), series.colour))?;
                }
            }
        }
        Ok(())
    }

    fn draw_legend(&self, area: &Area<'_>) -> Result<(), Box<dyn Error>> {
        for (index, series) in self.series.iter().enumerate() {
            let (row, column) = (i32::try_from(index / 2)?, i32::try_from(index % 2)?);
            let (x, y) = (14 + column * i32::try_from(WIDTH / 2)?, TITLE + row * LEGEND_ROW + 14);
            area.draw(&PathElement::new([(x, y), (x + 28, y)], series.colour.drawn().stroke_width(3)))?;
            area.draw(&mark((x + 14, y), series.colour))?;
            let style = (FONT, 20).into_font().color(&Colour::Ink.drawn());
            area.draw(&Text::new(series.name.clone(), (x + 36, y - 8), style))?;
        }
        Ok(())
    }
}

/// The corners of a mark, in pixels around its place. Each colour has its own form, so that nobody has to tell colours
/// apart.
fn form(colour: Colour) -> &'static [(i32, i32)] {
    match colour {
        Colour::Usual => &[(-8, 7), (8, 7), (0, -7)],
        Colour::Second => &[(-6, -6), (6, -6), (6, 6), (-6, 6)],
        Colour::Adds => &[(0, -9), (9, 0), (0, 9), (-9, 0)],
        Colour::OwnAdds => &[(-8, -7), (8, -7), (0, 7)],
        Colour::Ours | Colour::Paper | Colour::Ink | Colour::Faint => {
            &[(-3, -7), (3, -7), (7, -3), (7, 3), (3, 7), (-3, 7), (-7, 3), (-7, -3)]
        }
    }
}

fn mark((x, y): (i32, i32), colour: Colour) -> Polygon<(i32, i32)> {
    let corners = form(colour).iter().map(|(right, down)| (x + right, y + down));
    Polygon::new(corners.collect::<Vec<_>>(), colour.drawn().filled())
}
