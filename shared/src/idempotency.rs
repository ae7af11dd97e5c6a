//! Idempotency: a request that is repeated has one effect, even if another process handles the repeat hours later. There is
//! no state "in progress", because a crash would leave that state wrong.

use crate::call::Call;
use crate::error::{Error, Failure, FailureKind, IdempotencyError, Source};
use crate::settings::Settings;
use crate::store::Store;
use crate::table::{Key, Record, Table};
use crate::transact::{Attempt, Item, Reads};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fencepost_core::format::item::Attributes;
use fencepost_core::{InvalidValue, epoch_seconds};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::fmt;
use std::time::{Duration, SystemTime};

/// The bytes of a digest that make an id: 192 bits, enough that two ids never collide by chance.
const ID_BYTES: usize = 24;

/// Derives an id from these parts. Equal parts give the same id, other parts another one. The id reveals nothing about
/// the parts. It has 32 characters that may stand in a path (RFC 4648, section 5).
///
/// ```
/// use fencepost::derived_id;
///
/// let id = derived_id(&["order", "arn:aws:iam::123456789012:role/shop", "user-1", "key-1"]);
/// assert_eq!(id.len(), 32);
/// assert_ne!(derived_id(&["a", "bc"]), derived_id(&["ab", "c"]));
/// ```
#[must_use]
pub fn derived_id(parts: &[&str]) -> String {
    URL_SAFE_NO_PAD.encode(&digest(parts)[..ID_BYTES])
}

/// SHA-256 over the parts, each after its length. So the hash depends on where a part ends.
fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// Changes that are made once per request. [`Store::idempotency`] makes it; copies are cheap.
///
/// A repeated request has one effect, even if another process handles the repeat hours later. The record with the
/// answer is committed in the same transaction as the effect, so there is no state "in progress" that a crash would
/// leave wrong. A request that only creates an item needs no record if the id of the item is from [`derived_id`].
///
/// `A` is the answer that a repeat gets again. It can be any value that serde stores and reads back as an equal one, for
/// a consumer of a queue as well as for an HTTP function. Another answer, such as `Some(None)`, is refused as
/// [`FailureKind::InvalidRecord`] before anything is sent. The [guide](crate::guide::transactions)
/// has an example.
///
/// [`TableSchema::idempotency`](crate::TableSchema::idempotency) checks and prints the table of the records:
///
/// | attribute | type | meaning |
/// |---|---|---|
/// | `recordId`, or [another name](Idempotency::with_key_name) | string | the partition key: the id of the claim; there is no sort key |
/// | `payload` | string | a hash of the payload of the claim |
/// | `answer` | that of `A` | the answer |
/// | `expiresAt` | number | the TTL attribute: when the record may go, in seconds since 1970 |
/// | `_version`, `_incarnation`, `_writes` | number, binary, map | as in the table of a [`Record`]: see [`Names`](crate::Names) |
pub struct Idempotency<A> {
    records: Table<IdempotencyRecord<A>>,
}

/// The answer to a request with an idempotency key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer<A> {
    /// This call made the change.
    New(A),
    /// An earlier request made the change. This was its answer.
    Replayed(A),
}

impl Store {
    /// Changes that are made once per request. Their records are in the table with this name. Sends nothing.
    pub fn idempotency<A: Serialize + DeserializeOwned + Clone + PartialEq>(
        &self,
        records: impl Into<String>,
    ) -> Idempotency<A> {
        Idempotency { records: self.table(records) }
    }
}

impl<A: Serialize + DeserializeOwned + Clone + PartialEq> Idempotency<A> {
    /// Names the partition key of the table, if it is not `recordId`. All users of a table must use the same name.
    #[must_use]
    pub fn with_key_name(self, key_name: &'static str) -> Self {
        Idempotency { records: self.records.with_partition_key(key_name) }
    }

    /// Returns a copy bound to the deadline and the tally of this call, as after [`Store::in_call`].
    #[must_use]
    pub fn in_call(&self, call: &Call) -> Self {
        Idempotency { records: self.records.in_call(call) }
    }

