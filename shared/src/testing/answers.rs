//! Records of answers to requests with an idempotency key.

use super::rows::{first_row, read_row};
use crate::error::Failure;
use crate::http::Response;
use crate::idempotency::{IdempotencyClaim, IdempotencyRecord, Lookup};
use fencepost_core::WriteId;
use fencepost_core::format::item::Attributes;
use std::time::SystemTime;

/// The verdict of a record on a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordSays {
    /// It does not count: this is the first request.
    New,
    /// This was the answer.
    Replayed(Response),
    /// The key was used for another request.
    KeyReused,
}

/// The verdict of a record's row on a request, as [`Idempotency::change`](crate::Idempotency::change) reads it.
///
/// # Errors
/// [`FailureKind::CorruptItem`](crate::FailureKind::CorruptItem).
pub fn answer_of_record(row: &Attributes, claim: &IdempotencyClaim, now: SystemTime) -> Result<RecordSays, Failure> {
    let record = read_row::<IdempotencyRecord<Response>>(row)?.value;
    Ok(match claim.look_up(record, now)? {
        Lookup::New => RecordSays::New,
        Lookup::Replayed(answer) => RecordSays::Replayed(answer),
        Lookup::KeyReused => RecordSays::KeyReused,
    })
}

/// The row that keeps this answer, without its key.
///
/// # Errors
/// [`FailureKind::InvalidRecord`](crate::FailureKind::InvalidRecord).
pub fn record_of_answer(claim: &IdempotencyClaim, answer: &Response, now: SystemTime) -> Result<Attributes, Failure> {
    first_row(&claim.record_of(answer.clone(), now), WriteId::from_bytes([1; 8]))
}
