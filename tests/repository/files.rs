//! The files that the rules read: the template, the manifests, the events and the sources.

use dev::template::Template;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Complaints, collected so that one run names everything.
#[derive(Default)]
pub struct Complaints(Vec<String>);

impl Complaints {
    pub fn push(&mut self, complaint: String) {
        self.0.push(complaint);
    }

    pub fn unless(&mut self, fine: bool, complaint: impl FnOnce() -> String) {
        if !fine {
            self.0.push(complaint());
        }
    }

    pub fn difference(&mut self, all: &BTreeSet<String>, but: &BTreeSet<String>, complaint: impl Fn(&str) -> String) {
        self.0.extend(all.difference(but).map(|one| complaint(one)));
    }

    pub fn report(self) {
        let list = self.0.iter().fold(String::new(), |mut list, complaint| {
            let _ = write!(list, "\n  {complaint}");
            list
        });
        assert!(self.0.is_empty(), "{list}\n");
    }
}

/// A Rust file.
pub struct Source {
    pub path: String,
    pub text: String,
    /// Without comments and without its unit tests; lines keep their numbers.
    pub code: String,
}

impl Source {
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.code.lines())
    }

    /// The file, or the folder of files, right under `src`.
    pub fn module(&self) -> &str {
        let inside = self.path.rsplit_once("/src/").map_or("", |(_, inside)| inside);
        inside.split(['/', '.']).next().unwrap_or_default()
    }
}

pub fn root() -> PathBuf {
    dev::workspace().to_owned()
}

pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path} cannot be read: {error}"))
}

pub fn template() -> Template {
    Template::load(dev::workspace()).unwrap_or_else(|failure| panic!("{failure}"))
}

pub fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The binaries of `functions/`.
pub fn binaries() -> BTreeSet<String> {
    let files = sources("functions/src/bin").into_iter().map(|source| source.path);
    files.map(|path| path.trim_start_matches("functions/src/bin/").trim_end_matches(".rs").to_owned()).collect()
}

/// The folder of the module that a binary serves.
pub fn folder_of(function: &str) -> String {
    format!("functions/src/{}", function.replace('-', "_"))
}

/// Every file of `events/`.
pub fn events() -> BTreeMap<String, Value> {
    let parse = |path: PathBuf| {
        let name = relative(&path);
        let event = serde_json::from_str(&read(&name)).unwrap_or_else(|error| panic!("{name} is not JSON: {error}"));
        (name, event)
    };
    files(&root().join("events")).into_iter().map(parse).collect()
}

/// Every file below a folder, without build results and files of others.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let name = path.file_name().unwrap_or_default();
        if [".git", "target", ".aws-sam", "node_modules"].iter().any(|skipped| name == *skipped) {
            continue; // in a worktree .git is a file, which names the place of the repository
        }
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

pub fn sources(folder: &str) -> Vec<Source> {
    let rust = files(&root().join(folder))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    rust.map(|path| {
        let path = relative(&path);
        let text = read(&path);
        let code = code_of(&text);
        Source { path, text, code }
    })
    .collect()
}

/// The sources that run on Lambda: the crate, its core and the functions.
pub fn production() -> Vec<Source> {
    let mut all = sources("shared/src");
    all.extend(sources("shared/fencepost-core/src"));
    all.extend(sources("functions/src"));
    all.retain(|source| source.module() != "tests" && !source.path.ends_with("/tests.rs"));
    all
}

fn code_of(text: &str) -> String {
    let production = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = production.lines().map(|line| if line.trim_start().starts_with("//") { "" } else { line });
    lines.map(|line| line.split(" // ").next().unwrap_or_default().to_owned() + "\n").collect()
}

/// The plain string literals in a text.
pub fn strings(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('"').skip(1).step_by(2))
}

pub fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Whether a text looks like the name of an environment variable of ours.
pub fn is_variable(text: &str) -> bool {
    text.contains('_') && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}
