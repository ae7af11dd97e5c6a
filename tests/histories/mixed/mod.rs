//! Histories of one item that another program writes too: for each style of writing, that what `docs/adoption.md` says
//! holds does hold, and that what it says breaks does break.
//!
//! Reading order: [`record`], [`neighbour`] (the other program), [`writer`] (Fencepost), then [`checks`].

use super::history::History;
use super::total::Total;
use crate::harness::engine::{Asked, Engine};
use crate::harness::faults::{Broken, Rates, network_that_breaks};
use crate::harness::off::OffClocks;
use checks::Ended;
use neighbour::Style;
use record::{ANY, KEY, NOBODY, NOTES, TABLE, VERSIONED};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use writer::{Scene, Writer};

mod checks;
mod judged;
mod neighbour;
mod record;
mod writer;

/// Histories in which the `Record` says `OTHERS`, and the other program writes in `Style::ALL[STYLE]`.
struct Mixed<const OTHERS: u8, const STYLE: usize>;

const UPDATES: usize = 0;
const PUTS: usize = 1;
const DELETES: usize = 2;
const RECREATES: usize = 3;
const CLOBBERS: usize = 4;
const PUTS_RAW: usize = 5;
const COPIES_THROUGH: usize = 6;
const OVERWRITES: usize = 7;

/// Whether the writers of Fencepost also create and delete the item.
#[derive(Clone, Copy)]
struct Creates(bool);

impl<const OTHERS: u8, const STYLE: usize> History for Mixed<OTHERS, STYLE> {
    const TABLES: &'static [(&'static str, &'static str)] = &[(TABLE, KEY), (NOTES, KEY)];
    const SAMPLE: u64 = 30;
    type Rule = Creates;
    // Where the other program removes rows, a create may be applied twice, unless versions and values are demanded.
    const NOTHING: Creates = Creates(!matches!(Style::ALL[STYLE], Style::Deletes) || OTHERS == ANY);
    type Ended = Ended;

    async fn play(engine: &Engine, seed: u64, creates: Creates) -> Ended {
        play::<OTHERS>(engine, seed, Style::ALL[STYLE], creates.0).await
    }

    fn violations(_: &Engine, ended: &Ended, _: &[Asked]) -> Vec<String> {
        ended.violations()
    }

    fn judged(ended: &Ended) -> Vec<String> {
        ended.judged()
    }

    fn total(ended: &Ended) -> Total {
        ended.total()
    }

    fn assert_enough_happened(total: &Total) {
        assert!(total["inTransactions"] * 4 > total["histories"], "few transactions landed: {total}");
        let enough = total.least(&["ours", "foreign", "toldApplied"]);
        assert!(enough > total["histories"], "little happened: {total}");
        assert!(total["adoptions"] * 4 > total["histories"], "few rows were adopted: {total}");
        assert!(total["unknown"] > 0 && total["toldNotApplied"] > 0, "something never happened: {total}");
    }
}

async fn play<const OTHERS: u8>(engine: &Engine, seed: u64, style: Style, creates: bool) -> Ended {
    let mut rng = fastrand::Rng::with_seed(seed);
    let rates = rates(&mut rng);
    let (writers, neighbours, turns) = (rng.u64(1..=4), rng.u64(1..=3), rng.u64(3..=9));
    let (hours, begins_foreign) = (rng.u32(..4) == 0, !creates || rng.bool());
    let start = Instant::now();
    let scene = Arc::new(Scene {
        network: network_that_breaks(engine, rates, Broken::Nothing, rng),
        key: format!("tally-{seed}-{OTHERS}-{style:?}-{creates}"),
        hours,
        creates,
        numbers: AtomicU64::new(1),
        start,
        clocks: OffClocks::of(seed, start),
        done: Mutex::default(),
    });
    if begins_foreign {
        neighbour::found(&scene);
    }
    let sweep = tokio::spawn(neighbour::sweep(scene.clone()));
    let mut working = tokio::task::JoinSet::new();
    for client in 0..writers {
        working.spawn(Writer::<OTHERS>::new(&scene, client).work(turns));
    }
    for _ in 0..neighbours {
        working.spawn(neighbour::work(scene.clone(), style, turns));
    }
    working.join_all().await;
    // Until the last copy that was held has arrived.
    sleep(Duration::from_secs(700)).await;
    sweep.abort();
    // Where Fencepost removes rows, versions begin again, and the other program takes a new row for an old one.
    Ended::of(&scene, style, style.is_checked() && OTHERS != ANY)
}

