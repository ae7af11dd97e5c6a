//! The limit that throttles a request, as the caller, the log and the metric name it.

use super::accounts::{Account, TABLE};
use crate::harness::emf::Metrics;
use crate::harness::engine::store;
use crate::harness::events::{Event, load};
use crate::harness::functions::{DEVICES, environment_of};
use crate::harness::world::context;
use fencepost::testing::{Reporter, answer_request};
use fencepost::{Call, Deadline, Error, Reads, Store, Table, ThrottlingLimit};
use fencepost_test::{Capacity, Dynamo};
use functions::device_state;
use functions::function::Event as Start;
use lambda_runtime::{Config, LambdaEvent};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// The time of a call.
const ALLOWED: Duration = Duration::from_secs(5);

const NAMESPACE: &str = "Tests";

/// A store with a client of its own and chance from the seed.
fn store_on(db: &Dynamo) -> Store {
    let (now, chance) = (db.clone(), db.clone());
    store(&db.client(), move || now.now(), move || chance.random())
}

fn soon() -> Call {
    Call::new(Deadline::within(ALLOWED))
}

/// The log line of `device-state` about this event.
async fn line_of_device_state(store: &Store, event: &Event) -> Value {
    let Start::Http { start, .. } = &device_state::FUNCTION.event else { panic!("it has routes") };
    let router = start(store, &environment_of(device_state::FUNCTION.name)).expect("the environment of template.yaml");
    let (written, lines) = channel();
    let reporter = Reporter::to(NAMESPACE, move |line| written.send(line).expect("it is read"));
    let mut context = context(ALLOWED);
    context.env_config = Arc::new(Config { function_name: "device-state".to_owned(), ..Config::default() });
    let event = LambdaEvent::new(to_raw_value(&event.0).expect("JSON"), context);
    answer_request(&router, event, None, &reporter).await.expect("an event of the API");
    serde_json::from_str(&lines.recv().expect("a line")).expect("JSON")
}

#[tokio::test(start_paused = true)]
async fn the_limit_that_throttles_is_named_to_the_caller_in_the_log_and_in_the_metric() {
    type Exhausted = fn(&str) -> Capacity;
    let limits: [(Exhausted, _, _); 4] = [
        (|_| Capacity::of_items(), ThrottlingLimit::KeyRange, "key_range"),
        (|_| Capacity::of_account(), ThrottlingLimit::Account, "account"),
        (|table| Capacity::on_demand(table, 0.0, 0.0), ThrottlingLimit::TableMaximum, "table_maximum"),
        (|table| Capacity::provisioned(table, 0.0, 0.0), ThrottlingLimit::Provisioned, "provisioned"),
    ];
    for (exhausted, limit, name) in limits {
        let db = Dynamo::with_seed(9);
        db.create_table(TABLE, "accountId");
        db.create_table(DEVICES, "deviceId");
        for table in [TABLE, DEVICES] {
            db.capacity(exhausted(table).with_units(40_000.0, 0.0));
        }
        let store = store_on(&db);
        let table: Table<Account> = store.table(TABLE);

        let call = soon();
        let failed = table.in_call(&call).create("a-3", &Account { balance: 0 }).await.expect_err("throttled");
        let Error::Failed(failure) = failed else { panic!("{name}: {failed}") };
        assert_eq!(failure.throttling_limit(), Some(limit), "{name}: {failure:?}");
        assert_eq!((call.tally().throttling_limit, call.tally().throttled > 1), (Some(limit), true), "{name}");

        let (call, mut reads) = (soon(), Reads::new());
        let both = ["a-4", "a-5"].map(|id| reads.item(id, &table, id));
        let store = store.in_call(&call);
        let failed = store.transact_with_retry(reads, |attempt| {
            both.iter().try_for_each(|account| attempt.put_if_absent(*account, &Account { balance: 0 }).map(drop))?;
            Ok::<_, Error>(())
        });
        let Error::Failed(failure) = failed.await.expect_err("throttled");
        assert_eq!(failure.throttling_limit(), Some(ThrottlingLimit::Unnamed), "{name}: it was cancelled: {failure:?}");
        assert_eq!(call.tally().throttling_limit, Some(ThrottlingLimit::Unnamed), "{name}");

        let line = line_of_device_state(&store_on(&db), &load("device-state-create")).await;
        assert_eq!((&line["status"], &line["throttling_limit"]), (&json!(503), &json!(name)));
        let error = line["error"].as_str().expect("a 503 has an error");
        assert!(error.contains(&format!("{limit} (arn:")) && error.contains(":table/Devices)"), "{name}: {error}");
        let sent = Metrics::read(std::slice::from_ref(&line), NAMESPACE);
        assert_eq!(sent.sum("throttled", &[("throttling_limit", name)]), sent.sum("throttled", &[]), "{name}");
        assert!(sent.sum("throttled", &[]) > 1, "{name}: {line}");

        db.capacity(exhausted(TABLE).with_units(0.0, 40_000.0));
        let call = soon();
        let failure = table.in_call(&call).get("a-1").await.expect_err("throttled");
        let said = (failure.throttling_limit(), call.tally().throttling_limit, call.tally().throttled > 1);
        assert_eq!(said, (Some(limit), Some(limit), true), "{name}, a read: {failure:?}");
    }
}
