//! The protection of a stack: the alarms, the gradual deployments, the logs and the safety of the data that template.yaml asks
//! for. Every metric is documented, and alarms and widgets name metrics that are written.

use super::files::{Complaints, read, template};
use crate::crashes::on_paused_time;
use crate::devices::world::TABLES;
use crate::harness::emf::Metrics;
use crate::harness::events::Event;
use crate::harness::functions::PRODUCTS;
use crate::harness::runtime_api::FunctionProcess;
use crate::harness::server::{Fault, Server};
use crate::harness::states::leave_hold;
use crate::harness::world::context;
use crate::shop::world::Shop;
use dev::failure::Failure;
use dev::template::FILE;
use dev::yaml;
use dev::yaml::Place;
use fencepost::testing::{Reporter, run_scheduled};
use lambda_runtime::{Config, LambdaEvent};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One metric that an alarm looks at. `of` has the resources of its dimensions, or `name=value` where a value is a text. It
/// is empty for a metric of our own that is of the whole stack.
#[derive(Debug, PartialEq, Eq)]
struct Watched {
    metric: String,
    of: String,
    statistic: String,
}

struct Alarm<'a> {
    id: &'a str,
    properties: Place<'a>,
    watched: Vec<Watched>,
    expression: Option<String>,
}

/// The resources of template.yaml.
struct Resources<'a>(Vec<(&'a str, Place<'a>)>);

impl<'a> Resources<'a> {
    fn of_type(&self, wanted: &str) -> impl Iterator<Item = (&'a str, &Place<'a>)> {
        let is_wanted = move |place: &Place<'_>| place.require(&["Type"]).and_then(|kind| kind.text());
        self.0
            .iter()
            .filter(move |(_, place)| is_wanted(place).is_ok_and(|kind| kind == wanted))
            .map(|(id, place)| (*id, place))
    }

    fn properties(&self, wanted: &str) -> Result<Place<'a>, Failure> {
        let found = self.0.iter().find(|(id, _)| *id == wanted);
        found.unwrap_or_else(|| panic!("{FILE} has no {wanted}")).1.require(&["Properties"])
    }

    fn alarms(&self) -> Result<Vec<Alarm<'a>>, Failure> {
        self.of_type("AWS::CloudWatch::Alarm")
            .map(|(id, alarm)| read_alarm(id, &alarm.require(&["Properties"])?))
            .collect()
    }
}

fn read_alarm<'a>(id: &'a str, properties: &Place<'a>) -> Result<Alarm<'a>, Failure> {
    let (mut watched, mut expression) = (Vec::new(), None);
    let Some(metrics) = properties.get(&["Metrics"]) else {
        watched.push(read_metric(properties, &properties.require(&["Statistic"])?)?);
        return Ok(Alarm { id, properties: properties.clone(), watched, expression });
    };
    for metric in metrics.items()? {
        if let Some(text) = metric.get(&["Expression"]) {
            expression = Some(text.text()?);
            continue;
        }
        watched
            .push(read_metric(&metric.require(&["MetricStat", "Metric"])?, &metric.require(&["MetricStat", "Stat"])?)?);
    }
    Ok(Alarm { id, properties: properties.clone(), watched, expression })
}

fn read_metric(metric: &Place<'_>, statistic: &Place<'_>) -> Result<Watched, Failure> {
    let namespace = metric.require(&["Namespace"])?;
    let is_own = is_own(&namespace);
    let namespace = if is_own { "own".to_owned() } else { namespace.text()? };
    let name = format!("{namespace} {}", metric.require(&["MetricName"])?.text()?);
    let mut owners = Vec::new();
    let dimensions = match metric.get(&["Dimensions"]) {
        None if is_own => Vec::new(),
        _ => metric.require(&["Dimensions"])?.items()?,
    };
    for dimension in dimensions {
        let value = dimension.require(&["Value"])?;
        let owner = value.reference().or_else(|| value.attribute("QueueName")).map(str::to_owned);
        let literal = || Some(format!("{}={}", dimension.get(&["Name"])?.text().ok()?, value.text().ok()?));
        let owner = owner.or_else(|| literal().filter(|_| is_own));
        owners.push(owner.ok_or_else(|| value.wrong("must be `!Ref Id` or `!GetAtt Id.QueueName`"))?);
    }
    Ok(Watched { metric: name, of: owners.join(" "), statistic: statistic.text()? })
}

