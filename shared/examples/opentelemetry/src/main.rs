//! Hands the spans of `fencepost` to OpenTelemetry. This program prints them: an operation, and in it the two sends of a
//! write with a lost first answer. A service gives the provider another exporter, such as that of `opentelemetry-otlp`, with
//! `with_batch_exporter`.
//!
//! ```sh
//! cargo run
//! ```

use fencepost::{Record, Store, Table};
use fencepost_test::Dynamo;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use serde::{Deserialize, Serialize};
use std::error::Error;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

#[derive(Serialize, Deserialize, Record)]
#[record(key = "accountId")]
struct Account {
    balance: u64,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    let provider =
        SdkTracerProvider::builder().with_simple_exporter(opentelemetry_stdout::SpanExporter::default()).build();
    let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("accounts"));
    let ours = ["fencepost::operation", "fencepost::send"].map(|target| (target, Level::DEBUG)); // at each level of the log
    tracing_subscriber::registry().with(spans.with_filter(Targets::new().with_targets(ours))).init();

    let db = Dynamo::new();
    db.create_table("Accounts", "accountId");
    db.lose_answer().of("PutItem").once();
    let accounts: Table<Account> = Store::new(&db.client()).table("Accounts");
    accounts.create("a-1", &Account { balance: 100 }).await?;
    Ok(provider.shutdown()?)
}
