//! A consumer of an SQS queue that applies each payment exactly once. It has no HTTP and runs anywhere.
//!
//! SQS delivers a message at least once. Each payment is committed in one transaction with a record of its answer, and its
//! message is deleted only when its outcome is proved:
//!
//! | outcome | the message |
//! |---|---|
//! | applied now, or by an earlier delivery | is deleted |
//! | unknown, or `DynamoDB` was not reachable | comes again, and the next delivery finds out |
//! | poison: malformed, refused or too old | comes again, until the queue moves it to its dead-letter queue |
//!
//! `QUEUE_URL`, `ACCOUNTS_TABLE` and `IDEMPOTENCY_RECORDS_TABLE` name the queue, a table with the partition key `accountId`, and one
//! with `recordId` and the TTL attribute `expiresAt`. The consumer needs `sqs:ReceiveMessage`, `sqs:DeleteMessage`, and on the
//! tables `dynamodb:GetItem`, `BatchGetItem`, `PutItem` and `UpdateItem`. The queue needs a redrive policy.

use aws_config::BehaviorVersion;
use fencepost::{
    Answer, Error, Failure, Idempotency, IdempotencyClaim, IdempotencyError, Reads, Record, Source, Store, Table,
    Timestamp,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tracing::{info, warn};

/// The oldest payment that is applied. Its record counts for 25 hours: a repeat after that would be applied again. The
/// hour between is for clocks that differ and for the time in the queue of this process.
const NOT_OLDER_THAN: Duration = Duration::from_hours(24);

#[derive(Serialize, Deserialize, Record)]
#[record(key = "accountId")]
struct Account {
    balance: u64,
}

/// The body of a message.
///
/// The producer gives each payment its id and its time, and repeats both whenever it sends the payment again. The id of
/// the message would not do as a key: a producer that lost an answer sends a second message, and a redrive gives a new id.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Payment {
    #[serde(rename = "paymentId")]
    id: String,
    requested_at: Timestamp,
    account: String,
    amount: u64,
}

/// Why a message comes again.
#[derive(Debug)]
enum Undone {
    /// It will fail each time, until an operator looks at it.
    Poison(String),
    /// It may succeed next time. Either nothing was applied or the next delivery finds out.
    Later(Failure),
}

