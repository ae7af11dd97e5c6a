//! The metrics that a function writes, against the page, the alarms and the dashboard that name them.

use super::files::{Complaints, read};
use super::protection::{Dimension, watched_metrics_of_ours};
use crate::devices::world::{self, TABLES};
use crate::harness::emf::Metrics;
use crate::harness::events::Event;
use crate::harness::server::{Fault, Server};
use dev::template::FILE;
use serde_json::Value;
use std::collections::BTreeSet;

const NAMESPACE: &str = "Tests";
const OPERATIONS: &str = "docs/operations.md";

/// A log line of a real function that met a hot key, with its metrics.
async fn recorded_line() -> Value {
    let server = Server::start(TABLES).await;
    let process = world::start(&server, &[("METRICS_NAMESPACE", NAMESPACE)]).await;
    server.fail_writes(&[Fault::Throttled]);
    assert_eq!(process.answer(&Event::create()).await.status, 201);
    process.end().await.pop().expect("one line")
}

/// Whether a line has a value for a metric with these dimensions. Where none is given, a dimension has the line's value.
fn is_written(line: &Value, name: &str, dimensions: &[Dimension]) -> bool {
    let metrics = Metrics::read(std::slice::from_ref(line), NAMESPACE);
    let valued = dimensions
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_deref().or_else(|| line[name].as_str()).unwrap_or_default()));
    metrics.values(name, &valued.collect::<Vec<_>>()).len() == 1
}

/// The widgets of the dashboard, with the names of the references in place of their values.
fn widgets() -> Vec<Value> {
    let text = read(FILE);
    let body = text.split("DashboardBody: !Sub |").nth(1).and_then(|rest| rest.split("\n\n").next());
    let mut parts = body.expect("a dashboard").split("${");
    let first = parts.next().unwrap_or_default().to_owned();
    let filled = parts.fold(first, |text, part| {
        let (name, rest) = part.split_once('}').expect("a reference ends");
        text + if name == "MetricsNamespace" { NAMESPACE } else { name } + rest
    });
    let dashboard: Value = serde_json::from_str(&filled).unwrap_or_else(|error| panic!("{error}: {filled}"));
    dashboard["widgets"].as_array().expect("widgets").clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_metric_is_documented_and_alarms_and_widgets_name_metrics_that_are_written() {
    let line = recorded_line().await;
    let mut found = Complaints::default();
    let directives = line["_aws"]["CloudWatchMetrics"].as_array().expect("directives");
    let written: BTreeSet<_> = directives
        .iter()
        .flat_map(|directive| directive["Metrics"].as_array().expect("metrics"))
        .map(|metric| metric["Name"].as_str().expect("a name"))
        .collect();
    let text = read(OPERATIONS);
    let section = text.split("\n## Metrics\n").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a section");
    let documented: BTreeSet<_> =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    for name in written.symmetric_difference(&documented) {
        found.push(format!("{OPERATIONS}: {name} is a metric that is not documented, or not written"));
    }
    for (alarm, name, dimensions) in watched_metrics_of_ours() {
        found.unless(is_written(&line, &name, &dimensions), || {
            format!("{FILE}: {alarm} watches {name} by {dimensions:?}, which no function writes")
        });
    }
    for widget in widgets() {
        let title = &widget["properties"]["title"];
        let mut namespace = "";
        for row in widget["properties"]["metrics"].as_array().expect("metrics") {
            // A search: SEARCH('{Namespace,dimension,...} MetricName="name"', 'Sum', 300)
            let (name, dimensions) = if let Some(search) = row[0]["expression"].as_str() {
                let mut schema = search.split(['{', '}']).nth(1).expect("a schema").split(',');
                // It stands in quotes, because it may have signs that a search does not take otherwise.
                let quoted = schema.next().expect("a namespace");
                namespace = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).expect("quotes");
                let dimensions = schema.map(|name| (name.to_owned(), None)).collect();
                (search.rsplit('"').nth(1).expect("a name in quotes"), dimensions)
            } else {
                // A dot repeats the namespace above it.
                let first = row[0].as_str().expect("a namespace");
                namespace = if first == "." { namespace } else { first };
                (row[1].as_str().expect("a name"), Vec::new())
            };
            found.unless(namespace != NAMESPACE || is_written(&line, name, &dimensions), || {
                format!("{FILE}: {title} draws {name} by {dimensions:?}, which no function writes")
            });
        }
    }
    found.report();
}
