//! Limits of requests.

/// The most bytes that a body may have: 512 KB, some more than the largest item.
pub const MAX_BODY: usize = 512 * 1024;
