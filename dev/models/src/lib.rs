//! The protocols of `DESIGN.md` as models: every order of a few calls and faults, not a sample of many.
//!
//! [`stateright`] visits every state that the calls, the network and the time of a model can reach within its bounds,
//! and tests the promises in each of them. The models decide with the pure functions of production
//! (`fencepost::testing`). Without a rule, a model finds a shortest way to break a promise, and tells it.
//!
//! `docs/models.md` lists the scope of each model.
#![allow(clippy::missing_panics_doc, reason = "a model panics where it contradicts itself, and says how")]
#![allow(clippy::must_use_candidate, reason = "a model has no call that is made for its effect")]
#![allow(missing_docs, reason = "fields of writes and events are named like those of production")]

pub mod leases;
pub mod newest;
pub mod one_item;
pub mod protocol;
pub mod row;
pub mod run;
pub mod scenes;
pub mod transactions;
pub mod world;
