//! [`Items`]: what routes over one item have in common, from the parsed request to the response.

use super::preconditions::{IfMatch, Preconditions};
use super::problem::Problem;
use super::request::{Id, Parameters, Request};
use super::response::Response;
use crate::call::Call;
use crate::error::{CreateError, DeleteError, Failure, IdempotencyError, UpdateError, VersionedUpdateError};
use crate::idempotency::{Answer, Idempotency, IdempotencyClaim};
use crate::table::{Decision, Key, Record, Table};
use crate::transact::{Plan, Reads};
use crate::version::{ItemVersion, Versioned};
use serde_json::Value;

/// A [`Record`] that clients see as an HTTP resource.
pub trait Resource: Record + Clone {
    /// The stable code and the sentence of a 404.
    const NOT_FOUND: (&'static str, &'static str);
    /// The stable code and the sentence of a 409 for a key that is taken, if a route creates items.
    const EXISTS: (&'static str, &'static str) = ("already_exists", "there is an item with this id");

    /// The 404 of this resource.
    #[must_use]
    fn not_found() -> Problem {
        let (code, detail) = Self::NOT_FOUND;
        Problem::not_found(code, detail)
    }

    /// The path under which the item is found.
    fn location(&self, id: &str) -> String;

    /// The item as clients see it.
    fn to_json(&self, id: &str, at: ItemVersion) -> Value;
}

/// The items of one table, behind HTTP.
///
/// Each operation takes what the request demands in parsed form and gives the response. Problems carry the codes of the
/// [`Resource`].
#[derive(Debug)]
pub struct Items<T> {
    table: Table<T>,
    idempotency: Option<Idempotency<Response>>,
}

/// What a creating request demands, parsed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Creation {
    /// The request says `If-None-Match: *`, so a key that is taken is a failed precondition.
    pub if_absent: bool,
    /// What the request is recognised by, if it has an idempotency key.
    pub claim: Option<IdempotencyClaim>,
}

/// What a changing request demands, parsed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The states that it may change.
    pub if_match: IfMatch,
    /// What the request is recognised by, if it has an idempotency key.
    pub claim: Option<IdempotencyClaim>,
}

impl Request {
    /// The headers of a creation. `payload` is what the body says once it is parsed.
    ///
    /// # Errors
    /// `invalid_if_match`, `invalid_if_none_match`, `invalid_idempotency_key`.
    pub fn creation(&self, route: &Parameters, payload: &Value) -> Result<Creation, Problem> {
        Ok(Creation { if_absent: self.if_absent()?, claim: self.idempotency_claim(route, payload)? })
    }

    /// The headers of a change. `payload` is what the body says once it is parsed.
    ///
    /// # Errors
    /// `invalid_if_match`, `invalid_if_none_match`, `invalid_idempotency_key`.
    pub fn change(&self, route: &Parameters, payload: &Value) -> Result<Change, Problem> {
        Ok(Change { if_match: self.change_preconditions()?, claim: self.idempotency_claim(route, payload)? })
    }
}

impl<T: Resource> Items<T> {
    /// Items whose routes refuse idempotency keys.
    #[must_use]
    pub fn new(table: Table<T>) -> Self {
        Items { table, idempotency: None }
    }

    /// Items whose creations and changes honour idempotency keys.
    #[must_use]
    pub fn with_idempotency(table: Table<T>, idempotency: Idempotency<Response>) -> Self {
        Items { table, idempotency: Some(idempotency) }
    }

    /// The table of these items.
    #[must_use]
    pub fn table(&self) -> &Table<T> {
        &self.table
    }

    /// Answers a conditional GET.
    ///
    /// # Errors
    /// The resource's 404, `version_conflict`, and every [`Failure`].
    pub async fn get(&self, id: &str, preconditions: &Preconditions, call: &Call) -> Result<Response, Problem> {
        let item = self.table.get(&Key::from(id), call).await?.ok_or_else(T::not_found)?;
        preconditions.respond(item.at, || item.value.to_json(id, item.at))
    }

    /// Creates the item if the key is free.
    ///
    /// # Errors
    /// The resource's 409, `version_conflict` under `If-None-Match: *`, `idempotency_key_reused`, and every [`Failure`].
    pub async fn create(&self, id: &Id, value: &T, creation: &Creation, call: &Call) -> Result<Response, Problem> {
        if let Some(claim) = &creation.claim {
            return self
                .keyed(id, claim, call, |current| match current {
                    None => Decision::Put(value.clone()),
                    Some(current) => Decision::Refuse(exists::<T>(current.at, creation.if_absent)),
                })
                .await;
        }
        match self.table.create(&Key::from(id.as_str()), value, call).await {
            Ok(created) => Ok(Self::created(id.as_str(), &created)),
            Err(CreateError::Exists(current)) => Err(exists::<T>(current.at, creation.if_absent)),
            Err(CreateError::Failed(failure)) => Err(failure.into()),
        }
    }

