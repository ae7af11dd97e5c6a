//! The places of marks and the lengths of bars, read back from the SVG and compared with the CSV.

use super::files::Files;
use super::markup::Element;
use bench::report::colour::Colour;

/// An axis as its ticks show it: where a value is, in pixels.
struct Axis {
    ticks: Vec<(f64, f64)>,
    is_logarithmic: bool,
}

impl Axis {
    fn place(&self, value: f64) -> f64 {
        let of = |value: f64| if self.is_logarithmic { value.log10() } else { value };
        let ((low, from), (high, to)) = (self.ticks[0], self.ticks[self.ticks.len() - 1]);
        from + (of(value) - of(low)) / (of(high) - of(low)) * (to - from)
    }

    /// The ticks must lie where the first and the last one say.
    fn checked(self, what: &str) -> Self {
        assert!(self.ticks.len() >= 3, "{what}: {:?}", self.ticks);
        for (value, place) in &self.ticks {
            assert!((self.place(*value) - place).abs() <= 1.5, "{what}: the tick {value} is at {place}");
        }
        self
    }
}

/// The axes of a plot with lines. Labels of the x axis are centred, and those of the y axis end at it.
fn axes(svg: &Element, is_logarithmic: (bool, bool)) -> (Axis, Axis) {
    let ticks = |anchor: &str, coordinate: &str| {
        let texts = svg.all("text").into_iter().filter(|text| text.attribute("text-anchor") == anchor);
        let number = |text: &Element| text.text.trim().replace(',', "").parse::<f64>().ok();
        let mut ticks: Vec<_> = texts.filter_map(|text| Some((number(text)?, text.number(coordinate)))).collect();
        ticks.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        ticks
    };
    let x = Axis { ticks: ticks("middle", "x"), is_logarithmic: is_logarithmic.0 };
    let y = Axis { ticks: ticks("end", "y"), is_logarithmic: is_logarithmic.1 };
    (x.checked("x"), y.checked("y"))
}

/// The middles of the marks of a colour. The first one is in the legend.
fn marks(svg: &Element, colour: Colour) -> Vec<(f64, f64)> {
    let marks = svg.all("polygon").into_iter().filter(|mark| mark.attribute("fill") == colour.hex().0);
    let middle = |mark: &Element| {
        let points = points(mark);
        let middle = |of: fn(&(f64, f64)) -> f64| {
            let (least, most) = points.iter().map(of).fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
            f64::midpoint(least, most)
        };
        (middle(|point| point.0), middle(|point| point.1))
    };
    marks.skip(1).map(middle).collect()
}

