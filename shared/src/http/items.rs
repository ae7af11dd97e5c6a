//! [`Items`]: the common work of routes over one item, from the parsed request to the response.

use super::preconditions::{IfMatch, Preconditions};
use super::problem::Problem;
use super::request::Request;
use super::response::Response;
use crate::call::Call;
use crate::error::{Error, IdempotencyError, UpdateError, VersionError};
use crate::idempotency::{Answer, Idempotency, IdempotencyClaim};
use crate::listing::Query;
use crate::table::{Edit, Exists, Key, Record, Table};
use crate::timestamp::Timestamp;
use crate::transact::Reads;
use fencepost_core::{ItemVersion, Versioned};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;

/// A [`Record`] as an HTTP resource.
pub trait Resource: Record + Clone + Send + Sync {
    /// The stable code and the detail of a 404.
    const NOT_FOUND: (&'static str, &'static str);
    /// The stable code and the detail of a 409 for a taken key, if a route creates items.
    const EXISTS: (&'static str, &'static str) = ("already_exists", "there is an item with this id");

    /// Creates the 404 of this resource.
    #[must_use]
    fn not_found() -> Problem {
        let (code, detail) = Self::NOT_FOUND;
        Problem::not_found(code, detail)
    }

    /// The path of the item.
    fn location(&self, id: &str) -> String;

    /// The item as JSON, as clients see it.
    fn to_json(&self, id: &str, at: ItemVersion) -> impl Serialize;
}

/// The items of one table, behind HTTP.
///
/// Each operation takes the parsed demands of a request. Problems have the codes of the [`Resource`].
#[derive(Clone, Debug)]
pub struct Items<T> {
    table: Table<T>,
    idempotency: Option<Idempotency<Response>>,
}

type KeyedDecision<'a, T> = dyn Fn(Option<&Versioned<T>>) -> Result<Option<T>, Problem> + Sync + 'a;

enum EditPlan<'a, T> {
    Edit(&'a (dyn Fn() -> Option<Edit<T>> + Sync)),
    FromItem(&'a (dyn Fn(&T) -> Edit<T> + Sync)),
}

/// The parsed demands of a creating request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateRequest {
    /// Whether the request has `If-None-Match: *`. If so, a taken key is a failed precondition.
    pub if_absent: bool,
    /// The identity of the request, if it has an idempotency key.
    pub claim: Option<IdempotencyClaim>,
}

/// The parsed demands of a changing request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeRequest {
    /// The states of the item that the request may change.
    pub if_match: IfMatch,
    /// The identity of the request, if it has an idempotency key.
    pub claim: Option<IdempotencyClaim>,
}

/// The parsed demands of a deleting request. A delete has no idempotency key: its tag makes a repeat harmless.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeleteRequest {
    /// The states of the item that the request may delete.
    pub if_match: IfMatch,
}

impl Request {
    /// Parses the headers of a creation. For `payload`, see [`Request::idempotency_claim`].
    ///
    /// # Errors
    /// `invalid_if_match`, `invalid_if_none_match`, `invalid_idempotency_key`.
    pub fn create_request(&self, payload: &impl Serialize) -> Result<CreateRequest, Problem> {
        Ok(CreateRequest { if_absent: self.if_absent()?, claim: self.idempotency_claim(payload)? })
    }

    /// Parses the headers of a change. For `payload`, see [`Request::idempotency_claim`].
    ///
    /// # Errors
    /// `invalid_if_match`, `invalid_if_none_match`, `invalid_idempotency_key`.
    pub fn change_request(&self, payload: &impl Serialize) -> Result<ChangeRequest, Problem> {
        Ok(ChangeRequest { if_match: self.if_match()?, claim: self.idempotency_claim(payload)? })
    }

    /// Parses the headers of a creation on a route without idempotency keys.
    ///
    /// # Errors
    /// `idempotency_key_unsupported`, `invalid_if_match`, `invalid_if_none_match`.
    pub fn unkeyed_create_request(&self) -> Result<CreateRequest, Problem> {
        self.refuse_idempotency_key()?;
        Ok(CreateRequest { if_absent: self.if_absent()?, claim: None })
    }

