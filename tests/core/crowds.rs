//! Many writers on one item: all are acknowledged, at a bounded number of requests each. Those who meet stand in a line.

use super::accounts::{Account, TABLE, add_one, call, chance, engine, rival, with_accounts};
use crowds::HOP;
use crowds::crowd::{Load, Outcome, Stores, Way as By, play};
use fencepost::{Store, Table};
use std::cell::Cell;
use std::time::Duration;

/// The write units of an outcome, and its read units at a fifth, which is their price.
fn price(outcome: &Outcome) -> f64 {
    outcome.units.write + outcome.units.read / 5.0
}

#[test]
fn a_hundred_writers_on_one_item_are_all_acknowledged_in_turn() {
    for seed in 0..6 {
        let outcome = play::<16>(Load::new(By::Update, 100), seed);
        let each = price(&outcome) / 100.0;
        println!(
            "seed {seed}: {each:.2} units per success, mean {} ms, longest {} ms (virtual)",
            outcome.mean_time().as_millis(),
            outcome.longest().as_millis(),
        );
        assert_eq!((outcome.times.len(), outcome.gave_up, outcome.count), (100, 0, 100), "seed {seed}");
        assert!(each <= 4.5, "seed {seed}: {each:.2} units per success");
        assert!(outcome.longest() <= Duration::from_millis(1_300), "seed {seed}: {:?}", outcome.longest());
    }
}

/// Full jitter is the usual way.
#[test]
fn writers_who_meet_cost_hardly_more_units_than_with_full_jitter_and_less_time() {
    for (writers, seeds, units) in
        [(1, 1, 1.0), (2, 40, 1.0), (3, 40, 1.1), (5, 40, 1.1), (10, 20, 1.0), (20, 10, 0.95)]
    {
        let all = |way| {
            let games = (0..seeds).map(|seed| play::<16>(Load::new(way, writers), seed));
            let all = games.fold(Outcome::default(), Outcome::and);
            assert_eq!((all.count, all.gave_up), (seeds * writers as u64, 0), "{writers} writers");
            (price(&all), all.mean_time())
        };
        let (ours, usual) = (all(By::Update), all(By::FullJitter));
        println!("{writers} writers: {ours:?} against {usual:?} in {seeds} games");
        assert!(ours.0 <= usual.0 * units, "{writers} writers: {ours:?} against {usual:?}");
        assert!(ours.1 <= usual.1, "{writers} writers: {ours:?} against {usual:?}");
    }
}

/// A writer that remembers the item has won last, and begins where the others have to look. It sees that they wait.
#[test]
fn no_writer_is_passed_over_by_those_who_remember_the_item() {
    for way in [By::Update, By::Remembering] {
        for seed in 0..2 {
            let outcome = play::<16>(Load { changes: 50, ..Load::new(way, 8) }, seed);
            assert_eq!((outcome.gave_up, outcome.count), (0, 400), "{way:?}, seed {seed}");
            println!("{way:?}, seed {seed}: mean {:?}, longest {:?}", outcome.mean_time(), outcome.longest());
            assert!(outcome.longest() <= Duration::from_secs(1), "{way:?}, seed {seed}: {:?}", outcome.longest());
        }
    }
}

/// Eight writers make 800 commits a second. An answer that is lost without a sign is missed after 150 ms, when the row has
/// seen 120 more. It remembers the write all the same, because the others remove their own ids once they were answered.
#[test]
fn lost_answers_of_a_busy_item_leave_hardly_any_change_unknown() {
    const SEEDS: u64 = 5;
    type Play = fn(Load, u64) -> Outcome;
    for (remembered, play, most) in [(16, play::<16> as Play, 15), (40, play::<40>, 3)] {
        let load = Load { changes: 50, losses: 0.05, ..Load::new(By::Add, 8) };
        let lossy = (0..SEEDS).map(|seed| play(load, seed)).fold(Outcome::default(), Outcome::and);
        let quiet = play(Load { losses: 0.0, ..load }, 0);
        println!(
            "R = {remembered}: of {} lost answers, {} left the change unknown; {} ids in {SEEDS} rows, {} without losses",
            lossy.lost, lossy.gave_up, lossy.ids, quiet.ids
        );
        assert!(lossy.lost >= 75 && lossy.gave_up <= most, "R = {remembered}");
        let acknowledged = lossy.times.len() as u64;
        assert!((acknowledged..=acknowledged + lossy.gave_up as u64).contains(&lossy.count), "R = {remembered}");
        assert_eq!((quiet.gave_up, quiet.count, quiet.requests), (0, 400, 408), "R = {remembered}");
        assert!(lossy.ids as u64 <= SEEDS * (remembered + 8) && quiet.ids as u64 <= remembered + 8, "a larger row");
    }
}

