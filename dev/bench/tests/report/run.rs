//! Runs of tiny parts: what is missing, and what stays when a run is stopped.

use super::example::{self, part, playing};
use super::files::{Files, markdown};
use bench::measure::function::Function;
use bench::report::found::Found;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

#[test]
fn a_part_that_failed_shows_its_reason_and_no_figure() {
    let files = Files::of("failed");
    let parts = vec![
        playing("function", "Function", |_| Err("no release build <here>".to_owned())),
        part("units", "Units", Found::Units(example::units())),
    ];
    let mut shown = String::new();
    let failed = files.run(&parts, None).play(parts, |table| shown += table).expect("a report");
    assert_eq!(failed, ["Function"]);
    let page = files.page();
    let section = page.with_id("function");
    assert!(section.whole_text().contains("missing: no release build <here>"));
    assert!(section.all("svg").is_empty() && section.all("table").is_empty());
    assert!(!section.whole_text().contains(|digit: char| digit.is_ascii_digit()), "{}", section.whole_text());
    assert!(shown.starts_with("Function: missing: no release build <here>\n\n| write units"), "{shown}");
    assert!(!files.names().contains(&"function.csv".to_owned()));
    assert_eq!(page.with_id("units").rows().len(), 2);
}

#[test]
fn one_measurement_of_a_part_may_be_missing_by_itself() {
    let files = Files::of("one-missing");
    let function = Function { memory: Err("no VmHWM".to_owned()), ..example::function() };
    let parts = vec![part("function", "Function", Found::Function(Box::new(function)))];
    let mut shown = String::new();
    files.run(&parts, None).play(parts, |table| shown += table).expect("a report");
    let memory = files.csv("function.csv").swap_remove(2);
    assert_eq!(memory[1..], ["missing: no VmHWM", "", "", ""]);
    assert_eq!(markdown(&shown)[0][3], memory);
    assert_eq!(files.page().with_id("function").rows()[2], memory[..2]);
    assert!(files.read("function-memory.svg").contains("missing: no VmHWM"));
    assert_eq!(files.csv("function.csv")[0][1], "5.19");
}

#[test]
fn a_part_that_panics_is_missing_and_the_next_one_is_played() {
    let files = Files::of("panics");
    let parts = vec![
        playing("orders", "Orders", |_| panic!("{} orders", "no")),
        part("units", "Units", Found::Units(example::units())),
    ];
    let failed = files.run(&parts, None).play(parts, |_| {}).expect("a report");
    assert_eq!(failed, ["Orders"]);
    assert!(files.page().with_id("orders").whole_text().contains("missing: it panicked: no orders"));
    assert_eq!(files.page().with_id("units").rows().len(), 2);
}

#[test]
fn a_stopped_run_keeps_what_is_finished() {
    let files = Files::of("stopped");
    let run: Rc<RefCell<Option<Arc<bench::run::Run>>>> = Rc::default();
    let stopping = Rc::clone(&run);
    let stop = move |_: &bench::measure::steps::Steps<'_>| {
        let said = stopping.borrow().as_ref().expect("a run").stop();
        assert!(said.starts_with("Stopped after 1 of 4 parts. What is finished is in "), "{said}");
        // The part goes on until its process ends.
        Ok(Found::Crowds(example::crowds()))
    };
    let parts = vec![
        part("units", "Units", Found::Units(example::units())),
        playing("crowds", "Crowds", stop),
        playing("adds", "Adds", |_| panic!("a stopped run plays nothing more")),
        part("roots", "Roots", Found::Roots(example::roots())),
    ];
    *run.borrow_mut() = Some(Arc::new(files.run(&parts, None)));
    let playing = run.borrow().clone().expect("a run");
    let mut shown = String::new();
    playing.play(parts, |table| shown += table).expect("a report");
    assert_eq!(markdown(&shown).len(), 1, "{shown}");
    let page = files.page();
    assert_eq!(page.with_id("units").rows().len(), 2);
    for part in ["crowds", "adds", "roots"] {
        let section = page.with_id(part);
        assert!(section.whole_text().contains("missing: stopped after 1 of 4 parts"), "{part}");
        assert!(section.all("svg").is_empty() && section.all("table").is_empty(), "{part}");
    }
    let head = page.all("header")[0].whole_text();
    assert!(head.contains("This run is not complete") && head.contains("stopped after 1 of 4 parts"), "{head}");
    assert_eq!(files.names(), ["parts.csv", "report.html", "run.csv", "units.csv", "units.svg"]);
}

#[test]
fn a_run_that_is_killed_leaves_the_report_of_its_last_part() {
    let files = Files::of("killed");
    let look = {
        let path = files.path().to_owned();
        move |_: &bench::measure::steps::Steps<'_>| {
            let page = std::fs::read_to_string(path.join("report.html")).expect("a page");
            assert!(page.contains("missing: 1 of 2 parts were finished when this was written"));
            assert!(path.join("units.csv").exists());
            Ok(Found::Roots(example::roots()))
        }
    };
    let parts = vec![part("units", "Units", Found::Units(example::units())), playing("roots", "Roots", look)];
    let failed = files.run(&parts, None).play(parts, |_| {}).expect("a report");
    assert_eq!(failed, Vec::<&str>::new());
    assert!(!files.read("report.html").contains("This run is not complete"));
}

#[test]
fn a_part_alone_says_that_the_others_were_not_asked_for() {
    let files = Files::of("alone");
    let parts = example::parts();
    let mut shown = String::new();
    files.run(&parts, Some("units")).play(parts, |table| shown += table).expect("a report");
    assert_eq!(markdown(&shown).len(), 1);
    let page = files.page();
    assert!(page.with_id("orders").whole_text().contains("missing: only `units` was asked for"));
    assert_eq!(page.with_id("units").rows().len(), 2);
    assert!(!files.read("report.html").contains("This run is not complete"));
}

#[test]
fn crowds_without_adds_are_drawn_and_say_so() {
    let files = Files::of("without-adds");
    let parts = vec![
        part("crowds", "Crowds", Found::Crowds(example::crowds())),
        playing("adds", "Adds", |_| Err("out of memory".to_owned())),
    ];
    files.run(&parts, None).play(parts, |_| {}).expect("a report");
    let page = files.page();
    let crowds = page.with_id("crowds");
    assert_eq!(crowds.all("svg").len(), 3);
    assert!(crowds.whole_text().contains("missing: adds beside the strategies: out of memory"));
    assert_eq!(files.csv("crowd-times.csv")[0].len(), 4);
}

#[test]
fn a_new_report_removes_the_tables_and_plots_of_the_one_before_and_nothing_else() {
    let files = Files::of("again");
    files.play_example();
    std::fs::write(files.path().join("notes.csv"), "mine").expect("a file");
    let parts = vec![part("units", "Units", Found::Units(example::units()))];
    files.run(&parts, None).play(parts, |_| {}).expect("a report");
    assert_eq!(files.names(), ["notes.csv", "parts.csv", "report.html", "run.csv", "units.csv", "units.svg"]);
    assert_eq!(files.read("notes.csv"), "mine");
}
