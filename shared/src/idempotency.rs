//! Idempotency keys: one change counts once, however often its request is repeated, also by another process.
//!
//! Two ways, both without a state "in progress", which would be wrong one way or the other after a crash:
//!
//! - A thing that the request creates gets an id derived from the caller and the key ([`derived_id`]): the second create
//!   collides with the first, whoever sends it.
//! - Any other change commits a [`Stored`] record with its answer in the same transaction as its effect ([`Claim`]). So
//!   there is a record exactly where there is an effect, and whoever finds the record has the first answer.

use crate::error::Failure;
use crate::table::{Key, Record};
use crate::timestamp::epoch_seconds;
use crate::transact::{Attempt, Item};
use crate::version::Versioned;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::time::{Duration, SystemTime};

/// How long a record is believed: the 24 hours that are promised, and one more for clocks that differ and for a repeat
/// that was sent in time and arrives late.
pub const RETENTION: Duration = Duration::from_hours(24 + 1);

/// The bytes of a digest that make an id: 192 bits, so that no two of them ever meet by chance.
const ID_BYTES: usize = 24;

/// The id that follows from these parts: always the same, another one for any other parts, and nothing can be told from
/// it. 32 characters that may stand in a path (RFC 4648, section 5).
///
/// ```
/// use fencepost::idempotency::derived_id;
///
/// let id = derived_id(&["order", "arn:aws:iam::123456789012:role/shop", "user-1", "key-1"]);
/// assert_eq!(id.len(), 32);
/// assert_ne!(derived_id(&["a", "bc"]), derived_id(&["ab", "c"]));
/// ```
#[must_use]
pub fn derived_id(parts: &[&str]) -> String {
    URL_SAFE_NO_PAD.encode(&digest(parts)[..ID_BYTES])
}

/// SHA-256 over the parts, each with its length in front: where one ends and the next begins counts.
fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// One request's claim to count once: which record it is looked for in, and what the request says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    id: String,
    payload: String,
}

/// What an earlier request with the same key has left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Earlier {
    /// Nothing that still counts: this is the first.
    Nothing,
    /// The same request was answered with this, and is not to have another effect.
    Replay(String),
    /// The key was used for a request that said something else.
    Reused,
}

/// The record of a change that was made: what was asked, and what was answered.
///
/// Only a hash of the request is kept. The answer is kept whole, for [`RETENTION`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stored {
    payload: String,
    answer: String,
    /// Epoch seconds: the table's TTL attribute.
    expires_at: u64,
}

impl Record for Stored {
    const PARTITION_KEY: &'static str = "recordId";
    const ATTRIBUTES: &'static [&'static str] = &["payload", "answer", "expiresAt"];
    const EXPIRES_AT: Option<&'static str> = Some("expiresAt");
}

impl Stored {
    fn new(payload: String, answer: String, now: SystemTime) -> Self {
        Stored { payload, answer, expires_at: epoch_seconds(now + RETENTION) }
    }

    /// What this record is to a request with this payload. TTL removes rows late: an expired one is none.
    fn answers(&self, payload: &str, now: SystemTime) -> Earlier {
        if self.expires_at <= epoch_seconds(now) {
            Earlier::Nothing
        } else if self.payload == payload {
            Earlier::Replay(self.answer.clone())
        } else {
            Earlier::Reused
        }
    }
}

impl Claim {
    /// `scope` says where the key is unique (caller, route, key), `payload` all else that makes it this request, in one
    /// notation only: two payloads are the same exactly when their parts are the same bytes.
    #[must_use]
    pub fn new(scope: &[&str], payload: &[&str]) -> Self {
        Claim { id: derived_id(scope), payload: URL_SAFE_NO_PAD.encode(digest(payload)) }
    }

    /// The claim as bytes: what a lease remembers of the acquire that has it.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        [self.id.as_bytes(), self.payload.as_bytes()].concat()
    }

    /// Whether two claims, as bytes, have one key and two payloads.
    pub(crate) fn is_reused(mine: &[u8], theirs: &[u8]) -> bool {
        let id_length = ID_BYTES / 3 * 4;
        mine.len() == theirs.len()
            && mine.len() > id_length
            && mine[..id_length] == theirs[..id_length]
            && mine != theirs
    }

    /// The key of the record.
    #[must_use]
    pub fn key(&self) -> Key {
        Key::from(self.id.as_str())
    }

    /// What an earlier request has left in the record, as this attempt sees it. Look before anything is decided.
    ///
    /// # Errors
    /// [`Failure::CorruptItem`]: somebody else writes to the table of records.
    pub fn look_up(&self, attempt: &Attempt, item: Item<Stored>, now: SystemTime) -> Result<Earlier, Failure> {
        Ok(self.earlier(attempt.get(item)?, now))
    }

    /// What an earlier request has left in this record, which was read under [`Claim::key`].
    #[must_use]
    pub fn earlier(&self, stored: Option<Versioned<Stored>>, now: SystemTime) -> Earlier {
        stored.map_or(Earlier::Nothing, |stored| stored.value.answers(&self.payload, now))
    }

    /// Adds the record with this answer to the steps of the attempt: it commits with them or not at all.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when the answer does not fit into an item. [`Failure::CorruptItem`] as in
    /// [`Claim::look_up`].
    pub fn record(
        &self,
        attempt: &mut Attempt,
        item: Item<Stored>,
        answer: String,
        now: SystemTime,
    ) -> Result<(), Failure> {
        let record = Stored::new(self.payload.clone(), answer, now);
        match attempt.get(item)? {
            None => attempt.put_if_absent(item, &record)?,
            // Expired, or it would have answered.
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
        // Orders and records of yesterday are found by it: a change here forgets them all.
        assert_eq!(derived_id(&["caller", "key"]), "e1XNk7v4r7d3lIz4mQkY5Iz7mZjS0cdo");
        for number in 0..100 {
            let id = derived_id(&[&number.to_string()]);
            assert_eq!(id.len(), 32);
            assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{id}");
        }
    }

    #[test]
    fn a_claim_is_found_by_its_scope_and_recognised_by_its_payload() {
        let claim = Claim::new(&["caller", "route", "key"], &["payload"]);
        let other_payload = Claim::new(&["caller", "route", "key"], &["another"]);
        let other_scope = Claim::new(&["caller", "route", "other key"], &["payload"]);
        assert_eq!(claim.key(), other_payload.key());
        assert_ne!(claim.payload, other_payload.payload);
        assert_ne!(claim.key(), other_scope.key());
    }

    #[test]
    fn a_record_answers_the_same_request_for_25_hours_and_no_other() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(492_000);
        let stored = Stored::new("payload".to_owned(), "answer".to_owned(), now);
        let late = now + RETENTION - Duration::from_secs(1);
        for time in [now, late] {
            assert_eq!(stored.answers("payload", time), Earlier::Replay("answer".to_owned()));
            assert_eq!(stored.answers("another", time), Earlier::Reused);
        }
        for payload in ["payload", "another"] {
            assert_eq!(stored.answers(payload, now + RETENTION), Earlier::Nothing, "{payload}");
        }
    }
}
