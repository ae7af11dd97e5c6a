//! Edits that compile and cannot be right are refused before anything is sent, by their attribute. `misuse` in
//! `shared/tests` has those that do not compile. What used to be told otherwise is told as it is.

use crate::harness::engine::Engine;
use fencepost::{
    Condition, Edit, Error, Failure, FailureKind, IdempotencyClaim, Number, Record, Store, Table, UpdateError,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

const TABLE: &str = "Accounts";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "accountId")]
struct Account {
    balance: u64,
    note: Option<String>,
    rates: BTreeMap<String, f64>,
}

/// Fields whose stored form is not what their types suggest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "accountId")]
struct Odd {
    #[serde(skip_serializing_if = "is_zero")] // and without a default
    count: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    items: u64,
    #[serde(default = "ten")]
    level: u64,
    #[serde(default = "seven")]
    lucky: Option<u64>,
    inner: Inner,
    limit: Option<Limit>,
    large: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Inner {
    #[serde(skip_serializing_if = "is_zero")]
    count: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Limit {
    Most(u64),
    Unlimited,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn ten() -> u64 {
    10
}

#[expect(clippy::unnecessary_wraps, reason = "it is the default of an `Option`")]
fn seven() -> Option<u64> {
    Some(7)
}

/// What edits of such fields once left: items that nobody could read, and answers that were not true.
#[tokio::test]
async fn a_value_that_would_be_read_as_another_one_is_refused_and_a_missing_attribute_has_its_default() {
    let engine = Engine::with_tables(&[(TABLE, Odd::PARTITION_KEY)]);
    let odds: Table<Odd> = Store::new(&engine.client()).table(TABLE);
    let inner = Inner { count: 1 };
    let odd = Odd { count: 1, items: 1, level: 10, lucky: None, inner, limit: None, large: u64::MAX };
    odds.create("a-1", &odd).await.expect("a free key");
    let key = json!({"accountId": {"S": "a-1"}});
    let names = json!({"#level": "level"});
    let removes =
        json!({"TableName": TABLE, "Key": key, "UpdateExpression": "REMOVE #level", "ExpressionAttributeNames": names});
    engine.raw("UpdateItem", &removes);
    let fields = Odd::FIELDS;
    for (edit, reason) in [
        (fields.count.set(0), "count: serde skips this value"),
        (fields.inner.set(Inner { count: 0 }), "inner: it would not be read back"),
        (fields.limit.set(Limit::Unlimited), "limit: it would be read back as None"),
        (fields.lucky.remove(), "lucky: without it, its default is read"),
    ] {
        let refused = odds.edit("a-1", &edit).await.expect_err(reason).to_string();
        assert!(refused.contains(reason), "{refused}");
    }
    let set = || fields.count.set(1);
    for (edit, is_applied) in [
        (fields.items.add(-1, 0..), true), // an add stores the 0 that serde skips
        (set().only_if(fields.items.is(0)), true),
        (set().only_if(fields.items.is_not(0)), false),
        (fields.items.set(0), true), // and now it is not stored
        (set().only_if(fields.items.is(0).and(fields.items.is_less_than(1))), true),
        (set().only_if(fields.items.is_more_than(0)), false),
        (set().only_if(fields.level.is(10).and(fields.level.is_at_least(10))), true),
        (set().only_if(fields.level.is_not(10)), false),
        (fields.level.raise_to(5), true),
        (set().only_if(fields.level.is(10)), true),
        (fields.level.raise_to(12), true),
        (set().only_if(fields.level.is(12)), true),
        (set().only_if(fields.lucky.is_none()), true),
        (fields.large.add(-1, 0..), true),
    ] {
        let edited = odds.edit("a-1", &edit).await;
        assert_eq!(edited.as_ref().is_ok_and(|edited| edited.item.is_ok()), is_applied, "{edit:?}: {edited:?}");
    }
    let item = odds.get("a-1").await.expect("read").expect("it is there").value;
    assert_eq!(item, Odd { items: 0, level: 12, large: u64::MAX - 1, ..odd });
}

#[tokio::test]
async fn an_edit_that_cannot_be_right_is_refused_by_its_attribute_before_anything_is_sent() {
    let engine = Engine::with_tables(&[(TABLE, Account::PARTITION_KEY)]);
    let table: Table<Account> = Store::new(&engine.client()).table(TABLE);
    let fields = Account::FIELDS;
    let day = fields.rates.member("day").expect("a name");
    // Trees that would take the stack with them, if they were kept until they are refused.
    let tree = |join: fn(Condition<Account>, Condition<Account>) -> Condition<Account>| {
        (0..50_000).fold(fields.balance.is(0), |tree, n| join(tree, fields.balance.is(n)))
    };
    let low = [(0..=9, "low".to_owned())];
    let twice = [(0..=100, "low".to_owned()), (50..=200, "high".to_owned())];
    let (above, below) = (9, 0);
    let reversed = [(above..=below, "low".to_owned())];
    let set = || fields.balance.set(7);
    for (edit, reason) in [
        (fields.balance.add(1, -9..=-1), "balance: no number is within the bounds"),
        (fields.balance.add(1, above..=below), "balance: the lower bound of the add is above the upper one"),
        (
            day.add(Number::parse("0.5").expect("a number"), 0..=10),
            "rates.day: only a whole amount of at most 38 digits has bounds for its result",
        ),
        (
            set().bands(&fields.note, &fields.balance, low),
            "the bands of note are those of a number that is not added to",
        ),
        (fields.balance.add(1, ..).bands(&fields.note, &fields.balance, twice), "note: two of its bands overlap"),
        (
            fields.balance.add(1, ..).bands(&fields.note, &fields.balance, reversed),
            "note: it has no bands, or each of them ends before it begins",
        ),
        (set().only_if(fields.balance.is_any_of([])), "balance: is_any_of needs a value"),
        (set().only_if(tree(Condition::and)), "at most 100 conditions"),
        (set().only_if(tree(|tree, _| !tree)), "at most 8 levels"),
        (set().only_if(tree(|tree, one| one.clone().and(one.or(tree)))), "at most 8 levels"),
        (Edit::default().stamp(&fields.note, "late".to_owned()), "the edit changes nothing"),
    ] {
        let refused = table.edit("a-1", &edit).await.expect_err(reason);
        let UpdateError::Failed(Failure { kind: FailureKind::InvalidRecord { reason: said }, .. }) = refused else {
            panic!("{edit:?}: {refused:?}")
        };
        assert!(said.contains(reason), "{said}: {reason}");
    }
    for name in [String::new(), "x".repeat(256)] {
        assert!(fields.rates.member(&name).is_err());
    }
    assert_eq!(engine.take_log().len(), 0, "nothing was sent");
}

#[tokio::test]
async fn a_token_that_no_lease_has_and_a_scope_without_a_key_are_refused() {
    let leases = Store::new(&Engine::with_tables(&[]).client()).leases("Leases");
    for (number, is_one) in [(0, false), (1, true), ((1 << 53) - 1, true), (1 << 53, false), (u64::MAX, false)] {
        let token = leases.token("k", number);
        assert_eq!(token.is_ok(), is_one, "{number}: {token:?}");
    }
    for (scope, is_one) in [(&["caller", "key"][..], true), (&["caller", ""], false), (&[""], false), (&[], false)] {
        let claim = IdempotencyClaim::new(scope, &["", "payload"]);
        assert_eq!(claim.is_ok(), is_one, "{scope:?}");
    }
}

/// `Some(None)` and `None` are stored alike. The answer of a create tells what will be read.
#[tokio::test]
async fn a_create_tells_the_value_that_is_stored() {
    #[derive(Debug, PartialEq, Serialize, Deserialize, Record)]
    #[record(key = "id")]
    struct Nested {
        #[expect(clippy::option_option, reason = "somebody will")]
        twice: Option<Option<u64>>,
    }
    let engine = Engine::with_tables(&[("Nested", "id")]);
    let table: Table<Nested> = Store::new(&engine.client()).table("Nested");
    let created = table.create("n-1", &Nested { twice: Some(None) }).await.expect("a free key");
    assert_eq!(Some(created.value), table.get("n-1").await.expect("read").map(|read| read.value));
}

/// `create` sends no key of its own. So a table without the sort key takes the first item, and refuses the second one as if
/// its key were taken.
#[tokio::test]
async fn a_table_that_lacks_the_sort_key_does_not_show_the_item_of_another_key() {
    #[derive(Debug, Serialize, Deserialize, Record)]
    #[record(key = "eventId", sort = "seat")]
    struct Seat {
        by: String,
    }
    let engine = Engine::with_tables(&[("Seats", "eventId")]);
    let seats: Table<Seat> = Store::new(&engine.client()).table("Seats");
    let by = |name: &str| Seat { by: name.to_owned() };
    seats.create(("e-1", 1), &by("Ann")).await.expect("it looks right");
    let told = seats.create(("e-1", 2), &by("Bob")).await;
    let Err(Error::Failed(failure)) = told else { panic!("{told:?}") };
    assert!(failure.to_string().contains("seat is a key of the Record and not of the table"), "{failure}");
}
