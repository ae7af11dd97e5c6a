//! Transactions and batches: many items in one request, with one proof about all of them.

use super::classify::{by_code, unanswered};
use super::outcome::{Reason, SendOutcome};
use super::values::{Item, from_sdk, to_sdk};
use crate::error::Source;
use crate::rejection::Rejection;
use crate::throttling::{Throttled, retry_after};
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{BuildError, SdkError};
use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemOutput;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure::AllOld;
use aws_sdk_dynamodb::types::{
    CancellationReason, ConditionCheck, Delete, KeysAndAttributes, Put, TransactWriteItem, Update,
};
use fencepost_core::condition::{ConditionalWrite, Operation};
use fencepost_core::format::item::Attributes;
use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Address {
    pub table: String,
    pub key: Attributes,
}

impl Address {
    pub fn parts(&self) -> (&String, &Attributes) {
        (&self.table, &self.key)
    }
}

/// The rows answered by a batch, by their positions in `rows`. The others were left out, because the table is throttled
/// or the answer would be too large. `None` if the answer does not speak of each of their tables, because a row missing
/// in it counts as absent.
pub(super) fn answered(rows: &[Address], output: BatchGetItemOutput) -> Option<Vec<(usize, Option<Attributes>)>> {
    let responses = output.responses.unwrap_or_default();
    let mut items: HashMap<String, Vec<Attributes>> =
        responses.into_iter().map(|(table, rows)| (table, rows.into_iter().map(from_sdk).collect())).collect();
    let left_out = output.unprocessed_keys.unwrap_or_default();
    let is_said = |row: &Address| items.contains_key(&row.table) || left_out.contains_key(&row.table);
    if !rows.iter().all(is_said) {
        return None;
    }
    let is_left_out =
        |row: &Address| left_out.get(&row.table).is_some_and(|left| left.keys().contains(&to_sdk(row.key.clone())));
    let answered = rows.iter().enumerate().filter(|(_, row)| !is_left_out(row));
    let item = |row: &Address, items: &mut HashMap<String, Vec<Attributes>>| {
        let has_key = |item: &Attributes| row.key.iter().all(|(name, value)| item.get(name) == Some(value));
        let items = items.get_mut(&row.table)?;
        Some(items.swap_remove(items.iter().position(has_key)?))
    };
    Some(answered.map(|(at, row)| (at, item(row, &mut items))).collect())
}

pub(super) fn batch_of(rows: &[Address]) -> Result<HashMap<String, KeysAndAttributes>, BuildError> {
    let mut keys = HashMap::<&str, Vec<Item>>::new();
    for row in rows {
        keys.entry(&row.table).or_default().push(to_sdk(row.key.clone()));
    }
    let all = keys.into_iter().map(|(table, keys)| {
        let keys = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build()?;
        Ok((table.to_owned(), keys))
    });
    all.collect()
}

pub(crate) fn step(table: &str, write: ConditionalWrite) -> Result<TransactWriteItem, Source> {
    // A transaction returns no attributes of its rows.
    let ConditionalWrite { action, condition, names, values, returning: _ } = write;
    let values = Some(values).filter(|values| !values.is_empty()).map(to_sdk);
    let step = TransactWriteItem::builder();
    let step = match action {
        Operation::Put { item } => {
            let put = Put::builder().table_name(table).set_item(Some(to_sdk(item))).condition_expression(condition);
            let put = put.set_expression_attribute_names(Some(names)).set_expression_attribute_values(values);
            step.put(put.return_values_on_condition_check_failure(AllOld).build()?)
        }
        Operation::Update { key, expression } => {
            let update = Update::builder().table_name(table).set_key(Some(to_sdk(key)));
            let update = update.update_expression(expression).condition_expression(condition);
            let update = update.set_expression_attribute_names(Some(names)).set_expression_attribute_values(values);
            step.update(update.return_values_on_condition_check_failure(AllOld).build()?)
        }
        Operation::Delete { key } => {
            let delete = Delete::builder().table_name(table).set_key(Some(to_sdk(key))).condition_expression(condition);
            let delete = delete.set_expression_attribute_names(Some(names)).set_expression_attribute_values(values);
            step.delete(delete.return_values_on_condition_check_failure(AllOld).build()?)
        }
        Operation::Check { key } => {
            let check =
                ConditionCheck::builder().table_name(table).set_key(Some(to_sdk(key))).condition_expression(condition);
            let check = check.set_expression_attribute_names(Some(names)).set_expression_attribute_values(values);
            step.condition_check(check.return_values_on_condition_check_failure(AllOld).build()?)
        }
    };
    Ok(step.build())
}

pub(super) fn classify_transact_write_items(error: SdkError<TransactWriteItemsError, HttpResponse>) -> SendOutcome {
    use TransactWriteItemsError as E;
    match error {
        SdkError::ServiceError(context) => {
            let (status, retry_after) = (context.raw().status().as_u16(), retry_after(context.raw()));
            match context.into_err() {
                E::TransactionCanceledException(mut cancelled) => {
                    let reasons = cancelled.cancellation_reasons.take().unwrap_or_default();
                    // The error keeps the codes, and not the rows.
                    let code = |reason: &CancellationReason| {
                        CancellationReason::builder().set_code(reason.code.clone()).build()
                    };
                    cancelled.cancellation_reasons = Some(reasons.iter().map(code).collect());
                    classify_cancellation(reasons, retry_after, cancelled)
                }
                error @ E::IdempotentParameterMismatchException(_) => SendOutcome::Mismatch(error.into()),
                // An earlier send of this transaction is in progress. It may be applied in a moment.
                error @ E::TransactionInProgressException(_) => SendOutcome::Unknown(error.into()),
                error => match by_code(status, retry_after, error) {
                    SendOutcome::Rejected(source) => SendOutcome::Rejected(Rejection::of_no_step(source)),
                    outcome => outcome,
                },
            }
        }
        other => unanswered(other),
    }
}