    /// Parses the headers of a delete.
    ///
    /// # Errors
    /// `idempotency_key_unsupported`, `invalid_if_match`, `invalid_if_none_match`.
    pub fn delete_request(&self) -> Result<DeleteRequest, Problem> {
        self.refuse_idempotency_key()?;
        Ok(DeleteRequest { if_match: self.if_match()? })
    }
}

impl<T: Resource> Items<T> {
    /// Creates items without idempotency: their routes refuse idempotency keys.
    #[must_use]
    pub fn new(table: Table<T>) -> Self {
        const { assert!(T::SORT_KEY.is_none(), "a path has one id, so Items need a table without a sort key") }
        Items { table, idempotency: None }
    }

    /// Creates items that honour idempotency keys in creations and changes. Both must belong to one store.
    #[must_use]
    pub fn with_idempotency(table: Table<T>, idempotency: Idempotency<Response>) -> Self {
        Items { idempotency: Some(idempotency), ..Self::new(table) }
    }

    /// Returns items bound to the deadline and the tally of this call, as after
    /// [`Store::in_call`](crate::Store::in_call). A handler calls it once per request.
    #[must_use]
    pub fn in_call(&self, call: &Call) -> Self {
        let idempotency = self.idempotency.as_ref().map(|idempotency| idempotency.in_call(call));
        Items { table: self.table.in_call(call), idempotency }
    }

    /// The table of these items.
    #[must_use]
    pub fn table(&self) -> &Table<T> {
        &self.table
    }

