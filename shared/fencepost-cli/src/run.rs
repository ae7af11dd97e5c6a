//! Explains one row, or goes over all rows of a table.

use crate::args::{Checked, Format, Row, Target, Whole};
use crate::say::{row_as_json, row_as_text, rows, summary, summary_as_json};
use crate::state::State;
use crate::table::{self, Table};
use crate::{Failure, reason};
use aws_sdk_dynamodb::Client;
use fencepost::maintenance::{Explained, Found, Position, Run, Task, WrongTable, explain, explain_instance};
use fencepost::{Error, Store, from_sdk, to_sdk};
use std::io::Write;

/// Checks a table, or prints it. `client` is made only for a check.
///
/// # Errors
/// There is no region, no answer from DynamoDB, the table lacks what it must have, or the output cannot be written.
pub async fn check(
    options: &Checked,
    client: impl Future<Output = Result<Client, Failure>>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let (table, schema) = (&options.table, options.schema());
    Ok(match options.print {
        Some(Format::Cloudformation) => write!(out, "{}", schema.to_cloudformation(table)),
        Some(Format::Terraform) => write!(out, "{}", schema.to_terraform(table)),
        None => {
            let checked = Store::new(&client.await?).check_table(table, &schema).await;
            checked.map_err(|error| match error {
                Error::Refused(differences) => Failure::new(differences.to_string()),
                Error::Failed(failure) => Failure::new(format!("{table} cannot be checked: {failure}.")),
            })?;
            writeln!(out, "{table} has the key and the TTL that were asked for.")
        }
    }?)
}

/// Explains one row.
///
/// # Errors
/// The table or the row is not there, or the output cannot be written.
pub async fn explain_row(options: &Row, out: &mut impl Write) -> Result<(), Failure> {
    let Target { table: name, json, .. } = &options.target;
    let table = Table::find(&options.target).await?;
    let key = table.key(&options.key)?;
    let read =
        table.client.get_item().table_name(name).set_key(Some(to_sdk(key.clone()))).consistent_read(true).send().await;
    let read = read.map_err(|error| Failure::new(format!("The row cannot be read: {}.", reason(&error))))?;
    let attributes = read.item.map(from_sdk).ok_or_else(|| {
        Failure::new(format!(
            "{name} has no row {}: no item was ever there, or its tombstone is gone.",
            table::to_json(&key)
        ))
    })?;
    let now = Store::new(&table.client).now();
    let explanation = match options.target.instances[..] {
        [ordered_by, named_by] => explain_instance(&attributes, [ordered_by, named_by], now),
        _ => explain(&attributes, options.target.settings(), now),
    };
    say_row(&Explained { key, explanation }, *json, out)
}

/// Goes over all rows of a table. `progress` gets a line after each page.
///
/// # Errors
/// The table is not there, a request is refused, the task does not fit the table, or the output cannot be written.
pub async fn whole_table(options: &Whole, out: &mut impl Write, progress: impl FnMut(&str)) -> Result<(), Failure> {
    let table = Table::find(&options.target).await?;
    run_on(&table, options, out, progress).await.map(|_| ())
}

/// The same on a table found before. Returns the counts.
///
/// # Errors
/// See [`whole_table`].
pub async fn run_on(
    table: &Table,
    options: &Whole,
    out: &mut impl Write,
    mut progress: impl FnMut(&str),
) -> Result<Found, Failure> {
    let state = options.state.as_ref().map(|file| State::of(options, file, table.id.as_deref()));
    let mut run = prepared(table, options);
    if let Some((after, found)) = state.as_ref().map(State::read).transpose()?.flatten() {
        progress(&format!("goes on after {}", table::to_json(&after)));
        run = run.continuing(after, found);
    }
    loop {
        let page = run.next_page().await.map_err(|error| ended_early(options, &run, &error))?;
        let Some(page) = page else { break };
        for row in page {
            if !options.problems_only || !row.explanation.problems.is_empty() {
                say_row(&row, options.target.json, out)?;
            }
        }
        // Lines written before the place is kept are repeated after an interruption. So none is left out.
        out.flush()?;
        if let (Some(state), Position::After(key)) = (&state, run.position()) {
            state.keep(key, run.so_far())?;
        }
        progress(&rows(options.task, &run.so_far()));
    }
    state.as_ref().map_or(Ok(()), State::end)?;
    if options.target.json {
        writeln!(out, "{}", summary_as_json(options, &run.so_far()))?;
    } else {
        writeln!(out, "{}", summary(options, &run.so_far()))?;
    }
    Ok(run.so_far())
}

fn prepared(table: &Table, options: &Whole) -> Run {
    let Whole { target, task, write, rate, .. } = options;
    let mut run = Store::new(&table.client).maintain(*task, &target.table, table.key).with_settings(target.settings());
    if let [ordered_by, named_by] = target.instances[..] {
        run = run.of_instances([ordered_by, named_by]);
    }
    if let Some(rate) = rate {
        run = run.paced(*rate);
    }
    if *write { run } else { run.counting_only() }
}

fn say_row(row: &Explained, as_json: bool, out: &mut impl Write) -> Result<(), Failure> {
    if as_json {
        writeln!(out, "{}", row_as_json(row))?;
    } else {
        writeln!(out, "{}", row_as_text(row))?;
    }
    Ok(())
}

fn ended_early(options: &Whole, run: &Run, error: &Error<WrongTable>) -> Failure {
    let Whole { target, task, state, .. } = options;
    let table = &target.table;
    match (error, task) {
        (Error::Refused(WrongTable::Leases), Task::Restamp) => Failure::new(format!(
            "{table} has leases, and a restored token would be given out twice: start with an empty table instead."
        )),
        (Error::Refused(WrongTable::Leases), _) => {
            Failure::new(format!("{table} has leases, which have no version: leave it as it is."))
        }
        (Error::Refused(WrongTable::Mappings), _) => Failure::new(format!(
            "{table} has rows of which the newest instance wins. They have no version: leave it as it is."
        )),
        _ => {
            let again = if state.is_some() { "it goes on where it was" } else { "it begins at the start" };
            let (reason, rows) = (reason(error), rows(*task, &run.so_far()));
            Failure::new(format!("The run over {table} ended early ({reason}), after {rows}: run it again, {again}."))
        }
    }
}
