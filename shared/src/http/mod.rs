//! HTTP without a transport: requests, preconditions, responses and problems. This is the only folder with status
//! codes.
//!
//! A function names the *kind* of its answer ([`Problem::refused`], [`Response::created`]) and a stable code. This
//! folder turns the kind into a status code. [`Items`] does the work that all routes over a single item share.

#[cfg(feature = "axum")]
mod axum;
mod items;
mod preconditions;
mod problem;
mod request;
mod response;
mod validator;

#[cfg(feature = "axum")]
pub use axum::Invocation;
#[cfg(feature = "lambda")]
pub(crate) use axum::{NotDecoded, Told};
pub use items::{AddPlan, ChangeRequest, CreateRequest, DeleteRequest, Items, Resource};
pub use preconditions::{IfMatch, IfNoneMatch, Preconditions};
pub use problem::Problem;
pub use request::{Body, Fields, Id, Ip, MAX_BODY, Query, Request};
pub use response::Response;
pub use validator::Validator;
