//! A consumer of an SQS queue that applies each message exactly once. It has no HTTP and runs anywhere.
//!
//! SQS delivers a message at least once. It comes again if its consumer dies, if its delete fails, or if a producer
//! sends it twice. Each payment here is committed in one transaction with a record of its answer. A message is deleted
//! only after its outcome is proved:
//!
//! | outcome | the message |
//! |---|---|
//! | applied now, or by an earlier delivery | is deleted |
//! | unknown, or `DynamoDB` was not reachable | comes again, and the next delivery finds out |
//! | poison: malformed, refused or too old | comes again, until the queue moves it to its dead-letter queue |
//!
//! ```sh
//! export AWS_REGION=eu-west-1 QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/123456789012/payments
//! export ACCOUNTS_TABLE=Accounts IDEMPOTENCY_RECORDS_TABLE=IdempotencyRecords
//! cargo run -p fencepost --example sqs
//! ```
//!
//! `Accounts` has the partition key `accountId`, and `IdempotencyRecords` has `recordId` and the TTL attribute
//! `expiresAt`. The consumer needs `sqs:ReceiveMessage` and `sqs:DeleteMessage` on the queue, and on the tables
//! `dynamodb:GetItem`, `dynamodb:BatchGetItem`, `dynamodb:PutItem` and `dynamodb:UpdateItem`. The queue needs a redrive policy.

use aws_config::BehaviorVersion;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message};
use fencepost::{
    Answer, Error, Failure, Idempotency, IdempotencyClaim, IdempotencyError, InvalidValue, Reads, Record, Source,
    Store, Table, Timestamp,
};
use serde::{Deserialize, Serialize};
use std::pin::pin;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tracing::{info, warn};

/// The number of messages that are received and handled at once: the most that SQS gives.
const BATCH: i32 = 10;
/// How long a receive waits for a message, in seconds: the most that SQS waits.
const WAIT: i32 = 20;
/// How long a received message is hidden from other consumers, in seconds. Longer than its handling and its delete take.
/// A shorter time would only waste work, because a payment that two consumers handle is applied once.
const HIDDEN: i32 = 60;
/// How long the consumer waits after a receive that failed.
const PAUSE: Duration = Duration::from_secs(5);
/// The oldest payment that is applied. Its record counts for 25 hours: a repeat after that would be applied again. The
/// hour between is for clocks that differ and for the time in the queue of this process.
const NOT_OLDER_THAN: Duration = Duration::from_hours(24);

#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "accountId")]
struct Account {
    balance: u64,
}

/// The body of a message.
///
/// The producer gives each payment its id and its time, and repeats both whenever it sends the payment again. The id of
/// the message would not do as a key: a producer that lost an answer sends a second message. A redrive from the
/// dead-letter queue gives the message a new id and a new time.
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

impl Payment {
    fn parse(body: &str, now: Timestamp) -> Result<Self, Undone> {
        let payment: Payment = serde_json::from_str(body).map_err(|error| Undone::Poison(error.to_string()))?;
        if payment.id.is_empty() || payment.account.is_empty() {
            return Err(Undone::Poison("a payment needs an id and an account".to_owned()));
        }
        if now.since(payment.requested_at) > NOT_OLDER_THAN {
            let at = payment.requested_at;
            return Err(Undone::Poison(format!("requested at {at}: nothing tells any more whether it was applied")));
        }
        Ok(payment)
    }

    fn claim(&self) -> Result<IdempotencyClaim, InvalidValue> {
        let Payment { id, requested_at, account, amount } = self;
        IdempotencyClaim::new(&["payments", id], &[&requested_at.to_string(), account, &amount.to_string()])
    }
}

/// A consumer of one queue. Copies are cheap and share all of it.
#[derive(Clone)]
struct Consumer {
    queue: aws_sdk_sqs::Client,
    url: String,
    accounts: Table<Account>,
    payments: Idempotency<u64>,
}

impl Consumer {
    /// Handles messages until `stop`. A batch that was received by then is handled to its end.
    async fn consume(&self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        loop {
            let received = tokio::select! {
                biased;
                () = &mut stop => return,
                received = self.receive() => received,
            };
            match received {
                Ok(messages) => self.handle_batch(messages).await,
                Err(error) => {
                    warn!(error = &*error, "the queue does not answer");
                    tokio::select! {
                        () = &mut stop => return,
                        () = tokio::time::sleep(PAUSE) => {}
                    }
                }
            }
        }
    }

