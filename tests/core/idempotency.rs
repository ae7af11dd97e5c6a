//! Idempotency without HTTP: a consumer of a queue counts each message once.

use super::accounts::{Account, TABLE, balance, with_accounts};
use crate::harness::clients::client_whose_first_write;
use crate::harness::engine::Engine;
use aws_sdk_dynamodb::Client;
use fencepost::{Answer, Edit, Error, Idempotency, IdempotencyClaim, IdempotencyError, Reads, Store, Table};
use serde_json::{Value, json};

const RECORDS: &str = "Records";

/// A consumer of messages about deposits.
#[derive(Clone)]
struct Consumer {
    accounts: Table<Account>,
    payments: Idempotency<i64>,
}

type Handled = Result<Answer<i64>, IdempotencyError<&'static str>>;

impl Consumer {
    fn reached_by(client: &Client) -> Self {
        Self::on(&Store::new(client))
    }

    fn on(store: &Store) -> Self {
        Consumer { accounts: store.table(TABLE), payments: store.idempotency(RECORDS) }
    }

    async fn handle(&self, message: &str, amount: i64) -> Handled {
        let claim = IdempotencyClaim::new(&["payments", message], &[&amount.to_string()]);
        let mut reads = Reads::new();
        let account = reads.item("account", &self.accounts, "a-1");
        let handled = self.payments.change(&claim, reads, |attempt| {
            let Some(current) = attempt.get(account)? else { return Err(Error::Refused("there is no account")) };
            let balance = current.value.balance + amount;
            attempt.update_at(account, &Account { balance })?;
            Ok(balance)
        });
        handled.await
    }
}

async fn with_account() -> Engine {
    let engine = Engine::with_tables(&[(TABLE, "accountId"), (RECORDS, "recordId")]);
    with_accounts(&engine, &["a-1"]).await;
    engine
}

#[tokio::test]
async fn a_message_that_is_delivered_five_times_counts_once_and_is_answered_alike() {
    let engine = with_account().await;
    let consumer = Consumer::reached_by(&engine.client());
    assert_eq!(consumer.handle("m-1", 5).await.expect("paid in"), Answer::New(55));
    for _ in 0..4 {
        assert_eq!(consumer.handle("m-1", 5).await.expect("paid in before"), Answer::Replayed(55));
    }
    assert_eq!(consumer.handle("m-2", 5).await.expect("paid in"), Answer::New(60));
    assert_eq!(consumer.handle("m-1", 5).await.expect("paid in before"), Answer::Replayed(55));
    let other = consumer.handle("m-1", 6).await.expect_err("another payload");
    assert!(matches!(other, IdempotencyError::KeyReused), "{other:?}");
    assert_eq!(balance(&engine, "a-1"), 60);
}

/// Takes all of the 50, once. The bounds are left to the edit.
async fn take_all(client: &Client) -> Handled {
    let consumer = Consumer::reached_by(client);
    let claim = IdempotencyClaim::new(&["payments", "m-1"], &["all"]);
    let mut reads = Reads::new();
    let account = reads.item("account", &consumer.accounts, "a-1");
    consumer
        .payments
        .change(&claim, reads, |attempt| Ok(attempt.edit(account, &Edit::add("balance", -50, 0..)).map(|()| 0)?))
        .await
}

/// Another process handles the same message after the reads. The cancellation names only the account.
#[tokio::test(start_paused = true)]
async fn a_message_whose_edit_is_refused_for_its_own_effect_is_answered_alike() {
    let twin = with_account().await;
    assert_eq!(take_all(&twin.client()).await.expect("there are 50"), Answer::New(0));
    let theirs = twin.take_log().pop().expect("a transaction").body.to_string();
    let engine = with_account().await;
    let client = client_whose_first_write(&engine, move |engine, operation, body| {
        assert_eq!(engine.answer(operation, theirs.as_bytes()).0, 200);
        let (status, answer) = engine.answer(operation, body);
        let mut answer: Value = serde_json::from_str(&answer).expect("JSON");
        answer["CancellationReasons"][1] = json!({"Code": "None"});
        (status, answer.to_string())
    });
    assert_eq!(take_all(&client).await.expect("handled"), Answer::Replayed(0));
    assert_eq!(balance(&engine, "a-1"), 0);
}
