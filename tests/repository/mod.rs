//! The rules of the repository: what belongs where, what names what, and what a function may do.

mod access_log;
mod alarms;
mod contract;
mod costs;
mod dashboard;
mod deployments;
mod derived;
mod files;
mod functions;
mod idempotency_keys;
mod imports;
mod kit;
mod metric_math;
mod openapi;
pub mod permissions;
mod protection;
mod tidy;
mod wiring;
