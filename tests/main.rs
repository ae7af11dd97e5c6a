//! One test binary: the crate and the functions on an engine, races, faults, and the rules of the repository. Pure code has
//! its tests beside it. Real `PynamoDB` and boto3 write in `.ci/mixed-writers` and `.ci/adoption`.
//!
//! | behaviour | file |
//! |---|---|
//! | **one item** | |
//! | the requests that an operation costs | `core/budgets.rs` |
//! | update, create and delete race: all are acknowledged, none is lost | `core/crowds.rs` |
//! | tickets and turns of writers in a crowd | `core/line.rs` |
//! | adds: bounds, windows, lost answers; a burned add, whose late copy is refused | `core/add.rs` |
//! | adds with a rule taken out | `core/add_rules.rs` |
//! | edits that set or remove values under conditions | `core/edits.rs` |
//! | a lost answer to an update or create: applied once | `core/unruly.rs` |
//! | a deadline, a denial: the caller is told no more than is known | `core/deadlines.rs` |
//! | a page of a proxy, half an answer, a reset, a lying server | `core/unruly.rs` |
//! | a second send while the first is awaited; sends that overtake each other | `core/hedging.rs`, `core/out_of_order.rs` |
//! | throttling for minutes; the name of the limit | `core/storms.rs` |
//! | a late copy of a replaced attempt | `core/succession/`, `shop/exactly_once.rs` |
//! | remembered items, a warm change in one request | `core/remembered.rs` |
//! | deleted items, values that expire | `core/tombstones.rs`, `clocks/mod.rs` |
//! | the difference of two items, keys with a sort key, derived records | `core/properties.rs`, `core/records.rs` |
//! | listings: queries and indexes page by page | `listings/pages.rs` |
//! | listings: a cursor that goes on or is refused | `listings/cursors.rs` |
//! | many keys in one read | `listings/many.rs` |
//! | **transactions and keys** | |
//! | a lost answer to a transaction: judged by a row that remembers it (the anchor); bare adds | `core/anchors.rs` |
//! | a refused transaction: burns, reads again, lost races | `core/refusals.rs` |
//! | the largest transaction (100 items, 4 MB) | `core/limits.rs` |
//! | an idempotency key without HTTP | `core/idempotency.rs` |
//! | an `Idempotency-Key` of a request: repeat, reuse, expiry | `devices/keys.rs`, `leases/routes.rs` |
//! | the answer is lost, and the same key comes again | `shop/exactly_once.rs`, `core/leases/lost_answers.rs` |
//! | a caller without a name | `requests/odd_events.rs` |
//! | **leases** | |
//! | a holder that was frozen or stopped for longer than its lease | `leases/processes.rs` |
//! | lost answers and late copies of acquire, renew, release | `core/leases/lost_answers.rs`, `core/leases/late_copies.rs` |
//! | two holders never write, fencing tokens rise | `histories/leases/mod.rs`, `restore/leases.rs` |
//! | two leaders create one child | `histories/leases/children.rs` |
//! | the row of a lease; clock skew | `core/leases/tokens.rs` |
//! | waiting for a lease | `core/leases/waiting.rs` |
//! | work under a lease, renewed and released | `core/leases/work.rs` |
//! | routes of `lease` and of `ensure-child` | `leases/routes.rs`, `leases/children.rs` |
//! | **the functions** | |
//! | bad input, reserved names such as `_version`, unknown paths, malformed tags and keys | `requests/bad_input.rs` |
//! | unusual events: base64, stages, encoded paths, Function URLs | `requests/odd_events.rs` |
//! | events of a REST API or a load balancer are refused | `../shared/src/lambda/event.rs` |
//! | patches, statuses and configurations without conflicts | `devices/edits.rs` |
//! | routes, answers, `If-Match` | `devices/routes.rs`, `shop/routes.rs`, `mappings/routes.rs` |
//! | numbers of up to 38 digits; devices too deep or over 400 KB | `devices/exactness.rs`, `devices/sizes.rs` |
//! | faults, answers lost at random, the end of Lambda's time (503 or 504 before it) | `devices/faults.rs` |
//! | stock is never sold twice; many buyers; a hot product | `shop/crowd.rs` |
//! | an order sent ten times, or with its answer lost, takes stock once | `shop/exactly_once.rs` |
//! | orders page by page | `shop/listings.rs` |
//! | newest instance wins; a late delete; a batch of a queue that fails in part | `mappings/routes.rs`, `mappings/batches.rs`, `mappings/lost_answers.rs` |
//! | requests per route | `shop/budgets.rs`, `leases/children.rs`, `mappings/budgets.rs` |
//! | metrics, traces, log lines | `devices/metrics.rs`, `mappings/processes.rs`, `core/spans.rs` |
//! | processes over sockets that lose answers | `devices/over_http.rs` |
//! | a function sends nothing between two invocations | `leases/processes.rs` |
//! | a function as a router, without events | `devices/as_a_router.rs` |
//! | **other programs, restores, clocks, the tool** | |
//! | a program that raises a version (`PynamoDB`, `DynamoDBMapper`) writes in between; adoption | `adoption/adopting.rs`, `adoption/transactions.rs` |
//! | programs that raise no version (boto3); tombstones beside other writers; tags | `adoption/any_writers.rs`, `adoption/deletes.rs`, `adoption/tags.rs` |
//! | two Regions with strong consistency | `adoption/regions/` |
//! | a corrupt row | `adoption/corrupt.rs`, `maintenance/explaining.rs` |
//! | the tool `fencepost`: adopt, sweep, killed and resumed | `maintenance/` |
//! | a restore, with the runbook and without; a table that vanishes | `restore/`, `restore/gone.rs` |
//! | clocks that are off | `clocks/mod.rs` |
//! | stored format 3, the rows of the build before: read; written alike; judged by two builds at once | `stored_format/reading.rs`, `stored_format/writing.rs`, `stored_format/between.rs` |
//! | **everything at once** | |
//! | the process dies at each await point | `crashes/` |
//! | seeded histories under all faults, and rules broken on purpose | `histories/`, `listings/histories/` |
//! | random programs over the whole public surface | `histories/programs/` |
//! | **the SDK client** | |
//! | connections, TLS, credentials | `core/connected.rs`, `core/pooled.rs`, `core/https.rs` |
//! | futures are `Send` and small; handles print no secret | `core/handles.rs` |
//! | **the repository** | |
//! | permissions of the template: least privilege | `repository/permissions.rs` |
//! | units and dollars of each route | `repository/costs.rs` |
//! | circles, banned text | `repository/imports.rs`, `repository/tidy.rs` |
//! | functions, events, template and pages agree | `repository/functions.rs`, `repository/derived.rs` |
//! | `docs/openapi.yaml` | `repository/openapi.rs`; every answer of every test is compared with it in `harness/contract.rs` |
//! | alarms, logs, backups, deployments, metrics | `repository/protection.rs`, `repository/metrics.rs` |
#![allow(missing_docs, clippy::missing_panics_doc, reason = "the name of a test says what it shows")]
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
