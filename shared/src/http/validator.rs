//! [`Validator`]: the state of an item in an `ETag` (RFC 9110, section 8.8).

use crate::lease::LeaseVersion;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fencepost_core::{Incarnation, ItemVersion, Version};

/// A validator (RFC 9110, section 8.8): one state of one item, which its `ETag` tells from others.
pub trait Validator: Copy + PartialEq {
    /// The strong entity tag, with its quotes. Clients treat it as opaque.
    fn etag(self) -> String;

    /// Parses a tag. `None` if [`Validator::etag`] never writes such a tag.
    fn from_etag(tag: &str) -> Option<Self>;

    /// The number of the state. Clients see it as `currentVersion`, and log lines as `version`.
    fn number(self) -> u64;
}

/// `"<version>.<incarnation>"`, with a digest of the value in place of the incarnation if another program wrote the row.
impl Validator for ItemVersion {
    fn etag(self) -> String {
        format!("\"{}.{}\"", self.version, URL_SAFE_NO_PAD.encode(self.incarnation.as_bytes()))
    }

    fn from_etag(tag: &str) -> Option<Self> {
        let (version, incarnation) = tag.strip_prefix('"')?.strip_suffix('"')?.split_once('.')?;
        let bytes = URL_SAFE_NO_PAD.decode(incarnation).ok()?;
        let incarnation = match bytes.len() {
            16 => Incarnation::of_content(bytes.try_into().ok()?),
            _ => Incarnation::from_bytes(bytes.try_into().ok()?),
        };
        // A row that another program wrote may have no version yet, or 0.
        let is_version = |version: &Version| *version > Version::ABSENT || incarnation.is_foreign();
        let version = Version::new(version.parse().ok()?).filter(is_version)?;
        let at = ItemVersion { version, incarnation };
        (at.etag() == tag).then_some(at)
    }

    fn number(self) -> u64 {
        self.version.get()
    }
}

/// `"<token>.<renewals>"`. The token is the number of the state.
impl Validator for LeaseVersion {
    fn etag(self) -> String {
        format!("\"{}.{}\"", self.token, self.renewals)
    }

    fn from_etag(tag: &str) -> Option<Self> {
        let (token, renewals) = tag.strip_prefix('"')?.strip_suffix('"')?.split_once('.')?;
        // Each number is at most 2^53 - 1, like a version, so every JSON reader keeps it exactly.
        let number = |text: &str| Version::new(text.parse().ok()?).map(Version::get);
        let at = LeaseVersion { token: number(token)?, renewals: number(renewals)? };
        (at.etag() == tag).then_some(at)
    }

    fn number(self) -> u64 {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(version: u64, incarnation: Incarnation) -> ItemVersion {
        ItemVersion { version: Version::new(version).expect("small"), incarnation }
    }

    #[test]
    fn a_tag_of_a_row_has_11_characters_after_its_version_and_one_of_a_foreign_row_22() {
        let (ours, foreign) = (Incarnation::from_bytes([251; 8]), Incarnation::of_content([251; 16]));
        for (tag, state) in [
            ("\"7.-_v7-_v7-_s\"", at(7, ours)),
            ("\"7.-_v7-_v7-_v7-_v7-_v7-w\"", at(7, foreign)),
            ("\"0.-_v7-_v7-_v7-_v7-_v7-w\"", at(0, foreign)),
        ] {
            assert_eq!(state.etag(), tag);
            assert_eq!(ItemVersion::from_etag(tag), Some(state), "{tag}");
        }
        assert_ne!(at(7, ours), at(7, foreign));
    }
}
