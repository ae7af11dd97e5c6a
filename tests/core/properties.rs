//! apply(diff(a, b), a) = b, for arbitrary items, through the engine's own expression evaluator.
//!
//! `FENCEPOST_SEED=7` replays the run of one seed.

use crate::harness::engine::Engine;
use aws_sdk_dynamodb::Client;
use fencepost::AttributeValue::{self, B, Bool, Bs, L, M, N, Ns, Null, S, Ss};
use fencepost::testing::WriteId;
use fencepost::{Attributes, Key, Record, Source, Store, Table, from_sdk, to_sdk};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::runtime::Runtime;

const TABLE: &str = "Anything";
const MAX_EXPRESSION: usize = 4096;

/// Names that would be trouble in an expression: reserved words, placeholders, paths.
const AWKWARD: [&str; 12] =
    ["size", "name", "a.b", "a[0]", "#s0", ":s0", "#version", "SET", " ", "é", "_", "attribute_not_exists(#key)"];

/// `a000`, `a001` …: enough of them make an update expression longer than it may be.
const MANY: usize = 340;
static NAMES_TEXT: [[u8; 4]; MANY] = {
    let digits = b"0123456789";
    let mut names = [*b"a000"; MANY];
    let mut index = 0;
    while index < MANY {
        names[index] = [b'a', digits[index / 100], digits[index / 10 % 10], digits[index % 10]];
        index += 1;
    }
    names
};
const NAMES: [&str; MANY] = {
    let mut names = [""; MANY];
    let mut index = 0;
    while index < MANY {
        names[index] = match std::str::from_utf8(&NAMES_TEXT[index]) {
            Ok(name) => name,
            Err(_) => panic!("letters and digits are UTF-8"),
        };
        index += 1;
    }
    names
};

/// A value with attributes only: `Anything<true>` may have `MANY`, the other the awkward ones.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
struct Anything<const OF_MANY: bool> {
    #[serde(skip)]
    attributes: Attributes,
}

impl<const OF_MANY: bool> Record for Anything<OF_MANY> {
    const PARTITION_KEY: &'static str = "id";
    const ATTRIBUTES: &'static [&'static str] = if OF_MANY { &NAMES } else { &AWKWARD };

    fn encode(&self) -> Result<Attributes, Source> {
        Ok(self.attributes.clone())
    }

    fn decode(attributes: &Attributes) -> Result<Self, Source> {
        let own = attributes.iter().filter(|(name, _)| Self::ATTRIBUTES.contains(&name.as_str()));
        Ok(Anything { attributes: own.map(|(name, value)| (name.clone(), value.clone())).collect() })
    }
}

/// One engine for all cases of a property; each case has a key of its own.
struct Bench<const OF_MANY: bool> {
    engine: Engine,
    client: Client,
    table: Table<Anything<OF_MANY>>,
    next: AtomicU64,
    runtime: Runtime,
}

/// The request of one update and the row after it.
struct Updated {
    operation: String,
    expression: Option<String>,
    stored: Attributes,
}

impl<const OF_MANY: bool> Bench<OF_MANY> {
    fn new() -> Self {
        let engine = Engine::with_tables(&[(TABLE, "id")]);
        let client = engine.client();
        let table = Store::new(&client).table(TABLE);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Bench { engine, client, table, next: AtomicU64::new(0), runtime }
    }