    /// Returns the first answer to the claim. If there is none, makes the change and records its answer.
    ///
    /// Every attempt reads the record together with `reads`, and looks at the record before it calls `decide`.
    ///
    /// - `Ok(answer)` commits the steps and the record in one transaction. Without a step, it commits only the record, on
    ///   the condition that every item is still as it was read. Without the record, a delayed duplicate could apply the
    ///   change after a change of another caller.
    /// - `Err(Error::Refused(reason))` is not recorded. The key stays open: the same request may succeed later. A
    ///   refusal costs one more read of the record.
    ///
    /// # Errors
    /// [`IdempotencyError::KeyReused`]: the key was used for another payload; use a new key.
    /// [`IdempotencyError::Refused`]: the decision refused; the error holds its reason. [`IdempotencyError::Failed`]:
    /// repeat the request with the same claim. That also finds out about an unknown outcome.
    pub async fn change<R>(
        &self,
        claim: &IdempotencyClaim,
        mut reads: Reads,
        decide: impl Fn(&mut Attempt) -> Result<A, Error<R>>,
    ) -> Result<Answer<A>, IdempotencyError<R>> {
        let call = &self.records.store().call();
        let record = reads.item("idempotency record", &self.records, claim.key());
        let decide_once = |attempt: &mut Attempt| {
            let now = self.now();
            match claim.look_up(attempt.get(record)?.map(|record| record.value), now)? {
                Lookup::New => {}
                Lookup::Replayed(answer) => return Ok(Answer::Replayed(answer)),
                Lookup::KeyReused => return Err(Error::Refused(None)),
            }
            let answer = match decide(attempt) {
                Ok(answer) => answer,
                Err(Error::Refused(reason)) => return Err(Error::Refused(Some(reason))),
                Err(Error::Failed(failure)) => return Err(failure.into()),
            };
            let changes_nothing = !attempt.has_steps();
            claim.record(attempt, record, &answer, now)?;
            if changes_nothing {
                attempt.check_rest()?;
            }
            Ok(Answer::New(answer))
        };
        let mut attempt = self.records.store().attempt_of(reads, call)?;
        match self.records.store().transact(&mut attempt, call, decide_once).await {
            Ok(answer) => Ok(answer),
            Err(Error::Failed(failure @ Failure { kind: FailureKind::EditRefused { .. }, .. })) => {
                self.unless_answered(claim, failure.into(), &attempt, call).await
            }
            Err(Error::Failed(failure)) => Err(failure.into()),
            Err(Error::Refused(None)) => Err(IdempotencyError::KeyReused),
            Err(Error::Refused(Some(reason))) => {
                self.unless_answered(claim, IdempotencyError::Refused(reason), &attempt, call).await
            }
        }
    }

    /// Returns a refusal only if the request still has no answer.
    ///
    /// The items are not read at one moment. A copy of the same request may be applied after the record was read and
    /// before the other items were. The request would then be refused because of its own success. Reading the record
    /// once more shows this.
    async fn unless_answered<R>(
        &self,
        claim: &IdempotencyClaim,
        refusal: IdempotencyError<R>,
        attempt: &Attempt,
        call: &Call,
    ) -> Result<Answer<A>, IdempotencyError<R>> {
        let record =
            self.records.in_call(call).get(claim.key()).await.map_err(|failure| attempt.followed_by(failure))?;
        match claim.look_up(record.map(|record| record.value), self.now())? {
            Lookup::Replayed(answer) => Ok(Answer::Replayed(answer)),
            Lookup::KeyReused => Err(IdempotencyError::KeyReused),
            Lookup::New => Err(refusal),
        }
    }

    fn now(&self) -> SystemTime {
        self.records.store().clock().now()
    }
}

impl<A> Clone for Idempotency<A> {
    fn clone(&self) -> Self {
        Idempotency { records: self.records.clone() }
    }
}

