//! HTTP without a transport: requests, preconditions, responses and problems. The only folder with status codes.
//!
//! A function says what *kind* of answer it gives ([`Problem::refused`], [`Response::created`]) with a stable code. The
//! numbers are here. [`Items`] does what routes over a single item have in common.

mod items;
mod preconditions;
mod problem;
mod request;
mod response;
mod validator;

pub use items::{Change, Creation, Items, Resource};
pub use preconditions::{IfMatch, IfNoneMatch, Preconditions};
pub use problem::Problem;
pub use request::{Body, Fields, Id, Ip, MAX_BODY, Parameters, Query, Request, Routes};
pub use response::Response;
pub use validator::Validator;
