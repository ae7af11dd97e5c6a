//! Programs without knowledge of lost answers and fences: the bare SDK with its own retries.
#![expect(clippy::disallowed_methods, reason = "shows what goes wrong without the crate")]

use super::scene::Actor;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::sleep;

/// How a naive change ends, as its caller sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// It was told that the change was applied.
    Acknowledged,
    /// Its precondition does not hold: sold out, or held by another holder.
    Refused,
    /// The SDK gave up without an answer.
    Unknown,
}

/// One call of a naive program: tells the beginning, does the work, and tells the end. `told` has the outcome and the
/// words for each end.
pub async fn call(
    actor: &Actor<'_>,
    what: &str,
    told: impl FnOnce(Ended) -> (&'static str, &'static str),
    work: impl Future<Output = Ended>,
) -> Ended {
    let number = actor.begin(what);
    let ended = work.await;
    let (outcome, words) = told(ended);
    actor.end(number, outcome, words);
    ended
}

pub fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

pub fn number(value: i64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// A number of a row.
pub fn number_of(row: &HashMap<String, AttributeValue>, name: &str) -> i64 {
    row.get(name).and_then(|value| value.as_n().ok()).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Reads a row, strongly consistent, until an answer comes. The key is one text.
pub async fn read(client: &Client, table: &str, (name, id): (&str, &str)) -> HashMap<String, AttributeValue> {
    loop {
        let read = client.get_item().table_name(table).key(name, text(id)).consistent_read(true);
        if let Ok(answer) = read.send().await {
            return answer.item.unwrap_or_default();
        }
    }
}

/// Reads the counter, writes it with one more on the condition that its version is still the same, and begins again
/// when the condition fails. Pauses by full jitter, 25 ms to 1 s.
pub async fn increment(actor: &Actor<'_>, table: &str, id: &str) -> Ended {
    let client = actor.sdk();
    for conflicts in 0..100_u32 {
        let row = read(&client, table, ("id", id)).await;
        let version = number_of(&row, "version");
        let write = client
            .update_item()
            .table_name(table)
            .key("id", text(id))
            .update_expression("SET n = :n, version = :next")
            .condition_expression("version = :version")
            .expression_attribute_values(":n", number(number_of(&row, "n") + 1))
            .expression_attribute_values(":next", number(version + 1))
            .expression_attribute_values(":version", number(version));
        match write.send().await.map_err(SdkError::into_service_error) {
            Ok(_) => return Ended::Acknowledged,
            Err(error) if error.is_conditional_check_failed_exception() => {
                actor.note("somebody else was first, it believes, and begins again");
            }
            Err(_) => return Ended::Unknown,
        }
        let longest = Duration::from_millis((25 << conflicts.min(6)).min(1000));
        let thousandths = u32::try_from(actor.scene().db().random() % 1000).unwrap_or_default();
        sleep(longest * thousandths / 1000).await;
    }
    Ended::Refused
}

/// Takes one from the stock if there is one, and then writes the order: two writes.
pub async fn order(actor: &Actor<'_>, product: &str) -> Ended {
    let client = actor.sdk();
    let take = client
        .update_item()
        .table_name("Products")
        .key("productId", text(product))
        .update_expression("SET stock = stock - :one")
        .condition_expression("stock >= :one")
        .expression_attribute_values(":one", number(1));
    match take.send().await.map_err(SdkError::into_service_error) {
        Ok(_) => {}
        Err(error) if error.is_conditional_check_failed_exception() => return Ended::Refused,
        Err(_) => return Ended::Unknown,
    }
    let id = format!("{:016x}", actor.scene().db().random());
    let put = client.put_item().table_name("Orders").item("orderId", text(&id)).item("product", text(product));
    if put.send().await.is_ok() { Ended::Acknowledged } else { Ended::Unknown }
}

/// Says that an instance has an address: the last one to say so has it.
pub async fn register(actor: &Actor<'_>, ip: &str, instance: &str) -> Ended {
    let put = actor.sdk().put_item().table_name("HostToCellMapping");
    let put = put.item("hostIp", text(ip)).item("instanceId", text(instance));
    if put.send().await.is_ok() { Ended::Acknowledged } else { Ended::Unknown }
}

/// Deletes the mapping of an address, without a look at its owner.
pub async fn delete(actor: &Actor<'_>, ip: &str) -> Ended {
    let delete = actor.sdk().delete_item().table_name("HostToCellMapping").key("hostIp", text(ip));
    if delete.send().await.is_ok() { Ended::Acknowledged } else { Ended::Unknown }
}

/// Takes a lock until `until`, in seconds, if it is free at `now`.
pub async fn lock(actor: &Actor<'_>, key: &str, holder: &str, now: i64, until: i64) -> Ended {
    let put = actor
        .sdk()
        .put_item()
        .table_name("Leases")
        .item("leaseKey", text(key))
        .item("holder", text(holder))
        .item("until", number(until))
        .condition_expression("attribute_not_exists(leaseKey) OR #until < :now")
        .expression_attribute_names("#until", "until")
        .expression_attribute_values(":now", number(now));
    match put.send().await.map_err(SdkError::into_service_error) {
        Ok(_) => Ended::Acknowledged,
        Err(error) if error.is_conditional_check_failed_exception() => Ended::Refused,
        Err(_) => Ended::Unknown,
    }
}

/// Whether a parent has a child. The read is strongly consistent.
pub async fn has_child(actor: &Actor<'_>, parent: &str) -> bool {
    let client = actor.sdk();
    loop {
        let scan = client.scan().table_name("Children").consistent_read(true);
        let scan = scan.filter_expression("parentId = :parent").expression_attribute_values(":parent", text(parent));
        if let Ok(found) = scan.send().await {
            return found.count > 0;
        }
    }
}

/// Creates a child with a new id.
pub async fn create_child(actor: &Actor<'_>, parent: &str) -> Ended {
    let id = format!("{:016x}", actor.scene().db().random());
    let put = actor.sdk().put_item().table_name("Children");
    let put = put.item("childId", text(&id)).item("parentId", text(parent));
    if put.send().await.is_ok() { Ended::Acknowledged } else { Ended::Unknown }
}
