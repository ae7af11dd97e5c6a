//! Tables with multi-Region strong consistency: an operation that cannot keep its promise is refused before any
//! request. The others keep theirs, also where two Regions write one item (`histories/programs/`).

use super::world::{Account, KEY, Regional, TABLE, account, accounts, deposit, key};
use crate::harness::engine::Engine;
use fencepost::http::{ChangeRequest, IfMatch, Items, Problem};
use fencepost::{Error, Failure, FailureKind, IdempotencyClaim, Reads};

const SENTENCE: &str = "account is in a table with multi-Region strong consistency, which has no transactions: change its \
                        items one by one";

#[tokio::test]
async fn a_transaction_and_an_idempotency_key_are_refused_with_a_sentence_before_anything_is_sent() {
    let engine = Engine::with_tables(&[(TABLE, KEY), ("Records", "recordId")]);
    let table = accounts::<Regional>(&engine);
    let mut reads = Reads::new();
    let item = reads.item("account", &table, key());
    let refused = table.store().transact_with_retry(reads, |attempt| {
        attempt.put_if_absent(item, &account(1))?;
        Ok::<_, Error>(())
    });
    let refused = refused.await.expect_err("no transactions");
    let Error::Failed(Failure { kind: FailureKind::InvalidTransaction { reason }, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(reason, SENTENCE);

    let items = Items::with_idempotency(table.clone(), table.store().idempotency("Records"));
    let claim = IdempotencyClaim::new(&["caller", "key"], &["payload"]).expect("a scope");
    let request = ChangeRequest { if_match: IfMatch::None, claim: Some(claim) };
    let decide = |account: &Account<Regional>| deposit(1)(account).map_err(Problem::from);
    let refused = items.change("a-1", &request, decide).await.expect_err("no transactions");
    assert_eq!((refused.into_response().status(), engine.take_counts()), (500, (0, 0)));
}
