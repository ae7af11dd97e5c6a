//! HTTP without a transport: requests, preconditions, responses and problems. Only this folder has status codes.
//!
//! A function names the *kind* of its answer ([`Problem::refused`], [`Response::created`]) and a stable code. This
//! folder turns the kind into a status code. [`Items`] does the shared work of all routes over a single item.
//!
//! With the feature `axum`, a [`Request`] is an extractor that takes the whole body. [`Id`], [`Ip`], [`IfMatch`],
//! [`Preconditions`], [`QueryString`], `IdempotencyKey` and `Invocation` are extractors that take none, and
//! [`Response`] and [`Problem`] are answers. A `Request` finds errors where the handler asks for them: the handler
//! decides which of two errors is told. The example `axum` is a service of such handlers.

#[cfg(feature = "axum")]
mod axum;
mod items;
mod preconditions;
mod problem;
mod request;
mod response;
mod validator;

#[cfg(feature = "axum")]
pub use axum::{IdempotencyKey, Invocation};
#[cfg(feature = "lambda-without-tls")]
pub(crate) use axum::{NotDecoded, Told};
pub use items::{ChangeRequest, CreateRequest, DeleteRequest, Items, Resource};
pub use preconditions::{IfMatch, IfNoneMatch, Preconditions};
pub use problem::Problem;
pub use request::{Body, Fields, Id, Ip, MAX_BODY, QueryString, Request};
pub use response::Response;
pub use validator::Validator;
