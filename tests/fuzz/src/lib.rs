//! Targets for coverage-guided fuzzing. Each takes any bytes, and panics if they lead Fencepost to break a rule.
//!
//! `.ci/fuzz` runs them under libFuzzer. The inputs that it kept are in `corpus/`, and `cargo test` plays them.

mod answers;
mod cancellations;
mod cursors;
mod input;
mod json;
mod lines;
mod numbers;
mod queue;
mod requests;
mod rows;
mod running;
mod tags;
mod timestamps;

/// The name of a target, with the function that plays an input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("answers", answers::play),
    ("cancellations", cancellations::play),
    ("cursors", cursors::play),
    ("json", json::play),
    ("lines", lines::play),
    ("numbers", numbers::play),
    ("queue", queue::play),
    ("requests", requests::play),
    ("rows", rows::play),
    ("tags", tags::play),
    ("timestamps", timestamps::play),
];

/// The target with this name.
#[must_use]
pub fn target(name: &str) -> Option<fn(&[u8])> {
    TARGETS.iter().find(|(own, _)| *own == name).map(|(_, play)| *play)
}
