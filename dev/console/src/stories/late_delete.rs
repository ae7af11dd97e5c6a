//! A delete comes after its address has gone to another instance.

use super::ledger::{Totals, Twice};
use super::naive::{self, Ended};
use super::scene::{Actor, Scene, Verdict, request};
use super::story::{ACKNOWLEDGED, HELD, Settings, Side, Story, TWICE, counter};
use fencepost_test::Engine;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

const MAPPINGS: &str = "HostToCellMapping";
const TABLES: &[(&str, &str)] = &[(MAPPINGS, "hostIp")];
const IP: &str = "192.0.2.10";
const A: &str = "i-a";
const B: &str = "i-b";
/// When the instances were created. Their clock shows 10:00.
const CREATED_A: &str = "2026-03-07T09:00:00.000Z";
const CREATED_B: &str = "2026-03-07T09:30:00.000Z";
/// When B gets the address, after the delete of A was sent.
const HANDED_ON: Duration = Duration::from_secs(1);
/// When the copy of A's registration arrives, after everything else.
const COPIED_AFTER: Duration = Duration::from_secs(2);

pub const STORY: Story = Story {
    name: "late-delete",
    title: "The late delete",
    summary: "Instance A has an address and is shut down. The message that deletes its mapping waits in a queue. \
              After a second, instance B gets the same address. Then the message arrives, and a late copy of A's \
              registration.",
    settings: Settings { delay: 5000, ..Settings::PLAIN },
    facts: |settings| format!("The message waits for {} s", settings.delay / 1000),
    seeds: &[1, 2, 3],
    lost_answers: &[0, 30],
    sides: &[
        Side {
            id: "naive",
            title: "Put and delete",
            how: "A registration overwrites the mapping of the address. A delete removes it.",
            tables: TABLES,
            held: mappings_of_b,
            play: |scene, settings| Box::pin(async move { naive_hosts(&scene, &settings).await }),
            verdict,
        },
        Side {
            id: "fencepost",
            title: "Fencepost",
            how: "host-mapping and delete-mapping compare creation times: the newest instance wins, in any order of arrival.",
            tables: TABLES,
            held: mappings_of_b,
            play: |scene, settings| Box::pin(async move { hosts(&scene, &settings).await }),
            verdict,
        },
    ],
    clients: |_| ["instance A", "instance B", "queue"].map(str::to_owned).to_vec(),
    counters: &[
        counter("removed", "Taken away", "How often instance B lost its address to something that came late."),
        ACKNOWLEDGED,
        HELD,
        TWICE,
        counter("superseded", "Superseded", "Deletes that came too late, and were told so."),
    ],
    twice: Twice::InAll,
};

fn mappings_of_b(engine: &Engine) -> i64 {
    let row = engine.row(MAPPINGS, "hostIp", IP);
    i64::from(row["instanceId"]["S"] == B && row["_purgeAt"] == Value::Null)
}

/// The actions of each instance and of the queue, in both ways. A copy of A's registration arrives last.
async fn play<'a, R, D>(scene: &'a Scene, settings: &Settings, register: R, delete: D)
where
    R: AsyncFn(&Actor<'a>, &str, &str),
    D: AsyncFn(&Actor<'a>),
{
    let waits = Duration::from_millis(settings.delay);
    scene.db().duplicate(waits.max(HANDED_ON) + COPIED_AFTER).of_writes().on(MAPPINGS).once();
    settings.trouble(scene);
    let [a, b, queue] = [0, 1, 2].map(|number| scene.client(number));
    register(&a, A, CREATED_A).await;
    a.note("a copy of its registration is held up in the network");
    queue.note("A is shut down: the message that deletes its mapping is sent, and waits");
    let handed_on = async {
        sleep(HANDED_ON).await;
        register(&b, B, CREATED_B).await;
    };
    let delivered = async {
        sleep(waits).await;
        delete(&queue).await;
    };
    tokio::join!(handed_on, delivered);
}

async fn hosts(scene: &Scene, settings: &Settings) {
    let register = async |actor: &Actor<'_>, instance: &str, created: &str| {
        let app = functions::host_mapping::App::new(actor.store().lww_table(MAPPINGS));
        let body = json!({ "cellId": "cell-1", "instanceId": instance, "creationTimestamp": created });
        let register = request("PUT /mappings/{hostIp}", IP, &body);
        let answer = Box::pin(actor.ask(&app, functions::host_mapping::register_mapping, &register)).await;
        scene.count("acknowledged", i64::from(answer.is_success()));
        scene.count("superseded", i64::from(answer.outcome == "superseded"));
        scene.ledger().tell_counters();
    };
    let delete = async |actor: &Actor<'_>| {
        let app = functions::delete_mapping::App::new(actor.store().lww_table(MAPPINGS));
        let message = json!({ "hostIp": IP, "instanceId": A, "creationTimestamp": CREATED_A }).to_string();
        // The queue delivers a message again until it succeeds.
        for _ in 0..20 {
            if let Ok(outcome) = Box::pin(actor.deliver(&app, functions::delete_mapping::handle, &message)).await {
                scene.count("acknowledged", 1);
                scene.count("superseded", i64::from(outcome == "superseded"));
                return;
            }
        }
    };
    play(scene, settings, register, delete).await;
}

async fn naive_hosts(scene: &Scene, settings: &Settings) {
    let told = |ended| {
        scene.count("acknowledged", i64::from(ended == Ended::Acknowledged));
        scene.ledger().tell_counters();
        if ended == Ended::Acknowledged { ("ok", "done, it believes") } else { ("unknown", "no answer") }
    };
    let register = async |actor: &Actor<'_>, instance: &str, _: &str| {
        let what = format!("{IP} belongs to {instance}");
        naive::call(actor, &what, told, Box::pin(naive::register(actor, IP, instance))).await;
    };
    let delete = async |actor: &Actor<'_>| {
        naive::call(actor, "a message of the queue", told, Box::pin(naive::delete(actor, IP))).await;
    };
    play(scene, settings, register, delete).await;
}

fn verdict(totals: &Totals) -> Verdict {
    let [superseded, removed] = ["superseded", "removed"].map(|name| totals.get(name));
    let is_good = totals.get("held") == 1;
    let text = match (is_good, superseded) {
        (true, 0) => "The delete came in time. The address belongs to B, and a late copy has changed nothing.",
        (true, _) => {
            "The delete came late and was superseded. The address belongs to B, and a late copy has changed nothing."
        }
        (false, _) if removed > 0 => "B has lost its address to something that came late.",
        (false, _) => "The address does not belong to B.",
    };
    Verdict { text: text.to_owned(), is_good }
}
