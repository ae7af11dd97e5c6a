//! For the operators of a table: [`explain`] gives the account of a row. A [`Run`] goes over all rows. An [`Audit`]
//! checks changes that were made.
//!
//! The program `fencepost` of the workspace puts both on the command line. `docs/operations.md` says when to use it.

mod audit;
mod explain;
mod run;
mod write;

pub use crate::listing::pages::Position;
pub use audit::{Audit, Breach, Change, Rule};
pub use explain::{Explanation, Kind, explain, explain_instance};
pub use run::{Explained, Run, WrongTable};
pub use write::{Found, Task};
