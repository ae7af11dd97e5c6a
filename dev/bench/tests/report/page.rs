//! What is on the page.

use super::files::{Files, fields, markdown};
use super::markup::Element;
use bench::report::sections::FILES;

/// The parts of the example that have a table of the terminal, in their order.
const TABLES: [&str; 8] = ["function", "crowds", "adds", "units", "orders", "leases", "connections", "roots"];

#[test]
fn every_figure_of_the_terminal_is_on_the_page_and_in_the_csv_files() {
    let files = Files::of("figures");
    let shown = markdown(&files.play_example());
    let page = files.page();
    assert_eq!(shown.len(), TABLES.len());
    for (name, table) in TABLES.into_iter().zip(&shown) {
        assert!(table.len() > 2, "{name}: {table:?}");
        assert_eq!(&fields(&files.read(&format!("{name}.csv"))), table, "{name}");
        assert_eq!(page.with_id(name).rows(), table[1..], "{name}");
    }
}

#[test]
fn single_times_are_on_the_page_and_in_the_csv_files() {
    let files = Files::of("samples");
    files.play_example();
    let page = files.page();
    for (part, name) in [("function", "function-starts.csv"), ("crowds", "crowd-times.csv")] {
        let rows = files.csv(name);
        assert!(rows.len() >= 41, "{name}: {} rows", rows.len());
        let last = page.with_id(part).all("table");
        assert_eq!(last.last().expect("a table").rows(), rows, "{name}");
    }
}

#[test]
fn a_report_has_exactly_the_files_that_the_next_one_removes() {
    let files = Files::of("names");
    files.play_example();
    let mut expected: Vec<_> = FILES.iter().map(|file| (*file).to_owned()).chain(["report.html".to_owned()]).collect();
    expected.sort();
    assert_eq!(files.names(), expected);
}

#[test]
fn the_page_and_the_plots_are_well_formed_and_fetch_nothing() {
    let files = Files::of("well-formed");
    files.play_example();
    for name in files.names().iter().filter(|name| !files.is(name, "csv")) {
        let text = files.read(name).replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        let root = Element::read(&text);
        assert!(["html", "svg"].contains(&root.name.as_str()), "{name}");
        for outside in ["<script", "://", "src=", "url(", "@import", "<link"] {
            assert!(!text.contains(outside), "{name} has {outside}");
        }
        assert_eq!(root.handlers(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn each_plot_has_a_title_and_a_description_and_stands_before_its_table() {
    let files = Files::of("labels");
    files.play_example();
    let page = files.page();
    let mut ids = page.ids();
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count, "each id once");
    for name in TABLES {
        let section = page.with_id(name);
        let plots = section.all("svg");
        assert!(!plots.is_empty(), "{name}");
        for plot in plots {
            assert_eq!(plot.attribute("role"), "img", "{name}");
            for id in plot.attribute("aria-labelledby").split(' ') {
                assert!(page.with_id(id).text.len() > 4, "{id}");
            }
        }
        let places: Vec<_> = section.children.iter().map(|child| child.name.as_str()).collect();
        let place =
            |wanted| places.iter().position(|place| *place == wanted).unwrap_or_else(|| panic!("{name}: {wanted}"));
        assert!(place("div") < place("details"), "{name}: {places:?}");
    }
}

#[test]
fn each_table_has_headings_and_can_be_scrolled_with_the_keyboard() {
    let files = Files::of("tables");
    files.play_example();
    let page = files.page();
    assert_eq!(page.attribute("lang"), "en");
    let frames: Vec<_> = page.all("div").into_iter().filter(|div| div.attributes.contains_key("tabindex")).collect();
    assert_eq!(frames.len(), page.all("table").len());
    for frame in frames {
        assert_eq!((frame.attribute("role"), frame.attribute("tabindex")), ("region", "0"));
        assert!(!frame.attribute("aria-label").is_empty());
        let columns = frame.all("thead")[0].all("th");
        assert!(columns.iter().all(|column| column.attribute("scope") == "col"));
        for row in frame.all("tbody")[0].all("tr") {
            assert_eq!((row.children[0].name.as_str(), row.children[0].attribute("scope")), ("th", "row"));
        }
    }
}

#[test]
fn the_page_says_what_was_measured_where_and_what_is_not_known() {
    let files = Files::of("facts");
    files.play_example();
    let page = files.page();
    let facts = page.with_id("run").all("table")[0].rows();
    assert_eq!(facts, [vec!["processor", "one <fast> \"processor\""], vec!["commit", "missing: no git"]]);
    let parts = page.with_id("run").all("table")[1].rows();
    assert_eq!(parts.len(), TABLES.len());
    assert_eq!(parts[5][..2], ["Leases", "0 to 199"]);
    assert!(parts.iter().all(|part| part[2].parse::<f64>().is_ok()), "{parts:?}");
    assert_eq!(
        files.csv("run.csv"),
        [vec!["processor", "one <fast> \"processor\"",], vec!["commit", "missing: no git"]]
    );
}
