//! The process dies at each of its await points. Then the same event comes again.
//!
//! A function is a future. It is dropped at its first, second, third … `Pending`, until it completes. Each case of the
//! matrix is one route with one way to ask, on an item in one state.

use crate::harness::events::{Event, sample};
use crate::harness::functions::{Alone, Devices, Functions, Leasing, Mappings, Shop, alone};
use crate::harness::states::bury;
use crate::harness::world::World;
use case::{Case, Given, How, Killed, Promise, Said};
use devices::asked;
use functions::operation::{IdempotencyKey, Operation};
use std::fmt;
use std::ops::AddAssign;
use trial::{Breaks, Changes, Dump, Fate, Trial};

pub mod case;
mod devices;
mod leases;
mod mappings;
mod noticed;
mod shop;
mod trial;

#[test]
fn a_device_survives_a_death_at_each_await_point() {
    hold::<Devices>();
}

#[test]
fn stock_and_orders_survive_a_death_at_each_await_point() {
    hold::<Shop>();
}

#[test]
fn a_mapping_survives_a_death_at_each_await_point() {
    hold::<Mappings>();
}

#[test]
fn a_lease_and_a_child_survive_a_death_at_each_await_point() {
    hold::<Leasing>();
}

/// Names the deep run.
const CRASHES: &str = "FENCEPOST_CRASHES";

/// How often the event comes in all.
const INVOCATIONS: usize = 3;

/// The results of three invocations if none dies.
pub struct Undisturbed {
    /// The answer to each.
    said: Vec<Said>,
    /// The tables before the first and after each.
    dumps: Vec<Dump>,
    /// The changes until then.
    changes: Vec<Changes>,
}

/// The results of a case.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Await points, and the moment after the last one.
    pub points: usize,
    pub deaths: usize,
    /// Those after which the change of the dead process was applied.
    pub applied: usize,
    /// Those followed by an invocation that found this change.
    pub found: usize,
    /// Those after which an acknowledged change was missing.
    pub lost: usize,
    /// Those after which there were more effects than the case promises.
    pub doubled: usize,
    /// Those after which an answer or the tables are not as some number of undisturbed invocations leaves them.
    pub other: usize,
    /// The first of the last three.
    pub why: Option<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { points, deaths, applied, found, lost, doubled, other, .. } = self;
        write!(f, "{points:6} {deaths:6} {applied:7} {found:5} {lost:4} {doubled:7} {other:5}")
    }
}

impl AddAssign<&Self> for Tally {
    fn add_assign(&mut self, other: &Self) {
        self.points += other.points;
        self.deaths += other.deaths;
        self.applied += other.applied;
        self.found += other.found;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.other += other.other;
    }
}

impl Undisturbed {
    pub async fn of<F: Killed>(case: &Case) -> Self {
        let (trial, event) = Trial::set::<F>(case, Fate::Delivered, |_| {}).await;
        let (mut said, mut dumps, mut changes) = (Vec::new(), vec![trial.dump()], vec![trial.changes()]);
        for invocation in 0..INVOCATIONS {
            said.push(trial.invoke::<F>(&event, u64::try_from(invocation).expect("few")).await);
            dumps.push(trial.dump());
            changes.push(trial.changes());
        }
        Undisturbed { said, dumps, changes }
    }

    /// Asserts the answers and the promise of the case.
    fn assert_as_promised(&self, case: &Case) {
        let said: Vec<_> = self.said.iter().map(|said| said.text.as_str()).collect();
        let [first, then] = case.answers;
        assert_eq!(said, [first, then, then], "{case}");
        assert_eq!(self.promise(case), case.promise, "{case}: which invocations change something");
    }

    /// The promise shown by these invocations.
    pub fn promise(&self, case: &Case) -> Promise {
        let effects: Vec<_> = self.dumps.windows(2).map(|pair| pair[0] != pair[1]).collect();
        match effects.as_slice() {
            [true, false, false] => Promise::Once,
            [true, true, true] => Promise::Each,
            [false, false, false] => Promise::Nothing,
            _ => panic!("{case}: the invocations change something: {effects:?}"),
        }
    }
}

/// Plays one case with one death at each point, with each of these fates, and with a rule broken.
pub async fn play<F: Killed>(case: &Case, undisturbed: &Undisturbed, fates: &[Fate], breaks: Breaks) -> Tally {
    let mut tally = Tally::default();
    for fate in fates {
        let mut waits = 0;
        while die::<F>(case, undisturbed, (waits, *fate, breaks), &mut tally).await {
            waits += 1;
        }
        tally.points = waits + 1;
    }
    tally
}

