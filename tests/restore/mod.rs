//! A restore to an earlier moment: what goes wrong without the runbook of docs/operations.md, and what it prevents.

mod devices;
mod gone;
mod leases;
mod mappings;
mod orders;
mod stamps;
