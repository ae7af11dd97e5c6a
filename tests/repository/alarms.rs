//! What the alarms and the dashboard of template.yaml look at, and when the alarms fire.

use super::files::{Complaints, read, template};
use super::metric_math;
use crate::devices::process;
use crate::devices::world::TABLES;
use crate::harness::emf::Metrics;
use crate::harness::events::Event;
use crate::harness::server::Server;
use dev::failure::Failure;
use dev::template::FILE;
use dev::yaml::{self, Place};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub const NAMESPACE: &str = "Tests";
const OPERATIONS: &str = "docs/operations.md";

/// One line of a real function, with metrics.
async fn recorded_line() -> Value {
    let server = Server::start(TABLES).await;
    let process = process::start(&server, &[("METRICS_NAMESPACE", NAMESPACE)]).await;
    assert_eq!(process.answer(&Event::get()).await.status, 404);
    let mut log = process.end().await;
    log.pop().expect("one line")
}

struct Alarm {
    id: String,
    /// The metrics by their ids in the expression, or by `value` if there is no expression.
    metrics: BTreeMap<String, Metric>,
    expression: String,
    threshold: f64,
}

struct Metric {
    /// `None` for a metric of our own.
    namespace: Option<String>,
    name: String,
    /// The dimensions of a metric of our own, each with the logical id of the resource whose name is the value.
    dimensions: Vec<(String, String)>,
}

impl Alarm {
    /// Whether it fires if the metrics have these values in a period, by name. What is not named is missing.
    fn fires(&self, values: &BTreeMap<String, f64>) -> bool {
        let known =
            |id: &str| values.get(&self.metrics.get(id).unwrap_or_else(|| panic!("no metric {id}")).name).copied();
        metric_math::evaluate(&self.expression, &known).is_some_and(|value| value > self.threshold)
    }
}

/// The alarms of the template. A threshold that refers to a parameter is its default.
fn alarms() -> Vec<Alarm> {
    let read_all = |root: &Place<'_>| {
        let mut alarms = Vec::new();
        for (id, resource) in root.require(&["Resources"])?.entries()? {
            if resource.require(&["Type"])?.text()? == "AWS::CloudWatch::Alarm" {
                alarms.push(alarm(id, root, &resource.require(&["Properties"])?)?);
            }
        }
        Ok(alarms)
    };
    yaml::read(FILE, &read(FILE), read_all).unwrap_or_else(|failure| panic!("{failure}"))
}

fn alarm(id: &str, root: &Place<'_>, properties: &Place<'_>) -> Result<Alarm, Failure> {
    let threshold = properties.require(&["Threshold"])?;
    let threshold = match threshold.reference() {
        Some(parameter) => root.require(&["Parameters", parameter, "Default"])?,
        None => threshold,
    };
    let mut alarm = Alarm {
        id: id.to_owned(),
        metrics: BTreeMap::new(),
        expression: "value".to_owned(),
        threshold: threshold.text()?.parse().map_err(|_| threshold.wrong("must be a number"))?,
    };
    let Some(metrics) = properties.get(&["Metrics"]) else {
        alarm.metrics.insert("value".to_owned(), metric(properties)?);
        return Ok(alarm);
    };
    for part in metrics.items()? {
        if let Some(expression) = part.get(&["Expression"]) {
            alarm.expression = expression.text()?;
        } else {
            let id = part.require(&["Id"])?.text()?;
            alarm.metrics.insert(id, metric(&part.require(&["MetricStat", "Metric"])?)?);
        }
    }
    Ok(alarm)
}

fn metric(place: &Place<'_>) -> Result<Metric, Failure> {
    let namespace = place.require(&["Namespace"])?;
    let name = place.require(&["MetricName"])?.text()?;
    if !is_own(&namespace) {
        return Ok(Metric { namespace: Some(namespace.text()?), name, dimensions: Vec::new() });
    }
    let dimensions = place.get(&["Dimensions"]).map_or(Ok(Vec::new()), |all| all.items())?;
    let dimension = |place: &Place<'_>| {
        let value = place.require(&["Value"])?;
        let id = value.reference().ok_or_else(|| value.wrong("must be the short form `!Ref Id`"))?;
        Ok((place.require(&["Name"])?.text()?, id.to_owned()))
    };
    Ok(Metric { namespace: None, name, dimensions: dimensions.iter().map(dimension).collect::<Result<_, Failure>>()? })
}

/// Whether this is the namespace of our own metrics. While they are off, an alarm may name another one.
pub fn is_own(namespace: &Place<'_>) -> bool {
    let named = namespace.when("HasMetrics").unwrap_or_else(|| namespace.clone());
    named.reference() == Some("MetricsNamespace")
}

