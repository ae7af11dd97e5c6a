//! The rules of the repository. Each failure names the omission and its place.

use super::files::{Complaints, files, production, read, relative, root, sources, strings, words};
use std::fs;

/// The only folder with the text of condition expressions.
const CONDITIONS: &str = "shared/fencepost-core/src/condition/";

#[test]
fn text_of_condition_expressions_is_only_in_one_file() {
    let marks = ["attribute_not_exists(", "attribute_exists(", "begins_with(", " AND #", " AND :", "SET #", "REMOVE #"];
    let mut found = Complaints::default();
    for source in production().iter().filter(|source| !source.path.starts_with(CONDITIONS)) {
        for (number, line) in source.lines() {
            let placeholder = strings(line).any(|text| {
                let name = text.strip_prefix([':', '#']).unwrap_or_default();
                name.starts_with(|first: char| first.is_ascii_lowercase())
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
            });
            found.unless(!placeholder && !marks.iter().any(|mark| line.contains(mark)), || {
                format!("{}:{number}: text of an expression; it belongs in {CONDITIONS}", source.path)
            });
        }
    }
    found.report();
}

#[test]
fn the_test_kit_knows_neither_fencepost_nor_lambda() {
    let manifest = read("shared/fencepost-test/Cargo.toml");
    let (needed, _) = manifest.split_once("[dev-dependencies]").expect("its tests need macros");
    let mut found = Complaints::default();
    for name in ["fencepost", "lambda_runtime", "aws_lambda_events"] {
        found.unless(!needed.lines().any(|line| line.starts_with(name)), || {
            format!("shared/fencepost-test/Cargo.toml: the kit must not need {name}")
        });
    }
    for source in sources("shared/fencepost-test/src") {
        for (number, line) in source.lines() {
            // Attributes of rows that Fencepost alone writes belong to tests/harness/faults/.
            let own =
                words(line).find(|word| ["_version", "_writes", "_incarnation", "_purgeAt", "_fence"].contains(word));
            found.unless(own.is_none(), || format!("{}:{number}: it knows {}", source.path, own.unwrap_or_default()));
        }
    }
    found.report();
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    let marks = ["/home/", "/root/", "/Users/", "/work/", "C:\\", "/mnt/"];
    let mut found = Complaints::default();
    for path in files(&root())
        .iter()
        .filter(|path| !path.ends_with("tests/repository/tidy.rs") && !path.ends_with("Cargo.lock"))
    {
        let Ok(text) = fs::read_to_string(path) else { continue };
        for (number, line) in (1..).zip(text.lines()) {
            let mark = marks.iter().find(|mark| line.contains(*mark));
            found.unless(mark.is_none(), || {
                format!("{}:{number}: {} is a path of one machine", relative(path), mark.unwrap_or(&""))
            });
        }
    }
    found.report();
}
