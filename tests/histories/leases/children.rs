//! Two live leaders are both asked to create the child of one parent. The tests count its children.
//!
//! The first leader is blocked on a slow call while its lease is given back. The second takes over. Then both go on.

use crate::harness::engine::Engine;
use crate::harness::faults::{Broken, Freezing, Network, Rates, Wire, network_that_breaks, store_on};
use crate::harness::functions::LEASES;
use crate::harness::seeds::{asked, asked_seeds};
use crate::histories::scene::{ALL_HAS_ARRIVED, EPOCH, STORM, rates};
use fencepost::http::{Body, Problem, Request};
use fencepost::lease::{Lease, LeaseTerms, Leases};
use fencepost::{Call, Deadline};
use functions::ensure_child::{self, App};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

const CHILDREN: &str = "Children";
const TABLES: &[(&str, &str)] = &[(LEASES, "leaseKey"), (CHILDREN, "childId")];

/// A leader's way to give a parent one child.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    /// Through the function, under the lease.
    UnderTheLease,
    /// Through the function, without a lease.
    ByTheKeyAlone,
}

struct Leader {
    network: Arc<Network>,
    name: String,
    leases: Leases,
    app: App,
}

impl Leader {
    fn new(network: &Arc<Network>, start: Instant, name: &str, ahead: u64) -> Self {
        let ahead = Duration::from_millis(ahead);
        let store = store_on(network, &Wire::new(network).client(), move || {
            SystemTime::UNIX_EPOCH + EPOCH + ahead + start.elapsed()
        });
        let leases = store.leases(LEASES);
        let app = App::new(store.table(CHILDREN), leases.clone());
        let network = network.clone();
        Leader { network, name: name.to_owned(), leases, app }
    }

    async fn pause(&self, millis: u64) {
        sleep(Duration::from_millis(self.network.below(millis))).await;
    }

    async fn leads(&self, key: &str) -> Lease {
        let terms = LeaseTerms::new(Duration::from_secs(10)).expect("long enough");
        loop {
            let within = Duration::from_mins(5);
            if let Ok(lease) = self.leases.acquire_within(key, &self.name, terms, within).await {
                return lease;
            }
        }
    }

    /// Asks until there is an answer. Returns its status.
    async fn ensures(&self, way: Way, parent: &str, lease: &Lease) -> u16 {
        let spec = json!({"pages": 12});
        let body = match way {
            Way::UnderTheLease => {
                let lease = json!({"key": lease.key(), "token": lease.token().number()});
                json!({"parentUid": "uid-1", "spec": spec, "lease": lease})
            }
            Way::ByTheKeyAlone => json!({"parentUid": "uid-1", "spec": spec}),
        };
        let request = Request {
            path_parameters: [("parentId".to_owned(), parent.to_owned())].into(),
            body: Body { text: body.to_string(), is_base64: false },
            ..Request::default()
        };
        loop {
            let call = Call::new(Deadline::within(Duration::from_secs(2)));
            let answer = ensure_child::ensure_child(&self.app, &request, &call).await;
            let status = answer.unwrap_or_else(Problem::into_response).status();
            if status < 500 {
                return status;
            }
            self.pause(200).await;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Outcome {
    children: usize,
    /// The answers to the replaced leader and to its successor.
    statuses: [u16; 2],
}

async fn play(engine: &Engine, seed: u64, way: Way) -> Outcome {
    let mut rng = fastrand::Rng::with_seed(seed);
    let rates = rates(&mut rng, 0..=8, Rates { denied: 0, frozen: 10, tokens_forgotten: 0, unprocessed: 0, ..STORM });
    let ahead = [rng.u64(0..=1000), rng.u64(0..=1000)];
    let (blocked, at_once) = (rng.u64(0..3_000), rng.u32(..4) == 0);
    let network = network_that_breaks(engine, rates, Broken::Nothing, rng);
    let start = Instant::now();
    let [first, second] =
        [("leader-1", ahead[0]), ("leader-2", ahead[1])].map(|(name, ahead)| Leader::new(&network, start, name, ahead));
    let (parent, key) = (format!("parent-{seed}-{way:?}"), format!("lease-{seed}-{way:?}"));

    let held = first.leads(&key).await;
    // Its work is blocked on a slow call. Meanwhile the lease is given back as at the end of the work, or ends by
    // itself.
    let call = Call::new(Deadline::within(Duration::from_secs(2)));
    drop(first.leases.in_call(&call).release_at(held.token(), None).await);
    let taken = second.leads(&key).await;
    let statuses = {
        let one = Freezing::new(&network, async {
            sleep(Duration::from_millis(if at_once { 0 } else { blocked })).await;
            first.ensures(way, &parent, &held).await
        });
        let other = Freezing::new(&network, async {
            sleep(Duration::from_millis(if at_once { 0 } else { 1_000 })).await;
            second.ensures(way, &parent, &taken).await
        });
        let (one, other) = tokio::join!(one, other);
        [one, other]
    };
    sleep(ALL_HAS_ARRIVED).await;
    let applied = network.applied();
    let written = applied.iter().flat_map(|applied| &applied.rows).filter(|touched| touched.step.table == CHILDREN);
    let ids: BTreeSet<_> = written.map(|touched| touched.step.id.clone()).collect();
    let rows = ids.iter().map(|id| engine.row(CHILDREN, "childId", id));
    let mine = |row: &Value| row["parentId"]["S"] == parent.as_str();
    let children = rows.filter(mine).count();
    Outcome { children, statuses }
}

/// The number of histories with each outcome.
fn outcomes(way: Way) -> BTreeMap<Outcome, usize> {
    let seeds = asked_seeds().map_or(0..200, |seeds| seeds.start..seeds.end.min(seeds.start + 1000));
    let engine = Engine::embedded(TABLES);
    let mut outcomes = BTreeMap::new();
    for seed in seeds {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let outcome = runtime.expect("a runtime").block_on(play(&engine, seed, way));
        assert_eq!(outcome.children, 1, "replay with FENCEPOST_SEED={seed}: {outcome:?}");
        *outcomes.entry(outcome).or_default() += 1;
    }
    println!("{way:?}: {outcomes:?}");
    outcomes
}

#[test]
fn two_leaders_make_one_child_under_a_lease() {
    let outcomes = outcomes(Way::UnderTheLease);
    // The first no longer leads: it finds the child or is refused. Only the present leader creates.
    let sound = |outcome: &&Outcome| matches!(outcome.statuses, [200 | 409, 200 | 201]);
    let odd: Vec<_> = outcomes.keys().filter(|outcome| !sound(outcome)).collect();
    assert!(odd.is_empty(), "{odd:?}");
    let came = |status: u16| outcomes.iter().any(|(outcome, times)| outcome.statuses[0] == status && *times > 20);
    assert!(asked("FENCEPOST_SEED").is_some() || (came(200) && came(409)), "{outcomes:?}");
}

#[test]
fn two_leaders_make_one_child_without_a_lease() {
    let outcomes = outcomes(Way::ByTheKeyAlone);
    let sound = |outcome: &&Outcome| matches!(outcome.statuses, [200 | 201, 200 | 201]);
    let odd: Vec<_> = outcomes.keys().filter(|outcome| !sound(outcome)).collect();
    assert!(odd.is_empty(), "{odd:?}");
}