    /// Changes the item as `decide` says.
    ///
    /// With a tag in `If-Match`, a conflict is the answer. Without one, a conflict is decided again. With an idempotency
    /// key, the change counts once, and a repeat gets the first answer before `If-Match` is looked at.
    ///
    /// # Errors
    /// The resource's 404, `version_conflict`, the decision's refusal, `idempotency_key_reused`, and every [`Failure`].
    pub async fn change<R: Into<Problem>>(
        &self,
        id: &Id,
        change: &Change,
        call: &Call,
        decide: impl Fn(&T) -> Decision<T, R>,
    ) -> Result<Response, Problem> {
        let key = Key::from(id.as_str());
        let changed = match (&change.claim, change.if_match) {
            (Some(claim), if_match) => {
                return self
                    .keyed(id, claim, call, |current| match current {
                        None => Decision::Refuse(T::not_found()),
                        // At another version than the client's nothing is decided, also after a lost race.
                        Some(current) => match if_match.check(current.at) {
                            Err(stale) => Decision::Refuse(stale),
                            Ok(()) => decide(&current.value).map_refusal(Into::into),
                        },
                    })
                    .await;
            }
            (None, IfMatch::Tag(at)) => {
                self.table.update_at_version(&key, at, call, decide).await.map_err(|error| match error {
                    VersionedUpdateError::NotFound => T::not_found(),
                    VersionedUpdateError::Conflict(current) => Problem::version_conflict(current.at),
                    VersionedUpdateError::Refused(refusal) => refusal.into(),
                    VersionedUpdateError::Failed(failure) => failure.into(),
                })?
            }
            (None, IfMatch::Any | IfMatch::None) => {
                self.table.update_with_retry(&key, call, decide).await.map_err(|error| match error {
                    UpdateError::NotFound => T::not_found(),
                    UpdateError::Refused(refusal) => refusal.into(),
                    UpdateError::Failed(failure) => failure.into(),
                })?
            }
        };
        Ok(Self::ok(id.as_str(), &changed))
    }

    /// Deletes the item at the version in `If-Match`, or at any version with `*`.
    ///
    /// # Errors
    /// `condition_required` without `If-Match`, the resource's 404, `version_conflict`, and every [`Failure`].
    pub async fn delete(&self, id: &Id, if_match: IfMatch, call: &Call) -> Result<Response, Problem> {
        let key = Key::from(id.as_str());
        let deleted = match if_match {
            IfMatch::Tag(at) => self.table.delete_at_version(&key, at, call).await,
            IfMatch::Any => self.table.delete(&key, call).await,
            IfMatch::None => {
                let detail = "send If-Match with the ETag of the version that you mean, or *";
                return Err(Problem::condition_required(detail));
            }
        };
        match deleted {
            Ok(tombstone) => Ok(Response::deleted(tombstone)),
            Err(DeleteError::NotFound) => Err(T::not_found()),
            Err(DeleteError::Conflict(current)) => Err(Problem::version_conflict(current.at)),
            Err(DeleteError::Failed(failure)) => Err(failure.into()),
        }
    }

    /// The response to a change: 200 with the item.
    #[must_use]
    pub fn ok(id: &str, item: &Versioned<T>) -> Response {
        Response::ok(item.at, &item.value.to_json(id, item.at))
    }

    /// The response to a creation: 201 with the item and its location.
    #[must_use]
    pub fn created(id: &str, item: &Versioned<T>) -> Response {
        Response::created(item.value.location(id), item.at, &item.value.to_json(id, item.at))
    }

    /// Creates or changes the item once per claim, together with the record of the answer.
    async fn keyed(
        &self,
        id: &Id,
        claim: &IdempotencyClaim,
        call: &Call,
        decide: impl Fn(Option<&Versioned<T>>) -> Decision<T, Problem>,
    ) -> Result<Response, Problem> {
        let Some(idempotency) = &self.idempotency else { return Err(Problem::key_unsupported()) };
        let mut reads = Reads::new();
        let item = reads.item("item", &self.table, &Key::from(id.as_str()));
        let answer = idempotency.change(claim, reads, call, |attempt| {
            let current = attempt.get(item)?;
            Ok::<_, Failure>(match (decide(current.as_ref()), current) {
                (Decision::Put(value), None) => {
                    let at = attempt.put_if_absent(item, &value)?;
                    Plan::Commit(Self::created(id.as_str(), &Versioned { value, at }))
                }
                (Decision::Put(value), Some(_)) => {
                    let at = attempt.update_at(item, &value)?;
                    Plan::Commit(Self::ok(id.as_str(), &Versioned { value, at }))
                }
                (Decision::Keep, Some(current)) => Plan::Keep(Self::ok(id.as_str(), &current)),
                (Decision::Keep, None) => Plan::Refuse(T::not_found()),
                (Decision::Refuse(problem), _) => Plan::Refuse(problem),
            })
        });
        Response::from_answer(answer.await)
    }
}

/// The key is taken: a failed precondition if the client made it one, otherwise a refusal.
fn exists<T: Resource>(current: ItemVersion, if_absent: bool) -> Problem {
    let (code, detail) = T::EXISTS;
    if if_absent { Problem::version_conflict(current) } else { Problem::refused(code, detail) }
}

impl Response {
    /// The response to a keyed change: the first answer, marked if it is a replay, or the problem.
    ///
    /// # Errors
    /// `idempotency_key_reused`, the decision's refusal, and every [`Failure`].
    pub fn from_answer(answer: Result<Answer<Response>, IdempotencyError<Problem>>) -> Result<Response, Problem> {
        match answer? {
            Answer::New(response) => Ok(response),
            Answer::Replayed(response) => Ok(response.replayed()),
        }
    }
}
