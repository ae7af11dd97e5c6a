//! One test binary: the crate and the functions on an engine, races, faults, and the rules of the repository. Pure code has
//! its tests beside it. Real `PynamoDB` and boto3 write in `.ci/mixed-writers` and `.ci/adoption`.
//!
//! | folder | subject |
//! |---|---|
//! | `core/` | the crate: what operations cost, deadlines, refused values, wrong tables, the largest transaction, waiting for a lease |
//! | `histories/` | seeded histories under all faults; random programs over the whole public surface; rules broken on purpose |
//! | `crashes/` | the process dies at each await point |
//! | `listings/` | queries and indexes page by page, cursors, many keys in one read |
//! | `adoption/` | tables that other programs write, two Regions, corrupt rows |
//! | `restore/`, `maintenance/` | a restore with the runbook and without; the tool `fencepost` |
//! | `stored_format/` | the rows of the build before: read, written alike, judged by two builds at once |
//! | `conformance.rs` | the table of the models beside an engine, under the same requests |
//! | `clocks/` | clocks at the edge of the assumption and beyond it |
//! | `devices/`, `shop/`, `mappings/`, `leases/` | the functions: routes, answers, races, budgets, metrics |
//! | `requests/` | bad input and unusual events, at every function |
//! | `repository/` | template, permissions, costs, pages and `docs/openapi.yaml`, with which `harness/contract.rs` compares every answer |
#![allow(missing_docs, clippy::missing_panics_doc, reason = "the name of a test says what it shows")]
#![allow(clippy::disallowed_methods, reason = "tests set the clock and write behind the crate's back")]
#![allow(clippy::print_stdout, reason = "a random test prints its seed, a history what it was made of")]

mod adoption;
mod clocks;
mod conformance;
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
