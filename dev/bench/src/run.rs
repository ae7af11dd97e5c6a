//! [`Run`]: plays parts one after another, prints their tables, and keeps the report up to date.
#![expect(clippy::disallowed_methods, reason = "measures how long each part takes")]

use crate::figure::Measured;
use crate::measure::steps::Steps;
use crate::progress::Progress;
use crate::report::facts::Fact;
use crate::report::folder::Folder;
use crate::report::found::Found;
use crate::report::section::Section;
use crate::report::{markdown, page, sections, summary};
use std::any::Any;
use std::fmt::Write as _;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A part of a run.
pub struct Part {
    /// The name by which it can be run alone.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// How long it takes on some machine, in comparison with the other parts.
    pub expected: Duration,
    /// Measures.
    pub measure: Measure,
}

/// How a part measures.
pub type Measure = Box<dyn FnOnce(&Steps<'_>) -> Measured<Found>>;

/// A run. Another thread may stop it at any time.
pub struct Run {
    facts: Vec<Fact>,
    folder: Option<Folder>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    parts: Vec<Played>,
    is_stopped: bool,
}

struct Played {
    name: &'static str,
    title: &'static str,
    /// Whether this run plays it.
    is_wanted: bool,
    took: Option<Duration>,
    /// What was found. `None` until the part has ended.
    found: Option<Measured<Found>>,
}

impl Run {
    /// Prepares a run. `only` is the one part that is wanted. A report is written to the folder from the start.
    ///
    /// # Errors
    /// The report cannot be written.
    pub fn new(parts: &[Part], only: Option<&str>, facts: Vec<Fact>, folder: Option<Folder>) -> io::Result<Self> {
        let unwanted = |name| only.filter(|only| *only != name).map(|only| Err(format!("only `{only}` was asked for")));
        let played = |part: &Part| {
            let found = unwanted(part.name);
            Played { name: part.name, title: part.title, is_wanted: found.is_none(), took: None, found }
        };
        let state = State { parts: parts.iter().map(played).collect(), is_stopped: false };
        let run = Run { facts, folder, state: Mutex::new(state) };
        run.write(&run.state())?;
        Ok(run)
    }

    /// Plays the wanted parts. Gives their tables to `print` as Markdown. Returns the titles of parts that failed.
    ///
    /// A part that fails or panics is missing in the report, with the reason. The other parts are played all the same.
    ///
    /// # Errors
    /// The report cannot be written any more.
    pub fn play(&self, parts: Vec<Part>, mut print: impl FnMut(&str)) -> io::Result<Vec<&'static str>> {
        let wanted: Vec<_> = self.state().parts.iter().map(|part| part.is_wanted).collect();
        let parts: Vec<_> =
            parts.into_iter().enumerate().zip(wanted).filter(|(_, wanted)| *wanted).map(|(part, _)| part).collect();
        let progress = Progress::new(parts.iter().map(|(_, part)| part.expected).collect());
        progress.begin();
        let mut failed = Vec::new();
        let mut separator = "";
        for (place, (index, part)) in parts.into_iter().enumerate() {
            let title = part.title;
            let show = |share| progress.show(place, title, share);
            show(0.0);
            let begun = Instant::now();
            let found = caught(|| (part.measure)(&Steps::new(&show)));
            let took = begun.elapsed();
            let mut state = self.state();
            if state.is_stopped {
                return Ok(failed);
            }
            progress.ended(place, title, took);
            if found.is_err() {
                failed.push(title);
            }
            state.parts[index].took = Some(took);
            state.parts[index].found = Some(found);
            print(&format!("{separator}{}", state.in_terminal(index)));
            separator = "\n";
            self.write(&state)?;
        }
        if let Some(folder) = &self.folder {
            progress.say(&format!("The report is {}.", folder.page().display()));
        }
        Ok(failed)
    }

    /// Stops the run now. What is finished stays, and the rest is missing. Returns what to say about it.
    pub fn stop(&self) -> String {
        let mut state = self.state();
        state.is_stopped = true;
        let said = format!("Stopped after {}.", state.so_far());
        match (self.write(&state), &self.folder) {
            (Ok(()), None) => said,
            (Ok(()), Some(folder)) => format!("{said} What is finished is in {}.", folder.page().display()),
            (Err(error), _) => format!("{said} The report could not be written again: {error}."),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, state: &State) -> io::Result<()> {
        self.folder.as_ref().map_or(Ok(()), |folder| folder.write(&state.report(&self.facts)))
    }
}

impl State {
    fn report(&self, facts: &[Fact]) -> page::Report {
        let parts = self.parts.iter().map(|part| page::Part {
            name: part.name,
            title: part.title,
            took: part.took,
            section: self.section(part),
        });
        let found = self.parts.iter().filter_map(|part| part.found.as_ref()?.as_ref().ok());
        let is_complete = self.parts.iter().all(|part| part.found.is_some());
        page::Report {
            facts: facts.to_vec(),
            parts: parts.collect(),
            summary: summary::of(found),
            incomplete: (!is_complete).then(|| self.why_not_yet()),
        }
    }

    fn section(&self, part: &Played) -> Measured<Section> {
        match &part.found {
            Some(Ok(found)) => Ok(sections::section(found, &self.adds())),
            Some(Err(reason)) => Err(reason.clone()),
            None => Err(self.why_not_yet()),
        }
    }

    /// The adds, which are also drawn beside crowds.
    fn adds(&self) -> Measured<&crate::measure::adds::Adds> {
        let mut reason = "they are no part of this run".to_owned();
        for part in &self.parts {
            match &part.found {
                Some(Ok(Found::Adds(adds))) => return Ok(adds),
                Some(Err(why)) if part.name == "adds" => reason.clone_from(why),
                None if part.name == "adds" => reason = self.why_not_yet(),
                _ => {}
            }
        }
        Err(reason)
    }

    fn so_far(&self) -> String {
        let wanted = || self.parts.iter().filter(|part| part.is_wanted);
        let done = wanted().filter(|part| part.found.is_some()).count();
        format!("{done} of {} parts", wanted().count())
    }

    /// A run that is killed cannot say so. So its last report does not claim to be stopped.
    fn why_not_yet(&self) -> String {
        if self.is_stopped {
            format!("stopped after {}", self.so_far())
        } else {
            format!("{} were finished when this was written", self.so_far())
        }
    }

    /// The tables of a part, or why they are missing.
    fn in_terminal(&self, index: usize) -> String {
        let part = &self.parts[index];
        match self.section(part) {
            Ok(section) => section.tables.iter().map(markdown::of).collect::<Vec<_>>().join("\n"),
            Err(reason) => {
                let mut text = String::new();
                let _cannot_fail = writeln!(text, "{}: missing: {reason}", part.title);
                text
            }
        }
    }
}

/// What a part found. Its panic is a reason like any other.
fn caught(measure: impl FnOnce() -> Measured<Found>) -> Measured<Found> {
    let said = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("it panicked: {}", text.unwrap_or("without a text"))
    };
    catch_unwind(AssertUnwindSafe(measure)).unwrap_or_else(|panic| Err(said(panic)))
}
