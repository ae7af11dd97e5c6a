//! Runs of the tool `fencepost`, in process.

use aws_sdk_dynamodb::Client;
use fencepost::maintenance::{Found, Task};
use fencepost_cli::Failure;
use fencepost_cli::args::{Target, Whole};
use fencepost_cli::run::run_on;
use fencepost_cli::table::Table;

/// The options for this task on this table, all others at their defaults.
pub fn options(table: &str, task: Task, write: bool) -> Whole {
    let target = Target { table: table.to_owned(), json: true, ..Target::default() };
    Whole { target, task, write, rate: None, state: None, problems_only: false }
}

/// Goes over the whole table through this client, as the command does.
pub async fn run_over(client: &Client, table: &str, task: Task, write: bool) -> Result<Found, Failure> {
    run_with(client, &options(table, task, write)).await.map(|(found, _)| found)
}

/// The same with these options. Gives the output too.
pub async fn run_with(client: &Client, options: &Whole) -> Result<(Found, String), Failure> {
    let table = Table::described_by(client.clone(), &options.target.table).await?;
    let mut out = Vec::new();
    let found = run_on(&table, options, &mut out, |_| {}).await?;
    Ok((found, String::from_utf8(out).expect("text")))
}
