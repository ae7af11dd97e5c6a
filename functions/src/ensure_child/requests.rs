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
pub fn parse_uid(request: &Request) -> Result<Id, Problem> {
    request.query_of(&["parentUid"])?.required_id("parentUid")
}
