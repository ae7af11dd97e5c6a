//! `lease` and `ensure-child` on one engine, from API Gateway's event to the row. `core/leases/` has the crate's leases.

mod children;
mod processes;
mod routes;
pub mod world;
