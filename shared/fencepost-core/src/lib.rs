//! The exactly-once protocol of the crate `fencepost`, without I/O.
//!
//! [`Change`] is the machine: it is told what happened and says what to do next. It is not async, sends nothing, reads no
//! clock and draws no random number: times, ids and answers are arguments. Production, the models and the tests drive the
//! same machine. Nothing here is a stable interface; use the crate `fencepost`.
//!
//! | file | what it decides |
//! |---|---|
//! | `format` | what is stored: values, items, rows, the settings of a table |
//! | `condition` | all text of expressions |
//! | `edit` | what an edit asks of an item |
//! | `plan` | the request for an observed row and an intended change |
//! | `hold` | what is taken for a row before it is there, and what became of it |
//! | `lease` | the row of a lease, and the meaning of a refusal |
//! | `judge`, `memory`, `fate`, `refusal` | what a row proves about a write |
//! | `settle` | what follows from that proof |
//! | `attempts` | the attempts of a change that were refused and may still be applied |
//! | `exchange`, `patience`, `client` | when one request is sent, sent again, and given up |
//! | `policy` | the pauses between attempts |
//! | `change` | all of one change, from the decision to the proof |
#![expect(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "only the crate fencepost and its models use this package; the private types say more"
)]

mod attempts;
mod change;
mod client;
pub mod condition;
pub mod edit;
mod exchange;
mod fate;
mod fault;
pub mod format;
pub mod hold;
mod judge;
pub mod lease;
mod memory;
mod patience;
pub mod plan;
mod policy;
mod refusal;
mod settle;
mod time;
mod version;

pub use attempts::{Attempts, OpenAttempt};
pub use change::{Action, Answer, Change, Cost, Plan, Terms, Told, What};
pub use client::ClientState;
pub use edit::Bounds;
pub use exchange::{Leave, Outcome, Why};
pub use fate::{judge_open, may_still_land};
pub use fault::{Cause, Fault, SendId};
pub use format::item::{Attributes, Diff};
pub use format::names::Names;
pub use format::number::Number;
pub use format::{AttributeValue, InvalidValue};
pub use judge::{Base, SeenRow, SentWrite, TableRules, Verdict, is_fenced, judge};
pub use memory::{Memory, Trace, UNSEEN_IDS, WriteId};
pub use policy::{Line, MIN_SEND_TIME, RetryPolicy, fraction};
pub use refusal::{Reason, Role, Seen, Step, is_lost, judge_after_loss, judge_cancellation, judge_steps};
pub use settle::{
    After, Facts, MOST_OPEN, after, anchors_of, burn_helps, can_be_burned, committed, is_in_window, made, writes_to,
};
pub use time::{Draw, Now, epoch_millis, epoch_seconds, is_soon, millis};
pub use version::{Incarnation, ItemVersion, Version, Versioned};