fn points(element: &Element) -> Vec<(f64, f64)> {
    let point = |point: &str| {
        let (x, y) = point.split_once(',').expect("a point");
        (x.parse().expect("a number"), y.parse().expect("a number"))
    };
    element.attribute("points").split_whitespace().map(point).collect()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

fn assert_places(found: &[(f64, f64)], expected: &[(f64, f64)], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for ((x, y), (wanted_x, wanted_y)) in found.iter().zip(expected) {
        let near = (x - wanted_x).abs() <= 1.5 && (y - wanted_y).abs() <= 1.5;
        assert!(near, "{what}: a mark is at {x}, {y}, and its figure at {wanted_x}, {wanted_y}");
    }
}

/// The figures of the table, as (callers, figure): rows like "100, naive: …".
fn figures(files: &Files, table: &str, way: &str, column: usize) -> Vec<(f64, f64)> {
    let rows = files.csv(table).into_iter().filter_map(|row| {
        let (callers, rest) = row[0].split_once(", ")?;
        let callers = callers.parse().ok()?;
        rest.starts_with(way).then(|| (callers, number(&row[column])))
    });
    rows.collect()
}

#[test]
fn the_marks_over_writers_are_the_figures_of_the_tables() {
    let files = Files::of("marks");
    files.play_example();
    // The engine has no capacity. So the times of a thousand writers are not drawn.
    for (name, of_crowds, of_adds, most) in [("crowd-requests", 1, 1, 1000.0), ("crowd-time", 3, 2, 100.0)] {
        let svg = Element::read(&files.read(&format!("{name}.svg")));
        let (x, y) = axes(&svg, (true, true));
        let mut ours = figures(&files, "crowds.csv", "Fencepost", of_crowds);
        ours.extend(
            figures(&files, "adds.csv", "versioned", of_adds).into_iter().filter(|(callers, _)| *callers > 100.0),
        );
        for (colour, figures) in [
            (Colour::Ours, ours),
            (Colour::Usual, figures(&files, "crowds.csv", "naive", of_crowds)),
            (Colour::Second, figures(&files, "crowds.csv", "full jitter", of_crowds)),
            (Colour::Adds, figures(&files, "adds.csv", "add, one client", of_adds)),
            (Colour::OwnAdds, figures(&files, "adds.csv", "add, a client each", of_adds)),
        ] {
            assert!(figures.len() >= 4, "{name}, {colour:?}: {figures:?}");
            let drawn = figures.iter().filter(|(callers, _)| *callers <= most);
            let expected: Vec<_> = drawn.map(|(callers, value)| (x.place(*callers), y.place(*value))).collect();
            assert_places(&marks(&svg, colour), &expected, &format!("{name}, {colour:?}"));
        }
    }
}

#[test]
fn the_curve_of_a_way_that_gives_up_ends_where_its_times_end() {
    let files = Files::of("curves");
    files.play_example();
    let svg = Element::read(&files.read("crowd-times.svg"));
    let (x, y) = axes(&svg, (true, false));
    let ways = [Colour::Ours, Colour::Second, Colour::Usual, Colour::Adds, Colour::OwnAdds];
    for (column, colour) in ways.into_iter().enumerate() {
        let rows = files.csv("crowd-times.csv").into_iter().filter(|row| !row[column + 1].is_empty());
        let expected: Vec<_> = rows.map(|row| (x.place(number(&row[column + 1])), y.place(number(&row[0])))).collect();
        assert_eq!(expected.len(), if colour == Colour::Usual { 50 } else { 100 }, "half of the naive ones gave up");
        let lines = svg.all("polyline").into_iter().filter(|line| line.attribute("stroke") == colour.hex().0);
        let longest = lines.map(points).max_by_key(Vec::len).expect("a line");
        assert_places(&longest, &expected, &format!("{colour:?}"));
        let quarters: Vec<_> = expected.chunks_exact(25).map(|quarter| quarter[24]).collect();
        assert_places(&marks(&svg, colour), &quarters, &format!("{colour:?}, each 25 %"));
    }
}

/// The bars of a plot, with the text beside each.
fn bars(files: &Files, name: &str) -> Vec<(f64, String)> {
    let svg = Element::read(&files.read(&format!("{name}.svg")));
    let colours = [Colour::Ours, Colour::Usual, Colour::Second, Colour::Adds].map(|colour| colour.hex().0);
    let bars = svg.all("rect").into_iter().filter(|bar| colours.contains(&bar.attribute("fill")));
    let text_of = |bar: &Element| {
        let end = bar.number("x") + bar.number("width");
        let beside = |text: &&&Element| text.attribute("y") == bar.attribute("y") && text.number("x") > end;
        svg.all("text").iter().find(beside).map(|text| text.text.trim().to_owned())
    };
    bars.filter_map(|bar| Some((bar.number("width"), text_of(bar)?))).collect()
}

#[test]
fn the_bars_are_as_long_as_the_figures_of_the_tables() {
    let files = Files::of("bars");
    files.play_example();
    let of = |table: &str, columns: &[usize]| -> Vec<String> {
        let cells = files
            .csv(table)
            .into_iter()
            .flat_map(|row| columns.iter().map(|column| row[*column].clone()).collect::<Vec<_>>());
        cells.filter(|cell| !cell.is_empty()).collect()
    };
    let rows = |table: &str, row: usize| files.csv(table)[row][1..3].to_vec();
    for (name, unit, figures) in [
        ("function-size", " MB", rows("function.csv", 0)),
        ("function-memory", " MB", rows("function.csv", 2)),
        ("function-update", " ms", rows("function.csv", 3)),
        ("units", "", of("units.csv", &[1, 2, 3])),
        ("orders-requests", "", of("orders.csv", &[6])),
        ("leases-time", " ms", of("leases.csv", &[3, 4])),
        ("leases-requests", "", of("leases.csv", &[1, 2])),
        ("connections-time", " ms", of("connections.csv", &[2])),
        ("roots", " ms", of("roots.csv", &[1, 2])),
    ] {
        assert_bars(&bars(&files, name), &figures, unit, name);
    }
    let doubled = files.csv("orders.csv").into_iter().map(|row| format!("{}", number(&row[2]) - number(&row[1])));
    assert_bars(&bars(&files, "orders-doubled"), &doubled.collect::<Vec<_>>(), "", "orders-doubled");
}

fn assert_bars(bars: &[(f64, String)], figures: &[String], unit: &str, name: &str) {
    let texts: Vec<_> = bars.iter().map(|(_, text)| text.clone()).collect();
    assert_eq!(texts, figures.iter().map(|figure| format!("{figure}{unit}")).collect::<Vec<_>>(), "{name}");
    let most = figures.iter().map(|figure| number(figure)).fold(0.0, f64::max);
    let longest = bars.iter().map(|(length, _)| *length).fold(0.0, f64::max);
    let scale = longest / most;
    for ((length, _), figure) in bars.iter().zip(figures) {
        assert!(
            (length - number(figure) * scale).abs() <= 1.0,
            "{name}: the bar of {figure} has {length} of {longest}"
        );
    }
}

#[test]
fn a_plot_is_small_and_tells_its_figures_in_words() {
    let files = Files::of("words");
    files.play_example();
    for name in files.names().iter().filter(|name| files.is(name, "svg")) {
        let text = files.read(name);
        assert!(text.len() < 60_000, "{name}: {} bytes", text.len());
    }
    let words = |name: &str| Element::read(&files.read(name)).all("desc")[0].text.clone();
    let size = files.csv("function.csv").swap_remove(0);
    assert!(words("function-size.svg").contains(&format!("Fencepost {} MB, without the SDK {} MB", size[1], size[2])));
    let naive = figures(&files, "crowds.csv", "naive", 1);
    assert!(words("crowd-requests.svg").contains(&format!("naive: {:.2} at 1, ", naive[0].1)));
}
