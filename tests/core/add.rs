//! `Table::edit`: numbers under many concurrent changes, each applied exactly once, and the cost of each case.

use super::accounts::change;
use crate::harness::clients::{
    Way, client_that, client_that_notes_its_first_write, client_whose, client_whose_first_write, lost,
};
use crate::harness::engine::{Engine, number};
use fencepost::testing::slow_round_trips;
use fencepost::{
    Bounds, Call, Deadline, Edit, Failure, ItemVersion, Key, NotEdited, Number, Record, Rng, Settings, Store, Table,
    UpdateError, Versioned,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

pub const TABLE: &str = "Shelves";
const MAX: i64 = 1000;

/// A shelf with a stock, its status and a number in a map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shelf {
    pub stock: i64,
    status: String,
    counts: BTreeMap<String, i64>,
}

impl Record for Shelf {
    const PARTITION_KEY: &'static str = "shelfId";
    const ATTRIBUTES: &'static [&'static str] = &["stock", "status", "counts", "note"];
    const SETTINGS: Settings = Settings::own().remembered_writes(8).edit_window(4);
}

/// Takes or gives stock. Below 10, the status is `low`.
pub fn stock(by: i64) -> Edit {
    Edit::add("stock", by, 0..=MAX).bands("status", "stock", [(0..=9, "low"), (10..=MAX, "high")])
}

fn shelf(stock: i64) -> Shelf {
    let status = if stock < 10 { "low" } else { "high" }.to_owned();
    Shelf { stock, status, counts: [("sold".to_owned(), 0)].into() }
}

/// An engine with a shelf of 50. No test uses the client that made it.
pub async fn with_shelf() -> (Engine, Key, ItemVersion) {
    let engine = Engine::with_tables(&[(TABLE, Shelf::PARTITION_KEY)]);
    let created = table(&engine).create("s-1", &shelf(50)).await.expect("a free key");
    engine.take_log();
    (engine, Key::from("s-1"), created.at)
}

/// The table of a new client, which has seen nothing yet.
fn table(engine: &Engine) -> Table<Shelf> {
    Store::new(&engine.client()).table(TABLE)
}

pub fn row(engine: &Engine) -> Value {
    engine.row(TABLE, "shelfId", "s-1")
}

pub fn stock_of(engine: &Engine) -> i64 {
    number(&row(engine), "stock")
}

/// Commits of other writers, between two requests of ours.
pub fn rivals(engine: &Engine, commits: usize) {
    for _ in 0..commits {
        change_shelf(engine, "SET #v = #v + :n", &json!({":n": {"N": "1"}}));
    }
}

pub fn change_shelf(engine: &Engine, expression: &str, values: &Value) {
    change(engine, TABLE, &json!({"shelfId": {"S": "s-1"}}), expression, values);
}

/// Another program sets the stock to 100, without a new version.
pub fn restock(engine: &Engine) {
    change_shelf(engine, "SET stock = :n", &json!({":n": {"N": "100"}}));
}

#[tokio::test]
async fn a_cold_add_costs_a_read_and_a_write_and_a_warm_one_a_write() {
    let (engine, key, _) = with_shelf().await;
    let table = table(&engine);
    for (by, left, counts) in [(-5, 45, (1, 1)), (-30, 15, (0, 1)), (100, 115, (0, 1))] {
        let added = table.edit(&key, &stock(by)).await.expect("within the bounds");
        assert_eq!(added.item, Some(Versioned { value: shelf(left), at: added.at }));
        assert_eq!(engine.take_counts(), counts, "{by}");
    }
    assert_eq!(row(&engine)["_version"]["N"], "4");
}

#[tokio::test]
async fn an_add_at_a_state_that_the_caller_has_seen_needs_no_read() {
    let (engine, key, at) = with_shelf().await;
    table(&engine).edit(&key, &stock(1).seen(at)).await.expect("within the bounds");
    assert_eq!((stock_of(&engine), engine.take_counts()), (51, (0, 1)));
}

