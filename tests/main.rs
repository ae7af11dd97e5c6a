//! One test binary: scenarios, races, faults and the rules of the repository.
#![allow(clippy::disallowed_methods, missing_docs, reason = "tests set the clock, and what they are called says what they show")]

mod budgets;
mod deadlines;
mod engine;
mod faults;
mod histories;
mod over_http;
mod runtime_api;
mod tidy;