/// Whether this is the namespace of our own metrics. While they are off, an alarm may name another one.
fn is_own(namespace: &Place<'_>) -> bool {
    let named = namespace.when("HasMetrics").unwrap_or_else(|| namespace.clone());
    named.reference() == Some("MetricsNamespace")
}

/// The metric that the access log of the API makes.
const THROTTLED_BY_API: &str = "api_throttled";

/// The name of a dimension, with its value if that is a text.
pub type Dimension = (String, Option<String>);

/// The metrics of our own that alarms look at: the alarm, the name of the metric and its dimensions.
pub fn watched_metrics_of_ours() -> Vec<(String, String, Vec<Dimension>)> {
    let mut found = Vec::new();
    check(|resources, _| {
        for alarm in resources.alarms()? {
            for Watched { metric, of, .. } in &alarm.watched {
                let dimension = |of: &str| match of.split_once('=') {
                    Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                    None => ("function".to_owned(), None),
                };
                let dimensions = of.split_whitespace().map(dimension).collect();
                let name = metric.strip_prefix("own ").filter(|name| *name != THROTTLED_BY_API).map(str::to_owned);
                found.extend(name.map(|name| (alarm.id.to_owned(), name, dimensions)));
            }
        }
        Ok(())
    });
    found
}

fn watched(metric: &str, of: &str, statistic: &str) -> Watched {
    Watched { metric: metric.to_owned(), of: of.to_owned(), statistic: statistic.to_owned() }
}