/// With a window of 32, one round trip admits 32 adds that know the same version. A hundred in step that send again at
/// once need 100 reads and 100 + 68 + 36 + 4 writes, or 3.08 requests each. The pauses save a few of the last ones. The first
/// refusal looks the same for a hundred callers and for a thousand. So most of a thousand fail twice before their first
/// sufficient pause: 1 read, 2 pairs of a stale write and a fresh one, and more.
#[test]
fn callers_add_at_once_at_about_what_the_window_allows_and_with_one_request_where_the_item_is_known() {
    let at_once = |callers, stores| Load { stores, ..Load::new(By::Add, callers) };
    let alone = Load { changes: 100, ..at_once(1, Stores::Warm) };
    let steady = Load { apart: Duration::from_millis(5), ..at_once(2000, Stores::Warm) }; // 200 a second
    for (load, seeds, requests, within) in [
        (at_once(100, Stores::One), 5, 2.8, Duration::from_millis(150)),
        (at_once(1000, Stores::One), 1, 4.0, Duration::from_secs(2)),
        (at_once(100, Stores::Own), 5, 3.1, Duration::from_millis(300)),
        (at_once(1000, Stores::Own), 1, 6.0, Duration::from_secs(4)),
        (alone, 1, 1.0, 2 * HOP),
        (steady, 1, 1.1, 4 * HOP),
    ] {
        for seed in 0..seeds {
            let outcome = play::<64>(load, seed);
            let (each, longest) = (outcome.requests_per_success(), outcome.longest());
            println!("{load:?}, seed {seed}: {each:.3} requests each, mean {:?}, {longest:?}", outcome.mean_time());
            let wanted = load.callers * load.changes;
            let told = (outcome.times.len(), outcome.gave_up, outcome.count);
            assert_eq!(told, (wanted, 0, wanted as u64), "{load:?}, seed {seed}");
            assert!(each <= requests && longest <= within, "{load:?}, seed {seed}: {each:.3}, {longest:?}");
        }
    }
}

/// The decision on the row that the ticket shows is one more, so the third rival comes before the ticket.
#[tokio::test(start_paused = true)]
async fn each_conflict_costs_a_write_a_look_costs_a_read_and_the_second_conflict_costs_a_ticket() {
    for (rivals, goes_at_once, counts, attempts) in
        [(1, true, (1, 2), 2), (1, false, (2, 2), 2), (2, true, (1, 4), 3), (3, true, (1, 4), 3), (4, true, (1, 5), 4)]
    {
        let engine = engine();
        with_accounts(&engine, &["a-1"]).await;
        let table: Table<Account> = Store::new(&engine.client()).with_rng(chance(goes_at_once)).table(TABLE);
        let call = call();
        let made = Cell::new(0);
        let decide = |account: &Account| {
            if made.get() < rivals {
                rival(&engine, "a-1");
            }
            made.set(made.get() + 1);
            add_one(account)
        };
        let updated = table.in_call(&call).update_with_retry("a-1", decide).await.expect("it wins in the end");
        assert_eq!(updated.value.balance, 51 + rivals, "the decision was made again on the current item");
        assert_eq!((engine.take_counts(), call.tally().attempts), (counts, attempts), "{rivals}, {goes_at_once}");
    }
}
