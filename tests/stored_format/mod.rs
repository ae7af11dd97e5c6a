//! Two builds that share a table never misread each other: in a canary, after a rollback, and with rows of long ago.
//!
//! `rows.json` has the rows of a build with stored format 3: rows of every kind, and rows before and after a change. Today's
//! build must read them, must write the same, and must judge its own resends by them.
//!
//! A failure here means that the build of yesterday would misread today's rows, or the other way round. Raise the number of
//! the stored format as `DESIGN.md` says under "Stored format 3", and only then record the rows again:
//! `FENCEPOST_RECORD_ROWS=1 cargo test -p tests --test all rows_that_yesterday`. A new kind of row is recorded in the same way.
//! The rows that are there already must stay as they are then, but for random ids.

mod reading;
mod recorded;
mod scene;
mod writing;