/// Complains unless some alarm looks at this metric of this resource.
fn demand(found: &mut Complaints, alarms: &[Alarm<'_>], wanted: &Watched) {
    let fine = alarms.iter().any(|alarm| alarm.watched.contains(wanted));
    found.unless(fine, || {
        let Watched { metric, of, statistic } = wanted;
        format!("{FILE}: no alarm looks at the {statistic} of {metric} of {of}")
    });
}

fn is_text(place: &Place<'_>, path: &[&str], wanted: &str) -> bool {
    place.get(path).and_then(|value| value.text().ok()).is_some_and(|text| text == wanted)
}

fn check(rule: impl FnOnce(&Resources<'_>, &mut Complaints) -> Result<(), Failure>) {
    let mut found = Complaints::default();
    yaml::read(FILE, &read(FILE), |root| rule(&Resources(root.require(&["Resources"])?.entries()?), &mut found))
        .unwrap_or_else(|failure| panic!("{failure}"));
    found.report();
}

#[test]
fn every_function_has_an_alarm_on_errors_throttles_failed_answers_and_slowness() {
    check(|resources, found| {
        let alarms = resources.alarms()?;
        for function in template().functions {
            let id = &function.logical_id;
            let wanted = [
                watched("AWS/Lambda Errors", id, "Sum"),
                watched("AWS/Lambda Throttles", id, "Sum"),
                watched("own faults", id, "Sum"),
                watched("AWS/Lambda Duration", id, "p99"),
            ];
            let expression = format!(
                "FILL(errors, 0) + FILL(throttles, 0) + FILL(faults, 0) + IF(FILL(duration, 0) >= {}, 1, 0)",
                function.timeout_seconds * 800 // milliseconds: 80 %
            );
            let fine = alarms.iter().any(|alarm| {
                alarm.watched == wanted
                    && alarm.expression.as_ref() == Some(&expression)
                    && is_text(&alarm.properties, &["Threshold"], "0")
            });
            found.unless(fine, || {
                format!(
                    "{FILE}: {id} has no alarm like DeviceStateAlarm, on its Errors, Throttles, faults and Duration, \
                     with Threshold 0 and the Expression {expression}"
                )
            });
        }
        Ok(())
    });
}

#[test]
fn every_queue_of_a_function_has_dead_letters_and_alarms() {
    check(|resources, found| {
        let alarms = resources.alarms()?;
        for function in template().functions {
            for id in &function.queues {
                let queue = resources.properties(id)?;
                demand(found, &alarms, &watched("AWS/SQS ApproximateAgeOfOldestMessage", id, "Maximum"));
                let seconds: u32 = queue.require(&["VisibilityTimeout"])?.text()?.parse().unwrap_or_default();
                found.unless(seconds >= 6 * function.timeout_seconds, || {
                    format!("{FILE}: {id} hides a message for {seconds} s, it must be six times the function's timeout")
                });
                let target = queue.require(&["RedrivePolicy", "deadLetterTargetArn"])?;
                let letters = target.arn().ok_or_else(|| target.wrong("must be the short form `!GetAtt Id.Arn`"))?;
                demand(found, &alarms, &watched("AWS/SQS ApproximateNumberOfMessagesVisible", letters, "Maximum"));
            }
        }
        Ok(())
    });
}

#[test]
fn every_alarm_uses_its_metrics_and_tells_the_topic() {
    check(|resources, found| {
        for Alarm { id, properties, watched, expression } in resources.alarms()? {
            found.unless(is_text(&properties, &["ComparisonOperator"], "GreaterThanThreshold"), || {
                format!("{FILE}: {id} must have ComparisonOperator: GreaterThanThreshold")
            });
            for action in ["AlarmActions", "OKActions"] {
                found.unless(properties.get(&[action]).is_some(), || format!("{FILE}: {id} has no {action}"));
            }
            found.unless(watched.len() == 1 || expression.is_some(), || format!("{FILE}: {id} has no Expression"));
            let (Some(expression), Some(metrics)) = (expression, properties.get(&["Metrics"])) else { continue };
            for metric in metrics.items()?.iter().filter(|metric| metric.get(&["MetricStat"]).is_some()) {
                let name = metric.require(&["Id"])?.text()?;
                let used = expression.contains(&format!("FILL({name}, 0)"));
                found.unless(used, || format!("{FILE}: the Expression of {id} does not use FILL({name}, 0)"));
                found.unless(is_text(metric, &["ReturnData"], "false"), || {
                    format!(
                        "{FILE}: {name} of {id} must have ReturnData: false, so that the alarm goes by the Expression"
                    )
                });
            }
        }
        Ok(())
    });
}

#[test]
fn a_gradual_deployment_of_a_function_goes_back_if_its_own_alarm_fires() {
    check(|resources, found| {
        for (id, function) in resources.of_type("AWS::Serverless::Function") {
            let alarm = format!("{}Alarm", id.trim_end_matches("Function"));
            let alarms = function.require(&["Properties", "DeploymentPreference", "Alarms"])?;
            let gradual = alarms.when("IsGradual").map_or(Ok(Vec::new()), |alarms| alarms.items())?;
            let named: Vec<_> = gradual.iter().filter_map(Place::reference).collect();
            found.unless(named == [alarm.as_str()], || {
                format!("{FILE}: {id} needs DeploymentPreference: {{ Alarms: !If [IsGradual, [!Ref {alarm}], [!Ref AWS::NoValue]] }}")
            });
        }
        Ok(())
    });
}

#[test]
fn every_function_and_the_api_write_to_a_log_group_that_ends() {
    check(|resources, found| {
        let mut named = Vec::new();
        for (id, function) in resources.of_type("AWS::Serverless::Function") {
            let group = function.get(&["Properties", "LoggingConfig", "LogGroup"]);
            named.push((id, group.as_ref().and_then(Place::reference)));
        }
        for (id, api) in resources.of_type("AWS::Serverless::HttpApi") {
            let group = api.get(&["Properties", "AccessLogSettings", "DestinationArn"]);
            named.push((id, group.as_ref().and_then(Place::arn)));
        }
        let groups: Vec<_> = resources.of_type("AWS::Logs::LogGroup").collect();
        for (id, group) in &named {
            let own = group.is_some_and(|group| groups.iter().any(|(known, _)| *known == group));
            found.unless(own, || format!("{FILE}: {id} writes to no log group of the template"));
        }
        for (id, group) in groups {
            let days = group.get(&["Properties", "RetentionInDays"]);
            let parameter = days.as_ref().and_then(Place::reference);
            found.unless(parameter == Some("LogRetentionDays"), || {
                format!("{FILE}: {id} must have RetentionInDays: !Ref LogRetentionDays, or it keeps logs forever")
            });
        }
        Ok(())
    });
}

/// A deletion takes no data along, nor the messages that wait and their protection. A first deployment that fails leaves no queue,
/// because nobody can have sent to it.
#[test]
fn every_table_and_every_queue_survives_the_stack_and_a_mistake() {
    type Rules = &'static [(&'static [&'static str], &'static str)];
    const TABLE: Rules = &[
        (&["DeletionPolicy"], "Retain"),
        (&["UpdateReplacePolicy"], "Retain"),
        (&["Properties", "DeletionProtectionEnabled"], "true"),
        (&["Properties", "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled"], "true"),
        (&["Properties", "SSESpecification", "SSEEnabled"], "true"),
    ];
    const QUEUE: Rules = &[(&["DeletionPolicy"], "RetainExceptOnCreate"), (&["UpdateReplacePolicy"], "Retain")];
    let template = read(FILE);
    check(|resources, found| {
        for (kind, rules) in
            [("AWS::DynamoDB::Table", TABLE), ("AWS::SQS::Queue", QUEUE), ("AWS::SQS::QueuePolicy", QUEUE)]
        {
            for (id, resource) in resources.of_type(kind) {
                for (path, wanted) in rules {
                    found.unless(is_text(resource, path, wanted), || {
                        format!("{FILE}: {id} needs {}: {wanted}", path.join("."))
                    });
                }
                for property in ["ContributorInsightsSpecification", "OnDemandThroughput"] {
                    let is_set = resource.get(&["Properties", property]).is_some();
                    found.unless(kind != "AWS::DynamoDB::Table" || is_set, || {
                        format!("{FILE}: {id} needs {property}, as the other tables have it")
                    });
                }
                let widgets = template.matches(&format!("\"${{{id}}}\"")).count();
                let is_shown = widgets == 2 && template.contains(&format!("\n  {id}Table: {{"));
                found.unless(kind != "AWS::DynamoDB::Table" || is_shown, || {
                    format!("{FILE}: {id} needs an output {id}Table, and a line in both widgets of units")
                });
            }
        }
        Ok(())
    });
}

const NAMESPACE: &str = "Tests";
const OPERATIONS: &str = "docs/operations.md";

/// A log line of a real function that met a hot key, with its metrics.
async fn recorded_line() -> Value {
    let server = Server::start(TABLES).await;
    let process = FunctionProcess::start(&server, "device-state", &[("METRICS_NAMESPACE", NAMESPACE)]).await;
    server.fail_writes(&[Fault::Throttled]);
    assert_eq!(process.answer(&Event::create()).await.status, 201);
    process.end().await.pop().expect("one line")
}

/// A run of `settle-holds` that removes a hold, gives one back, and burns its attempt.
fn line_about_holds() -> Value {
    let settled = || {
        on_paused_time(async {
            let shop = Shop::with(&[("a", 9), ("b", 9)]).await;
            shop.place("k-1", &[("a", 1)]).await.shown(201);
            leave_hold(&shop.engine, PRODUCTS, "b", ("AAAAAAAAAAA", 5), None);
            let lines = Arc::new(Mutex::new(Vec::new()));
            let kept = lines.clone();
            let reporter = Reporter::to(NAMESPACE, move |line| kept.lock().expect("no panic").push(line));
            let mut context = context(Duration::from_mins(15));
            context.env_config = Arc::new(Config { function_name: "settle-holds".to_owned(), ..Config::default() });
            let event = LambdaEvent::new(RawValue::NULL.to_owned(), context);
            let settle = &functions::settle_holds::settle;
            let told = run_scheduled(&shop.app.holds, settle, event, &reporter).await.expect("nothing is in its way");
            assert_eq!(told, "2 products settled, 0 left");
            lines.lock().expect("no panic").pop().expect("one line")
        })
    };
    let line = std::thread::spawn(settled).join().expect("a line");
    serde_json::from_str(&line).expect("JSON")
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
    let lines = [recorded_line().await, line_about_holds()];
    let is_written = |name: &str, dimensions: &[Dimension]| lines.iter().any(|line| is_written(line, name, dimensions));
    let mut found = Complaints::default();
    let written: BTreeSet<_> = lines
        .iter()
        .flat_map(|line| line["_aws"]["CloudWatchMetrics"].as_array().expect("directives"))
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
        found.unless(is_written(&name, &dimensions), || {
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
            found.unless(namespace != NAMESPACE || is_written(name, &dimensions), || {
                format!("{FILE}: {title} draws {name} by {dimensions:?}, which no function writes")
            });
        }
    }
    found.report();
}
