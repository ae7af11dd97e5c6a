use fencepost::field::Field;
use fencepost::{Attempt, Edit, Item, Record, Table};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

mod bank {
    use super::*;

    #[derive(Serialize, Deserialize, Record)]
    #[record(key = "accountId")]
    pub struct Account {
        pub balance: u64,
        pub owner: String,
        pub note: Option<String>,
        #[serde(with = "as_text")]
        pub opened_at: u64,
        #[serde(with = "as_text")]
        pub closed_at: Option<u64>,
        pub tags: BTreeSet<String>,
        pub limits: BTreeMap<String, u32>,
        pub rate: f32,
        secret: String,
    }

    mod as_text {
        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        pub fn serialize<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
            value.serialize(serializer)
        }

        pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
            T::deserialize(deserializer)
        }
    }
}

use bank::Account;

#[derive(Serialize, Deserialize, Record)]
#[record(key = "orderId")]
struct Order {
    total: u64,
}

const NUMBER: Field<Account, u64> = Field::of("number");

fn edits() {
    let account = Account::FIELDS;
    let limit = || account.limits.member("day").unwrap();
    let add = || account.balance.add(1, ..);
    // Each of these compiled, was `Ok`, and left an item that nobody could read:
    let _ = account.balance.set("text"); //~ expected `u64`, found `&str`
    let _ = account.balance.set(-1); //~ unsigned values cannot be negated
    let _ = account.balance.raise_to("7"); //~ expected `u64`, found `&str`
    let _ = account.owner.set(7); //~ expected `String`, found integer
    let _ = account.balance.remove(); //~ this field has to be there: without it, the record does not decode
    let _ = account.closed_at.remove(); //~ this field has to be there
    let _ = account.opened_at.raise_to(7); //~ a function writes or reads this field
    let _ = account.balance.add(0.5, ..); //~ expected `i64`, found floating-point number
    let _ = account.note.set(None); //~ expected `String`, found `Option<_>`
    let _ = limit().set("much"); //~ expected `u32`, found `&str`
    let _ = Edit::default().stamp(&account.owner, 7); //~ expected `String`, found integer
    let _ = add().bands(&account.owner, &account.balance, [(0..=9, 1)]); //~ expected `(RangeInclusive<i64>, String)`
    // Each of these compiled, and could never be applied:
    let _ = account.owner.add(1, ..); //~ an edit cannot add to a `std::string::String`
    let _ = account.rate.add(1, ..); //~ `f64` and `fencepost::Number`: take one of these for `f32`, `i128` or `u128`
    let _ = account.opened_at.add(1, ..); //~ a function writes or reads this field
    let _ = account.tags.append(["a".to_owned()]); //~ in which the order and the copies of members count
    let _ = account.balance.append([1]); //~ `u64` is not stored as a list
    let _ = account.ballance.add(1, ..); //~ no field `ballance`
    let _ = account.secret.set("other".to_owned()); //~ field `secret` of struct
    let _ = account.owner.member("first"); //~ its trait bounds were not satisfied
    let _ = account.balance.set(1).only_if(account.owner.is(7)); //~ expected `String`, found integer
    let _ = account.balance.set(1).only_if(account.balance.is_none()); //~ this field always has a value
    let _ = account.balance.set(1).only_if(limit().is_less_than(0.5)); //~ expected `u32`, found floating-point number
    let _ = account.balance.set(1).only_if(account.tags.is_less_than(Default::default())); //~ not stored in the order of its
    let _ = NUMBER.set("text"); //~ expected `u64`, found `&str`
}

fn of_another_record(table: &Table<Account>, attempt: &mut Attempt, item: Item<Account>) {
    // Each of these changed an attribute of the same name in another table:
    let _ = table.edit("a-1", &Order::FIELDS.total.set(7)); //~ expected `&Edit<Account>`, found `&Edit<Order>`
    let _ = attempt.edit(item, &Order::FIELDS.total.add(7, ..)); //~ expected `&Edit<Account>`, found `&Edit<Order>`
    let _ = Account::FIELDS.balance.set(1).and(Order::FIELDS.total.set(7)); //~ found `Edit<Order>`
    let _ = Account::FIELDS.balance.set(1).only_if(Order::FIELDS.total.is(7)); //~ found `Condition<Order>`
}

async fn of_everyday(table: &Table<Account>) {
    // What a decision, a filter or a key may not be:
    let _ = table.update_with_retry("a-1", |_: &Account| 7).await; //~ a decision cannot answer `{integer}`
    let _ = table.upsert_with_retry("a-1", |_: Option<&Account>| Some("text")).await; //~ a decision cannot answer
    let _ = table.scan().filter(Order::FIELDS.total.is(7)); //~ found `Condition<Order>`
    let _ = table.query(("a-1", 7)); //~ the trait bound `KeyPart: From<(&str, {integer})>` is not satisfied
    let _ = table.query_index(ByTotal, "a-1"); //~ type mismatch resolving `<ByTotal as Index>::Record == Account`
    let _ = table.get(0.5).await; //~ the trait bound `KeyPart: From<{float}>` is not satisfied
}

struct ByTotal;

impl fencepost::Index for ByTotal {
    type Record = Order;
    type Shown = Order;
    const NAME: &'static str = "byTotal";
    const PARTITION_KEY: &'static str = "total";
}

mod records {
    use super::*;

    // Each of these compiled up to the first table of it, and that with two keys of one name read one item as another:
    #[derive(Serialize, Deserialize, Record)] //~ the sort key has the name of the partition key
    #[record(key = "id", sort = "id")]
    struct Twice {
        total: u64,
    }

    #[derive(Serialize, Deserialize, Record)] //~ the names of the settings give an attribute the name of a key
    #[record(key = "_version")]
    struct Ours {
        total: u64,
    }

    #[derive(Serialize, Deserialize, Record)] //~ an attribute of the Record has the name of one of this crate's
    #[record(key = "id")]
    struct Version {
        _version: u64,
    }

    #[derive(Serialize, Deserialize, Record)] //~ the name of a key has 1 to 255 bytes
    #[record(key = "")]
    struct Nameless {
        total: u64,
    }
}
