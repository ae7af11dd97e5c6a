//! One test binary: scenarios, races, faults and the rules of the repository.
#![allow(missing_docs, clippy::missing_panics_doc, reason = "what a test is called says what it shows")]
#![allow(clippy::disallowed_methods, reason = "tests set the clock and write behind the crate's back")]
#![allow(clippy::print_stdout, reason = "a random test prints its seed, a history what it was made of")]

mod bad_input;
mod budgets;
mod crowds;
mod deadlines;
mod engine;
mod faults;
mod histories;
mod lease_histories;
mod lease_waiters;
mod leases;
mod limits;
mod mapping_histories;
mod mappings;
mod order_histories;
mod orders;
mod over_http;
mod permissions;
mod properties;
mod runtime_api;
mod scenarios;
mod seeds;
mod stock;
mod tidy;
