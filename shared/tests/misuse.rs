//! Programs that misuse the interface do not compile, and the compiler says why. `misuse/edits.rs` has them, each mistake on
//! a line with what became of it when edits were made of names and values of any type, and after `//~` with what is said.
#![allow(unexpected_cfgs, reason = "only the test itself sets `misuse`")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

#[cfg(misuse)]
#[path = "misuse/edits.rs"]
mod edits;

#[test]
fn misuse_does_not_compile() {
    let own_target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("misuse");
    let words = ["rustc", "--offline", "--profile=check", "--test=misuse", "--message-format=json", "--target-dir"];
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(words).arg(own_target).args(["--", "--cfg=misuse"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = cargo.output().expect("cargo");
    let messages = String::from_utf8(output.stdout).expect("text");
    let messages = messages.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut said = BTreeMap::<u64, String>::new();
    for error in messages.map(|told| told["message"].clone()).filter(|told| told["level"] == "error") {
        let mut spans = error["spans"].as_array().into_iter().flatten();
        if let Some(place) = spans.find(|span| span["is_primary"] == true) {
            let line = place["line_start"].as_u64().expect("a line");
            // It repeats the line of the mistake, which has the words.
            let told = error["rendered"].as_str().expect("a text").lines().filter(|line| !line.contains("//~"));
            said.entry(line).or_default().extend(told);
        }
    }
    assert!(!said.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    for (number, line) in (1..).zip(include_str!("misuse/edits.rs").lines()) {
        match (line.split_once("//~ "), said.remove(&number)) {
            (None, said) => assert_eq!(said, None, "{line}"),
            (Some((_, words)), said) => {
                assert!(said.as_ref().is_some_and(|said| said.contains(words)), "{line}: {said:?}");
            }
        }
    }
}
