//! The console for the tables and functions of the template.

use std::sync::Arc;
use std::time::Duration;

use console::{About, Console, Requests, Tables, WatchedTable};

use crate::{
    args::{Args, Engine},
    dynamodb::DynamoDb,
    failure::Failure,
    template::{Permission, Table, Template},
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

/// The actions that write a row.
const WRITES: [&str; 3] = ["dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"];

/// A table, and the functions that may write to it.
fn watched(table: &Table, template: &Template) -> WatchedTable {
    let writes =
        |permission: &Permission| permission.resource == table.name && WRITES.contains(&permission.action.as_str());
    let writers = template.functions.iter().filter(|function| function.permissions.iter().any(writes));
    WatchedTable {
        name: table.name.clone(),
        key: table.key.iter().map(|attribute| attribute.name.clone()).collect(),
        writers: writers.map(|function| function.name.clone()).collect(),
    }
}