/// One death and the two invocations after it. Gives whether the process died before it was done.
async fn die<F: Killed>(
    case: &Case,
    undisturbed: &Undisturbed,
    (waits, fate, breaks): (usize, Fate, Breaks),
    tally: &mut Tally,
) -> bool {
    let (trial, event) = Trial::set::<F>(case, fate, breaks).await;
    let died = trial.kill::<F>(case, &event, waits).await;
    // A part of the batch may be done.
    let left_behind = trial.changes();
    let mut done = usize::from(left_behind == undisturbed.changes[1] && case.promise != Promise::Nothing);
    let is_applied = done == 1;
    let mut said = Vec::new();
    let mut wrong = Vec::new();
    for invocation in 1..3 {
        said.push(trial.invoke::<F>(&event, invocation).await);
        if said.last() != Some(&undisturbed.said[done]) {
            wrong.push(format!("it was answered {:?}, not {:?}", said.last(), undisturbed.said[done]));
        }
        done += 1;
        check(&trial, (undisturbed, done), &mut wrong);
        if invocation == 1 {
            trial.deliver_late::<F>().await;
            let is_applied_late = trial.dump() != undisturbed.dumps[done];
            done += usize::from(case.promise == Promise::Each && is_applied_late);
            check(&trial, (undisturbed, done), &mut wrong);
        }
    }
    let changes = trial.changes();
    let once = &undisturbed.changes[1];
    let per_row = |acknowledged: usize| if case.promise == Promise::Each { acknowledged } else { acknowledged.min(1) };
    let acknowledged = per_row(said.iter().filter(|said| said.is_success).count());
    let changed = |row| changes.get(row).copied().unwrap_or_default();
    let is_lost = once.iter().any(|(row, each)| changed(row) < each * acknowledged);
    let most = |row| once.get(row).copied().unwrap_or_default() * per_row(INVOCATIONS);
    let is_doubled = changes.iter().any(|(row, count)| *count > most(row));
    tally.deaths += 1;
    tally.applied += usize::from(is_applied);
    tally.found += usize::from(is_applied && said[0] == undisturbed.said[1]);
    tally.lost += usize::from(is_lost);
    tally.doubled += usize::from(is_doubled);
    tally.other += usize::from(!wrong.is_empty());
    if is_lost || is_doubled || !wrong.is_empty() {
        let why = format!("{case}: {fate:?} after {waits} waits: {wrong:#?}\nchanged: {changes:?}\nonce: {once:?}");
        tally.why.get_or_insert(why);
    }
    died
}

/// The tables are as so many undisturbed invocations leave them.
fn check(trial: &Trial, (undisturbed, done): (&Undisturbed, usize), wrong: &mut Vec<String>) {
    let (found, expected) = (trial.dump(), &undisturbed.dumps[done]);
    if found != *expected {
        wrong.push(format!("the tables are {found:#?}, not {expected:#?}"));
    }
}

/// Plays all cases of these functions, prints the matrix, and asserts the promise of each case.
pub fn hold<F: Killed>() {
    let all = [Fate::Delivered, Fate::Late, Fate::NeverDelivered];
    let is_deep = std::env::var(CRASHES).is_ok_and(|asked| asked == "all");
    let fates = if is_deep { &all[..] } else { &all[..2] };
    let (mut found, mut all_cases) = (Vec::new(), Tally::default());
    println!("{:14} {:57} points deaths applied found lost doubled other", "function", "route");
    for case in F::CASES {
        let tally = on_paused_time(async {
            let undisturbed = Undisturbed::of::<F>(case).await;
            undisturbed.assert_as_promised(case);
            play::<F>(case, &undisturbed, fates, |_| {}).await
        });
        println!("{:14} {case} {tally}", F::name_of(case.route));
        assert!(tally.points >= 2, "{case} has a point before its end");
        assert!(tally.applied > 0 || case.promise == Promise::Nothing, "{case}: its change is applied at some point");
        all_cases += &tally;
        found.extend(tally.why);
    }
    println!("{:14} {:57} {all_cases}", "", "in all");
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// Runs it by itself, under paused time.
pub fn on_paused_time<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(work)
}

const ID: &str = "one";

impl Killed for Alone {
    const CASES: &'static [Case] = &[];

    async fn prepare(world: &World<Self>, case: &Case) -> Event {
        if case.given != Given::Absent {
            let routes = functions::ALL.iter().find(|known| Self::names() == [known.name]).expect("one").routes();
            let create = routes.iter().find(|route| route.at.starts_with("PUT ") || route.at.starts_with("POST "));
            let created = world.send(&sample(create.expect("a route that creates").at, ID)).await;
            assert!(created.status < 300, "{created:?}");
        }
        for (table, key) in Self::tables() {
            if case.given == Given::Tombstone && !world.engine.row(table, key, ID)["_version"].is_null() {
                bury(&world.engine, table, ID);
            }
        }
        asked(sample(case.route, ID), case.how, "")
    }

    fn name_of(_: &str) -> &'static str {
        Self::names()[0]
    }
}

/// The cases of a route.
pub fn cases_of(route: &Operation) -> Vec<Case> {
    let hows = if route.key == IdempotencyKey::Honoured { &[How::Plain, How::Keyed][..] } else { &[How::Plain] };
    let given = [Given::Absent, Given::Present, Given::Tombstone];
    let case = |given, how| Case { route: route.at, given, how, promise: Promise::Nothing, answers: ["", ""] };
    given.into_iter().flat_map(|given| hows.iter().map(move |how| case(given, *how))).collect()
}

#[test]
fn a_function_by_itself_survives_a_death_at_each_await_point() {
    for function in alone() {
        Alone::is(function);
        let (mut changes, mut wrong) = (0, Vec::new());
        for route in function.routes().into_iter().filter(|route| route.key != IdempotencyKey::Ignored) {
            for mut case in cases_of(&route) {
                let tally = on_paused_time(async {
                    let undisturbed = Undisturbed::of::<Alone>(&case).await;
                    case.promise = undisturbed.promise(&case);
                    play::<Alone>(&case, &undisturbed, &[Fate::Delivered, Fate::Late], |_| {}).await
                });
                changes += usize::from(case.promise != Promise::Nothing && tally.applied > 0);
                wrong.extend(tally.why);
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
        assert!(changes > 0, "events/: no event of {} changes anything", function.name);
    }
}
