//! `cargo dev restamp`: gives each row of a restored table a new incarnation.

#![allow(clippy::print_stdout, reason = "this is a command-line tool: what it says goes to the terminal")]

use aws_sdk_dynamodb::Client;
use fencepost::Store;
use fencepost::table::{RestampError, Restamped};

use crate::{
    args::{Engine, Restamp},
    dynamodb::DynamoDb,
    failure::Failure,
    tables::reason,
};

/// Counts the rows of the table, or gives each of them a new incarnation. Prints the progress after each page.
///
/// # Errors
/// No DynamoDB answers, it refuses a request, there is no such table, or the table has leases.
pub async fn run(options: &Restamp) -> Result<(), Failure> {
    let client = match options.endpoint.clone() {
        Some(endpoint) => DynamoDb::start(&Engine::Existing { endpoint }).await?.client().await,
        None => DynamoDb::client_of_region().await?,
    };
    let found = restamp(&client, &options.table, options.apply, |found| eprintln!("  {}", rows(found))).await?;
    println!("{}", summary(options, &found));
    Ok(())
}

/// Runs over the whole table. `progress` is told the totals after each page.
///
/// # Errors
/// See [`run`].
pub async fn restamp(
    client: &Client,
    table: &str,
    apply: bool,
    mut progress: impl FnMut(&Restamped),
) -> Result<Restamped, Failure> {
    let key = key_of(client, table).await?;
    let run = Store::new(client).restamp(table, key);
    let mut run = if apply { run } else { run.counting_only() };
    loop {
        let more = run.next_page().await.map_err(|error| ended_early(table, &run.so_far(), &error))?;
        progress(&run.so_far());
        if !more {
            return Ok(run.so_far());
        }
    }
}

/// The names of the attributes that are the key of the table.
async fn key_of(client: &Client, table: &str) -> Result<Vec<String>, Failure> {
    let answer = client.describe_table().table_name(table).send().await;
    let answer = answer.map_err(|error| {
        Failure::new(format!(
            "{table} cannot be described ({}): correct the name, the region or the credentials.",
            reason(&error)
        ))
    })?;
    let elements = answer.table.and_then(|table| table.key_schema).unwrap_or_default();
    Ok(elements.into_iter().map(|element| element.attribute_name).collect())
}

fn ended_early(table: &str, found: &Restamped, error: &RestampError) -> Failure {
    if let RestampError::Leases = error {
        return Failure::new(format!(
            "{table} has leases, and a restored token would be given out twice: start with an empty table instead."
        ));
    }
    Failure::new(format!(
        "The run over {table} ended early ({}), after {}: run it again, it begins at the start.",
        reason(error),
        rows(found)
    ))
}

fn rows(found: &Restamped) -> String {
    let Restamped { live, tombstones, unversioned, .. } = found;
    format!("{live} live rows, {tombstones} tombstones, {unversioned} rows without a version")
}

/// The last lines of a run.
fn summary(options: &Restamp, found: &Restamped) -> String {
    let Restamp { table, apply, .. } = options;
    let mut lines = vec![if *apply {
        format!("{table}: {}. Each live row and each tombstone has a new incarnation.", rows(found))
    } else {
        format!(
            "{table}: {}. Nothing was written. Stop all writers, then add --apply to give each row a new incarnation.",
            rows(found)
        )
    }];
    if found.unversioned > 0 {
        lines.push(
            "Rows without a version are left alone. Mappings have none and need none; other rows are not Fencepost's."
                .to_owned(),
        );
    }
    let Restamped { changed_meanwhile: changed, removed_meanwhile: removed, .. } = found;
    if *changed > 0 {
        lines.push(format!(
            "{changed} rows changed while they were restamped, so somebody writes to the table: stop all writers, then \
             run this again."
        ));
    }
    if *removed > 0 {
        lines.push(format!("{removed} rows were removed meanwhile, as TTL does."));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_only_counts_says_so_and_what_to_do_next() {
        let options = |apply| Restamp { table: "Devices-1".to_owned(), endpoint: None, apply };
        let none = Restamped::default();
        assert!(summary(&options(false), &none).contains("Nothing was written. Stop all writers"));
        let applied = summary(&options(true), &none);
        assert_eq!(applied.lines().count(), 1);
        assert!(applied.contains("has a new incarnation"));
    }

    #[test]
    fn rows_that_were_left_alone_or_changed_are_explained() {
        let options = Restamp { table: "Devices-1".to_owned(), endpoint: None, apply: true };
        let mut found = Restamped::default();
        (found.unversioned, found.changed_meanwhile, found.removed_meanwhile) = (1, 2, 3);
        let said = summary(&options, &found);
        for part in ["left alone", "2 rows changed", "stop all writers", "3 rows were removed"] {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn a_table_of_leases_is_refused_with_what_to_do_instead() {
        let failure = ended_early("Leases", &Restamped::default(), &RestampError::Leases);
        assert!(failure.to_string().contains("start with an empty table"), "{failure}");
    }
}
