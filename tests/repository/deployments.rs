//! The deployment by template.yaml and samconfig.toml: through an alias, under the eyes of an alarm, with the parameters of an
//! environment; and the access log of the API.

use super::files::{Complaints, read, template, toml};
use dev::failure::Failure;
use dev::template::FILE;
use dev::yaml;
use dev::yaml::Place;
use serde_json::Value;
use std::collections::BTreeSet;

/// Checks a rule with each function: its logical id, its properties, and those of `Globals`.
fn check(rule: impl Fn(&str, &Place<'_>, &Place<'_>, &mut Complaints) -> Result<(), Failure>) {
    let mut found = Complaints::default();
    let read_all = |root: &Place<'_>| {
        let globals = root.require(&["Globals", "Function"])?;
        for function in template().functions {
            let id = function.logical_id;
            let properties = root.require(&["Resources", &id, "Properties"])?;
            rule(&id, &properties, &globals, &mut found)?;
        }
        Ok(())
    };
    yaml::read(FILE, &read(FILE), read_all).unwrap_or_else(|failure| panic!("{failure}"));
    found.report();
}

#[test]
fn a_gradual_deployment_of_a_function_goes_back_if_its_own_alarm_fires() {
    check(|id, properties, globals, found| {
        let alarm = format!("{}Alarm", id.trim_end_matches("Function"));
        let alarms = properties.require(&["DeploymentPreference", "Alarms"])?;
        let gradual = alarms.when("IsGradual").map_or(Ok(Vec::new()), |alarms| alarms.items())?;
        let named: Vec<_> = gradual.iter().filter_map(Place::reference).collect();
        found.unless(named == [alarm.as_str()], || {
            format!("{FILE}: {id} needs DeploymentPreference: {{ Alarms: !If [IsGradual, [!Ref {alarm}], [!Ref AWS::NoValue]] }}")
        });
        for (path, wanted) in [("AutoPublishAlias", "live"), ("AutoPublishAliasAllProperties", "true")] {
            let set = globals.require(&[path])?.text()?;
            found.unless(set == wanted, || format!("{FILE}: Globals need {path}: {wanted}"));
        }
        let kind = globals.require(&["DeploymentPreference", "Type"])?;
        found.unless(kind.reference() == Some("Deployment"), || format!("{FILE}: Globals need Type: !Ref Deployment"));
        Ok(())
    });
}

/// SAM hashes the text of the properties, which names a parameter or a table and has not its value. `CloudFormation` replaces a
/// version when its description changes. `.ci/versions` shows it with the code of SAM.
#[test]
fn a_version_is_described_by_the_parameters_and_the_tables_that_its_function_reads() {
    check(|id, properties, globals, found| {
        let text = properties.require(&["VersionDescription"])?;
        let text = text.substitution().ok_or_else(|| text.wrong("must be the short form `!Sub text`"))?;
        let described: BTreeSet<_> = text.split("${").skip(1).filter_map(|part| part.split('}').next()).collect();
        let mut read = BTreeSet::new();
        for place in [properties, globals] {
            let mut values = vec![place.get(&["LoggingConfig", "ApplicationLogLevel"])];
            for (_, value) in place.get(&["Environment", "Variables"]).map_or(Ok(Vec::new()), |all| all.entries())? {
                values.push(Some(value));
            }
            for architecture in place.get(&["Architectures"]).map_or(Ok(Vec::new()), |all| all.items())? {
                values.push(Some(architecture));
            }
            read.extend(values.iter().flatten().filter_map(Place::reference));
        }
        found.unless(described == read, || {
            format!("{FILE}: the VersionDescription of {id} names {described:?}, the function reads {read:?}")
        });
        Ok(())
    });
}

#[test]
fn every_environment_names_its_stack_and_parameters_of_the_template() {
    let config = toml("samconfig.toml");
    let parameters = |root: &Place<'_>| {
        Ok(root.require(&["Parameters"])?.entries()?.iter().map(|(id, _)| (*id).to_owned()).collect::<BTreeSet<_>>())
    };
    let known = yaml::read(FILE, &read(FILE), parameters).unwrap_or_else(|failure| panic!("{failure}"));
    let workflow = read(".github/workflows/deploy.yml");
    let mut found = Complaints::default();
    let mut namespaces = BTreeSet::new();
    for environment in ["dev", "prod"] {
        let global = &config[environment]["global"]["parameters"];
        found.unless(global["stack_name"].as_str() == Some(&format!("fencepost-{environment}")), || {
            format!("samconfig.toml: {environment} must have a stack of its own, fencepost-{environment}")
        });
        let overrides = global["parameter_overrides"].as_array().expect("a list of parameters");
        for given in overrides.iter().filter_map(toml::Value::as_str) {
            let (name, value) = given.split_once('=').unwrap_or((given, ""));
            found.unless(known.contains(name), || format!("samconfig.toml: {FILE} has no parameter {name}"));
            if name == "MetricsNamespace" {
                namespaces.insert(value.to_owned());
            }
        }
    }
    found.unless(namespaces.len() == 2, || "samconfig.toml: two stacks need two namespaces of metrics".to_owned());
    found.unless(workflow.matches("--config-env \"$ENVIRONMENT\"").count() == 2, || {
        "deploy.yml: `sam build` and `sam deploy` must name the environment".to_owned()
    });
    found.unless(!workflow.contains("--parameter-overrides"), || {
        "deploy.yml: --parameter-overrides replaces the parameters of the environment".to_owned()
    });
    found.report();
}

/// The variables that stand for an id, a time, an address, a name or a number. None of their values has a quote or a
/// backslash. A path and a message may have both, and AWS documents no escaping of them. `error.messageString` is
/// documented as quoted, but not its value if there is no error.
///
/// Source: <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-logging-variables.html>
const PLAIN: &[&str] = &[
    "awsEndpointRequestId",
    "error.responseType",
    "identity.sourceIp",
    "identity.userArn",
    "integrationLatency",
    "integrationStatus",
    "requestId",
    "requestTime",
    "responseLatency",
    "responseLength",
    "routeKey",
    "status",
];

/// The faults of a format. Each variable stands for the text that an absent value has in the log.
fn complaints(format: &str) -> Vec<String> {
    let mut parts = format.split("$context.");
    let mut line = parts.next().unwrap_or_default().to_owned();
    let mut complaints = Vec::new();
    for part in parts {
        let end = part.find(|one: char| !one.is_ascii_alphanumeric() && one != '.').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        if !PLAIN.contains(&name) {
            complaints.push(format!("AWS documents no escaping of $context.{name}"));
        }
        line.push('-');
        line.push_str(rest);
    }
    if !serde_json::from_str(&line).is_ok_and(|line: Value| line.is_object()) || line.contains('\n') {
        complaints.push(format!("no JSON object in one line: {line}"));
    }
    complaints
}

#[test]
fn each_line_of_the_access_log_is_json_for_any_request() {
    let format = |root: &yaml::Place<'_>| {
        let format = root.require(&["Resources", "Api", "Properties", "AccessLogSettings", "Format"])?;
        format.text()
    };
    let format = yaml::read(FILE, &read(FILE), format).unwrap_or_else(|failure| panic!("{failure}"));
    let mut found = Complaints::default();
    for complaint in complaints(&format) {
        found.unless(false, || format!("{FILE}: the access log: {complaint}"));
    }
    found.report();
}
