//! The tests of the models: whole state spaces, each rule removed, and conformance with an engine.

mod conformance;
mod rules;