#[tokio::test]
async fn what_would_pass_a_bound_or_64_bits_is_refused_with_the_item_in_one_request() {
    let (engine, key, at) = with_shelf().await;
    let within = [-51, 951, i64::MIN, i64::MAX].map(stock);
    let any = ["1e30", "-1e30", "1e19", "-1e100", "99999999999999999999999999999999999999"];
    let any = any.map(|by| Edit::add("stock", Number::parse(by).expect("a number"), ..));
    for add in within.into_iter().chain(any) {
        let add = add.seen(at);
        let refused = table(&engine).edit(&key, &add).await.expect_err("out of bounds");
        assert!(
            matches!(refused, UpdateError::Refused(NotEdited::OutOfRange(current)) if current.value == shelf(50)),
            "{add:?}"
        );
        assert_eq!((stock_of(&engine), engine.take_counts()), (50, (0, 1)), "{add:?}");
    }
    let thousand = Edit::add("stock", Number::parse("1e3").expect("a number"), 0..=2000).seen(at);
    table(&engine).edit(&key, &thousand).await.expect("within the bounds");
    assert_eq!(stock_of(&engine), 1050);
}

#[tokio::test]
async fn a_band_that_was_guessed_wrong_costs_one_more_write() {
    let (engine, key, at) = with_shelf().await;
    // This client does not know the stock and guesses the last band.
    let added = table(&engine).edit(&key, &stock(-45).seen(at)).await.expect("within the bounds");
    assert_eq!(added.item.map(|item| item.value), Some(shelf(5)));
    assert_eq!(engine.take_counts(), (0, 2));
    let remembering = table(&engine).remembering_items();
    for (by, counts) in [(1, (1, 1)), (1, (0, 1)), (50, (0, 1)), (-50, (0, 1))] {
        remembering.edit(&key, &stock(by)).await.expect("within the bounds");
        assert_eq!(engine.take_counts(), counts, "what is remembered tells the band: {by}");
    }
}

#[tokio::test]
async fn several_numbers_change_together_or_not_at_all_also_inside_a_map() {
    let (engine, key, _) = with_shelf().await;
    let sell = |count: i64, most: i64| stock(-count).and_add(["counts", "sold"], count, 0..=most);
    let table = table(&engine);
    let sold = table.edit(&key, &sell(3, 10)).await.expect("within the bounds").item.expect("an item");
    assert_eq!((sold.value.stock, sold.value.counts["sold"]), (47, 3));
    let refused = table.edit(&key, &sell(8, 10)).await.expect_err("out of bounds");
    assert!(matches!(refused, UpdateError::Refused(NotEdited::OutOfRange(current)) if current.value.stock == 47));
    let refused = table.edit(&key, &Edit::add(["counts", "lost"], 1, ..)).await.expect_err("no such number");
    assert!(matches!(refused, UpdateError::Refused(NotEdited::NotANumber(_))), "{refused:?}");
    let refused = table.edit(&key, &Edit::add("status", 1, ..)).await.expect_err("a text");
    assert!(matches!(refused, UpdateError::Refused(NotEdited::NotANumber(_))), "{refused:?}");
}

/// A window of 4 versions, from the version seen by the writer.
#[tokio::test(start_paused = true)]
async fn an_add_may_be_as_late_as_its_window_and_costs_one_more_write_after_it() {
    for (commits, writes) in [(0, 1), (3, 1), (4, 2), (7, 2), (8, 2), (100, 2)] {
        let (engine, key, at) = with_shelf().await;
        rivals(&engine, commits);
        let added = table(&engine).edit(&key, &stock(1).seen(at)).await.expect("within the bounds");
        assert_eq!(added.at.version.get(), 2 + commits as u64);
        assert_eq!((stock_of(&engine), engine.take_counts()), (51, (0, writes)), "after {commits} commits");
    }
}

/// The first send is lost before or after it was applied, and others commit before the second.
async fn lost_then(
    commits: usize,
    applied: bool,
    by: i64,
) -> (Engine, Result<Option<Shelf>, UpdateError<NotEdited<Shelf>>>) {
    let (engine, key, at) = with_shelf().await;
    let client = client_whose_first_write(&engine, move |engine, operation, body| {
        if applied {
            engine.answer(operation, body);
        }
        rivals(engine, commits);
        lost()
    });
    let added = Store::new(&client).table::<Shelf>(TABLE).edit(&key, &stock(by).seen(at)).await;
    (engine, added.map(|added| added.item.map(|item| item.value)))
}