impl<A> fmt::Debug for Idempotency<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency").field("records", &self.records).finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Lookup<A> {
    New,
    Replayed(A),
    KeyReused,
}

/// The record of a change: the request with its answer.
///
/// It holds a hash of the request and the whole answer, and counts as long as its claim says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IdempotencyRecord<A> {
    payload: String,
    answer: Kept<A>,
    /// The expiry time in epoch seconds. The TTL attribute of the table.
    expires_at: u64,
}

impl<A: Serialize + DeserializeOwned + PartialEq> Record for IdempotencyRecord<A> {
    const PARTITION_KEY: &'static str = "recordId";
    const ATTRIBUTES: &'static [&'static str] = &["payload", "answer", "expiresAt"];
    const EXPIRES_AT: Option<&'static str> = Some("expiresAt");
    const SETTINGS: Settings = Settings::own().with_ends_that_stay();

    /// A repeat gets the very answer. Its attributes alone do not tell: `Some(None)` is stored as `None` is.
    fn check_read_back(&self, encoded: &Attributes) -> Result<(), Source> {
        if Self::decode(encoded)?.answer == self.answer {
            return Ok(());
        }
        Err("answer would be read back as another value, and a repeated request would get that one".into())
    }
}

impl<A> IdempotencyRecord<A> {
    fn new(payload: String, answer: A, end: SystemTime) -> Self {
        IdempotencyRecord { payload, answer: Kept::Answer(answer), expires_at: epoch_seconds(end) }
    }

    fn answer_to(self, payload: &str, now: SystemTime) -> Result<Lookup<A>, Failure> {
        if self.expires_at <= epoch_seconds(now) {
            return Ok(Lookup::New);
        }
        if self.payload != payload {
            return Ok(Lookup::KeyReused);
        }
        match self.answer {
            Kept::Answer(answer) => Ok(Lookup::Replayed(answer)),
            Kept::Unreadable(reason) => {
                Err(Failure::of(FailureKind::CorruptItem { reason: format!("a stored answer: {reason}") }))
            }
        }
    }
}

/// An answer as a record has it. One of another release may not decode, which matters if the record counts.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Kept<A> {
    Answer(A),
    Unreadable(String),
}

impl<A: Serialize> Serialize for Kept<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Kept::Answer(answer) => answer.serialize(serializer),
            // Only compared with the answer that takes its place.
            Kept::Unreadable(_) => serializer.serialize_unit(),
        }
    }
}

impl<'de, A: Deserialize<'de>> Deserialize<'de> for Kept<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(A::deserialize(deserializer).map_or_else(|error| Kept::Unreadable(error.to_string()), Kept::Answer))
    }
}

/// The identity of one request: the id of its record with a hash of its content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdempotencyClaim {
    id: String,
    payload: String,
    retention: Duration,
}

impl IdempotencyClaim {
    /// How long a record counts unless its claim is [`lasting`](Self::lasting): the promised 24 hours plus one for different
    /// clocks and late repeats.
    pub const RETENTION: Duration = Duration::from_hours(24 + 1);
    /// The longest time for which a record counts: 400 days.
    pub const MAX_RETENTION: Duration = Duration::from_hours(400 * 24);

    /// Creates the claim of a request.
    ///
    /// `scope` says where the key is unique, such as caller, route and key. `payload` is the rest of the request, in
    /// one notation. Two payloads are equal if and only if their parts are the same bytes.
    ///
    /// # Errors
    /// [`InvalidValue`]: the scope has no part, or an empty one. All requests without a key would be the same request.
    pub fn new(scope: &[&str], payload: &[&str]) -> Result<Self, InvalidValue> {
        if scope.is_empty() || scope.contains(&"") {
            let reason =
                "each part of the scope of an idempotency claim names something, such as the caller or the key";
            return Err(InvalidValue::Malformed(reason.into()));
        }
        let payload = URL_SAFE_NO_PAD.encode(digest(payload));
        Ok(IdempotencyClaim { id: derived_id(scope), payload, retention: Self::RETENTION })
    }

