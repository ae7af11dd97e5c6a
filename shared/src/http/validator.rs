//! [`Validator`]: what an `ETag` says (RFC 9110, section 8.8).

use crate::lease::LeaseVersion;
use crate::version::{Incarnation, ItemVersion, Version};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A validator (RFC 9110, section 8.8): one state of one item, as its `ETag` tells it from others.
pub trait Validator: Copy + PartialEq {
    /// The strong entity tag, with its quotes; opaque to clients.
    fn etag(self) -> String;

    /// The state that a tag names; `None` for what [`Validator::etag`] never writes.
    fn from_etag(tag: &str) -> Option<Self>;

    /// The number that a client is shown as `currentVersion`, and that the log line has as `version`.
    fn number(self) -> u64;
}

/// `"<version>.<incarnation>"`.
impl Validator for ItemVersion {
    fn etag(self) -> String {
        format!("\"{}.{}\"", self.version, URL_SAFE_NO_PAD.encode(self.incarnation.as_bytes()))
    }

    fn from_etag(tag: &str) -> Option<Self> {
        let (version, incarnation) = tag.strip_prefix('"')?.strip_suffix('"')?.split_once('.')?;
        let version = Version::new(version.parse().ok()?).filter(|version| *version > Version::ABSENT)?;
        let incarnation = URL_SAFE_NO_PAD.decode(incarnation).ok()?;
        let at = ItemVersion { version, incarnation: Incarnation::from_bytes(incarnation.try_into().ok()?) };
        (at.etag() == tag).then_some(at)
    }

    fn number(self) -> u64 {
        self.version.get()
    }
}

/// `"<token>.<renewals>"`; the token counts for the version.
impl Validator for LeaseVersion {
    fn etag(self) -> String {
        format!("\"{}.{}\"", self.token, self.renewals)
    }

    fn from_etag(tag: &str) -> Option<Self> {
        let (token, renewals) = tag.strip_prefix('"')?.strip_suffix('"')?.split_once('.')?;
        // Numbers that JSON readers keep exactly, as a version is.
        let number = |text: &str| Version::new(text.parse().ok()?).map(Version::get);
        let at = LeaseVersion { token: number(token)?, renewals: number(renewals)? };
        (at.etag() == tag).then_some(at)
    }

    fn number(self) -> u64 {
        self.token
    }
}
