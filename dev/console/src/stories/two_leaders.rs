//! A leader stands still for longer than its lease, and wakes up when another leads.

use super::naive::{self, Ended};
use super::scene::{Actor, Answer, Scene, Verdict, request};
use super::{ACKNOWLEDGED, HELD, Setting, Settings, Side, Story, TWICE, Twice, counter, live_rows, were};
use fencepost::Store;
use fencepost_test::Engine;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use tokio::time::sleep;

const LEASES: &str = "Leases";
const CHILDREN: &str = "Children";
const TABLES: &[(&str, &str)] = &[(LEASES, "leaseKey"), (CHILDREN, "childId")];
const LEASE: &str = "controller";
const PARENT: &str = "cluster";
/// How long a leader leads, in seconds.
const TTL: i64 = 10;
/// How long Bob works before he wants the child. Ann was about to create it when she stood still.
const WORK: Duration = Duration::from_secs(3);
/// How long a candidate waits between two attempts to lead.
const PAUSE: Duration = Duration::from_secs(1);

pub const STORY: Story = Story {
    name: "two-leaders",
    title: "Two leaders",
    summary: "Ann leads under a lease of ten seconds. Her process stands still for longer. Bob leads now. Then Ann wakes \
              up and still believes that she leads. Both want to create the one child of a parent.",
    settings: &[Setting::delay("Ann stands still for", 13_000, 60_000, 500), Setting::lost_answers(0)],
    seed: 1,
    sides: &[
        Side {
            id: "naive",
            title: "A lock",
            how: "Whoever holds the lock creates the child. Nothing tells the child that the lock has gone to another.",
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
        ACKNOWLEDGED,
        HELD,
        TWICE,
        counter("fenced", "Fenced", "What a leader of the past tried, and was refused."),
    ],
    twice: Twice::InAll,
};

fn children(engine: &Engine) -> i64 {
    live_rows(engine, CHILDREN)
}

/// Ann stands still as soon as her request to lead has left. Bob comes a second later. `lead` is what both do, with the time
/// that they work before they want the child.
async fn play<'a>(scene: &'a Scene, settings: &Settings, lead: impl AsyncFn(&Actor<'a>, &str, Duration)) {
    let still = Duration::from_millis(settings.get("delay"));
    if !still.is_zero() {
        scene.db().freeze(still).of_writes().on(LEASES).once();
    }
    scene.trouble(settings);
    let [ann, bob] = [0, 1].map(|number| scene.client(number));
    let lead = &lead;
    let ann = scene.db().freezing(async move {
        lead(&ann, "ann", Duration::ZERO).await;
        ann.note("she has done what she believes a leader has to do");
    });
    let bob = async move {
        sleep(PAUSE).await;
        lead(&bob, "bob", WORK).await;
    };
    tokio::join!(ann, bob);
}

async fn leaders(scene: &Scene, settings: &Settings) {
    play(scene, settings, async |actor: &Actor<'_>, name: &str, work: Duration| {
        let token = Box::pin(acquired(actor, name)).await;
        sleep(work).await;
        let app = ensure_child(&actor.store());
        let lease = json!({ "key": LEASE, "token": token });
        let body = json!({ "parentUid": "first", "spec": { "size": 3 }, "lease": lease });
        let wanted = request("PUT /parents/{parentId}/child", PARENT, &body);
        // A leader that is fenced off looks once more: the child may be there by now.
        for _ in 0..20 {
            let answer = Box::pin(actor.ask(&app, ensure_child::handle, &wanted)).await;
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
    let app = lease::App::new(actor.store().leases(LEASES));
    let acquire = request("PUT /leases/{leaseKey}", LEASE, &json!({ "holder": name, "ttlSeconds": TTL }));
    loop {
        let Answer { status, body, .. } = Box::pin(actor.ask(&app, lease::handle, &acquire)).await;
        if status == 201 {
            actor.note(&format!("leads, with token {}", body["token"]));
            return body["token"].clone();
        }
        sleep(PAUSE).await;
    }
}

fn ensure_child(store: &Store) -> ensure_child::App {
    ensure_child::App::new(store.table(CHILDREN), store.leases(LEASES))
}

async fn naive_leaders(scene: &Scene, settings: &Settings) {
    play(scene, settings, async |actor: &Actor<'_>, name: &str, work: Duration| {
        loop {
            let now = seconds(scene);
            let call = actor.begin("take the lock");
            let locked = Box::pin(naive::lock(actor, LEASE, name, now, now + TTL)).await;
            let (outcome, text) =
                if locked == Ended::Acknowledged { ("ok", "leads") } else { ("refused", "somebody else leads") };
            actor.end(call, None, outcome, text);
            if locked == Ended::Acknowledged {
                break;
            }
            sleep(PAUSE).await;
        }
        sleep(work).await;
        let call = actor.begin("create the child");
        let created = Box::pin(naive::create_child(actor, PARENT, name)).await;
        scene.count("acknowledged", i64::from(created == Ended::Acknowledged));
        scene.ledger().tell_counters();
        let (outcome, text) = if created == Ended::Acknowledged { ("ok", "created") } else { ("unknown", "no answer") };
        actor.end(call, None, outcome, text);
    })
    .await;
}

/// Seconds since 1970 by the clock of the story.
fn seconds(scene: &Scene) -> i64 {
    let since = scene.db().now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

fn verdict(scene: &Scene) -> Verdict {
    let fenced = scene.total("fenced");
    match children(scene.engine()) {
        1 if fenced > 0 => Verdict {
            text: format!("One child. {} refused, because it carried an old token.", were(fenced, "request")),
            is_good: true,
        },
        1 => Verdict { text: "One child.".to_owned(), is_good: true },
        count => Verdict { text: format!("{count} children of a parent that must have one."), is_good: false },
    }
}
