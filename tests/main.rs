//! One test binary: scenarios, races, faults and the rules of the repository.
#![allow(missing_docs, clippy::missing_panics_doc, reason = "what a test is called says what it shows")]
#![allow(clippy::disallowed_methods, reason = "tests set the clock and write behind the crate's back")]
#![allow(clippy::print_stdout, reason = "a random test prints its seed, a history what it was made of")]

mod adoption;
mod clocks;
mod core;
mod crashes;
mod devices;
mod harness;
mod histories;
mod leases;
mod listings;
mod maintenance;
mod mappings;
mod repository;
mod requests;
mod restore;
mod shop;
mod stored_format;
