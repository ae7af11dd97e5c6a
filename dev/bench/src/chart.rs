//! The pictures of [`crate::one_item`], as SVG in the reader's choice of light or dark.

use crate::one_item::{Crowd, adds, strategies};
use crate::table::{Outcome, mean, number};
use plotters::prelude::*;
use std::path::Path;

const FONT: &str = "sans-serif";
const SIZE: (u32, u32) = (560, 446);

/// A colour in light and in dark. Each has a contrast of at least 3 to 1 with the paper.
type Colour = (RGBColor, &'static str);
const PAPER: Colour = (RGBColor(0xFF, 0xFF, 0xFF), "#0F141A");
const INK: Colour = (RGBColor(0x1F, 0x29, 0x33), "#E4E9EE");
const GRID: Colour = (RGBColor(0xD5, 0xDB, 0xE1), "#323C47");

/// The ways drawn, by the beginning of their names. Each has a mark of its own form, around its place.
type Line = (&'static str, Colour, &'static [(i32, i32)]);
const LINES: [Line; 6] = [
    (
        "Fencepost, versioned",
        (RGBColor(0x0B, 0x5C, 0xAD), "#6CB2FF"),
        &[(-7, -3), (0, -7), (7, -3), (7, 3), (0, 7), (-7, 3)],
    ),
    ("full jitter", (RGBColor(0x7A, 0x3E, 0x9D), "#CDA2F0"), &[(-6, -6), (6, -6), (6, 6), (-6, 6)]),
    (
        "at once",
        (RGBColor(0xA3, 0x2A, 0x4E), "#F08CAB"),
        &[(-7, -7), (0, -2), (7, -7), (2, 0), (7, 7), (0, 2), (-7, 7), (-2, 0)],
    ),
    ("naive", (RGBColor(0xB8, 0x47, 0x0B), "#F29257"), &[(-8, 7), (8, 7), (0, -7)]),
    ("adds, one client", (RGBColor(0x0E, 0x7A, 0x5A), "#45C09A"), &[(0, -9), (9, 0), (0, 9), (-9, 0)]),
    ("adds, a client each", (RGBColor(0x7A, 0x6A, 0x00), "#D6C14A"), &[(-8, -7), (8, -7), (0, 7)]),
];

/// Plays the crowds and draws them into this folder.
pub fn draw_all(folder: &Path) -> Outcome<()> {
    let mut crowds = strategies();
    let most = crowds.iter().map(|crowd| crowd.callers).max();
    let is_new = |crowd: &Crowd| crowd.way.starts_with("adds") || Some(crowd.callers) > most;
    crowds.extend(adds().into_iter().filter(is_new));
    let requests = draw("Requests for one change", &crowds, |crowd| crowd.requests)?;
    std::fs::write(folder.join("crowd-requests.svg"), requests)?;
    // DynamoDB takes a larger crowd on one item more slowly than the engine, which has no capacity.
    crowds.retain(|crowd| Some(crowd.callers) <= most);
    let time = draw("Mean time of one change, ms", &crowds, |crowd| mean(&crowd.times))?;
    Ok(std::fs::write(folder.join("crowd-time.svg"), time)?)
}

/// A figure of each crowd over its number of callers. Both axes are logarithmic.
fn draw(title: &str, crowds: &[Crowd], of: fn(&Crowd) -> f64) -> Outcome<String> {
    let font = |size: i32| (FONT, size).into_font().color(&INK.0);
    let points = |name: &str| -> Vec<(f64, f64)> {
        let crowds = crowds.iter().filter(|crowd| crowd.way.starts_with(name));
        crowds.map(|crowd| (number(crowd.callers), of(crowd))).filter(|(_, y)| y.is_finite()).collect()
    };
    let all: Vec<_> = LINES.iter().flat_map(|(name, ..)| points(name)).collect();
    let end = |of: fn(&(f64, f64)) -> f64| all.iter().map(of).fold(1.0, f64::max);
    let least = all.iter().map(|(_, y)| *y).fold(f64::INFINITY, f64::min);
    let least = 10_f64.powf(least.log10().floor());
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    area.fill(&PAPER.0)?;
    area.draw(&Text::new(title.to_owned(), (12, 10), font(23)))?;
    let (legend, below) = area.split_vertically(111);
    let mut chart = ChartBuilder::on(&below)
        .margin(8)
        .margin_right(36)
        .x_label_area_size(54)
        .y_label_area_size(64)
        .build_cartesian_2d((1.0..end(|(x, _)| *x)).log_scale(), (least..end(|(_, y)| *y)).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID.0)
        .axis_style(INK.0)
        .y_labels(3)
        .x_label_formatter(&f64::to_string)
        .y_label_formatter(&f64::to_string)
        .x_desc("callers at once on one item")
        .axis_desc_style(font(20))
        .label_style(font(20))
        .draw()?;
    for (index, (name, (colour, _), form)) in LINES.iter().enumerate() {
        let mark = |(x, y): (i32, i32)| {
            Polygon::new(form.iter().map(|(right, down)| (x + right, y + down)).collect::<Vec<_>>(), colour.filled())
        };
        let (x, y) = (28 + 280 * i32::try_from(index % 2)?, 50 + 25 * i32::try_from(index / 2)?);
        legend.draw(&mark((x, y)))?;
        legend.draw(&Text::new((*name).to_owned(), (x + 22, y - 8), font(20)))?;
        chart.draw_series(LineSeries::new(points(name), colour.stroke_width(3)))?;
        for point in points(name) {
            area.draw(&mark(chart.backend_coord(&point)))?;
        }
    }
    area.present()?;
    drop((chart, legend, below, area));
    let dark = [PAPER, INK, GRID].into_iter().chain(LINES.map(|(_, colour, _)| colour));
    let dark = dark.fold(String::new(), |style, (RGBColor(red, green, blue), dark)| {
        let light = format!("#{red:02X}{green:02X}{blue:02X}");
        style + &format!(" [fill=\"{light}\"] {{ fill: {dark} }} [stroke=\"{light}\"] {{ stroke: {dark} }}")
    });
    let style = format!(">\n<title>{title}</title>\n<style>@media (prefers-color-scheme: dark) {{{dark} }}</style>\n");
    Ok(svg.replacen("<svg ", "<svg role=\"img\" ", 1).replacen(">\n", &style, 1).replace(" opacity=\"1\"", ""))
}
