//! Whether an answer came whole (pure).
//!
//! The SDK reads a body without bytes as `{}`. For a write this would be a success, for a read "there is no item".
//! `DynamoDB` never sends such a body. Nor does the SDK look at the checksum. So a body changed on its way would pass,
//! as long as it is still JSON.

/// The header with the CRC-32 of the body. `DynamoDB` sends it with each answer, and some other engines do.
pub(super) const CHECKSUM: &str = "x-amz-crc32";

pub(super) fn problem(body: &[u8], checksum: Option<&str>) -> Option<&'static str> {
    if body.is_empty() {
        return Some("the answer has no body");
    }
    let fits = |said: &str| said.trim().parse() == Ok(crc32fast::hash(body));
    checksum.is_some_and(|said| !fits(said)).then_some("the answer does not fit its checksum")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_without_bytes_and_one_that_does_not_fit_its_checksum_are_refused() {
        // The CRC-32 of `123456789` is the check value of its definition.
        for (body, checksum, is_whole) in [
            ("123456789", Some("3421780262"), true),
            ("123456789", None, true),
            ("{}", Some(" 2745614147 "), true),
            ("123456780", Some("3421780262"), false),
            ("{}", Some("no number"), false),
            ("", None, false),
            ("", Some("0"), false),
        ] {
            assert_eq!(problem(body.as_bytes(), checksum).is_none(), is_whole, "{body} {checksum:?}");
        }
    }
}