    /// Creates `a`, adds `strangers` behind the crate's back, updates to `b`.
    fn update(&self, a: &Attributes, strangers: &Attributes, b: &Attributes) -> Updated {
        self.runtime.block_on(async {
            let id = format!("item-{}", self.next.fetch_add(1, Relaxed));
            let key = Key::from(id.as_str());
            let [a, b] = [a, b].map(|attributes| Anything::<OF_MANY> { attributes: attributes.clone() });
            self.table.create(&key, &a).await.expect("a free key");
            let mut row = self.stored(&id).await;
            row.extend(strangers.clone());
            self.client.put_item().table_name(TABLE).set_item(Some(to_sdk(row))).send().await.expect("a write");

            let current = self.table.get(&key).await.expect("an answer").expect("an item");
            assert_eq!(sorted(current.value.attributes), sorted(a.attributes), "what was created is read");
            self.engine.take_log();
            let updated = self.table.update_with_retry(&key, |_| Ok::<_, Infallible>(Some(b.clone()))).await;
            assert_eq!(updated.expect("nobody else writes").version().get(), 2);
            let mut log = self.engine.take_log();
            let write = log.pop().expect("a write");
            assert_eq!(log.len(), 1, "one read before it");
            let expression = write.body["UpdateExpression"].as_str().map(str::to_owned);
            let mut stored = self.stored(&id).await;
            assert_eq!(stored.remove("id"), Some(S(id)));
            Updated { operation: write.operation, expression, stored }
        })
    }

    async fn stored(&self, id: &str) -> Attributes {
        let request = self
            .client
            .get_item()
            .table_name(TABLE)
            .set_key(Some(to_sdk([("id".to_owned(), S(id.to_owned()))].into())))
            .consistent_read(true);
        from_sdk(request.send().await.expect("an answer").item.expect("an item"))
    }
}

/// The row holds `b` and `strangers`, and our attributes after a second write.
fn check(updated: Updated, strangers: &Attributes, b: &Attributes) -> Result<(), TestCaseError> {
    let mut stored = updated.stored;
    prop_assert_eq!(stored.remove("_version"), Some(N("2".to_owned())));
    let Some(B(incarnation)) = stored.remove("_incarnation") else {
        return Err(TestCaseError::fail("no incarnation"));
    };
    let Some(M(memory)) = stored.remove("_writes") else { return Err(TestCaseError::fail("no memory")) };
    let create = WriteId::from_bytes(incarnation.as_slice().try_into().expect("8 bytes"));
    prop_assert_eq!(memory.get(&create.name()), Some(&N("0".to_owned())));
    prop_assert_eq!((memory.len(), memory.values().any(|before| *before == N("1".to_owned()))), (2, true));
    let mut expected = b.clone();
    expected.extend(strangers.clone());
    prop_assert_eq!(sorted(stored), sorted(expected));
    Ok(())
}

/// The same with every set in order: a set has none.
fn sorted(attributes: Attributes) -> BTreeMap<String, AttributeValue> {
    attributes.into_iter().map(|(name, value)| (name, in_order(value))).collect()
}

fn in_order(value: AttributeValue) -> AttributeValue {
    match value {
        L(items) => L(items.into_iter().map(in_order).collect()),
        M(members) => M(members.into_iter().map(|(name, value)| (name, in_order(value))).collect()),
        Ss(mut set) => {
            set.sort();
            Ss(set)
        }
        Ns(mut set) => {
            set.sort();
            Ns(set)
        }
        Bs(mut set) => {
            set.sort();
            Bs(set)
        }
        other => other,
    }
}

/// Whether a list takes the place of a set, which stays a set.
fn replaces_a_set(old: &AttributeValue, new: &AttributeValue) -> bool {
    match (old, new) {
        (Ss(_) | Ns(_) | Bs(_), L(_)) => true,
        (M(old), M(new)) => new.iter().any(|(name, new)| old.get(name).is_some_and(|old| replaces_a_set(old, new))),
        _ => false,
    }
}

fn values() -> impl Strategy<Value = AttributeValue> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..5);
    let leaf = prop_oneof![
        (0..3_i64).prop_map(|number| N(number.to_string())),
        any::<i64>().prop_map(|number| N(number.to_string())),
        any::<String>().prop_map(S),
        bytes().prop_map(B),
        any::<bool>().prop_map(Bool),
        Just(Null(true)),
        prop::collection::btree_set("[a-zé]{1,4}", 1..4).prop_map(|set| Ss(set.into_iter().collect())),
        prop::collection::btree_set(any::<i32>(), 1..4).prop_map(|set| Ns(set.iter().map(i32::to_string).collect())),
        prop::collection::btree_set(bytes(), 1..4).prop_map(|set| Bs(set.into_iter().collect())),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(L),
            prop::collection::hash_map("[a-z.#:\\[é ]{1,5}", inner, 0..4).prop_map(M),
        ]
    })
}

