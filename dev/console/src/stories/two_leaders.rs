//! A leader stands still for longer than its lease, and wakes up when another leads.

use super::ledger::{Totals, Twice};
use super::naive::{self, Ended};
use super::scene::{Actor, Answer, Scene, Verdict, request};
use super::story::{ACKNOWLEDGED, HELD, Settings, Side, Story, TWICE, counter, live_rows, were};
use fencepost::{Store, Timestamp};
use fencepost_test::Engine;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

const LEASES: &str = "Leases";
const CHILDREN: &str = "Children";
const TABLES: &[(&str, &str)] = &[(LEASES, "leaseKey"), (CHILDREN, "childId")];
const LEASE: &str = "controller";
const PARENT: &str = "cluster";
/// How long a leader leads, in seconds.
const TTL: i64 = 10;
/// How long Bob works before he creates the child.
const WORK: Duration = Duration::from_secs(4);
/// How long a candidate waits between two attempts to lead.
const PAUSE: Duration = Duration::from_secs(1);

pub const STORY: Story = Story {
    name: "two-leaders",
    title: "Two leaders",
    summary: "Ann leads for ten seconds. She is about to create the one child of a parent, when her process stands still. \
              If that takes longer than her lease, Bob leads. Then Ann wakes up, and still believes that she leads.",
    settings: Settings { delay: 13_000, ..Settings::PLAIN },
    facts: |settings| format!("Ann stands still for {} s", settings.delay / 1000),
    seeds: &[1, 2, 3],
    lost_answers: &[0, 30],
    sides: &[
        Side {
            id: "naive",
            title: "A lock",
            how: "The holder of the lock looks for the child, and creates it if there is none. The lock may be gone by then.",
            tables: TABLES,
            held: children,
            play: |scene, settings| Box::pin(async move { naive_leaders(&scene, &settings).await }),
            verdict,
        },
        Side {
            id: "fencepost",
            title: "Fencepost",
            how: "lease gives each leader a higher token. ensure-child creates the child only under the current token.",
            tables: TABLES,
            held: children,
            play: |scene, settings| Box::pin(async move { leaders(&scene, &settings).await }),
            verdict,
        },
    ],
    clients: |_| ["Ann", "Bob"].map(str::to_owned).to_vec(),
    counters: &[
        TWICE,
        ACKNOWLEDGED,
        HELD,
        counter("fenced", "Fenced", "What a leader of the past tried, and was refused."),
    ],
    twice: Twice::InAll,
};

fn children(engine: &Engine) -> i64 {
    live_rows(engine, CHILDREN)
}

/// Ann comes first, and Bob a second later. `lead` has the actions of both, with the length of their pause or work.
async fn play<'a>(scene: &'a Scene, settings: &Settings, lead: impl AsyncFn(&Actor<'a>, &str, Pause)) {
    settings.trouble(scene);
    let [ann, bob] = [0, 1].map(|number| scene.client(number));
    let still = Duration::from_millis(settings.delay);
    let lead = &lead;
    let ann = scene.db().freezing(async move { lead(&ann, "ann", Pause::StandsStill(still)).await });
    let bob = async move {
        sleep(PAUSE).await;
        lead(&bob, "bob", Pause::Works).await;
    };
    tokio::join!(ann, bob);
}

/// The action of a leader between the look for the child and its creation.
#[derive(Clone, Copy)]
enum Pause {
    /// Its process stands still for so long, as soon as the next request about the child has left.
    StandsStill(Duration),
    Works,
}

impl Pause {
    /// Called right before that request.
    fn stand_still(self, scene: &Scene) {
        if let Pause::StandsStill(time) = self
            && !time.is_zero()
        {
            scene.db().freeze(time).on(CHILDREN).once();
        }
    }

    async fn work(self) {
        if let Pause::Works = self {
            sleep(WORK).await;
        }
    }
}

async fn leaders(scene: &Scene, settings: &Settings) {
    play(scene, settings, async |actor: &Actor<'_>, name: &str, pause: Pause| {
        let token = Box::pin(acquired(actor, name)).await;
        pause.work().await;
        pause.stand_still(scene);
        let app = ensure_child(&actor.store());
        let lease = json!({ "key": LEASE, "token": token });
        let body = json!({ "parentUid": "first", "spec": { "size": 3 }, "lease": lease });
        let wanted = request("PUT /parents/{parentId}/child", PARENT, &body);
        // A leader fenced off looks once more: the child may be there by now.
        for _ in 0..20 {
            let answer = Box::pin(actor.ask(&app, functions::ensure_child::ensure_child, &wanted)).await;
            scene.count("acknowledged", i64::from(answer.is_success()));
            scene.count("fenced", i64::from(answer.outcome == "fenced"));
            scene.ledger().tell_counters();
            if answer.is_success() {
                return;
            }
            sleep(PAUSE).await;
        }
    })
    .await;
}

/// Acquires the lease as soon as it is free. Gives its token.
async fn acquired(actor: &Actor<'_>, name: &str) -> Value {
    let app = functions::lease::App::new(actor.store().leases(LEASES));
    let acquire = request("PUT /leases/{leaseKey}", LEASE, &json!({ "holder": name, "ttlSeconds": TTL }));
    loop {
        let Answer { status, body, .. } = Box::pin(actor.ask(&app, functions::lease::acquire_lease, &acquire)).await;
        if status == 201 {
            actor.note(&format!("leads, with token {}", body["token"]));
            return body["token"].clone();
        }
        sleep(PAUSE).await;
    }
}

fn ensure_child(store: &Store) -> functions::ensure_child::App {
    functions::ensure_child::App::new(store.table(CHILDREN), store.leases(LEASES))
}

async fn naive_leaders(scene: &Scene, settings: &Settings) {
    play(scene, settings, async |actor: &Actor<'_>, name: &str, pause: Pause| {
        let leads = |ended| match ended {
            Ended::Acknowledged => ("ok", "leads"),
            Ended::Refused | Ended::Unknown => ("refused", "somebody else leads"),
        };
        loop {
            let now = seconds(scene);
            let lock = Box::pin(naive::lock(actor, LEASE, name, now, now + TTL));
            if naive::call(actor, "take the lock", leads, lock).await == Ended::Acknowledged {
                break;
            }
            sleep(PAUSE).await;
        }
        let told = |ended| {
            scene.count("acknowledged", i64::from(ended != Ended::Unknown));
            scene.ledger().tell_counters();
            match ended {
                Ended::Acknowledged => ("ok", "created"),
                Ended::Refused => ("ok", "it is there"),
                Ended::Unknown => ("unknown", "no answer"),
            }
        };
        let work = Box::pin(async {
            pause.stand_still(scene);
            if naive::has_child(actor, PARENT).await {
                return Ended::Refused;
            }
            pause.work().await;
            naive::create_child(actor, PARENT).await
        });
        naive::call(actor, "look for the child, and create it if there is none", told, work).await;
    })
    .await;
}

/// Seconds since 1970 by the clock of the story.
fn seconds(scene: &Scene) -> i64 {
    let millis = Timestamp::from(scene.db().now()).epoch_millis().unwrap_or_default();
    i64::try_from(millis / 1000).unwrap_or(i64::MAX)
}

fn verdict(totals: &Totals) -> Verdict {
    let fenced = totals.get("fenced");
    match totals.get("held") {
        1 if fenced > 0 => Verdict {
            text: format!("One child. {} refused because of an old token.", were(fenced, "request")),
            is_good: true,
        },
        1 => Verdict { text: "One child.".to_owned(), is_good: true },
        count => Verdict { text: format!("{count} children of a parent that must have one."), is_good: false },
    }
}
