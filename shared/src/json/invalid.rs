//! [`Invalid`]: an error in a document, with its place.

use std::fmt;

/// An error in a document, with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalid {
    /// JSON Pointer (RFC 6901) to the invalid value. Empty for the whole document.
    pub pointer: String,
    /// A stable code.
    pub code: &'static str,
    /// A sentence for people.
    pub detail: String,
}

impl Invalid {
    /// Creates the error for the value at `pointer`.
    pub fn new(pointer: impl Into<String>, code: &'static str, detail: impl Into<String>) -> Self {
        Invalid { pointer: pointer.into(), code, detail: detail.into() }
    }

    pub(super) fn under(self, pointer: &str) -> Self {
        Invalid { pointer: format!("{pointer}{}", self.pointer), ..self }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.pointer, self.detail)
    }
}

impl std::error::Error for Invalid {}

/// The pointer to the member or element `name` of the value at `parent`.
#[must_use]
pub fn pointer_to(parent: &str, name: &str) -> String {
    format!("{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
}
