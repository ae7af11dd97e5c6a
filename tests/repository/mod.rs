//! The rules of the repository: what belongs where, what names what, and what a function may do.

mod files;
mod idempotency_keys;
mod imports;
pub mod permissions;
mod protection;
mod tidy;