    /// The time of day by the clock of the store, for decisions.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.table.store().now()
    }

    /// Answers a conditional GET.
    ///
    /// # Errors
    /// The resource's 404, `version_conflict`, and every [`Failure`](crate::Failure).
    pub async fn get(&self, id: impl AsRef<str>, preconditions: &Preconditions) -> Result<Response, Problem> {
        let id = id.as_ref();
        let item = self.table.get(id).await?.ok_or_else(T::not_found)?;
        preconditions.respond(item.at, || item.value.to_json(id, item.at))
    }

    /// Answers one page of a listing: `{"<name>": [...], "cursor"?}`. The query decides how many items a page has, and
    /// where it begins. Without `cursor`, it was the last page.
    ///
    /// # Errors
    /// `invalid_cursor` for the parameter `cursor`, and every [`Failure`](crate::Failure).
    pub async fn list(name: &str, query: Query<T>) -> Result<Response, Problem> {
        let page = query.pages().next_page().await?.unwrap_or_default();
        let mut items = Vec::with_capacity(page.items.len());
        for item in page.items {
            let (Some(at), Some(id)) = (item.at, item.key.partition().as_str().map(str::to_owned)) else {
                return Err(Problem::internal(
                    "the index does not project the versions, or a row of another program was not adopted, or the ids are no text",
                ));
            };
            items.push(json_text(&item.value.to_json(&id, at)));
        }
        let mut body = BTreeMap::from([(name, json_text(&items))]);
        if let Some(cursor) = page.next {
            body.insert("cursor", json_text(&cursor.as_str()));
        }
        Ok(Response::listed(&body))
    }

    /// Creates the item if the key is free.
    ///
    /// # Errors
    /// The 409 of the resource, `version_conflict` under `If-None-Match: *`, `idempotency_key_reused`, and every
    /// [`Failure`](crate::Failure). `idempotency_key_unsupported` if the request has a key and [`Items::new`] made these items.
    pub async fn create(&self, id: impl AsRef<str>, value: &T, request: &CreateRequest) -> Result<Response, Problem> {
        let id = id.as_ref();
        if let Some(claim) = &request.claim {
            let decide = |current: Option<&Versioned<T>>| match current {
                None => Ok(Some(value.clone())),
                Some(current) => Err(exists::<T>(current.at, request.if_absent)),
            };
            return self.keyed(id, claim, &decide).await;
        }
        match self.table.create(id, value).await {
            Ok(created) => Ok(Self::created(id, &created)),
            Err(Error::Refused(Exists(current))) => Err(exists::<T>(current.at, request.if_absent)),
            Err(Error::Failed(failure)) => Err(failure.into()),
        }
    }

    /// Changes the item by the decision `decide`.
    ///
    /// With a tag in `If-Match`, a conflict is the answer. Without one, a conflict is decided again. With an
    /// idempotency key, the change is made once. A repeat gets the first answer, before `If-Match` is checked.
    ///
    /// # Errors
    /// The 404 of the resource, `version_conflict`, the refusal of the decision, `idempotency_key_reused`, and every
    /// [`Failure`](crate::Failure). `idempotency_key_unsupported` if the request has a key and [`Items::new`] made these items.
    pub async fn change<R: Into<Problem>>(
        &self,
        id: impl AsRef<str>,
        request: &ChangeRequest,
        decide: impl Fn(&T) -> Result<Option<T>, R> + Sync,
    ) -> Result<Response, Problem> {
        let decide = |value: &T| decide(value).map_err(Into::into);
        self.change_by(id.as_ref(), request, &decide).await
    }

    /// Changes the item by `edit`, if there is one and the request has neither a key nor `If-Match`; otherwise by the
    /// decision. An edit demands no version: see [`Table::edit`].
    ///
    /// When the item refuses the edit, `decide` says why. It may also find that the change is possible at an exact version,
    /// and then that change is made. Both are one change.
    ///
    /// # Errors
    /// See [`Items::change`].
    pub async fn edit_or_change<R: Into<Problem>>(
        &self,
        id: impl AsRef<str>,
        request: &ChangeRequest,
        edit: impl Fn() -> Option<Edit<T>> + Sync,
        decide: impl Fn(&T) -> Result<Option<T>, R> + Sync,
    ) -> Result<Response, Problem> {
        let decide = |value: &T| decide(value).map_err(Into::into);
        self.edit_or_change_by(id.as_ref(), request, Some(EditPlan::Edit(&edit)), &decide).await
    }

    /// The same by an edit that follows from the item. It is the item that this client saw last, if the table
    /// [remembers items](Table::remembering_items). Otherwise the item is read. The edit demands no version, so its
    /// conditions must name each value of the item that it rests on.
    ///
    /// # Errors
    /// See [`Items::change`].
    pub async fn edit_from_item_or_change<R: Into<Problem>>(
        &self,
        id: impl AsRef<str>,
        request: &ChangeRequest,
        edit: Option<impl Fn(&T) -> Edit<T> + Sync>,
        decide: impl Fn(&T) -> Result<Option<T>, R> + Sync,
    ) -> Result<Response, Problem> {
        let decide = |value: &T| decide(value).map_err(Into::into);
        let plan = edit.as_ref().map(|edit| EditPlan::FromItem(edit));
        self.edit_or_change_by(id.as_ref(), request, plan, &decide).await
    }

    async fn edit_or_change_by(
        &self,
        id: &str,
        request: &ChangeRequest,
        plan: Option<EditPlan<'_, T>>,
        decide: &(dyn Fn(&T) -> Result<Option<T>, Problem> + Sync),
    ) -> Result<Response, Problem> {
        let key = Key::from(id);
        let table = self.table.in_call(&self.table.call()); // one call for both requests
        let edit = match plan {
            _ if request.claim.is_some() || request.if_match != IfMatch::None => None,
            None => None,
            Some(EditPlan::Edit(edit)) => edit(),
            Some(EditPlan::FromItem(edit)) => {
                let item = match table.last_seen(&key) {
                    Some(item) => item,
                    None => table.get(&key).await?.ok_or_else(T::not_found)?,
                };
                Some(edit(&item.value).seen(item.at))
            }
        };
        let Some(edit) = edit else { return self.change_by(id, request, decide).await };
        match table.edit_or_update(&key, &edit, decide).await {
            Ok(item) => Ok(Self::ok(id, &item)),
            Err(error) => Err(Self::problem(error)),
        }
    }

    fn problem<R: Into<Problem>>(error: UpdateError<R>) -> Problem {
        match error {
            UpdateError::NotFound => T::not_found(),
            UpdateError::Refused(reason) => reason.into(),
            UpdateError::Failed(failure) => failure.into(),
        }
    }

    fn problem_at<R: Into<Problem>>(error: VersionError<T, R>) -> Problem {
        match error {
            VersionError::NotFound => T::not_found(),
            VersionError::Conflict(current) => Problem::version_conflict(current.at),
            VersionError::Refused(reason) => reason.into(),
            VersionError::Failed(failure) => failure.into(),
        }
    }

    /// Compiled once per resource, however many decisions its routes have.
    async fn change_by(
        &self,
        id: &str,
        request: &ChangeRequest,
        decide: &(dyn Fn(&T) -> Result<Option<T>, Problem> + Sync),
    ) -> Result<Response, Problem> {
        let key = Key::from(id);
        let changed = match (&request.claim, request.if_match) {
            (Some(claim), if_match) => {
                let decide = |current: Option<&Versioned<T>>| match current {
                    None => Err(T::not_found()),
                    // Nothing is decided at another version than that of the client, even after a lost race.
                    Some(current) => match if_match.check(current.at) {
                        Err(stale) => Err(stale),
                        Ok(()) => decide(&current.value),
                    },
                };
                return self.keyed(id, claim, &decide).await;
            }
            (None, IfMatch::Tag(at)) => {
                self.table.update_at_version(&key, at, decide).await.map_err(Self::problem_at)?
            }
            (None, IfMatch::Any | IfMatch::None) => {
                self.table.update_with_retry(&key, decide).await.map_err(Self::problem)?
            }
        };
        Ok(Self::ok(id, &changed))
    }

    /// Deletes the item at the version in `If-Match`, or at any version with `*`.
    ///
    /// # Errors
    /// `condition_required` without `If-Match`, the resource's 404, `version_conflict`, and every [`Failure`](crate::Failure).
    pub async fn delete(&self, id: impl AsRef<str>, request: DeleteRequest) -> Result<Response, Problem> {
        let key = Key::from(id.as_ref());
        let deleted = match request.if_match {
            IfMatch::Tag(at) => self.table.delete_at_version(&key, at).await.map_err(Self::problem_at),
            IfMatch::Any => self.table.delete(&key).await.map_err(Self::problem),
            IfMatch::None => {
                let detail = "send If-Match with the ETag of the version that you mean, or *";
                return Err(Problem::condition_required(detail));
            }
        };
        Ok(Response::deleted(deleted?))
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

    /// Creates or changes the item once per claim. Commits the record of the answer in the same transaction.
    async fn keyed(
        &self,
        id: &str,
        claim: &IdempotencyClaim,
        decide: &KeyedDecision<'_, T>,
    ) -> Result<Response, Problem> {
        let Some(idempotency) = &self.idempotency else { return Err(Problem::key_unsupported()) };
        let mut reads = Reads::new();
        let item = reads.item("item", &self.table, id);
        let answer = idempotency.change(claim, reads, |attempt| {
            let current = attempt.get(item)?;
            match (decide(current.as_ref()).map_err(Error::Refused)?, current) {
                (Some(value), None) => {
                    let at = attempt.put_if_absent(item, &value)?;
                    Ok(Self::created(id, &Versioned { value, at }))
                }
                (Some(value), Some(current)) => {
                    // It may be large. The step decodes the item again.
                    drop(current);
                    let at = attempt.update_at(item, &value)?;
                    Ok(Self::ok(id, &Versioned { value, at }))
                }
                (None, Some(current)) => Ok(Self::ok(id, &current)),
                (None, None) => Err(Error::Refused(T::not_found())),
            }
        });
        Response::from_answer(answer.await)
    }
}

fn json_text(part: &impl Serialize) -> Box<RawValue> {
    to_raw_value(part).expect("a JSON value")
}

/// The problem for a taken key: a failed precondition if the client demanded a free key, otherwise a refusal.
fn exists<T: Resource>(current: ItemVersion, if_absent: bool) -> Problem {
    let (code, detail) = T::EXISTS;
    if if_absent { Problem::version_conflict(current) } else { Problem::refused(code, detail) }
}

impl Response {
    /// The response to a change with an idempotency key: the first answer, marked if it is a replay, or the problem.
    ///
    /// # Errors
    /// `idempotency_key_reused`, the decision's refusal, and every [`Failure`](crate::Failure).
    pub fn from_answer(answer: Result<Answer<Response>, IdempotencyError<Problem>>) -> Result<Response, Problem> {
        match answer? {
            Answer::New(response) => Ok(response),
            Answer::Replayed(response) => Ok(response.replayed()),
        }
    }
}