    /// Lets the record of the request count for this time instead of [`RETENTION`](Self::RETENTION). An execution of a
    /// workflow, for example, may repeat its requests for a month.
    ///
    /// The record gets its end when the change is made. A repeat does not prolong it, whatever its own claim says. A
    /// lease goes by its row: [`acquire_once`](crate::lease::Leases::acquire_once) does not use this time.
    ///
    /// ```
    /// use fencepost::IdempotencyClaim;
    /// use std::time::Duration;
    ///
    /// let month = Duration::from_hours(31 * 24);
    /// let claim = IdempotencyClaim::new(&["execution-7", "book the room"], &[])?.lasting(month)?;
    /// assert!(claim.lasting(Duration::from_hours(1)).is_err());
    /// # Ok::<_, fencepost::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidValue`]: the time is longer than [`MAX_RETENTION`](Self::MAX_RETENTION) or shorter than
    /// [`RETENTION`](Self::RETENTION). A shorter life could end while a repeat or a late copy is still under way.
    pub fn lasting(self, retention: Duration) -> Result<Self, InvalidValue> {
        if !(Self::RETENTION..=Self::MAX_RETENTION).contains(&retention) {
            let (least, most) = (Self::RETENTION.as_secs() / 3600, Self::MAX_RETENTION.as_secs() / 86_400);
            let reason =
                format!("the record of an idempotency claim counts for at least {least} h and at most {most} days");
            return Err(InvalidValue::OutOfRange(reason.into()));
        }
        Ok(IdempotencyClaim { retention, ..self })
    }