/// The values of five minutes that make an alarm fire, and of as many that must not.
fn periods(alarm: &str) -> (Vec<Values>, Vec<Values>) {
    match alarm {
        "Contention" => (
            vec![&[("attempts", 300), ("conflicts", 26)], &[("attempts", 20), ("conflicts", 12)]],
            vec![&[("attempts", 300), ("conflicts", 25)], &[("attempts", 10), ("conflicts", 8)]],
        ),
        "Retries" => (
            vec![&[("attempts", 171), ("changes", 107)]],
            vec![&[("attempts", 170), ("changes", 107)], &[("attempts", 12), ("changes", 2)]],
        ),
        "CorruptItems" => (vec![&[("corrupt_items", 1)]], vec![&[("corrupt_items", 0)]]),
        "ApiFailing" => (vec![&[("5xx", 11)]], vec![&[("5xx", 10)]]),
        "DeleteMappingQueueAge" => {
            (vec![&[("ApproximateAgeOfOldestMessage", 601)]], vec![&[("ApproximateAgeOfOldestMessage", 600)]])
        }
        "DeleteMappingDeadLettersNotEmpty" => {
            (vec![&[("ApproximateNumberOfMessagesVisible", 1)]], vec![&[("ApproximateNumberOfMessagesVisible", 0)]])
        }
        "ProductsTransactionConflicts" | "LeasesTransactionConflicts" => {
            (vec![&[("TransactionConflict", 501)]], vec![&[("TransactionConflict", 500)]])
        }
        _ if alarm.ends_with("Alarm") => (
            vec![&[("Errors", 1)], &[("Throttles", 1)], &[("unknowns", 1)], &[("Duration", 8000)]],
            vec![&[("Errors", 0), ("Throttles", 0), ("unknowns", 0), ("Duration", 7999)]],
        ),
        _ => panic!("{alarm} has no period here that makes it fire, add one"),
    }
}

type Values = &'static [(&'static str, u32)];

/// The values as `CloudWatch` gets them: our own from a recorded line with these numbers, which this function wrote.
fn received(alarm: &Alarm, line: &Value, values: Values, function: &str) -> BTreeMap<String, f64> {
    let mut line = line.clone();
    line["function"] = json!(function);
    for (name, value) in values {
        line[*name] = json!(value);
    }
    let recorded = Metrics::read(&[line], NAMESPACE);
    let value = |(name, given): &(&'static str, u32)| {
        let own = alarm.metrics.values().find(|metric| metric.name == *name && metric.namespace.is_none());
        let Some(own) = own else { return Some(((*name).to_owned(), f64::from(*given))) };
        let dimensions: Vec<_> = own.dimensions.iter().map(|(name, id)| (name.as_str(), id.as_str())).collect();
        let value = *recorded.values(name, &dimensions).first()?;
        Some(((*name).to_owned(), f64::from(u32::try_from(value).expect("a small value"))))
    };
    values.iter().filter_map(value).collect()
}

