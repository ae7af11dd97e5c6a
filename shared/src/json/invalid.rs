//! [`Invalid`]: what is wrong with a document, and where.

use std::fmt;

/// What is wrong with a document, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalid {
    /// JSON Pointer (RFC 6901) to the offending value; empty for the whole document.
    pub pointer: String,
    /// A stable code.
    pub code: &'static str,
    /// A sentence for people.
    pub detail: String,
}

impl Invalid {
    /// This is wrong there.
    pub fn new(pointer: impl Into<String>, code: &'static str, detail: impl Into<String>) -> Self {
        Invalid { pointer: pointer.into(), code, detail: detail.into() }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.pointer, self.detail)
    }
}

impl std::error::Error for Invalid {}

/// The pointer to the member or element with this name, under `parent`.
#[must_use]
pub fn pointer_to(parent: &str, name: &str) -> String {
    format!("{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
}
