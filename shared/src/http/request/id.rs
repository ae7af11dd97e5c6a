//! [`Id`]: a name that may stand in a path.

use crate::http::problem::Problem;
use std::fmt;

const MAX_ID: usize = 128;

/// A name of 1 to 128 characters from `A-Z a-z 0-9 . _ : -`, except `.` and `..`. It is the same in a path, in a log
/// and in a key: no decoding changes it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Id(String);

impl Id {
    /// Parses an id. A problem names `field` as its place.
    ///
    /// # Errors
    /// `invalid_id`.
    pub fn parse(text: &str, field: &str) -> Result<Self, Problem> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        if (1..=MAX_ID).contains(&text.len()) && text.bytes().all(allowed) && text != "." && text != ".." {
            Ok(Id(text.to_owned()))
        } else {
            let detail = "an id has 1 to 128 of A-Z a-z 0-9 . _ : - and is neither . nor ..";
            Err(Problem::invalid(field, "invalid_id", detail))
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Id {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_1_to_128_safe_characters() {
        for id in ["a", "lamp-1", "A.b_c:d-9", "...", &"x".repeat(128)] {
            assert!(Id::parse(id, "path:deviceId").is_ok(), "{id}");
        }
        for id in ["", ".", "..", "a/b", "a%2Fb", "a b", "é", "a\n", "a\0", "a+b", &"x".repeat(129)] {
            assert_eq!(Id::parse(id, "path:deviceId").expect_err("refused").code(), "invalid_id", "{id:?}");
        }
    }
}
