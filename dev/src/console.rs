//! The console for the tables and functions of the template.

use std::sync::Arc;
use std::time::Duration;

use console::{About, Console, Requests, Tables, WatchedTable};

use crate::{
    args::{Args, Engine},
    dynamodb::DynamoDb,
    failure::Failure,
    template::{Table, Template},
    watch::LOCALHOST,
};

/// The pause between two looks at the tables of the embedded engine.
const PAUSE: Duration = Duration::from_millis(250);
/// The same at another `DynamoDB`, which may charge for it.
const LONG_PAUSE: Duration = Duration::from_secs(2);

/// Makes the console, and looks at the tables as long as somebody watches.
///
/// # Errors
/// The operating system has no random numbers.
pub async fn start(
    args: &Args,
    dynamodb: &DynamoDb,
    template: &Template,
    requests: Arc<Requests>,
) -> Result<Arc<Console>, Failure> {
    let pause = if matches!(args.engine, Engine::Embedded { .. }) { PAUSE } else { LONG_PAUSE };
    let tables = template.tables.iter().map(|table| watched(table, template)).collect();
    let tables = Tables::new(dynamodb.client().await, tables, pause);
    tokio::spawn(tables.clone().look());
    let about = About {
        functions_url: format!("http://{LOCALHOST}:{}", args.port),
        dynamodb: dynamodb.kind.clone(),
        endpoint: dynamodb.endpoint.clone(),
    };
    Console::new(about, tables, requests)
        .map_err(|error| Failure::new(format!("The page gets no token ({error}): the system has no random numbers.")))
}

/// A table, and the functions that have its name in their environment.
fn watched(table: &Table, template: &Template) -> WatchedTable {
    let knows =
        template.functions.iter().filter(|function| function.environment.values().any(|value| *value == table.name));
    WatchedTable {
        name: table.name.clone(),
        key: table.key.iter().map(|attribute| attribute.name.clone()).collect(),
        writers: knows.map(|function| function.name.clone()).collect(),
    }
}
