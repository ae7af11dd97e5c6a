//! The write that makes one item of another, through the engine's own evaluator of expressions.

use crate::harness::engine::Engine;
use aws_sdk_dynamodb::Client;
use fencepost::AttributeValue::{B, L, M, N, S, Ss};
use fencepost::{Attributes, Key, Record, Source, Store, Table, from_sdk, to_sdk};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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

/// One engine for all cases; each case has a key of its own.
struct Bench<const OF_MANY: bool> {
    engine: Engine,
    client: Client,
    table: Table<Anything<OF_MANY>>,
    next: AtomicU64,
}

/// The operation of one update, and its expression.
type Sent = (String, Option<String>);

impl<const OF_MANY: bool> Bench<OF_MANY> {
    fn new() -> Self {
        let engine = Engine::with_tables(&[(TABLE, "id")]);
        let client = engine.client();
        let table = Store::new(&client).table(TABLE);
        Bench { engine, client, table, next: AtomicU64::new(0) }
    }

    /// Creates `a`, adds a stranger behind the crate's back, and updates to `b`. The row then holds `b` and the stranger.
    async fn update(&self, a: &Attributes, b: &Attributes) -> Sent {
        let id = format!("item-{}", self.next.fetch_add(1, Relaxed));
        let key = Key::from(id.as_str());
        let [a, b] = [a, b].map(|attributes| Anything::<OF_MANY> { attributes: attributes.clone() });
        self.table.create(&key, &a).await.expect("a free key");
        let stranger = ("stranger".to_owned(), Ss(vec!["kept".to_owned()]));
        let mut row = self.stored(&id).await;
        row.extend([stranger.clone()]);
        self.client.put_item().table_name(TABLE).set_item(Some(to_sdk(row))).send().await.expect("a write");
        self.engine.take_log();
        let updated = self.table.update_with_retry(&key, |_| Ok::<_, Infallible>(Some(b.clone()))).await;
        assert_eq!(updated.expect("nobody else writes").version().get(), 2);
        let mut log = self.engine.take_log();
        let write = log.pop().expect("a write");
        assert_eq!(log.len(), 1, "one read before it");
        let mut stored = self.stored(&id).await;
        stored.retain(|name, _| name != "id" && !["_version", "_incarnation", "_writes"].contains(&name.as_str()));
        let mut expected = b.attributes;
        expected.extend([stranger]);
        assert_eq!(stored, expected);
        (write.operation, write.body["UpdateExpression"].as_str().map(str::to_owned))
    }

    async fn stored(&self, id: &str) -> Attributes {
        let key = to_sdk([("id".to_owned(), S(id.to_owned()))].into());
        let request = self.client.get_item().table_name(TABLE).set_key(Some(key)).consistent_read(true);
        from_sdk(request.send().await.expect("an answer").item.expect("an item"))
    }
}

/// Each name goes, comes, changes as a whole, changes within, and stays.
#[tokio::test]
async fn any_name_of_an_attribute_may_stand_in_an_update() {
    let bench = Bench::<false>::new();
    let values = [
        None,
        Some(N("1".to_owned())),
        Some(L(vec![N("1".to_owned())])),
        Some(M([("a.b".to_owned(), S("x".to_owned())), ("#s0".to_owned(), B(b"x".to_vec()))].into())),
    ];
    for turn in 0..values.len() {
        let of = |by: usize| {
            let all = AWKWARD.iter().enumerate();
            let all = all.filter_map(|(at, name)| Some(((*name).to_owned(), values[(at * by + turn) % 4].clone()?)));
            all.collect::<Attributes>()
        };
        let (operation, _) = bench.update(&of(1), &of(3)).await;
        assert_eq!(operation, "UpdateItem");
    }
}

#[tokio::test]
async fn the_whole_item_is_sent_only_when_the_expression_would_be_longer_than_4_kb() {
    let bench = Bench::<true>::new();
    let all = |names: &[&str], number: &str| -> Attributes {
        names.iter().map(|&name| (name.to_owned(), N(number.to_owned()))).collect()
    };
    // The length of the expression for so many changed attributes; `None` where the whole item is sent.
    let sent = async |changed: usize| {
        let a = all(&NAMES, "1");
        let mut b = a.clone();
        b.extend(all(&NAMES[..changed], "2"));
        let (operation, expression) = bench.update(&a, &b).await;
        assert_eq!(operation, if expression.is_some() { "UpdateItem" } else { "PutItem" });
        expression.map(|expression| expression.len())
    };
    let (mut longest, mut fits, mut whole) = (sent(0).await.expect("an expression"), 0, MANY);
    assert_eq!(sent(MANY).await, None);
    while fits + 1 < whole {
        let middle = usize::midpoint(fits, whole);
        match sent(middle).await {
            Some(length) => (longest, fits) = (length, middle),
            None => whole = middle,
        }
    }
    let of_one_more = ", #s000 = :s000".len();
    assert!(longest <= MAX_EXPRESSION && longest + of_one_more > MAX_EXPRESSION, "the longest had {longest} bytes");
}