/// How often each thing happens. Tokens are forgotten when ten minutes have passed, and not before. Half of the second copies
/// come when their signature is about to end, which is almost ten minutes after they were sent where a clock is ahead.
fn rates(rng: &mut fastrand::Rng) -> Rates {
    let storm = rng.u32(1..=8);
    let mut rate = |most: u32| rng.u32(0..=most) * storm / 8;
    Rates {
        dropped: rate(60),
        answer_lost: rate(200),
        applied_500: rate(80),
        refused_500: rate(40),
        held: rate(60),
        second_copy: rate(200),
        copied_last: 500,
        throttled: rate(150),
        transaction_conflict: rate(80),
        denied: rate(20),
        frozen: rate(25),
        in_progress: rate(60),
        mismatch: rate(60),
        garbled: rate(100),
        ..Rates::default()
    }
}

#[test]
fn beside_updates_that_demand_the_version_nothing_is_applied_twice_or_lost() {
    Mixed::<VERSIONED, UPDATES>::holds();
}

#[test]
fn beside_puts_that_demand_the_version_nothing_is_applied_twice_or_lost() {
    Mixed::<VERSIONED, PUTS>::holds();
}

#[test]
fn beside_deletes_that_demand_the_version_no_update_is_applied_twice_or_lost() {
    Mixed::<VERSIONED, DELETES>::holds();
}

#[test]
fn with_values_demanded_nothing_is_applied_twice_beside_deletes() {
    Mixed::<ANY, DELETES>::holds();
}

#[test]
fn with_values_demanded_nothing_is_applied_twice_beside_deletes_and_creates_at_the_same_version() {
    Mixed::<ANY, RECREATES>::holds();
}

#[test]
fn with_values_demanded_nothing_is_applied_twice_beside_puts_that_clobber() {
    Mixed::<ANY, CLOBBERS>::holds();
}

#[test]
fn with_values_demanded_nothing_is_applied_twice_beside_updates_that_overwrite() {
    Mixed::<ANY, OVERWRITES>::holds();
}

#[test]
fn with_values_demanded_nothing_is_applied_twice_beside_raw_puts() {
    Mixed::<ANY, PUTS_RAW>::holds();
}

#[test]
fn with_values_demanded_nothing_is_applied_twice_beside_updates_and_puts_that_demand_the_version() {
    Mixed::<ANY, UPDATES>::holds();
    Mixed::<ANY, PUTS>::holds();
}

#[test]
fn a_create_beside_deletes_may_be_applied_twice_where_values_are_not_demanded() {
    Mixed::<VERSIONED, DELETES>::is_noticed(Creates(true), 0..2000, checks::APPLIED_TWICE);
}

#[test]
fn deletes_and_creates_at_the_same_version_break_what_only_demands_versions() {
    Mixed::<VERSIONED, RECREATES>::is_noticed(Creates(true), 0..2000, checks::APPLIED_TWICE);
}

#[test]
fn puts_that_clobber_break_what_only_demands_versions() {
    Mixed::<VERSIONED, CLOBBERS>::is_noticed(Creates(true), 0..2000, checks::LOST_UPDATE);
}

#[test]
fn raw_puts_break_what_only_demands_versions() {
    Mixed::<VERSIONED, PUTS_RAW>::is_noticed(Creates(true), 0..2000, checks::LOST_UPDATE);
}

#[test]
fn copies_of_old_rows_break_what_only_demands_versions_and_undo_changes_whatever_is_demanded() {
    Mixed::<VERSIONED, COPIES_THROUGH>::is_noticed(Creates(true), 0..2000, checks::APPLIED_TWICE);
    Mixed::<ANY, COPIES_THROUGH>::is_noticed(Creates(true), 0..2000, checks::UNDONE);
}

#[test]
fn a_record_that_denies_its_neighbours_tells_them_untruths() {
    Mixed::<NOBODY, DELETES>::is_noticed(Creates(true), 335..2335, checks::DENIED);
}