    /// The claim as bytes. A lease stores them as the id of its acquire.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        [self.id.as_bytes(), self.payload.as_bytes()].concat()
    }

    /// Whether two claims, as bytes, have the same key and different payloads.
    pub(crate) fn is_reused(mine: &[u8], theirs: &[u8]) -> bool {
        let has_id_of_mine = mine.get(..ID_BYTES / 3 * 4).is_some_and(|id| theirs.starts_with(id));
        has_id_of_mine && mine.len() == theirs.len() && mine != theirs
    }

    fn key(&self) -> Key {
        Key::from(self.id.as_str())
    }

    pub(crate) fn look_up<A>(
        &self,
        record: Option<IdempotencyRecord<A>>,
        now: SystemTime,
    ) -> Result<Lookup<A>, Failure> {
        record.map_or(Ok(Lookup::New), |record| record.answer_to(&self.payload, now))
    }

    pub(crate) fn record_of<A>(&self, answer: A, now: SystemTime) -> IdempotencyRecord<A> {
        IdempotencyRecord::new(self.payload.clone(), answer, now + self.retention)
    }

    fn record<A: Serialize + DeserializeOwned + Clone + PartialEq>(
        &self,
        attempt: &mut Attempt,
        item: Item<IdempotencyRecord<A>>,
        answer: &A,
        now: SystemTime,
    ) -> Result<(), Failure> {
        let record = self.record_of(answer.clone(), now);
        match attempt.get(item)? {
            None => attempt.put_if_absent(item, &record)?,
            // The record has expired; otherwise it would have answered.
            Some(_) => attempt.update_at(item, &record)?,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_part_ends_makes_another_id() {
        let all: [&[&str]; 8] =
            [&["a", "bc"], &["ab", "c"], &["abc"], &["abc", ""], &["", "abc"], &[], &[""], &["", ""]];
        for (index, parts) in all.iter().enumerate() {
            assert_eq!(derived_id(parts), derived_id(parts));
            for others in &all[..index] {
                assert_ne!(derived_id(parts), derived_id(others), "{parts:?} {others:?}");
            }
        }
    }

    #[test]
    fn an_id_stays_what_it_was_and_may_stand_in_a_path() {
        // Existing orders and records are found by this id. A change here forgets them all.
        assert_eq!(derived_id(&["caller", "key"]), "e1XNk7v4r7d3lIz4mQkY5Iz7mZjS0cdo");
        for number in 0..100 {
            let id = derived_id(&[&number.to_string()]);
            assert_eq!(id.len(), 32);
            assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{id}");
        }
    }

    #[test]
    fn a_key_is_used_again_if_the_whole_id_is_the_same_and_the_payload_is_not() {
        let mine = IdempotencyClaim::new(&["caller", "key"], &["payload"]).expect("a scope");
        let id_ends_with = |end: &str| format!("{}{end}", &mine.id[..mine.id.len() - 1]);
        let other_end = if mine.id.ends_with('A') { "B" } else { "A" };
        let other = IdempotencyClaim::new(&["caller", "key"], &["another"]).expect("a scope");
        let stranger = IdempotencyClaim { id: id_ends_with(other_end), ..other.clone() };
        for (theirs, is_reused) in [
            (mine.to_bytes(), false),
            (other.to_bytes(), true),
            (stranger.to_bytes(), false),
            (vec![7; 16], false), // of an acquire without a key
            (mine.id.as_bytes().to_vec(), false),
        ] {
            assert_eq!(IdempotencyClaim::is_reused(&mine.to_bytes(), &theirs), is_reused, "{theirs:?}");
            assert_eq!(IdempotencyClaim::is_reused(&theirs, &mine.to_bytes()), is_reused, "{theirs:?}");
        }
    }

    #[test]
    fn a_record_answers_the_same_request_for_25_hours_and_no_other() {
        assert_counts_for(&claim("payload"), Duration::from_hours(25));
    }

    #[test]
    fn the_record_of_a_lasting_claim_counts_for_its_time_from_25_hours_to_400_days() {
        let hours = Duration::from_hours;
        for retention in [hours(25), hours(31 * 24), hours(400 * 24)] {
            assert_counts_for(&claim("payload").lasting(retention).expect("in the limits"), retention);
        }
        for retention in [
            Duration::ZERO,
            Duration::from_secs(25 * 3600 - 1),
            hours(400 * 24) + Duration::from_secs(1),
            Duration::MAX,
        ] {
            let refused = claim("payload").lasting(retention).expect_err("beyond the limits").to_string();
            assert!(refused.contains("at least 25 h and at most 400 days"), "{retention:?}: {refused}");
        }
    }

    fn claim(payload: &str) -> IdempotencyClaim {
        IdempotencyClaim::new(&["caller", "key"], &[payload]).expect("a scope")
    }

    fn assert_counts_for(made: &IdempotencyClaim, retention: Duration) {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(492_000);
        let (record, end) = (made.record_of("answer".to_owned(), now), now + retention);
        assert_eq!(record.expires_at, epoch_seconds(end), "TTL may remove it then, and no earlier");
        // A repeat is judged by the end that the record has.
        for time in [now, end - Duration::from_secs(1)] {
            let look_up = |payload| claim(payload).look_up(Some(record.clone()), time).ok();
            assert_eq!(look_up("payload"), Some(Lookup::Replayed("answer".to_owned())), "{retention:?}");
            assert_eq!(look_up("another"), Some(Lookup::KeyReused), "{retention:?}");
        }
        for payload in ["payload", "another"] {
            assert_eq!(claim(payload).look_up(Some(record.clone()), end).ok(), Some(Lookup::New), "{retention:?}");
        }
    }

    #[test]
    fn an_answer_that_does_not_decode_matters_only_if_its_record_counts() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(492_000);
        let expired = now + Duration::from_hours(25);
        let stored = IdempotencyRecord::new("payload".to_owned(), "not a number".to_owned(), expired);
        let attributes = stored.encode().expect("attributes");
        let record: IdempotencyRecord<u64> = Record::decode(&attributes).expect("a record");
        assert_eq!(record.clone().answer_to("payload", expired).ok(), Some(Lookup::New));
        assert_eq!(record.clone().answer_to("another", now).ok(), Some(Lookup::KeyReused));
        assert!(matches!(record.answer_to("payload", now), Err(Failure { kind: FailureKind::CorruptItem { .. }, .. })));
    }
}