/// The function that an alarm is about, if it is about one. Outside AWS, its name is its logical id.
fn function_of(alarm: &Alarm) -> Option<String> {
    Some(format!("{}Function", alarm.id.strip_suffix("Alarm")?))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_alarm_fires_in_trouble_and_is_silent_without_it() {
    let line = recorded_line().await;
    for alarm in alarms() {
        let (trouble, usual) = periods(&alarm.id);
        let function = function_of(&alarm).unwrap_or_else(|| "any".to_owned());
        for values in trouble {
            assert!(alarm.fires(&received(&alarm, &line, values, &function)), "{} must fire at {values:?}", alarm.id);
        }
        for values in usual {
            assert!(!alarm.fires(&received(&alarm, &line, values, &function)), "{} fires at {values:?}", alarm.id);
        }
        assert!(!alarm.fires(&BTreeMap::new()), "{} fires while nothing happens", alarm.id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_outcome_starts_the_alarm_of_its_function_and_no_other() {
    let line = recorded_line().await;
    for function in template().functions {
        let fires = |alarm: &Alarm| alarm.fires(&received(alarm, &line, &[("unknowns", 1)], &function.logical_id));
        let firing: Vec<_> = alarms().iter().filter(|alarm| fires(alarm)).map(function_of).collect();
        assert_eq!(firing, [Some(function.logical_id.clone())]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_metric_is_documented_and_every_alarm_watches_metrics_that_are_written() {
    let line = recorded_line().await;
    let directives = line["_aws"]["CloudWatchMetrics"].as_array().expect("directives");
    let written: BTreeSet<_> = directives
        .iter()
        .flat_map(|directive| directive["Metrics"].as_array().expect("metrics"))
        .map(|metric| metric["Name"].as_str().expect("a name"))
        .collect();
    let text = read(OPERATIONS);
    let section = text.split("\n## Metrics\n").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a section");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let documented: BTreeSet<_> = rows.collect();
    let mut found = Complaints::default();
    for name in written.symmetric_difference(&documented) {
        found.unless(false, || format!("{OPERATIONS}: {name} is a metric that is not documented, or not written"));
    }
    for alarm in alarms() {
        for metric in alarm.metrics.values().filter(|metric| metric.namespace.is_none()) {
            found.unless(written.contains(metric.name.as_str()), || {
                format!("{FILE}: {} watches {}, which no function writes", alarm.id, metric.name)
            });
        }
    }
    found.report();
}

/// A line of a widget.
pub struct Drawn {
    pub name: String,
    /// The names of the dimensions.
    pub dimensions: Vec<String>,
    /// `Sum`, `Maximum` or `p99`.
    pub statistic: String,
}

/// The widgets of the dashboard. The references in `${}` are replaced by their own names, and the namespace by ours.
pub fn widgets() -> Vec<Value> {
    let text = read(FILE);
    let body =
        text.split("DashboardBody: !Sub |").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("a dashboard");
    let mut parts = body.split("${");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').expect("a reference ends");
        filled.push_str(if name == "MetricsNamespace" { NAMESPACE } else { name });
        filled.push_str(rest);
    }
    let dashboard: Value = serde_json::from_str(&filled).unwrap_or_else(|error| panic!("{error}: {filled}"));
    dashboard["widgets"].as_array().expect("widgets").clone()
}

/// Our own metrics that a widget draws. Draws nothing of another namespace.
pub fn drawn(widget: &Value) -> Vec<Drawn> {
    let mut drawn = Vec::new();
    let mut namespace = "";
    for row in widget["properties"]["metrics"].as_array().expect("metrics") {
        // A search: SEARCH('{Namespace,dimension,...} MetricName="name"', 'Sum', 300)
        if let Some(search) = row[0]["expression"].as_str() {
            let schema = search.split(['{', '}']).nth(1).expect("a schema").split(',').map(str::to_owned);
            let schema: Vec<_> = schema.collect();
            if schema[0] == NAMESPACE {
                let name = search.split('"').nth(1).expect("a name in quotes").to_owned();
                let statistic = search.rsplit("', '").next().and_then(|end| end.split('\'').next());
                let statistic = statistic.expect("a statistic").to_owned();
                drawn.push(Drawn { name, dimensions: schema[1..].to_vec(), statistic });
            }
            continue;
        }
        // A row: a dot repeats what stands above it.
        let first = row[0].as_str().expect("a namespace");
        namespace = if first == "." { namespace } else { first };
        if namespace == NAMESPACE {
            let own = row.as_array().and_then(|row| row.last()?["stat"].as_str());
            let statistic = own.or(widget["properties"]["stat"].as_str()).expect("a statistic").to_owned();
            drawn.push(Drawn { name: row[1].as_str().expect("a name").to_owned(), dimensions: Vec::new(), statistic });
        }
    }
    drawn
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_widget_draws_metrics_that_are_written_with_its_dimensions() {
    let line = recorded_line().await;
    let recorded = Metrics::read(std::slice::from_ref(&line), NAMESPACE);
    let widgets = widgets();
    for widget in &widgets {
        for Drawn { name, dimensions, .. } in drawn(widget) {
            let dimensions: Vec<_> = dimensions
                .iter()
                .map(|name| (name.as_str(), line[name.as_str()].as_str().unwrap_or_default()))
                .collect();
            let values = recorded.values(&name, &dimensions);
            assert_eq!(values.len(), 1, "{}: {name} by {dimensions:?}", widget["properties"]["title"]);
        }
    }
    let own = widgets.iter().filter(|widget| !drawn(widget).is_empty()).count();
    assert_eq!((own, widgets.len()), (5, 8), "the others draw the queue and the units of the tables");
}

#[test]
fn the_write_and_read_units_of_every_table_are_drawn() {
    let tables: BTreeSet<_> = template().tables.into_iter().map(|table| table.name).collect();
    let mut units = Vec::new();
    for widget in widgets() {
        let rows = widget["properties"]["metrics"].as_array().expect("metrics").clone();
        if rows[0][0] == "AWS/DynamoDB" {
            let drawn: BTreeSet<_> = rows.iter().filter_map(|row| row.as_array()?.last()?.as_str()).collect();
            assert_eq!(drawn, tables.iter().map(String::as_str).collect(), "{rows:?}");
            units.push(rows[0][1].as_str().expect("a name").to_owned());
        }
    }
    assert_eq!(units, ["ConsumedWriteCapacityUnits", "ConsumedReadCapacityUnits"]);
}
