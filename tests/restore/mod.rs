//! A restore to an earlier moment: the faults without the runbook of docs/operations.md, and their prevention.

mod devices;
mod leases;
mod stamps;
