//! Withdraws money from an account, once, also if an answer is lost.

use fencepost::{Record, Store, Table, UpdateError};
use fencepost_test::Dynamo;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, Record)]
#[record(key = "accountId")]
struct Account {
    balance: u64,
}

#[derive(Debug, PartialEq)]
struct TooLittle {
    balance: u64,
}

/// Returns what is left.
async fn withdraw(accounts: &Table<Account>, id: &str, amount: u64) -> Result<u64, UpdateError<TooLittle>> {
    let decide = |account: &Account| match account.balance.checked_sub(amount) {
        Some(balance) => Ok(Account { balance }),
        None => Err(TooLittle { balance: account.balance }),
    };
    Ok(accounts.update_with_retry(id, decide).await?.balance)
}

#[tokio::test(start_paused = true)]
async fn it_withdraws_once() {
    let db = Dynamo::new();
    db.create_table("Accounts", "accountId");
    let accounts: Table<Account> = Store::new(&db.client()).table("Accounts");
    accounts.create("a-1", &Account { balance: 100 }).await.expect("a free key");
    db.engine().take_counts();
    assert_eq!(withdraw(&accounts, "a-1", 30).await.expect("there is enough"), 70);
    assert_eq!(db.engine().take_counts(), (1, 1));
    db.lose_answer().of("UpdateItem").once();
    assert_eq!(withdraw(&accounts, "a-1", 30).await.expect("there is enough"), 40);
    assert_eq!(db.engine().take_counts(), (1, 2), "the write was sent once more, and not applied once more");
    assert_eq!(db.number("Accounts", "a-1", "balance"), 40);
    assert!(matches!(withdraw(&accounts, "a-1", 50).await, Err(UpdateError::Refused(TooLittle { balance: 40 }))));
    assert_eq!(db.engine().take_counts(), (1, 0));
    assert!(matches!(withdraw(&accounts, "a-2", 1).await, Err(UpdateError::NotFound)));
}
