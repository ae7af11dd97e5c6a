//! Limits of requests.

/// The longest body: 512 KB, which is more than the largest item.
pub const MAX_BODY: usize = 512 * 1024;
