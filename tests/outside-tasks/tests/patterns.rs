//! Everyday patterns, each in a line or two.

use fencepost::{Error, Exists, Failure, Reads, Record, Store, Table, UpdateError, Upserted, Versioned};
use fencepost_test::Engine;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(key = "id")]
struct Account {
    id: String, // the key
    balance: u64,
    #[serde(default)]
    seen_at: u64,
    #[serde(default)]
    deleted_at: Option<u64>,
}

fn account(id: &str, balance: u64) -> Account {
    Account { id: id.to_owned(), balance, seen_at: 0, deleted_at: None }
}

/// Creates or changes. A decision without a `Result` cannot refuse.
async fn deposit(accounts: &Table<Account>, id: &str, amount: u64) -> Result<Upserted<Account>, Failure> {
    let next = |now: Option<&Account>| match now {
        Some(now) => Account { balance: now.balance + amount, ..now.clone() },
        None => account(id, amount),
    };
    Ok(accounts.upsert_with_retry(id, next).await?)
}

/// The one that is there, or else this one.
async fn get_or_create(accounts: &Table<Account>, id: &str) -> Result<Versioned<Account>, Failure> {
    match accounts.create(id, &account(id, 0)).await {
        Ok(made) => Ok(made),
        Err(Error::Refused(Exists(there))) => Ok(*there),
        Err(Error::Failed(failure)) => Err(failure),
    }
}

/// An update that shows the item before it. `None` if there is none.
async fn empty(accounts: &Table<Account>, id: &str) -> Result<Option<u64>, Failure> {
    match accounts.upsert_with_retry(id, |now| now.map(|now| Account { balance: 0, ..now.clone() })).await? {
        Upserted::Updated { old, .. } => Ok(Some(old.value.balance)),
        _ => Ok(None),
    }
}

/// All or nothing.
async fn transfer(store: &Store, accounts: &Table<Account>, ends: [&str; 2], amount: i64) -> Result<(), Error> {
    let mut reads = Reads::new();
    let [from, to] = ends.map(|id| reads.item(id, accounts, id));
    let moving = store.transact_with_retry(reads, |attempt| {
        attempt.edit(from, &Account::FIELDS.balance.add(-amount, 0..))?;
        attempt.edit(to, &Account::FIELDS.balance.add(amount, ..))?;
        Ok::<_, Error>(())
    });
    moving.await
}

/// The last writer wins, by the time at which it saw what it writes. Whether this one did.
async fn seen(accounts: &Table<Account>, id: &str, balance: u64, at: u64) -> Result<bool, Failure> {
    let fields = Account::FIELDS;
    let newer = fields.balance.set(balance).and(fields.seen_at.set(at)).only_if(fields.seen_at.is_less_than(at));
    match accounts.edit(id, &newer).await {
        Ok(_) => Ok(true),
        Err(UpdateError::Failed(failure)) => Err(failure),
        Err(UpdateError::Refused(_) | UpdateError::NotFound) => Ok(false),
    }
}

/// A soft delete: readers filter by `Account::FIELDS.deleted_at.is_none()`.
async fn hide(accounts: &Table<Account>, id: &str, now: u64) -> Result<(), Box<dyn std::error::Error>> {
    accounts.edit(id, &Account::FIELDS.deleted_at.set_if_none(now)).await?;
    Ok(())
}

#[tokio::test]
async fn each_pattern_costs_what_it_says() {
    let engine = Engine::embedded(&[("Accounts", "id")]);
    let store = Store::new(&engine.client());
    let accounts: Table<Account> = store.table("Accounts");
    assert!(matches!(deposit(&accounts, "a", 5).await.expect("applied"), Upserted::Created(_)));
    assert_eq!(engine.take_counts(), (1, 1));
    assert!(matches!(deposit(&accounts, "a", 5).await.expect("applied"), Upserted::Updated { .. }));
    assert_eq!(engine.take_counts(), (1, 1));
    assert_eq!(get_or_create(&accounts, "a").await.expect("an answer").balance, 10);
    assert_eq!(get_or_create(&accounts, "b").await.expect("an answer").balance, 0);
    assert_eq!(engine.take_counts(), (0, 2));
    transfer(&store, &accounts, ["a", "b"], 4).await.expect("there is enough");
    assert_eq!(engine.take_counts(), (1, 1));
    transfer(&store, &accounts, ["a", "b"], 40).await.expect_err("there is too little");
    assert_eq!(empty(&accounts, "b").await.expect("an answer"), Some(4));
    assert_eq!(empty(&accounts, "c").await.expect("an answer"), None);
    engine.take_counts();
    assert_eq!(
        [seen(&accounts, "b", 7, 20).await.expect("told"), seen(&accounts, "b", 6, 10).await.expect("told")],
        [true, false]
    );
    hide(&accounts, "b", 30).await.expect("hidden");
    assert_eq!(engine.take_counts(), (1, 3), "only the first edit of an item by this client needs a read");
    let shown = accounts.scan().filter(Account::FIELDS.deleted_at.is_none());
    assert_eq!(shown.count().await.expect("a count"), 1);
    engine.take_counts();
    assert_eq!(accounts.delete_returning("b").await.expect("it is there").balance, 7);
    assert_eq!(engine.take_counts(), (1, 1));
}
