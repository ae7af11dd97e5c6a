//! Bars from left to right, in groups. Each has its figure at its end.

use super::canvas::{Area, WIDTH};
use super::colour::Colour;
use crate::figure::{Figure, Measured};
use plotters::prelude::*;
use std::error::Error;
use std::fmt::Write as _;

const TITLE: i32 = 40;
const LEGEND: i32 = 28;
const LABEL: i32 = 28;
const BAR: i32 = 24;
const SPACE: i32 = 12;
const LEFT: i32 = 14;
/// The width of a figure with its unit.
const FIGURE: i32 = 100;
/// The most characters of a line of text.
const CHARACTERS: usize = 56;
/// The room for a figure after the longest bar.
const RIGHT: i32 = 150;
const FONT: &str = "sans-serif";

/// Bars in groups.
#[derive(Clone, Debug)]
pub struct Bars {
    /// The unit, as it follows each figure.
    pub unit: String,
    /// The ways that are compared, with their colours. Each group has a bar for each.
    pub ways: Vec<(String, Colour)>,
    /// The groups, from top to bottom.
    pub groups: Vec<Group>,
    /// What none of ours may exceed, if that is promised.
    pub limit: Option<f64>,
}

/// The bars of one case.
#[derive(Clone, Debug)]
pub struct Group {
    /// The case. A plot of one case may have no name for it.
    pub name: String,
    /// The figure of each way, or why it is missing. A figure without a value has no bar.
    pub bars: Measured<Vec<Figure>>,
}

impl Bars {
    /// The height of the picture.
    #[must_use]
    pub fn height(&self) -> u32 {
        let limit = if self.limit.is_some() { LABEL } else { 0 };
        (self.top() + self.groups.iter().map(|group| self.height_of(group)).sum::<i32>() + limit).unsigned_abs()
    }

    fn top(&self) -> i32 {
        TITLE + if self.ways.len() > 1 { LEGEND } else { 0 }
    }

    fn height_of(&self, group: &Group) -> i32 {
        let bars = group.bars.as_ref().map_or_else(|reason| why(reason).len(), |_| self.ways.len());
        label_of(group) + BAR * i32::try_from(bars).unwrap_or_default() + SPACE
    }

    /// The figures in words.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut words = String::new();
        for group in &self.groups {
            let told = match &group.bars {
                Ok(bars) => {
                    let told = self.ways.iter().zip(bars).filter(|(_, figure)| figure.value().is_some());
                    told.map(|((way, _), figure)| format!("{way} {}", self.with_unit(figure)))
                        .collect::<Vec<_>>()
                        .join(", ")
                }
                Err(reason) => format!("missing: {reason}"),
            };
            let name = if group.name.is_empty() { String::new() } else { format!("{}: ", group.name) };
            let _cannot_fail = write!(words, "{name}{told}. ");
        }
        if let Some(limit) = self.limit {
            let _cannot_fail = write!(words, "Fencepost may have at most {limit} {}.", self.unit);
        }
        words.trim_end().to_owned()
    }

    fn with_unit(&self, figure: &Figure) -> String {
        format!("{figure} {}", self.unit).trim_end().to_owned()
    }

    /// Draws the picture.
    ///
    /// # Errors
    /// The drawing fails.
    pub fn draw(&self, area: &Area<'_>, title: &str) -> Result<(), Box<dyn Error>> {
        let ink = Colour::Ink.drawn();
        area.draw(&Text::new(title.to_owned(), (12, 10), (FONT, 23).into_font().style(FontStyle::Bold).color(&ink)))?;
        if self.ways.len() > 1 {
            self.draw_legend(area)?;
        }
        let mut y = self.top();
        for group in &self.groups {
            self.draw_group(area, group, y)?;
            y += self.height_of(group);
        }
        if let Some(limit) = self.limit {
            let x = LEFT + self.length(limit);
            let line = [(x, self.top()), (x, y + 2)];
            area.draw(&PathElement::new(line, ink.stroke_width(2)))?;
            let text = format!("at most {limit} {}", self.unit);
            area.draw(&Text::new(text, (x - 64, y + 8), (FONT, 20).into_font().color(&ink)))?;
        }
        Ok(())
    }

    fn draw_legend(&self, area: &Area<'_>) -> Result<(), Box<dyn Error>> {
        let each = i32::try_from(WIDTH)? / i32::try_from(self.ways.len())?;
        for (index, (way, colour)) in self.ways.iter().enumerate() {
            let (x, y) = (LEFT + each * i32::try_from(index)?, TITLE + 4);
            area.draw(&Rectangle::new([(x, y), (x + 16, y + 14)], colour.drawn().filled()))?;
            area.draw(&Text::new(way.clone(), (x + 24, y - 3), (FONT, 20).into_font().color(&Colour::Ink.drawn())))?;
        }
        Ok(())
    }

    fn draw_group(&self, area: &Area<'_>, group: &Group, top: i32) -> Result<(), Box<dyn Error>> {
        let style = || (FONT, 20).into_font().color(&Colour::Ink.drawn());
        if !group.name.is_empty() {
            area.draw(&Text::new(group.name.clone(), (LEFT, top + 2), style()))?;
        }
        let mut y = top + label_of(group);
        let bars = match &group.bars {
            Ok(bars) => bars,
            Err(reason) => {
                for line in why(reason) {
                    area.draw(&Text::new(line, (LEFT, y + 2), style()))?;
                    y += BAR;
                }
                return Ok(());
            }
        };
        for ((_, colour), figure) in self.ways.iter().zip(bars) {
            let Some(value) = figure.value() else { continue };
            let end = LEFT + self.length(value);
            area.draw(&Rectangle::new([(LEFT, y), (end, y + BAR - 4)], colour.drawn().filled()))?;
            area.draw(&Text::new(self.with_unit(figure), (self.beside(end), y), style()))?;
            y += BAR;
        }
        Ok(())
    }

    /// Where the figure of a bar begins: after it, and not under the line of the limit.
    fn beside(&self, end: i32) -> i32 {
        let limit = self.limit.map(|limit| LEFT + self.length(limit));
        limit.filter(|limit| (end..end + FIGURE).contains(limit)).unwrap_or(end) + 8
    }

    /// The length of the bar of a value, in pixels.
    #[expect(clippy::cast_possible_truncation, reason = "within the picture")]
    fn length(&self, value: f64) -> i32 {
        let figures = self.groups.iter().filter_map(|group| group.bars.as_ref().ok()).flatten();
        let most = figures.filter_map(Figure::value).chain(self.limit).fold(0.0, f64::max);
        let room = i32::try_from(WIDTH).unwrap_or_default() - LEFT - RIGHT;
        if most > 0.0 { (f64::from(room) * value / most).round() as i32 } else { 0 }
    }
}

/// The reason in lines that fit into the picture.
fn why(reason: &str) -> Vec<String> {
    let mut lines = vec!["missing:".to_owned()];
    for word in reason.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < CHARACTERS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn label_of(group: &Group) -> i32 {
    if group.name.is_empty() { 0 } else { LABEL }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_broken_into_lines() {
        let reason =
            "target/release/device-state: No such file or directory (os error 2), and nothing else is known about it";
        let lines = why(reason);
        assert_eq!(lines.join(" "), format!("missing: {reason}"));
        assert!(lines.len() > 1 && lines.iter().all(|line| line.len() <= CHARACTERS), "{lines:?}");
    }
}
