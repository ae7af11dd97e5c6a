//! A client of a program, and its notes.

use super::catalog::{Row, item_of, key_of};
use super::plan::{self, Change, Task};
use super::records::Subject;
use super::told::{Belief, Decision, Does, Note, SKEW, Shown};
use super::values::Draw;
use crate::histories::scene::{self, with_few_attempts};
use fencepost::lease::{Lease, Leases};
use fencepost::{Call, ItemVersion, Key, Store, Table};
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

pub type Scene = scene::Scene<Own, Note>;

/// The versions that a decision makes.
pub type Made = Vec<(Row, ItemVersion)>;

pub const LEASES: &str = "PlayLeases";
/// The key of the tables of leases and of records, which is not the usual one.
pub const KEY_NAME: &str = "pk";
pub const LEADERS: &str = "PlayLeaders";
pub const RECORDS: &str = "PlayRecords";

/// The state that the clients of a program share.
#[derive(Default)]
pub struct Own {
    /// The number of the next decision. No two have the same one.
    pub decisions: AtomicU64,
    /// The whole value that a decision leaves in a row.
    pub values: Mutex<HashMap<(Row, u64), Box<dyn Any + Send>>>,
    /// How often each operation and option was played.
    pub played: Mutex<BTreeMap<&'static str, usize>>,
    pub beliefs: Mutex<Vec<Belief>>,
    /// The requests of which observers were told.
    pub observed: AtomicU64,
    /// Whether leases are taken as soon as they have ended by the taker's clock.
    pub has_no_skew: bool,
}

impl Own {
    pub fn plays(&self, name: &'static str) {
        *self.played.lock().expect("no panic").entry(name).or_default() += 1;
    }
}

/// The notes on one operation while it is under way.
pub struct Noted<'a> {
    pub own: &'a Own,
    /// The name of its scene, which is in the keys of its items.
    pub scene: &'a str,
    pub decisions: Mutex<Vec<Decision>>,
    pub is_odd: Mutex<bool>,
}

impl Noted<'_> {
    pub fn next(&self) -> u64 {
        1_000 + self.own.decisions.fetch_add(1, Relaxed)
    }

    pub fn decided(&self, id: u64, looks: Vec<Shown>, does: Vec<(Row, Does)>) {
        self.decisions.lock().expect("no panic").push(Decision { id, looks, does });
    }

    /// The item of this value, which a decision leaves.
    pub fn made<T: Subject>(&self, row: Row, value: &T) -> Does {
        self.own.values.lock().expect("no panic").insert((row, value.by()), Box::new(value.clone()));
        item_of(value).map_or(Does::Impossible, Does::Write)
    }

    pub fn drawn<T: Subject>(&self, row: Row, seed: u64, by: u64) -> T {
        let mut draw = Draw::of(key_of(row, self.scene).0, seed);
        let value = T::drawn(&mut draw);
        *self.is_odd.lock().expect("no panic") |= draw.is_odd;
        value.with(by, draw.small())
    }

    pub fn changed<T: Subject>(&self, row: Row, change: Change, now: &T, by: u64) -> T {
        match change.draw {
            Some(seed) => self.drawn(row, seed, by),
            None => now.clone().with(by, u32::try_from(by % 12).expect("small")),
        }
    }
}

/// A store over a client, which counts what its observer is told.
pub fn observed(client: &scene::Client<Own, Note>) -> Store {
    client.scene.plays("Store::with_observer");
    let own = client.scene.clone();
    client.open().with_observer(move |seen| {
        own.observed.fetch_add(u64::from(seen.requests), Relaxed);
    })
}

/// One client at work.
pub struct Player {
    pub client: scene::Client<Own, Note>,
    pub store: Store,
    pub remembers: bool,
    pub is_older: bool,
    pub known: Mutex<BTreeMap<Row, ItemVersion>>,
    pub lease: Mutex<Option<Lease>>,
}

impl Player {
    pub fn new(scene: &Arc<Scene>, number: u64, of: &plan::Client) -> Self {
        let client = scene::Client::new(scene, &scene.network, number);
        let store = observed(&client);
        scene.plays("Store::with_time_limit");
        let store = store.with_time_limit(Duration::from_secs(30));
        let store = if of.few_attempts { store.with_policy(with_few_attempts()) } else { store };
        let plan::Client { remembers, is_older, .. } = *of;
        Player { client, store, remembers, is_older, known: Mutex::default(), lease: Mutex::default() }
    }

    pub fn table<T: Subject>(&self, task: &Task, call: &Call) -> Table<T> {
        let plays = |name| self.client.scene.plays(name);
        plays("Store::table");
        let mut table = self.store.table::<T>(T::TABLE);
        if self.remembers {
            plays("Table::remembering_items");
            table = table.remembering_items();
        }
        if self.client.number == 1 {
            plays("Table::with_tombstone_retention");
            table = table.with_tombstone_retention(Duration::from_hours(1));
        }
        if let (true, Some(lease)) = (task.is_fenced, &*self.lease.lock().expect("no panic")) {
            plays("Table::fenced_by");
            table = table.fenced_by(lease.token());
        }
        plays("Table::in_call");
        table.in_call(call)
    }

    pub fn key(&self, row: Row) -> Key {
        key_of(row, &self.client.scene.name).0
    }

    /// By how many milliseconds the clock is ahead.
    pub fn ahead(&self) -> i64 {
        self.client.clock.ahead()
    }

    pub fn leases(&self, call: &Call) -> Leases {
        let skew = if self.client.scene.has_no_skew { Duration::ZERO } else { SKEW };
        self.store.leases(LEASES).with_key_name(KEY_NAME).with_clock_skew(skew).in_call(call)
    }

    /// Believes in the lease from now on, for as long as it says.
    pub fn believes(&self, token: u64, remaining: Duration, ahead: i64) {
        let (from, client) = (Instant::now(), self.client.number);
        let belief = Belief { client, token, from, until: from + remaining, ahead };
        self.client.scene.beliefs.lock().expect("no panic").push(belief);
    }

    pub fn stops_believing(&self, token: u64) {
        for belief in self.client.scene.beliefs.lock().expect("no panic").iter_mut() {
            if (belief.client, belief.token) == (self.client.number, token) {
                belief.until = belief.until.min(Instant::now());
            }
        }
    }

    pub fn known(&self, row: Row) -> Option<ItemVersion> {
        self.known.lock().expect("no panic").get(&row).copied()
    }
}
