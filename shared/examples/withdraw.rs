//! A deposit and a withdrawal whose answers get lost, each applied once. Run it with `cargo run -p fencepost --example withdraw`. It
//! needs no account and no table: the test kit plays `DynamoDB` in this process.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use fencepost::{Answer, Error, IdempotencyClaim, IdempotencyError, Reads, Record, Store, Table};
use fencepost_test::Dynamo;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(key = "accountId")]
struct Account {
    balance: u64,
}

/// Takes an amount from an account, once for each key. Returns the new balance.
async fn withdraw(store: &Store, key: &str, id: &str, amount: u64) -> Result<u64, IdempotencyError<&'static str>> {
    let accounts: Table<Account> = store.table("Accounts");
    let mut reads = Reads::new();
    let account = reads.item("account", &accounts, id);
    let claim = IdempotencyClaim::new(&["withdrawal", key], &[id, &amount.to_string()])?;
    let requests = store.idempotency("Requests");
    let withdrawn = requests.change(&claim, reads, |attempt| {
        let Some(now) = attempt.get(account)? else { return Err(Error::Refused("there is no such account")) };
        let Some(balance) = now.balance.checked_sub(amount) else { return Err(Error::Refused("there is too little")) };
        attempt.update_at(account, &Account { balance })?;
        Ok(balance)
    });
    match withdrawn.await? {
        Answer::New(balance) | Answer::Replayed(balance) => Ok(balance),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dynamodb = Dynamo::new();
    dynamodb.create_table("Accounts", "accountId");
    dynamodb.create_table("Requests", "recordId");
    let store = Store::new(&dynamodb.client());
    store.table("Accounts").create("alice", &Account { balance: 100 }).await?;

    // Without a key. The row remembers this write, so the crate finds out by itself.
    dynamodb.lose_answer().of_writes().once();
    let after = store.table::<Account>("Accounts").edit("alice", &Account::FIELDS.balance.add(5, ..)).await?;
    println!("deposited once, {} are there", after.item?.map_or(0, |account| account.value.balance));

    dynamodb.lose_answer().of_writes().once();
    loop {
        match withdraw(&store, "transfer-17", "alice", 10).await {
            Ok(balance) => break println!("withdrawn once, {balance} are left"),
            Err(IdempotencyError::Refused(reason)) => break println!("refused: {reason}"),
            // Nobody knows whether it was applied. The same key finds out, or applies it.
            Err(IdempotencyError::Failed(failure)) if failure.is_outcome_unknown() => println!("{failure}: again"),
            Err(error) => return Err(error.into()),
        }
    }
    println!("{}", dynamodb.log());
    Ok(())
}