    async fn receive(&self) -> Result<Vec<Message>, Source> {
        let request = self.queue.receive_message().queue_url(&self.url);
        let request = request.max_number_of_messages(BATCH).wait_time_seconds(WAIT).visibility_timeout(HIDDEN);
        Ok(request.send().await?.messages.unwrap_or_default())
    }

    /// Handles the messages side by side and deletes those with applied payments. The others come again.
    async fn handle_batch(&self, messages: Vec<Message>) {
        let mut handling = JoinSet::new();
        for message in messages {
            let consumer = self.clone();
            handling.spawn(async move {
                let handled = consumer.handle(message.body().unwrap_or_default()).await;
                is_done(&message, handled).then_some(message)
            });
        }
        let mut done = Vec::new();
        while let Some(ended) = handling.join_next().await {
            // A handler that panicked proved nothing: its message comes again as well.
            done.extend(ended.ok().flatten());
        }
        if let Err(error) = self.delete(&done).await {
            warn!(error = &*error, "applied messages are not deleted: they come again, and change nothing");
        }
    }

    /// Applies the payment of one message. Another delivery of it gets the same balance.
    async fn handle(&self, body: &str) -> Result<Answer<u64>, Undone> {
        let payment = Payment::parse(body, self.accounts.store().now())?;
        let mut reads = Reads::new();
        let account = reads.item("account", &self.accounts, payment.account.as_str());
        let claim = payment.claim().map_err(|error| Undone::Poison(error.to_string()))?;
        let paid = self.payments.change(&claim, reads, |attempt| {
            let current = attempt.get(account)?.ok_or(Error::Refused("there is no such account"))?;
            let balance = current.value.balance.checked_add(payment.amount);
            let balance = balance.ok_or(Error::Refused("the balance would be too large"))?;
            attempt.update_at(account, &Account { balance })?;
            Ok(balance)
        });
        paid.await.map_err(|error| match error {
            IdempotencyError::Failed(failure) => Undone::Later(failure),
            IdempotencyError::Refused(reason) => Undone::Poison(reason.to_owned()),
            IdempotencyError::KeyReused => Undone::Poison("another payment has this id".to_owned()),
        })
    }

    async fn delete(&self, done: &[Message]) -> Result<(), Source> {
        if done.is_empty() {
            return Ok(());
        }
        let mut request = self.queue.delete_message_batch().queue_url(&self.url);
        for (index, message) in done.iter().enumerate() {
            let entry = DeleteMessageBatchRequestEntry::builder().id(index.to_string());
            request = request.entries(entry.receipt_handle(message.receipt_handle().unwrap_or_default()).build()?);
        }
        for failed in request.send().await?.failed() {
            warn!(code = failed.code(), "an applied message is not deleted: it comes again, and changes nothing");
        }
        Ok(())
    }
}

/// Logs the outcome of a message, and says whether it is proved that its payment is applied. The body is not logged.
fn is_done(message: &Message, handled: Result<Answer<u64>, Undone>) -> bool {
    let message = message.message_id();
    match handled {
        Ok(Answer::New(_)) => info!(message, "applied"),
        Ok(Answer::Replayed(_)) => info!(message, "applied by an earlier delivery"),
        Err(Undone::Later(failure)) => {
            warn!(message, error = &failure as &dyn std::error::Error, "not known to be applied: it comes again");
            return false;
        }
        Err(Undone::Poison(reason)) => {
            warn!(message, reason, "cannot be applied: it comes again until the dead-letter queue has it");
            return false;
        }
    }
    true
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    tracing_subscriber::fmt().with_target(false).init();
    let setting = |name| std::env::var(name).map_err(|_| format!("the environment does not say {name}"));
    // One configuration for both clients, with the credentials of a container or of this machine.
    let config = aws_config::load_defaults(BehaviorVersion::latest()).await;
    let store = Store::new(&aws_sdk_dynamodb::Client::new(&config));
    let consumer = Consumer {
        queue: aws_sdk_sqs::Client::new(&config),
        url: setting("QUEUE_URL")?,
        accounts: store.table(setting("ACCOUNTS_TABLE")?),
        payments: store.idempotency(setting("IDEMPOTENCY_RECORDS_TABLE")?),
    };
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    consumer.consume(stop).await;
    Ok(())
}

#[cfg(test)]
#[path = "sqs/tests.rs"]
mod tests;
