//! Products and orders together: `inventory` and `place-order` on one engine, from API Gateway's event to the row.

mod budgets;
mod crowd;
mod flash_sale;
mod routes;
pub mod world;
