//! The page of a report: one file, which needs no script and fetches nothing.

use super::colour;
use super::escape::escaped;
use super::facts::Fact;
use super::html::{figure, folded, missing, rows};
use super::section::Section;
use super::table::{Cell, Table};
use crate::figure::{Figure, Measured};
use std::time::Duration;

/// The results of a run, finished or not.
#[derive(Clone, Debug)]
pub struct Report {
    /// The machine, the code and the moment.
    pub facts: Vec<Fact>,
    /// The parts, in the order of the run.
    pub parts: Vec<Part>,
    /// The most important figures in sentences.
    pub summary: Vec<String>,
    /// Why the run is not complete. `None` if it is.
    pub incomplete: Option<String>,
}

/// What the run found in one part.
#[derive(Clone, Debug)]
pub struct Part {
    /// The name by which it can be run alone.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// How long it took. `None` if it was not played.
    pub took: Option<Duration>,
    /// Its tables and plots, or why they are missing.
    pub section: Measured<Section>,
}

impl Report {
    /// The tables about the run itself.
    #[must_use]
    pub fn about_the_run(&self) -> [Table; 2] {
        let mut facts = Table::new("run", &["this run", "value"]);
        for (name, fact) in &self.facts {
            facts.push_measured(name, fact, |fact| vec![Cell::from(fact.as_str())]);
        }
        let mut parts = Table::new("parts", &["parts of this run", "seeds", "took, s"]);
        for part in &self.parts {
            parts.push_measured(part.title, &part.section, |section| {
                let took = part.took.map_or_else(Figure::empty, |took| Figure::new(took.as_secs_f64(), 1));
                vec![Cell::from(section.seeds.as_str()), Cell::from(&took)]
            });
        }
        [facts, parts]
    }
}

/// The page.
#[must_use]
pub fn of(report: &Report) -> String {
    let title = "Fencepost: benchmarks";
    let links = report.parts.iter().map(|part| link(part.name, part.title)).collect::<String>();
    let sections = report.parts.iter().map(section).collect::<String>();
    let about = report.about_the_run().iter().map(rows).collect::<String>();
    let incomplete = report.incomplete.as_ref().map(|why| {
        format!("<p class=\"missing\" role=\"note\"><strong>This run is not complete:</strong> {}</p>\n", escaped(why))
    });
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"/>\n<meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{title}</title>\n<style>\n{style}\n{dark}\n</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n\
         <p>{head}</p>\n{incomplete}</header>\n<nav aria-label=\"Parts\">\n<ul>\n{links}{own}</ul>\n</nav>\n<main>\n\
         {short}{sections}<section id=\"run\">\n<h2>This run</h2>\n{about}</section>\n</main>\n</body>\n</html>\n",
        style = STYLE,
        dark = colour::dark(),
        head = head(report),
        incomplete = incomplete.unwrap_or_default(),
        own = link("run", "This run"),
        short = short(&report.summary),
    )
}

fn link(name: &str, title: &str) -> String {
    format!("<li><a href=\"#{name}\">{}</a></li>\n", escaped(title))
}

/// The facts that everyone asks for first. The others are at the end.
fn head(report: &Report) -> String {
    let known = |wanted: &str| {
        let fact = report.facts.iter().find(|(name, _)| *name == wanted);
        fact.and_then(|(_, fact)| fact.as_ref().ok()).map(|fact| escaped(fact))
    };
    let facts = [known("date"), known("commit").map(|commit| format!("commit {commit}")), known("processor")];
    facts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn short(summary: &[String]) -> String {
    if summary.is_empty() {
        return String::new();
    }
    let sentence = |sentence: &String| format!("<li>{}</li>\n", escaped(sentence));
    let sentences = summary.iter().map(sentence).collect::<String>();
    format!("<section id=\"short\">\n<h2>In short</h2>\n<ul>\n{sentences}</ul>\n</section>\n")
}

fn section(part: &Part) -> String {
    let body = match &part.section {
        Ok(section) => {
            let about = format!("<p>{}</p>\n", escaped(&section.about));
            let plots = section.plots.iter().map(figure).collect::<String>();
            let plots = format!("<div class=\"plots\">\n{plots}</div>\n");
            let gone = section.missing.iter().map(|reason| missing(reason)).collect::<String>();
            about + &gone + &plots + &section.tables.iter().chain(&section.samples).map(folded).collect::<String>()
        }
        Err(reason) => missing(reason),
    };
    format!("<section id=\"{}\">\n<h2>{}</h2>\n{body}</section>\n", part.name, escaped(part.title))
}

const STYLE: &str = "\
:root { color-scheme: light dark; --paper: #FFFFFF; --ink: #1F2933; --quiet: #52606D; --line: #D5DBE1; --link: #0B5CAD;
  --alarm: #8F2A00; --alarm-paper: #FFF1EB; }
@media (prefers-color-scheme: dark) { :root { --paper: #0F141A; --ink: #E4E9EE; --quiet: #A3AFBA; --line: #323C47;
  --link: #6CB2FF; --alarm: #FFB893; --alarm-paper: #33190C; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0.5rem 0; }
h2 { font-size: 1.35rem; line-height: 1.2; margin: 2.5rem 0 0.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
header p, figcaption { color: var(--quiet); overflow-wrap: anywhere; }
a { color: var(--link); }
a:focus-visible, summary:focus-visible, .wide:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; list-style: none; margin: 0; padding: 0; }
nav a { display: inline-block; padding: 0.3rem 0; }
section > p { max-width: 48rem; }
.plots { display: grid; gap: 1.5rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); }
figure { margin: 0; min-width: 0; }
.plot { display: block; width: 100%; max-width: 35rem; height: auto; }
figcaption { font-size: 0.9rem; max-width: 35rem; }
details { margin: 0.75rem 0; }
summary { cursor: pointer; padding: 0.3rem 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: 0.5rem 0; }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { border-bottom: 1px solid var(--line); padding: 0.3rem 0.6rem; text-align: left; vertical-align: top; }
thead th { border-bottom-width: 2px; }
tbody th { font-weight: 400; min-width: 11rem; }
#run td { overflow-wrap: anywhere; }
.figure { text-align: right; font-variant-numeric: tabular-nums; }
.missing { color: var(--alarm); background: var(--alarm-paper); padding: 0.4rem 0.75rem; border-radius: 0.3rem; }
@media print { details { display: block; } }";
