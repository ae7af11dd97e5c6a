//! A folder for the report of one test.

use super::example;
use super::markup::Element;
use bench::report::folder::Folder;
use bench::run::{Part, Run};
use std::path::{Path, PathBuf};

/// A folder that is removed at the end.
pub struct Files(PathBuf);

impl Files {
    /// A new folder for this test.
    pub fn of(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bench-report-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a new folder");
        Files(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A run of these parts that keeps its report here.
    pub fn run(&self, parts: &[Part], only: Option<&str>) -> Run {
        let folder = Folder::create(&self.0).expect("a folder");
        let facts =
            vec![("processor", Ok("one <fast> \"processor\"".to_owned())), ("commit", Err("no git".to_owned()))];
        Run::new(parts, only, facts, Some(folder)).expect("a report")
    }

    /// Plays all parts of the example. Returns what the terminal shows.
    pub fn play_example(&self) -> String {
        let mut shown = String::new();
        let parts = example::parts();
        let failed = self.run(&parts, None).play(parts, |table| shown += table).expect("a report");
        assert_eq!(failed, Vec::<&str>::new());
        shown
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn page(&self) -> Element {
        Element::read(&self.read("report.html"))
    }

    /// The names of all files, sorted.
    pub fn names(&self) -> Vec<String> {
        let names = std::fs::read_dir(&self.0).expect("the folder");
        let mut names: Vec<_> =
            names.map(|file| file.expect("a file").file_name().into_string().expect("a plain name")).collect();
        names.sort();
        names
    }

    /// Whether a file has this ending.
    pub fn is(&self, name: &str, ending: &str) -> bool {
        self.0.join(name).extension().is_some_and(|extension| extension == ending)
    }

    /// The fields of each line of a CSV file, without its headings.
    pub fn csv(&self, name: &str) -> Vec<Vec<String>> {
        fields(&self.read(name)).into_iter().skip(1).collect()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _gone_already = std::fs::remove_dir_all(&self.0);
    }
}

/// The fields of each line (RFC 4180).
pub fn fields(csv: &str) -> Vec<Vec<String>> {
    let (mut lines, mut line, mut field, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut characters = csv.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                field.push('"');
                characters.next();
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => line.push(std::mem::take(&mut field)),
            '\r' if !is_quoted => {}
            '\n' if !is_quoted => {
                line.push(std::mem::take(&mut field));
                lines.push(std::mem::take(&mut line));
            }
            other => field.push(other),
        }
    }
    assert!(!is_quoted && field.is_empty() && line.is_empty(), "the last line ends");
    lines
}

/// The tables in the Markdown of the terminal: their rows with the headings, without the rule.
pub fn markdown(text: &str) -> Vec<Vec<Vec<String>>> {
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows = |table: &str| table.lines().filter(|line| !line.starts_with("|---")).map(cells).collect();
    text.split("\n\n").map(rows).collect()
}
