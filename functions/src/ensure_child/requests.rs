//! Parses bodies and queries to typed requests. All 400s about them come from here.

use crate::ensure_child::child::Child;
use crate::operation::{ID, OWN_NAMES, Schema, TOKEN};
use fencepost::http::{Id, Problem, Request};
use fencepost::json::Object;
use fencepost::{FencingToken, Timestamp};

/// The child that a parent must have.
#[derive(Clone, PartialEq, Debug)]
pub struct Wanted {
    /// The uid of the parent.
    pub parent_uid: Id,
    /// The specification of the child.
    pub spec: Object,
    /// The lease that the create demands, if any.
    pub lease: Option<Held>,
}

impl Wanted {
    /// Converts the request to a child of this parent, created at `now`, with the lease that its create demands.
    #[must_use]
    pub fn into_child(self, parent: &Id, now: Timestamp) -> (Child, Option<Held>) {
        let Wanted { parent_uid, spec, lease } = self;
        let child = Child { parent_id: parent.to_string(), parent_uid: parent_uid.to_string(), spec, created_at: now };
        (child, lease)
    }
}

/// A lease that the client believes it holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// The key of the lease.
    pub key: Id,
    /// The token of the lease.
    pub token: u64,
}

/// The schema of the child that a parent must have.
pub const WANTED: Schema = Schema::Object(&[
    ("parentUid", ID),
    ("spec", OWN_NAMES),
    ("lease?", Schema::Object(&[("key", ID), ("token", TOKEN)])),
]);

/// Parses `{parentUid, spec, lease?: {key, token}}`.
///
/// # Errors
/// A problem that names the field.
pub fn parse_wanted(request: &Request) -> Result<Wanted, Problem> {
    let mut fields = request.fields()?;
    let parent_uid = fields.required_id("parentUid")?;
    let spec = fields.required_object("spec")?;
    let lease = match fields.optional_fields("lease")? {
        None => None,
        Some(mut lease) => {
            let key = lease.required_id("key")?;
            let token = lease.required_whole("token", FencingToken::NUMBERS)?.unsigned_abs();
            lease.finish()?;
            Some(Held { key, token })
        }
    };
    fields.finish()?;
    Ok(Wanted { parent_uid, spec, lease })
}

/// Parses the uid of the parent in `?parentUid=…`.
///
/// # Errors
/// A problem that names the parameter.
pub fn parse_uid(request: &Request) -> Result<Id, Problem> {
    request.query_of(&["parentUid"])?.required_id("parentUid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost::http::Body;

    fn parsed(body: &str) -> Result<Wanted, Problem> {
        let body = Body { text: body.to_owned(), is_base64: false };
        parse_wanted(&Request { body, ..Request::default() })
    }

    #[test]
    fn a_child_may_be_wanted_with_or_without_a_lease() {
        assert_eq!(parsed(r#"{"parentUid":"u-1","spec":{}}"#).expect("wanted").lease, None);
        let lease = parsed(r#"{"parentUid":"u-1","spec":{},"lease":{"key":"k","token":7.0}}"#).expect("wanted").lease;
        assert_eq!(lease.map(|lease| (lease.key.to_string(), lease.token)), Some(("k".to_owned(), 7)));
    }

    #[test]
    fn every_wrong_body_is_refused_with_a_code() {
        for (body, code) in [
            (r#"{"spec":{}}"#, "missing_field"),
            (r#"{"parentUid":"u"}"#, "missing_field"),
            (r#"{"parentUid":"u/1","spec":{}}"#, "invalid_id"),
            (r#"{"parentUid":"u","spec":[]}"#, "invalid_type"),
            (r#"{"parentUid":"u","spec":{"_a":1}}"#, "reserved_name"),
            (r#"{"parentUid":"u","spec":{},"lease":null}"#, "invalid_type"),
            (r#"{"parentUid":"u","spec":{},"lease":{"token":1}}"#, "missing_field"),
            (r#"{"parentUid":"u","spec":{},"lease":{"key":"k"}}"#, "missing_field"),
            (r#"{"parentUid":"u","spec":{},"lease":{"key":"k","token":0}}"#, "invalid_value"),
            (r#"{"parentUid":"u","spec":{},"lease":{"key":"k","token":1,"holder":"a"}}"#, "unknown_field"),
            (r#"{"parentUid":"u","spec":{},"childId":"c"}"#, "unknown_field"),
        ] {
            assert_eq!(parsed(body).expect_err("refused").code(), code, "{body}");
        }
    }
}
