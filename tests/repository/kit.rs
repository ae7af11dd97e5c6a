//! The test kit stays one that any program can use.

use super::files::{Complaints, read, sources, toml, words};

/// The longest test that a user should have to write.
const MAX_LINES: usize = 30;

#[test]
fn a_user_shows_a_lost_answer_in_at_most_30_lines() {
    let test = "tests/outside-kit/tests/lost_answers.rs";
    let lines = read(test).lines().count();
    assert!(lines <= MAX_LINES, "{test}: {lines} lines");
    let page = read("shared/fencepost-test/README.md");
    let (_, example) = page.split_once("```rust").expect("an example");
    let (example, _) = example.split_once("\n```").expect("its end");
    let lines = example.lines().skip(1).count();
    assert!((10..=MAX_LINES).contains(&lines), "shared/fencepost-test/README.md: {lines} lines in the example");
}

#[test]
fn the_kit_knows_neither_fencepost_nor_lambda() {
    let manifest = toml("shared/fencepost-test/Cargo.toml");
    let mut found = Complaints::default();
    let needed = manifest["dependencies"].as_table().expect("a table");
    let refused = ["fencepost", "lambda_runtime", "aws_lambda_events"];
    for name in needed.keys().filter(|name| refused.contains(&name.as_str())) {
        found.push(format!("shared/fencepost-test/Cargo.toml: the kit must not need {name}"));
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
