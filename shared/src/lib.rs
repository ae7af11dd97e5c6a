//! Change shared state in `DynamoDB` exactly once, however many callers race and however often an answer is lost.

pub mod ambient;
pub mod call;
mod commit;
mod condition;
pub mod error;
pub mod http;
pub mod json;
pub mod request;
pub mod retry;
pub mod runtime;
mod row;
mod send;
pub mod table;
pub mod timestamp;
pub mod update;
pub mod version;
pub mod write_id;

pub use ambient::Ambient;
pub use call::{Call, Tally};
pub use error::{CreateError, DeleteError, Failure, Source, UpdateError, VersionedUpdateError};
pub use retry::{Deadline, RetryPolicy};
pub use table::{Attributes, Key, Record, Table};
pub use update::Decision;
pub use version::{Incarnation, ItemVersion, Version, Versioned};
