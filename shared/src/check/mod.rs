//! The check of a table at the start of a program, and templates for tables that pass it.
//!
//! `schema.rs` says what a table must have, `compare.rs` asks for the table and compares, and `print.rs` writes the schema for
//! the tools that create tables.

mod compare;
mod print;
mod schema;

pub use compare::SchemaMismatch;
pub use schema::TableSchema;
