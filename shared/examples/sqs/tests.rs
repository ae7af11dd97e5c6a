//! The consumer on the engine of `fencepost-test` and a queue in this process, under virtual time. Both lose the answers that
//! the test names.

use super::{Account, Consumer};
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region, retry::RetryConfig};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use fencepost::{Clock, Store, Table};
use fencepost_test::{Engine, body_of, client_answered_by, http_client, operation_of, response};
use serde_json::{Value, from_slice, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// A message of the queue. It is hidden from its receive until the test redelivers it.
#[derive(Debug)]
struct Stored {
    body: String,
    hidden: bool,
    received: u32,
}

#[derive(Clone, Debug, Default)]
struct World {
    /// By the id of the message, which is its receipt as well.
    queue: Arc<Mutex<Vec<(String, Stored)>>>,
    /// The operation whose answers are lost from now on. A delete with a lost answer is not made either.
    lost: Arc<Mutex<&'static str>>,
}

impl World {
    fn send(&self, id: &str, body: &str) {
        let stored = Stored { body: body.to_owned(), hidden: false, received: 0 };
        self.queue.lock().expect("no panic").push((id.to_owned(), stored));
    }

    /// The ids of the messages that are not deleted.
    fn left(&self) -> Vec<String> {
        self.queue.lock().expect("no panic").iter().map(|(id, _)| id.clone()).collect()
    }

    /// Shows all messages again, as after the time for which they are hidden.
    fn redeliver(&self) {
        self.queue.lock().expect("no panic").iter_mut().for_each(|(_, stored)| stored.hidden = false);
    }

    fn lose(&self, operation: &'static str) {
        *self.lost.lock().expect("no panic") = operation;
    }

    fn loses(&self, operation: &str) -> bool {
        *self.lost.lock().expect("no panic") == operation
    }

    fn receive(&self) -> Value {
        let mut queue = self.queue.lock().expect("no panic");
        let visible = queue.iter_mut().filter(|(_, stored)| !stored.hidden).take(10);
        let messages: Vec<_> = visible
            .map(|(id, stored)| {
                (stored.hidden, stored.received) = (true, stored.received + 1);
                json!({"MessageId": id, "ReceiptHandle": id, "Body": stored.body})
            })
            .collect();
        json!({ "Messages": messages })
    }

    fn delete(&self, request: &Value) -> Value {
        let entries = request["Entries"].as_array().expect("entries");
        let is_kept = |id: &str| entries.iter().all(|entry| entry["ReceiptHandle"] != *id);
        self.queue.lock().expect("no panic").retain(|(id, _)| is_kept(id));
        let successful: Vec<_> = entries.iter().map(|entry| json!({"Id": entry["Id"]})).collect();
        json!({"Successful": successful, "Failed": []})
    }

    fn consumer(&self) -> Consumer {
        let queue = aws_sdk_sqs::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-west-1"))
            .credentials_provider(Credentials::new("a", "b", None, None, "example"))
            .endpoint_url("http://queue.invalid")
            .retry_config(RetryConfig::disabled())
            .http_client(http_client(self.clone()));
        let engine = Engine::embedded(&[("Accounts", "accountId"), ("Records", "recordId")]);
        let world = self.clone();
        let client = client_answered_by(&engine, move |engine, _, operation, body| {
            let answer = engine.answer(operation, body);
            if world.loses(operation) { (500, json!({"__type": "InternalServerError"}).to_string()) } else { answer }
        });
        let store = Store::new(&client).with_clock(Clock::new(now));
        Consumer {
            queue: aws_sdk_sqs::Client::from_conf(queue.build()),
            url: "http://queue.invalid/payments".to_owned(),
            accounts: store.table("Accounts"),
            payments: store.idempotency("Records"),
        }
    }
}

impl HttpConnector for World {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let answer = match operation_of(&request).as_str() {
            lost if self.loses(lost) => return HttpConnectorFuture::ready(response(500, "{}")),
            "ReceiveMessage" => self.receive(),
            "DeleteMessageBatch" => self.delete(&from_slice(&body_of(&request)).expect("JSON")),
            other => panic!("the consumer does not need {other}"),
        };
        HttpConnectorFuture::ready(response(200, answer.to_string()))
    }
}

/// 2026-03-07T10:00:00Z, always.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_hours(492_466)
}