/// Applies the payment of one message. Another delivery of it gets the same balance.
async fn handle(accounts: &Table<Account>, payments: &Idempotency<u64>, body: &str) -> Result<Answer<u64>, Undone> {
    let poison = |reason: &str| Undone::Poison(reason.to_owned());
    let parsed = serde_json::from_str(body);
    let Payment { id, requested_at, account, amount } = parsed.map_err(|error| poison(&error.to_string()))?;
    if id.is_empty() || account.is_empty() {
        return Err(poison("a payment needs an id and an account"));
    }
    if accounts.store().now().since(requested_at) > NOT_OLDER_THAN {
        return Err(poison("too old: nothing tells any more whether it was applied"));
    }
    let claim = IdempotencyClaim::new(&["payments", &id], &[&requested_at.to_string(), &account, &amount.to_string()]);
    let mut reads = Reads::new();
    let item = reads.item("account", accounts, account.as_str());
    let claim = claim.map_err(|error| poison(&error.to_string()))?;
    let paid = payments.change(&claim, reads, |attempt| {
        let current = attempt.get(item)?.ok_or(Error::Refused("there is no such account"))?;
        let balance = current.value.balance.checked_add(amount);
        let balance = balance.ok_or(Error::Refused("the balance would be too large"))?;
        attempt.update_at(item, &Account { balance })?;
        Ok(balance)
    });
    paid.await.map_err(|error| match error {
        IdempotencyError::Failed(failure) => Undone::Later(failure),
        IdempotencyError::Refused(reason) => poison(reason),
        IdempotencyError::KeyReused => poison("another payment has this id"),
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    tracing_subscriber::fmt().with_target(false).init();
    let setting = |name| std::env::var(name).map_err(|_| format!("the environment does not say {name}"));
    let config = aws_config::load_defaults(BehaviorVersion::latest()).await;
    let (store, queue) = (Store::new(&aws_sdk_dynamodb::Client::new(&config)), aws_sdk_sqs::Client::new(&config));
    let (accounts, url) = (store.table(setting("ACCOUNTS_TABLE")?), setting("QUEUE_URL")?);
    let payments = store.idempotency(setting("IDEMPOTENCY_RECORDS_TABLE")?);
    loop {
        let receive = queue.receive_message().queue_url(&url).max_number_of_messages(10).wait_time_seconds(20);
        // Messages that were received are handled to the end.
        let received = tokio::select! {
            _ = tokio::signal::ctrl_c() => return Ok(()),
            received = receive.send() => received,
        };
        let Ok(received) = received else {
            warn!("the queue does not answer");
            tokio::time::sleep(Duration::from_secs(5)).await;
            continue;
        };
        for message in received.messages() {
            let id = message.message_id();
            match handle(&accounts, &payments, message.body().unwrap_or_default()).await {
                Ok(answer) => {
                    info!(id, ?answer, "applied once");
                    let delete = queue.delete_message().queue_url(&url);
                    if delete.set_receipt_handle(message.receipt_handle.clone()).send().await.is_err() {
                        warn!(id, "an applied message is not deleted: it comes again, and changes nothing");
                    }
                }
                Err(Undone::Later(failure)) => warn!(id, %failure, "not known to be applied: it comes again"),
                Err(Undone::Poison(reason)) => warn!(id, reason, "the dead-letter queue will have it"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Account, Answer, Duration, Store, Undone, handle};
    use fencepost::Clock;
    use fencepost_test::Dynamo;
    use serde_json::json;
    use std::time::SystemTime;

    #[tokio::test(start_paused = true)]
    async fn a_payment_counts_once_however_often_its_message_comes_and_poison_does_not() {
        let db = Dynamo::with_seed(1);
        db.create_table("Accounts", "accountId");
        db.create_table("Payments", "recordId");
        let now = || SystemTime::UNIX_EPOCH + Duration::from_hours(492_466); // 2026-03-07T10:00:00Z
        let store = Store::new(&db.client_without_retries()).with_clock(Clock::new(now));
        let (accounts, payments) = (store.table("Accounts"), store.idempotency("Payments"));
        accounts.create("a-1", &Account { balance: 100 }).await.expect("a free key");
        let body = |id: &str, account: &str, amount: u64, at: &str| {
            json!({"paymentId": id, "account": account, "amount": amount, "requestedAt": at}).to_string()
        };
        let before = "2026-03-07T09:00:00.000Z";
        let payment = body("p-1", "a-1", 5, before);
        db.lose_answer().of("TransactWriteItems").silently().times(2);
        let short = store.clone().with_time_limit(Duration::from_millis(400));
        let unknown = handle(&short.table("Accounts"), &short.idempotency("Payments"), &payment).await;
        assert!(matches!(&unknown, Err(Undone::Later(failure)) if failure.is_outcome_unknown()), "{unknown:?}");
        let paid = handle(&accounts, &payments, &payment).await.expect("the next delivery finds out");
        assert!(matches!(paid, Answer::New(105) | Answer::Replayed(105)), "{paid:?}");
        assert_eq!(handle(&accounts, &payments, &payment).await.expect("again"), Answer::Replayed(105));
        for (what, body) in [
            ("no JSON", "pay 5".to_owned()),
            ("negative", payment.replace(":5", ":-5")),
            ("more fields", payment.replace('{', "{\"currency\":\"EUR\",")),
            ("no id", body("", "a-1", 5, before)),
            ("no account", body("p-4", "a-2", 5, before)),
            ("too much", body("p-5", "a-1", u64::MAX, before)),
            ("too old", body("p-6", "a-1", 5, "2026-03-06T09:59:59.999Z")),
            ("another amount", body("p-1", "a-1", 6, before)),
        ] {
            let refused = handle(&accounts, &payments, &body).await;
            assert!(matches!(refused, Err(Undone::Poison(_))), "{what}: {refused:?}");
        }
        assert_eq!(db.number("Accounts", "a-1", "balance"), 105);
    }
}