#[tokio::test(start_paused = true)]
async fn an_add_that_landed_is_found_while_its_id_is_remembered_and_unknown_never_means_twice() {
    for commits in 0..12 {
        let (engine, added) = lost_then(commits, true, 7).await;
        assert_eq!(added.expect("rivals forget no ids"), Some(shelf(57)), "{commits}");
        assert_eq!(stock_of(&engine), 57, "{commits}");
    }
    for commits in 0..12 {
        let (engine, added) = lost_then(commits, false, 7).await;
        // From the 8th commit on, the id may have been forgotten.
        if commits < 8 {
            assert_eq!((added.expect("once"), stock_of(&engine)), (Some(shelf(57)), 57), "{commits}");
        } else {
            assert!(matches!(added, Err(UpdateError::Failed(Failure::OutcomeUnknown { .. }))), "{commits}");
            assert_eq!(stock_of(&engine), 50, "{commits}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_burn_that_finds_the_add_applied_says_so() {
    let (engine, key, at) = with_shelf().await;
    // The lost copy arrives between the refusal and the burn.
    let first = std::sync::Mutex::new(None);
    let client = client_whose(&engine, move |engine, before, operation, body| {
        let mut first = first.lock().expect("no panic");
        match before {
            0 => {
                *first = Some(body.to_vec());
                lost()
            }
            1 => {
                let refused = engine.answer(operation, body);
                restock(engine);
                let late = engine.answer(operation, first.as_ref().expect("the first"));
                assert_eq!(late.0, 200, "it is applied");
                refused
            }
            _ => engine.answer(operation, body),
        }
    });
    let added = Store::new(&client).table::<Shelf>(TABLE).edit(&key, &stock(-51).seen(at)).await;
    let added = added.expect("applied after all");
    assert_eq!((added.at.version.get(), stock_of(&engine)), (2, 49));
    let item = added.item.expect("it is there");
    assert_eq!((item.version().get(), item.value.stock), (2, 49), "the row as the burn showed it");
}

#[tokio::test(start_paused = true)]
async fn an_add_that_fits_again_after_its_burn_is_sent_again_and_not_refused() {
    let [low, high] = ["50.5", "1000.5"].map(|bound| Number::parse(bound).expect("a number"));
    // Whether bounds of halves hold, only DynamoDB can tell.
    for add in [stock(-51), Edit::add("stock", -51, Bounds::Before(low, high))] {
        let (engine, key, at) = with_shelf().await;
        let client = client_whose(&engine, move |engine, before, operation, body| {
            let answer = if before == 0 { lost() } else { engine.answer(operation, body) };
            if before == 1 {
                restock(engine); // between the refusal and the burn
            }
            answer
        });
        let added = Store::new(&client).table::<Shelf>(TABLE).edit(&key, &add.seen(at)).await;
        let added = added.expect("there is stock");
        assert_eq!((added.at.version.get(), stock_of(&engine), engine.take_counts()), (3, 49, (0, 3)));
    }
}

/// A pause takes at most half of the remaining time: the add has time for its answer.
#[tokio::test(start_paused = true)]
async fn an_add_that_spreads_out_leaves_time_for_itself() {
    let (engine, key, at) = with_shelf().await;
    rivals(&engine, 4);
    let client = client_that(&engine, |_| Way::Answered(100));
    let policy = slow_round_trips(Duration::from_millis(100)); // so the longest pause is 400 ms
    let store = Store::new(&client).with_policy(policy).with_rng(Rng::new(|| u64::MAX));
    let call = Call::new(Deadline::within(Duration::from_millis(600)));
    let added = store.table::<Shelf>(TABLE).in_call(&call).edit(&key, &stock(1).seen(at)).await.expect("in time");
    assert_eq!((added.at.version.get(), stock_of(&engine), call.tally().conflicts), (6, 51, 1));
}

/// An expression of `DynamoDB` has at most 4 KB.
#[tokio::test]
async fn an_edit_that_leaves_no_room_in_its_expression_to_forget_ids_forgets_none() {
    let (mut kept, mut too_long) = (0, 0);
    for values in (100..400).step_by(4) {
        let [(_, few), (ids, many)] = [with_long_edit(values, 0).await, with_long_edit(values, 39).await];
        assert_eq!(few, many, "{values}: it depends on the edit alone");
        too_long += u32::from(!many);
        kept += u32::from(many && ids == 41);
    }
    assert!(kept > 0 && too_long > 0, "{kept} {too_long}");
}

/// Sets so many values of a shelf that remembers so many edits. Says how many ids it has then, and whether they were set.
async fn with_long_edit(values: usize, edits: usize) -> (usize, bool) {
    let (engine, key, mut at) = with_shelf().await;
    for _ in 0..edits {
        at = table(&engine).edit(&key, &stock(0).seen(at)).await.expect("within the bounds").at;
    }
    let long = (0..values)
        .fold(Edit::default(), |edit, value| edit.and_set(vec!["counts".to_owned(), format!("n{value}")], &value));
    let edited = table(&engine).edit(&key, &long).await;
    (row(&engine)["_writes"]["M"].as_object().expect("a map").len(), edited.is_ok())
}

#[tokio::test]
async fn an_add_under_a_token_that_was_replaced_is_fenced_and_not_out_of_range() {
    let (engine, key, _) = with_shelf().await;
    let table = table(&engine);
    let leases = table.store().leases("Leases");
    let (old, new) = (leases.token("k", 1), leases.token("k", 2));
    table.fenced_by(&new).edit(&key, &stock(5)).await.expect("within the bounds");
    for by in [5, -100] {
        let fenced = table.fenced_by(&old).edit(&key, &stock(by)).await.expect_err("replaced");
        assert!(matches!(fenced, UpdateError::Failed(Failure::Fenced)), "{fenced:?}");
    }
    let refused = table.fenced_by(&new).edit(&key, &stock(-100)).await.expect_err("too much");
    assert!(matches!(refused, UpdateError::Refused(NotEdited::OutOfRange(current)) if current.value == shelf(55)));
    assert_eq!(stock_of(&engine), 55);
}

#[tokio::test]
async fn adds_and_versioned_changes_keep_the_memory_of_a_row_bounded() {
    let (engine, key, _) = with_shelf().await;
    let table = table(&engine);
    let mut most = 0;
    for round in 0..200 {
        if round % 3 == 0 {
            let next = |shelf: &Shelf| Ok::<_, Infallible>(Some(Shelf { stock: shelf.stock + 1, ..shelf.clone() }));
            table.update_with_retry(&key, next).await.expect("nobody else writes");
        } else {
            table.edit(&key, &stock(1)).await.expect("within the bounds");
        }
        most = most.max(row(&engine)["_writes"]["M"].as_object().expect("a map").len());
    }
    assert_eq!(stock_of(&engine), 250);
    assert_eq!(most, 8, "no id is forgotten early, and none is kept for long");
}

/// Each process knows only the state that the one before it left, as a function behind a gateway does.
#[tokio::test]
async fn a_row_that_thousands_of_processes_edit_without_reading_it_keeps_a_bounded_memory() {
    let (engine, key, mut at) = with_shelf().await;
    let (mut most, edits) = (0, 2000);
    for _ in 0..edits {
        at = table(&engine).edit(&key, &Edit::add("stock", 0, ..).seen(at)).await.expect("within the bounds").at;
        most = most.max(row(&engine)["_writes"]["M"].as_object().map_or(0, serde_json::Map::len));
    }
    assert_eq!((most, at.version.get()), (8 + 33, 1 + edits), "R is 8");
    let (reads, writes) = engine.take_counts();
    let more = writes as u64 - edits;
    assert!(reads == 0 && (edits / 20..edits / 12).contains(&more), "{more} of {edits} sent one more write of 1 unit");
}

/// The window stays, so the copy of an edit that found no room is excluded by the next one.
#[tokio::test(start_paused = true)]
async fn an_edit_that_found_no_room_for_its_id_is_made_once_although_its_copy_arrives() {
    let (engine, key, mut at) = with_shelf().await;
    for ids in 1..=41 {
        if ids == 40 {
            // There is room for one id more, so a condition is the reason, and nothing else is tried.
            let [low, high] = ["0.5", "1.5"].map(|bound| Number::parse(bound).expect("a number"));
            let few = Edit::add("stock", 1, Bounds::Before(low, high)).seen(at);
            engine.take_log();
            table(&engine).edit(&key, &few).await.expect_err("the stock is 50");
            assert_eq!(engine.take_counts(), (0, 1));
        }
        at = table(&engine).edit(&key, &stock(0).seen(at)).await.expect("within the bounds").at;
    }
    let (client, first) = client_that_notes_its_first_write(&engine);
    let added = Store::new(&client).table::<Shelf>(TABLE).edit(&key, &stock(7).seen(at)).await;
    assert_eq!(added.expect("there is room now").item.expect("an item").value, shelf(57));
    let copy = first.lock().expect("no panic").clone();
    assert_eq!((engine.answer("UpdateItem", &copy).0, stock_of(&engine)), (400, 57));
}