fn payment(id: &str, account: &str, amount: u64, requested_at: &str) -> String {
    json!({"paymentId": id, "account": account, "amount": amount, "requestedAt": requested_at}).to_string()
}

fn payment_of(id: &str, amount: u64) -> String {
    payment(id, "a-1", amount, "2026-03-07T09:00:00.000Z")
}

async fn world_with_account() -> (World, Consumer) {
    let world = World::default();
    let consumer = world.consumer();
    consumer.accounts.create("a-1", &Account { balance: 100 }).await.expect("a free key");
    (world, consumer)
}

async fn balance(accounts: &Table<Account>) -> u64 {
    accounts.get("a-1").await.expect("an answer").expect("an account").value.balance
}

async fn one_batch(consumer: &Consumer) {
    let messages = consumer.receive().await.expect("the queue answers");
    consumer.handle_batch(messages).await;
}

/// The next delivery finds out an unknown outcome.
#[tokio::test(start_paused = true)]
async fn a_message_whose_delete_fails_or_whose_outcome_is_unknown_comes_again_and_counts_once() {
    for operation in ["DeleteMessageBatch", "TransactWriteItems"] {
        let (world, consumer) = world_with_account().await;
        world.send("m-1", &payment_of("p-1", 5));
        world.lose(operation);
        one_batch(&consumer).await;
        world.lose("");
        assert_eq!((world.left(), balance(&consumer.accounts).await), (vec!["m-1".to_owned()], 105), "{operation}");
        world.redeliver();
        one_batch(&consumer).await;
        assert_eq!((world.left(), balance(&consumer.accounts).await), (vec![], 105), "{operation}");
    }
}

#[tokio::test(start_paused = true)]
async fn poison_is_left_for_the_dead_letter_queue_and_the_rest_of_the_batch_is_applied_once() {
    let (world, consumer) = world_with_account().await;
    let before = "2026-03-07T09:00:00.000Z";
    for (id, body) in [
        ("no-json", "pay 5".to_owned()),
        ("negative", payment_of("p-2", 5).replace(":5", ":-5")),
        ("more-fields", payment_of("p-3", 5).replace('{', "{\"currency\":\"EUR\",")),
        ("no-id", payment_of("", 5)),
        ("no-account", payment("p-4", "a-2", 5, before)),
        ("too-much", payment_of("p-5", u64::MAX)),
        ("too-old", payment("p-6", "a-1", 5, "2026-03-06T09:59:59.999Z")),
        ("good", payment_of("p-1", 5)),
        ("sent-twice", payment_of("p-1", 5)),
        ("just-in-time", payment("p-7", "a-1", 2, "2026-03-06T10:00:00.000Z")),
    ] {
        world.send(id, &body);
    }
    one_batch(&consumer).await;
    let poison = ["no-json", "negative", "more-fields", "no-id", "no-account", "too-much", "too-old"];
    assert_eq!(world.left(), poison);
    // The id of an applied payment, with another amount.
    world.send("reused", &payment_of("p-1", 6));
    world.redeliver();
    one_batch(&consumer).await;
    assert_eq!(world.left(), [&poison[..], &["reused"]].concat());
    assert_eq!(balance(&consumer.accounts).await, 107);
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_is_asked_to_stop_handles_what_it_has_received() {
    let (world, consumer) = world_with_account().await;
    for number in 0..25 {
        world.send(&format!("m-{number}"), &payment_of(&format!("p-{number}"), 1));
    }
    let (stop, stopped): (tokio::sync::oneshot::Sender<()>, _) = tokio::sync::oneshot::channel();
    // Asks the consumer to stop as soon as the first batch has been received.
    let watch = async {
        while world.queue.lock().expect("no panic").iter().all(|(_, stored)| stored.received == 0) {
            tokio::task::yield_now().await;
        }
        stop.send(()).expect("it listens");
    };
    let ((), ()) = tokio::join!(consumer.consume(async { stopped.await.unwrap_or(()) }), watch);
    let received: u32 = world.queue.lock().expect("no panic").iter().map(|(_, stored)| stored.received).sum();
    let left = world.left().len();
    assert!(left < 25 && received == 0, "each message that was received is deleted: {left} left, {received} received");
    assert_eq!(balance(&consumer.accounts).await, 100 + 25 - left as u64);
}