/// Classifies a cancelled transaction. A refused step decides first, because its row may show an earlier send as
/// applied. An impossible step comes next. Otherwise the transaction was only refused for now.
fn classify_cancellation(
    mut answered: Vec<CancellationReason>,
    retry_after: Option<Duration>,
    error: impl Error + Send + Sync + 'static,
) -> SendOutcome {
    let is_throttled = |reason: &CancellationReason| {
        matches!(reason.code(), Some("ProvisionedThroughputExceeded" | "ThrottlingError"))
    };
    let is_throttled = answered.iter().any(is_throttled);
    let reasons: Vec<_> = answered.iter_mut().map(classify_reason).collect();
    if reasons.iter().any(|reason| matches!(reason, Reason::Refused(_))) {
        SendOutcome::Refused(reasons)
    } else if reasons.contains(&Reason::Rejected) {
        SendOutcome::Rejected(Rejection::of_steps(&answered, error).into())
    } else if is_throttled {
        SendOutcome::NotApplied(Throttled::new(error, retry_after).into())
    } else {
        SendOutcome::NotApplied(error.into())
    }
}

/// Takes the row out of a refusal.
fn classify_reason(reason: &mut CancellationReason) -> Reason {
    match reason.code.as_deref() {
        None | Some("None") => Reason::None,
        Some("ConditionalCheckFailed") => Reason::Refused(reason.item.take().map(from_sdk)),
        Some("ItemCollectionSizeLimitExceeded" | "ValidationError" | "AccessDenied" | "DuplicateItem") => {
            Reason::Rejected
        }
        // TransactionConflict, ProvisionedThroughputExceeded, ThrottlingError, and new codes. The step was not applied.
        // The number of sends is bounded, and sending the same again is safe.
        Some(_) => Reason::NotNow,
    }
}

#[cfg(test)]
mod tests {
    use super::super::classify::classify;
    use super::*;
    use aws_sdk_dynamodb::error::ErrorMetadata;
    use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
    use aws_sdk_dynamodb::types::error::TransactionCanceledException;
    use aws_smithy_types::body::SdkBody;
    use std::fmt;

    fn asked_wait(outcome: SendOutcome) -> Option<Duration> {
        let SendOutcome::NotApplied(source) = outcome else { return None };
        Throttled::of(&*source)?.retry_after
    }

    #[test]
    fn the_wait_that_the_service_asks_for_is_read_from_each_throttled_answer() {
        let answer = || {
            let mut answer = HttpResponse::new(400.try_into().expect("a status"), SdkBody::empty());
            answer.headers_mut().insert("x-amz-retry-after", "250");
            answer
        };
        let throttled = || ErrorMetadata::builder().code("ThrottlingException").build();
        let single = SdkError::service_error(UpdateItemError::generic(throttled()), answer());
        let whole = SdkError::service_error(TransactWriteItemsError::generic(throttled()), answer());
        let reason = CancellationReason::builder().code("ThrottlingError").build();
        let cancelled = TransactionCanceledException::builder().cancellation_reasons(reason).build();
        let cancelled = TransactWriteItemsError::TransactionCanceledException(cancelled);
        let cancelled = SdkError::service_error(cancelled, answer());
        let asked = [
            asked_wait(classify(single, Err)),
            asked_wait(classify_transact_write_items(whole)),
            asked_wait(classify_transact_write_items(cancelled)),
        ];
        assert_eq!(asked, [Some(Duration::from_millis(250)); 3]);
    }

    #[test]
    fn of_mixed_reasons_a_refusal_speaks_first_then_the_impossible_and_not_now_last() {
        const CONFLICT: &str = "TransactionConflict";
        for (codes, expected) in [
            (&["None", "ConditionalCheckFailed"][..], "refused"),
            (&[CONFLICT, "ConditionalCheckFailed", "ValidationError"], "refused"),
            (&["None", "ValidationError", CONFLICT], "rejected"),
            (&["ItemCollectionSizeLimitExceeded"], "rejected"),
            (&["None", CONFLICT], "not now"),
            (&["None", "ThrottlingError"], "throttled"),
            (&[CONFLICT, "ProvisionedThroughputExceeded"], "throttled"),
            (&["SomethingNew"], "not now"),
            (&[], "not now"),
        ] {
            let reasons = codes.iter().map(|code| CancellationReason::builder().code(*code).build()).collect();
            let said = match classify_cancellation(reasons, None, fmt::Error) {
                SendOutcome::Refused(reasons) if reasons.len() == codes.len() => "refused",
                SendOutcome::Rejected(_) => "rejected",
                SendOutcome::NotApplied(source) if Throttled::of(&*source).is_some() => "throttled",
                SendOutcome::NotApplied(_) => "not now",
                other => panic!("{codes:?}: {other:?}"),
            };
            assert_eq!(said, expected, "{codes:?}");
        }
    }
}
