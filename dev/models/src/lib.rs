//! The protocol of `DESIGN.md` in small worlds: every order of a few calls and faults, or long random ones.
//!
//! The callers are production's machine, [`fencepost_core::Change`]. A world adds what production has around it: a front
//! that decides, a table, a network, other programs and time. [`stateright`] visits every state that a world can reach within
//! the bounds of a [scene](state::Scene), and tests the promises in each. Without a rule, it finds a shortest way to break
//! one, and tells it.
//!
//! `docs/models.md` lists what is played.
#![allow(clippy::missing_panics_doc, reason = "a world panics where it contradicts itself, and says how")]
#![allow(clippy::option_option, reason = "a write is refused, or leaves no row, or leaves one")]
#![allow(clippy::struct_excessive_bools, reason = "what a call has met is a list of flags")]
#![allow(missing_docs, reason = "fields of rows and writes are named like those of production")]

pub mod acts;
pub mod check;
pub mod front;
pub mod holds;
pub mod play;
pub mod promises;
pub mod random;
pub mod scenes;
pub mod service;
pub mod state;
pub mod story;
pub mod table;
