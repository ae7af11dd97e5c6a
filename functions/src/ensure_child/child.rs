//! A child and its pure rules.

use crate::operation::{ID, OBJECT, Schema, TIMESTAMP};
use fencepost::http::{Problem, Resource};
use fencepost::json::Object;
use fencepost::{Attributes, ItemVersion, Record, Source, Timestamp, Versioned, derived_id};
use serde::{Deserialize, Serialize};

/// The value of one child. Its id is the key. The value never changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Child {
    /// The name of the parent.
    pub parent_id: String,
    /// The uid of the parent. A parent that was deleted and created again has another uid.
    pub parent_uid: String,
    /// The specification of the child: free-form.
    #[serde(skip)] // fencepost::json converts free-form JSON to attributes exactly
    pub spec: Object,
    /// The time of creation.
    pub created_at: Timestamp,
}

impl Record for Child {
    const PARTITION_KEY: &'static str = "childId";
    const ATTRIBUTES: &'static [&'static str] = &["parentId", "parentUid", "spec", "createdAt"];

    fn encode(&self) -> Result<Attributes, Source> {
        let mut attributes: Attributes = serde_dynamo::to_item(self)?;
        attributes.insert("spec".to_owned(), self.spec.to_attribute());
        Ok(attributes)
    }

    /// The free-form objects may be large, and they are exact already.
    fn check_read_back(&self, _: &Attributes) -> Result<(), Source> {
        Ok(())
    }

    fn decode(attributes: &Attributes) -> Result<Self, Source> {
        let spec = attributes.get("spec").ok_or("spec is missing")?;
        let spec = Object::from_attribute(spec).map_err(|reason| format!("spec: {reason}"))?;
        let rest: Child = serde_dynamo::from_item(Self::own_attributes(attributes, &["spec"]))?;
        Ok(Child { spec, ..rest })
    }
}

/// The id of the one child of this parent. It depends only on the parent, so every request for the child means the same
/// row.
#[must_use]
pub fn child_id(parent_id: &str, parent_uid: &str) -> String {
    derived_id(&["child", parent_id, parent_uid])
}

impl Resource for Child {
    const NOT_FOUND: (&'static str, &'static str) = ("child_not_found", "there is no child of this parent");

    fn location(&self, _id: &str) -> String {
        format!("/parents/{}/child?parentUid={}", self.parent_id, self.parent_uid)
    }

    fn to_json(&self, id: &str, _at: ItemVersion) -> impl Serialize {
        Shown {
            child_id: id,
            created_at: self.created_at,
            parent_id: &self.parent_id,
            parent_uid: &self.parent_uid,
            spec: &self.spec,
        }
    }
}

/// The schema of a child.
pub const CHILD: Schema = Schema::Named(
    "Child",
    &Schema::Object(&[
        ("childId", ID),
        ("createdAt", TIMESTAMP),
        ("parentId", ID),
        ("parentUid", ID),
        ("spec", OBJECT),
    ]),
);

/// A child as clients see it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a, 'i> {
    child_id: &'i str,
    created_at: Timestamp,
    parent_id: &'a str,
    parent_uid: &'a str,
    spec: &'a Object,
}

/// Returns the existing child, if it has the requested specification.
///
/// # Errors
/// `spec_differs`, with the existing child.
pub fn same_spec(id: &str, there: Versioned<Child>, wanted: &Object) -> Result<Versioned<Child>, Problem> {
    if there.value.spec == *wanted {
        return Ok(there);
    }
    let detail = "the parent has its child, and it was made with another spec; nothing was changed";
    Err(Problem::refused("spec_differs", detail).with("child", there.value.to_json(id, there.at)))
}
