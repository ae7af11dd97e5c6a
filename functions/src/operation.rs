//! The operations of a function. Its router is made of them, and so are the paths of `docs/openapi.yaml`.

use Schema::{Json, Shared};

/// An operation, as clients see it.
///
/// The other answers follow: an operation with a body may refuse the body, one with a key the key, and one that changes
/// something may end with an unknown outcome.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Operation {
    /// Method and path, such as `PUT /devices/{deviceId}`.
    pub at: &'static str,
    /// Its effect, in one sentence.
    pub summary: &'static str,
    /// The name of its handler.
    pub name: &'static str,
    /// More about it, or nothing.
    pub description: &'static str,
    /// The treatment of an `Idempotency-Key`.
    pub key: IdempotencyKey,
    /// The preconditions that it takes.
    pub conditions: Conditions,
    /// The parameters of its query, and those of its path that are not an [`ID`].
    pub parameters: &'static [Member],
    /// The JSON in its body. An object without members may be left out.
    pub body: Option<Schema>,
    /// The item that it shows, with its tag. A list has no tag.
    pub shown: Option<Schema>,
    /// The item that it creates.
    pub created: Option<Schema>,
    /// The outcomes of a deletion.
    pub outcomes: &'static [&'static str],
    /// The code for an absent item with its meaning.
    pub missing: Option<(&'static str, &'static str)>,
    /// The codes for an item that refuses the change, with their meaning and the members of their problems.
    pub refused: Option<(&'static [&'static str], &'static str, &'static [Member])>,
}

/// The treatment of an `Idempotency-Key` by an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdempotencyKey {
    /// A request with a key has one effect.
    Honoured,
    /// A request with a key is refused.
    Refused,
    /// The operation changes nothing.
    Ignored,
}

/// The preconditions that an operation takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conditions {
    /// None.
    None,
    /// `If-Match` and `If-None-Match`.
    Read,
    /// `If-Match`.
    Change,
    /// `If-Match`, which a request has.
    ChangeKnown,
    /// `If-None-Match: *`.
    Create,
    /// An `Idempotency-Key`, which a request has. `If-None-Match: *` has no effect beside it.
    CreateByKey,
}

/// A member of an object, or a parameter. The name of an optional one ends in `?`.
pub type Member = (&'static str, Schema);

/// A schema of JSON.
#[derive(Clone, Copy, Debug)]
pub enum Schema {
    /// A schema of no function. `docs/openapi.yaml` has it by this name.
    Shared(&'static str),
    /// A schema that others refer to by this name.
    Named(&'static str, &'static Schema),
    /// An object with these members and no others.
    Object(&'static [Member]),
    /// A list of at least and perhaps at most so many.
    List(usize, Option<usize>, &'static Schema),
    /// A whole number from here to there.
    Whole(i64, i64),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// Any schema, as JSON.
    Json(&'static str),
    /// A schema with members of this JSON.
    With(&'static str, &'static Schema),
}

/// An id.
pub const ID: Schema = Shared("Id");
/// A time in an answer.
pub const TIMESTAMP: Schema = Shared("Timestamp");
/// A time in a request.
pub const GIVEN_TIMESTAMP: Schema = Shared("GivenTimestamp");
/// A free-form object in an answer.
pub const OBJECT: Schema = Json(r#"{"type":"object"}"#);
/// A free-form object in a request.
pub const OWN_NAMES: Schema = Shared("OwnNames");
/// A fencing token.
pub const TOKEN: Schema = Shared("Token");
/// A number that counts.
pub const COUNT: Schema = Json(r#"{"type":"integer","minimum":0}"#);
/// A version.
pub const VERSION: Schema = Json(r#"{"type":"integer","minimum":1}"#);
/// A number.
pub const NUMBER: Schema = Json(r#"{"type":"number"}"#);
/// The header that says when a refused request may succeed, in the place of a member.
pub const RETRY_AFTER: Member = ("Retry-After?", VERSION);

impl Operation {
    /// An operation that changes nothing.
    pub const fn reads(at: &'static str, summary: &'static str) -> Self {
        Operation { conditions: Conditions::Read, ..Self::new(IdempotencyKey::Ignored, at, summary) }
    }

    /// A change that refuses an `Idempotency-Key`.
    pub const fn changes(at: &'static str, summary: &'static str) -> Self {
        Self::new(IdempotencyKey::Refused, at, summary)
    }

    /// A change that honours an `Idempotency-Key`.
    pub const fn changes_once(at: &'static str, summary: &'static str) -> Self {
        Self::new(IdempotencyKey::Honoured, at, summary)
    }

    const fn new(key: IdempotencyKey, at: &'static str, summary: &'static str) -> Self {
        Operation {
            at,
            summary,
            name: "",
            description: "",
            key,
            conditions: Conditions::None,
            parameters: &[],
            body: None,
            shown: None,
            created: None,
            outcomes: &[],
            missing: None,
            refused: None,
        }
    }

    /// Says more about it.
    pub const fn described(self, description: &'static str) -> Self {
        Operation { description, ..self }
    }

    /// Takes these preconditions.
    pub const fn conditions(self, conditions: Conditions) -> Self {
        Operation { conditions, ..self }
    }

    /// Takes these parameters.
    pub const fn parameters(self, parameters: &'static [Member]) -> Self {
        Operation { parameters, ..self }
    }

    /// Takes a body.
    pub const fn takes(self, body: Schema) -> Self {
        Operation { body: Some(body), ..self }
    }

    /// Shows an item or a list.
    pub const fn shows(self, item: Schema) -> Self {
        Operation { shown: Some(item), ..self }
    }

    /// Creates an item.
    pub const fn creates(self, item: Schema) -> Self {
        Operation { created: Some(item), ..self }
    }

    /// Answers with one of these outcomes.
    pub const fn ends(self, outcomes: &'static [&'static str]) -> Self {
        Operation { outcomes, ..self }
    }

    /// Answers with this code if the item is absent.
    pub const fn missing(self, code: (&'static str, &'static str)) -> Self {
        Operation { missing: Some(code), ..self }
    }

    /// Answers with one of these codes if the item refuses the change.
    pub const fn refuses(
        self,
        codes: &'static [&'static str],
        means: &'static str,
        members: &'static [Member],
    ) -> Self {
        Operation { refused: Some((codes, means, members)), ..self }
    }
}
