//! Host mappings: `host-mapping` and `delete-mapping` on one engine, from the event to the row.

mod batches;
mod processes;
mod routes;
pub mod world;
