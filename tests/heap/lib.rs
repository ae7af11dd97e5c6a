//! How much memory one request may take: a search for the worst body and the worst stored item of each route.
//!
//! The functions answer real events. Their requests go through the real SDK to canned answers, so that an engine does not
//! count. See `search` for the aims, and `cases` for the routes and their bounds.
#![cfg(test)]

mod cases;
mod engine;
mod functions;
mod search;
mod shape;
