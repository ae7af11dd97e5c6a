//! The limits of a transaction: a larger one is refused before any request. And of the futures of all operations.

use crate::harness::engine::{Engine, is_read};
use fencepost::field::Field;
use fencepost::lease::LeaseTerms;
use fencepost::lww::LwwRecord;
use fencepost::{
    Attempt, Error, Failure, FailureKind, FencingToken, Item, Key, Reads, Record, RetryPolicy, Store, Table,
};
use serde::{Deserialize, Serialize};

const TABLE: &str = "Notes";

#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(key = "noteId")]
struct Note {
    text: String,
}

const NUMBER: Field<Note, u64> = Field::of("text");

/// The failure of a transaction over so many notes without reads. DynamoDB is not asked.
async fn refused(notes: usize, steps: impl Fn(&mut Attempt, &[Item<Note>]) -> Result<(), Failure>) -> Failure {
    let engine = Engine::with_tables(&[(TABLE, "noteId")]);
    let client = engine.client();
    let table = Store::new(&client).table(TABLE);
    let mut reads = Reads::new();
    let notes: Vec<_> = (0..notes).map(|n| reads.later("note", &table, format!("n-{n}").as_str())).collect();
    let decide = |attempt: &mut Attempt| {
        steps(attempt, &notes)?;
        Ok::<_, Error>(())
    };
    let ended = table.store().transact_with_retry(reads, decide).await;
    assert_eq!(engine.take_log().len(), 0, "nothing was sent");
    match ended {
        Err(Error::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

fn put_all(attempt: &mut Attempt, notes: &[Item<Note>], bytes: usize) -> Result<(), Failure> {
    for note in notes {
        attempt.put_if_absent(*note, &Note { text: "x".repeat(bytes) })?;
    }
    Ok(())
}

/// Unchanged attributes count too, because DynamoDB counts the item after the step.
#[tokio::test]
async fn a_transaction_whose_items_will_have_more_than_4_mb_is_not_sent() {
    let engine = Engine::with_tables(&[(TABLE, "noteId")]);
    let table: Table<Counted> = Store::new(&engine.client()).table(TABLE);
    let mut reads = Reads::new();
    let mut notes = Vec::new();
    for n in 0..11 {
        let key = Key::from(format!("n-{n}").as_str());
        let note = Counted { text: "x".repeat(390_000), count: 1 };
        table.create(&key, &note).await.expect("a free key");
        notes.push(reads.item("note", &table, &key));
    }
    engine.take_log();
    let decide = |attempt: &mut Attempt| {
        for note in &notes {
            let text = attempt.get(*note)?.expect("it was created").value.text;
            attempt.update_at(*note, &Counted { text, count: 2 })?;
        }
        Ok::<_, Error>(())
    };
    match table.store().transact_with_retry(reads, decide).await {
        Err(Error::Failed(Failure { kind: FailureKind::TooLarge { bytes, .. }, .. })) => {
            assert!((11 * 390_000..11 * 390_200).contains(&bytes), "{bytes}");
        }
        other => panic!("{other:?}"),
    }
    assert!(engine.take_log().iter().all(|asked| is_read(&asked.operation)), "nothing was written");
}

#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(key = "noteId")]
struct Counted {
    text: String,
    count: u64,
}

#[tokio::test]
async fn too_many_steps_and_those_that_do_not_fit_are_not_sent() {
    type Steps = fn(&mut Attempt, &[Item<Note>]) -> Result<(), Failure>;
    let rows: [(&str, usize, Steps); 5] = [
        ("101", 101, |attempt, notes| put_all(attempt, notes, 1)),
        ("two steps", 1, |attempt, notes| put_all(attempt, &[notes[0]; 2], 1)),
        ("cannot be the only write", 2, |attempt, notes| {
            notes.iter().try_for_each(|n| attempt.edit(*n, &NUMBER.add(1, 0..=9)))
        }),
        ("not read", 1, |attempt, notes| attempt.check(notes[0])),
        ("not there", 1, |attempt, notes| attempt.update_at(notes[0], &Note { text: String::new() }).map(drop)),
    ];
    for (named, notes, steps) in rows {
        let failure = refused(notes, steps).await;
        let is_named = matches!(&failure, Failure { kind: FailureKind::InvalidTransaction { reason }, .. } if reason.contains(named));
        assert!(is_named, "{named}: {failure}");
    }
}

#[tokio::test]
async fn tables_of_two_stores_are_not_changed_in_one_transaction() {
    let engine = Engine::with_tables(&[(TABLE, "noteId")]);
    let (one, other) = (Store::new(&engine.client()), Store::new(&engine.client()));
    let put = async |tables: &Store, store: &Store| {
        let mut reads = Reads::new();
        let note = reads.later("note", &tables.table::<Note>(TABLE), "n-1");
        let put = store.transact_with_retry(reads, |attempt| {
            attempt.put_if_absent(note, &Note { text: String::new() })?;
            Ok::<_, Error>(())
        });
        put.await
    };
    let refused = put(&one, &other).await.expect_err("two stores");
    assert!(
        matches!(refused, Error::Failed(Failure { kind: FailureKind::InvalidTransaction { .. }, .. })),
        "{refused:?}"
    );
    assert_eq!(engine.take_log().len(), 0, "nothing was sent");
    // A copy under another policy still has the client.
    put(&one.with_policy(RetryPolicy::default()), &one).await.expect("one store");
}

#[tokio::test]
async fn an_edit_in_a_transaction_keeps_an_item_that_was_read_within_396_kb() {
    let engine = Engine::with_tables(&[(TABLE, "noteId")]);
    let table: Table<Note> = Store::new(&engine.client()).table(TABLE);
    table.create("n-1", &Note { text: "x".repeat(390_000) }).await.expect("a free key");
    engine.take_log();
    let edited = async |bytes: usize| {
        let mut reads = Reads::new();
        let (note, other) = (reads.item("note", &table, "n-1"), reads.later("other", &table, "n-2"));
        let decide = |attempt: &mut Attempt| {
            attempt.get(note)?.expect("it was created");
            attempt.put_if_absent(other, &Note { text: String::new() })?; // remembers the transaction
            attempt.edit(note, &Note::FIELDS.text.set("x".repeat(bytes)))?;
            Ok::<_, Error>(())
        };
        table.store().transact_with_retry(reads, decide).await
    };
    let refused = edited(405_504).await;
    assert!(
        matches!(refused, Err(Error::Failed(Failure { kind: FailureKind::TooLarge { limit: 405_504, .. }, .. }))),
        "{refused:?}"
    );
    assert_eq!(engine.take_counts(), (1, 0), "nothing was written");
    edited(405_000).await.expect("it fits");
    let wrote = engine.take_log().into_iter().find(|asked| !is_read(&asked.operation)).expect("a write").body;
    let steps = wrote["TransactItems"].as_array().expect("steps");
    let update = steps.iter().find_map(|step| step.get("Update")).expect("the edit");
    let [first, last] = [":first", ":last"].map(|name| &update["ExpressionAttributeValues"][name]["N"]);
    assert!(
        first.is_string() && first == last,
        "another edit beside it would not fit, so it is for one version: {update}"
    );
}

/// A record that omits a field of its type.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Forgetful {
    term: u64,
    node: String,
    last_seen: Option<String>,
}

impl Record for Forgetful {
    const PARTITION_KEY: &'static str = "noteId";
    const ATTRIBUTES: &'static [&'static str] = &["term", "node"];
}

impl LwwRecord for Forgetful {
    const ORDERED_BY: &'static str = "term";
    const NAMED_BY: &'static str = "node";
}

/// Each operation begins with the attributes of its key, or with the request of a listing. Both look at the fields.
#[tokio::test]
async fn a_field_that_a_record_forgets_is_noticed_before_anything_is_sent() {
    let engine = Engine::with_tables(&[(TABLE, "noteId")]);
    let store = Store::new(&engine.client());
    let (table, newest) = (store.table::<Forgetful>(TABLE), store.lww_table::<Forgetful>(TABLE));
    let key = "n-1";
    let value = Forgetful { term: 1, node: "a".to_owned(), last_seen: None };
    let mut reads = Reads::new();
    reads.item("note", &table, key);
    let kept = |_: &mut Attempt| Ok::<_, Error>(());
    let refusals = [
        table.get(key).await.err().map(|error| error.to_string()),
        table.query(key).pages().next_page().await.err().map(|error| error.to_string()),
        table.create(key, &value).await.err().map(|error| error.to_string()),
        store.transact_with_retry(reads, kept).await.err().map(|error| error.to_string()),
        newest.register(key, &value).await.err().map(|error| error.to_string()),
    ];
    for (operation, refusal) in refusals.iter().enumerate() {
        let refusal = refusal.as_ref().unwrap_or_else(|| panic!("operation {operation} went through"));
        assert!(refusal.contains("the field lastSeen,"), "operation {operation}: {refusal}");
    }
    assert_eq!(engine.take_log().len(), 0, "nothing was sent");
}

/// Each use of a handle asks whose it is by the same function, because nothing else gives its row.
#[tokio::test]
async fn a_handle_of_other_reads_reads_and_writes_nothing() {
    type Use = fn(&mut Attempt, Item<Note>, Item<FencingToken>) -> Result<(), Failure>;
    let uses: [Use; 3] = [
        |attempt, foreign, _| attempt.get(foreign).map(drop),
        |attempt, foreign, _| attempt.put_if_absent(foreign, &Note { text: String::new() }).map(drop),
        |attempt, _, lease| attempt.require(lease),
    ];
    let engine = Engine::with_tables(&[(TABLE, "noteId"), ("leases", "leaseKey")]);
    let store = Store::new(&engine.client());
    let held = store.leases("leases").acquire("k", "me", LeaseTerms::default()).await.expect("acquired");
    let notes = store.table::<Note>(TABLE);
    engine.take_log();
    for (place, act) in uses.into_iter().enumerate() {
        let mut foreign = Reads::new();
        let (item, lease) = (foreign.item("foreign", &notes, "n-1"), foreign.lease("lease", held.token()));
        // Both are the first and the second row here too.
        let mut reads = Reads::default();
        let own = [reads.item("own", &notes, "n-2"), reads.item("own too", &notes, "n-3")];
        let refused = store.transact_with_retry(reads, |attempt| {
            attempt.put_if_absent(own[1], &Note { text: String::new() })?;
            act(attempt, item, lease)?;
            Ok::<_, Error>(())
        });
        let Error::Failed(failure) = refused.await.expect_err("a foreign handle");
        let is_named = matches!(&failure, Failure { kind: FailureKind::InvalidTransaction { reason }, .. } if reason.contains("other Reads"));
        assert!(is_named, "{place}: {failure}");
    }
    assert!(engine.take_log().iter().all(|asked| is_read(&asked.operation)), "nothing was written");
}

/// The SDK's futures take kilobytes, and nested in a caller's futures they overflow the compiler and small stacks.
#[test]
fn futures_are_small() {
    let store = Store::new(&Engine::with_tables(&[]).client());
    let (table, leases, key) = (store.table::<Note>(TABLE), store.leases("Leases"), Key::from("a"));
    let decide = |note: &Note| Ok::<_, String>(Some(note.clone()));
    let nothing = |_: &mut Attempt| Ok::<_, Error<String>>(());
    for (operation, bytes) in [
        ("get", size_of_val(&table.get(&key))),
        ("update_with_retry", size_of_val(&table.update_with_retry(&key, decide))),
        ("transact_with_retry", size_of_val(&store.transact_with_retry(Reads::new(), nothing))),
        ("acquire", size_of_val(&leases.acquire("k", "me", LeaseTerms::default()))),
        ("while_held", size_of_val(&leases.while_held("k", "me", LeaseTerms::default(), |_| async {}))),
    ] {
        assert!(bytes < 8 * 1024, "{operation} takes {bytes} bytes");
    }
}