/// Some of these names, each with a value.
fn some_of(
    names: &'static [&'static str],
    count: std::ops::RangeInclusive<usize>,
) -> impl Strategy<Value = Attributes> {
    let chosen = prop::sample::subsequence(names, count);
    chosen.prop_flat_map(|names| {
        let values = prop::collection::vec(values(), names.len());
        values.prop_map(move |values| names.iter().map(|&name| name.to_owned()).zip(values).collect())
    })
}

/// Attributes that no `Record` here declares.
fn strangers() -> impl Strategy<Value = Attributes> {
    prop::collection::hash_map("z[a-z.#: ]{0,5}", values(), 0..3)
}

/// Plays a property with a seed. A failure names it.
fn play<T: std::fmt::Debug>(
    cases: u32,
    strategy: &impl Strategy<Value = T>,
    property: impl Fn(T) -> Result<(), TestCaseError>,
) {
    let seed =
        std::env::var("FENCEPOST_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().expect("a number"));
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    if let Err(failure) = runner.run(strategy, property) {
        panic!("FENCEPOST_SEED={seed}: {failure}");
    }
}

#[test]
fn any_item_becomes_any_other_by_its_diff_and_strangers_stay() {
    let bench = Bench::<false>::new();
    let items = || some_of(&AWKWARD, 0..=AWKWARD.len());
    // Both items have the attributes of `both`, which stay as they are.
    play(192, &(items(), items(), items(), strangers()), |(both, mut a, mut b, strangers)| {
        a.extend(both.clone());
        b.extend(both);
        b.retain(|name, new| !a.get(name).is_some_and(|old| replaces_a_set(old, new)));
        let updated = bench.update(&a, &strangers, &b);
        prop_assert_eq!(updated.operation.as_str(), "UpdateItem");
        check(updated, &strangers, &b)
    });
}

#[test]
fn a_diff_too_long_for_an_expression_becomes_one_write_of_the_whole_item() {
    let bench = Bench::<true>::new();
    let items = || some_of(&NAMES, 320..=MANY);
    play(8, &(items(), items(), strangers()), |(a, mut b, strangers)| {
        // No value of `a` is in `b`, so every attribute is set or removed.
        for (name, value) in &mut b {
            *value = M([(format!("in {name}"), value.clone())].into());
        }
        let updated = bench.update(&a, &strangers, &b);
        prop_assert_eq!(updated.operation.as_str(), "PutItem");
        check(updated, &strangers, &b)
    });
}

#[test]
fn the_whole_item_is_sent_only_when_the_expression_would_be_longer_than_4_kb() {
    let bench = Bench::<true>::new();
    let strangers = Attributes::from([("stranger".to_owned(), Ss(vec!["kept".to_owned()]))]);
    let all = |names: &[&str], number: &str| -> Attributes {
        names.iter().map(|&name| (name.to_owned(), N(number.to_owned()))).collect()
    };
    // The length of the expression for so many changed attributes; `None` where the whole item is sent.
    let sent = |changed: usize| {
        let a = all(&NAMES, "1");
        let mut b = a.clone();
        b.extend(all(&NAMES[..changed], "2"));
        let updated = bench.update(&a, &strangers, &b);
        let expression = updated.expression.clone();
        assert_eq!(updated.operation, if expression.is_some() { "UpdateItem" } else { "PutItem" });
        check(updated, &strangers, &b).expect("what was put");
        expression.map(|expression| expression.len())
    };
    let (mut longest, mut fits, mut whole) = (sent(0).expect("an expression"), 0, MANY);
    assert_eq!(sent(MANY), None);
    while fits + 1 < whole {
        let middle = usize::midpoint(fits, whole);
        match sent(middle) {
            Some(length) => (longest, fits) = (length, middle),
            None => whole = middle,
        }
    }
    let of_one_more = ", #s000 = :s000".len();
    assert!(longest <= MAX_EXPRESSION && longest + of_one_more > MAX_EXPRESSION, "the longest had {longest} bytes");
}
