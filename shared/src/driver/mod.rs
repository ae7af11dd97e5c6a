//! Drives the machine of `fencepost-core`: sends what it says, and tells it what came back.
//!
//! | file | what it does |
//! |---|---|
//! | `attempt` | the one loop of decisions: read, decide, send, decide again |
//! | `drive` | the one loop of sends: all that the machine says until it tells an outcome |
//! | `refused` | what a decision sees after a refusal |
//! | `rows` | the rows of a change, and the steps of a decision |
//! | `row_cache` | the rows that this client saw last |
//! | `watch` | an operation as seen from outside: its span, and the observer |
//! | `send` | one request: built, guarded, sent once, classified |

pub(crate) mod attempt;
mod drive;
mod refused;
pub(crate) mod row_cache;
pub(crate) mod rows;
pub(crate) mod send;
mod watch;

pub(crate) use drive::{MAX_ROWS, read_one, read_page, read_rows};
