//! The rules of the repository: what belongs where, what names what, and what a function may do.

mod access_log;
mod contract;
mod costs;
mod deployments;
mod derived;
mod files;
mod functions;
mod imports;
mod metrics;
mod permissions;
mod protection;
mod tidy;
mod wiring;
