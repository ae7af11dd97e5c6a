//! Programs on the bare library die at each await point: work under a lease, waiting for one, a transaction with bare adds.

use super::death::{Estate, Fate, KILLED, Mortal, Seen};
use super::matrix::on_paused_time;
use crate::harness::engine::{Engine, number};
use crate::harness::faults::{Network, Rates, Wire, store_on};
use crate::harness::functions::LEASES;
use fencepost::lease::{LeaseTerms, Leases};
use fencepost::{Add, Error, Reads, Record, Store, Table};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

const REPORTS: &str = "Reports";
const NOTES: &str = "Notes";
const FATES: [Fate; 3] = [Fate::Delivered, Fate::Late, Fate::NeverDelivered];

/// Who has written, in their order; and how much there is.
#[derive(Clone, Debug, Default, Serialize, Deserialize, Record)]
#[record(key = "reportId")]
struct Report {
    writers: Vec<String>,
    left: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(key = "noteId")]
struct Note {
    text: String,
}

struct Trial {
    network: Arc<Network>,
    estate: Arc<Estate>,
    start: Instant,
}

fn terms() -> LeaseTerms {
    LeaseTerms::new(Duration::from_secs(10)).expect("long enough")
}

impl Trial {
    /// A report without writers, with 10 left.
    async fn set(fate: Fate) -> Self {
        let engine =
            Engine::embedded(&[(LEASES, "leaseKey"), (REPORTS, Report::PARTITION_KEY), (NOTES, Note::PARTITION_KEY)]);
        let estate = Arc::new(Estate::new(fate, |_| {}));
        let rng = fastrand::Rng::with_seed(1);
        let network = Network::through(&engine, Rates::default(), rng, Seen(estate.clone()));
        let trial = Trial { network, estate, start: Instant::now() };
        let report = Report { writers: Vec::new(), left: 10 };
        Self::reports(&trial.store(0)).create("r-1", &report).await.expect("a free key");
        trial
    }

    fn store(&self, op: u64) -> Store {
        let wire = Wire::new(&self.network);
        wire.works_on(op);
        let start = self.start;
        let now = move || SystemTime::UNIX_EPOCH + Duration::from_hours(500_000) + start.elapsed();
        store_on(&self.network, &wire.client(), now)
    }

    fn reports(store: &Store) -> Table<Report> {
        store.table(REPORTS)
    }

    fn leases(store: &Store) -> Leases {
        store.leases(LEASES)
    }

    /// Writes the report under the lease, twice, with a pause in which the lease is renewed.
    async fn work(&self, op: u64, name: &str) {
        let store = self.store(op);
        let reports = &Self::reports(&store);
        let work = async |token| {
            let reports = reports.fenced_by(&token);
            for _ in 0..2 {
                let append = |report: &Report| {
                    let mut next = report.clone();
                    next.writers.push(name.to_owned());
                    Ok::<_, Infallible>(Some(next))
                };
                reports.update_with_retry("r-1", append).await.expect("the lease is held");
                sleep(Duration::from_secs(7)).await;
            }
        };
        Self::leases(&store).while_held("job", name, terms(), work).await.expect("a lease that is free");
    }

    /// Waits for the lease, and takes it.
    async fn wait(&self, op: u64, name: &str) {
        let (leases, long) = (Self::leases(&self.store(op)), Duration::from_secs(25));
        leases.acquire_within("job", name, terms(), long).await.expect("it ends before");
    }

    /// Takes 4 and leaves a note, once. The note remembers; the add is bare.
    async fn take(&self, op: u64) -> Result<(), Error<()>> {
        let store = self.store(op);
        let mut reads = Reads::new();
        let note = reads.later("note", &store.table::<Note>(NOTES), "n-1");
        let report = reads.item("report", &Self::reports(&store), "r-1");
        let taken = store.transact_with_retry(reads, |attempt| {
            if attempt.get(note)?.is_some() {
                return Ok(());
            }
            attempt.put_if_absent(note, &Note { text: "taken".to_owned() })?;
            attempt.add(report, &Add::to("left", -4, 0..=10))?;
            Ok(())
        });
        taken.await
    }

    /// Drops the work when it waits for the time after so many. Says whether it died.
    async fn dies(&self, waits: usize, work: impl Future) -> bool {
        let died = Mortal::after(waits, work).await.is_none();
        self.estate.opens();
        while !self.network.is_quiet() {
            sleep(Duration::from_millis(10)).await;
        }
        died
    }

    fn deliver_late(&self) {
        self.estate.deliver_late(&self.network.engine);
    }

    fn row(&self) -> serde_json::Value {
        self.network.engine.row(REPORTS, Report::PARTITION_KEY, "r-1")
    }

    fn writers(&self) -> Vec<String> {
        let writers = self.row()["writers"]["L"].as_array().cloned().unwrap_or_default();
        writers.iter().filter_map(|writer| Some(writer["S"].as_str()?.to_owned())).collect()
    }
}

/// Plays it with one more wait each time, until it does not die any more. Gives how many points there were.
fn at_each_point(play: impl AsyncFn(usize, Fate) -> bool) -> usize {
    let mut points = 0;
    for fate in FATES {
        let mut waits = 0;
        while on_paused_time(play(waits, fate)) {
            waits += 1;
        }
        points += waits;
    }
    points
}

#[test]
fn work_under_a_lease_that_dies_at_any_point_never_writes_after_the_next_holder() {
    let points = at_each_point(async |waits, fate| {
        let trial = Trial::set(fate).await;
        let died = trial.dies(waits, trial.work(KILLED, "one")).await;
        sleep(Duration::from_secs(12)).await;
        trial.work(KILLED + 1, "two").await;
        trial.deliver_late();
        let writers = trial.writers();
        let ones = writers.iter().filter(|writer| *writer == "one").count();
        let is_whole = ones <= 2 && writers[ones..] == ["two", "two"];
        assert!(is_whole, "{fate:?} after {waits} waits: {writers:?}");
        died
    });
    assert!(points > 20, "{points} points");
}

/// The lost lease ends by itself.
#[test]
fn a_wait_for_a_lease_that_dies_at_any_point_keeps_it_from_others_for_one_length_at_most() {
    let points = at_each_point(async |waits, fate| {
        let trial = Trial::set(fate).await;
        let before = Trial::leases(&trial.store(0)).acquire("job", "zero", terms()).await.expect("free");
        let died = trial.dies(waits, trial.wait(KILLED, "one")).await;
        trial.wait(KILLED + 1, "two").await;
        trial.deliver_late();
        let row = trial.network.engine.row(LEASES, "leaseKey", "job");
        assert_eq!(row["holder"]["S"], "two", "{fate:?} after {waits} waits: {row}");
        let first = i64::try_from(before.token().number()).expect("a moment");
        assert!(number(&row, "token") > first, "tokens rise: {row}");
        died
    });
    assert!(points > 6, "{points} points");
}

#[test]
fn a_transaction_with_a_bare_add_that_dies_at_any_point_is_applied_once_when_it_comes_again() {
    let points = at_each_point(async |waits, fate| {
        let trial = Trial::set(fate).await;
        let died = trial.dies(waits, trial.take(KILLED)).await;
        trial.take(KILLED + 1).await.expect("there is enough");
        trial.deliver_late();
        trial.take(KILLED + 2).await.expect("it is there");
        assert_eq!(number(&trial.row(), "left"), 6, "{fate:?} after {waits} waits");
        died
    });
    assert!(points >= 6, "{points} points");
}
