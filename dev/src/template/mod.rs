//! [`Template`]: the parts of `template.yaml` that running and checking the functions needs. These are the tables, and
//! the functions with their environment, permissions, routes and queues.

use std::{collections::BTreeMap, path::Path};

use crate::{
    failure::Failure,
    yaml::{self, Place},
};

/// The name of the file, in the root of the workspace.
pub const FILE: &str = "template.yaml";

/// The variable that tells a function its own timeout in seconds.
pub const TIMEOUT_VARIABLE: &str = "FUNCTION_TIMEOUT_SECONDS";

/// The parameter of the template that takes the functions to another DynamoDB.
pub const DYNAMODB_ENDPOINT: &str = "DynamoDBEndpoint";

/// The variables that `cargo dev` does not take from the template: its lines have no metrics, and the endpoint is that of
/// its own DynamoDB.
const OWN_VARIABLES: [&str; 2] = ["METRICS_NAMESPACE", "AWS_ENDPOINT_URL_DYNAMODB"];

/// The tables and functions of a SAM template, in the order of the file.
#[derive(Debug, PartialEq, Eq)]
pub struct Template {
    /// Every `AWS::DynamoDB::Table`.
    pub tables: Vec<Table>,
    /// Every `AWS::Serverless::Function`.
    pub functions: Vec<Function>,
}

/// One table. Outside AWS, its name is its logical id.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// The logical id.
    pub name: String,
    /// The key, partition key first.
    pub key: Vec<KeyAttribute>,
    /// The global secondary indexes, in the order of the file.
    pub indexes: Vec<Index>,
    /// The TTL attribute, if the table has one.
    pub ttl_attribute: Option<String>,
}

/// One global secondary index of a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Index {
    /// The name of the index.
    pub name: String,
    /// The key, partition key first.
    pub key: Vec<KeyAttribute>,
    /// `ALL`, `KEYS_ONLY` or `INCLUDE`.
    pub projection: String,
    /// The attributes that `INCLUDE` names.
    pub includes: Vec<String>,
}

/// One attribute of a table's or an index's key, in the words of the template.
#[derive(Debug, PartialEq, Eq)]
pub struct KeyAttribute {
    /// The name of the attribute.
    pub name: String,
    /// `HASH` or `RANGE`.
    pub role: String,
    /// `S`, `N` or `B`.
    pub kind: String,
}

/// One function.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// The logical id.
    pub logical_id: String,
    /// The binary of the function.
    pub name: String,
    /// The environment, with every `!Ref` resolved: a table to its name, a parameter to its default.
    pub environment: BTreeMap<String, String>,
    /// The timeout of an invocation in seconds.
    pub timeout_seconds: u32,
    /// The actions that its policies allow, in the order of the file.
    pub permissions: Vec<Permission>,
    /// Its HTTP routes, in the order of the file.
    pub routes: Vec<Route>,
    /// The logical ids of the queues from which it gets messages, in batches.
    pub queues: Vec<String>,
    /// The schedules that start it.
    pub schedules: Vec<String>,
}

/// One action on one resource.
#[derive(Debug, PartialEq, Eq)]
pub struct Permission {
    /// The action, with its service: `dynamodb:GetItem`.
    pub action: String,
    /// The logical id of the resource. For an index of a table, `Table/index/name`. `*` for X-Ray.
    pub resource: String,
}

/// One HTTP route.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// The path, with parameters in braces.
    pub path: String,
    /// The method in capital letters.
    pub method: String,
}

impl Template {
    /// Reads `template.yaml` from the root of the workspace.
    ///
    /// # Errors
    /// The file cannot be read; see also [`Template::parse`].
    pub fn load(workspace: &Path) -> Result<Self, Failure> {
        let file = workspace.join(FILE);
        let text = std::fs::read_to_string(&file)
            .map_err(|error| Failure::new(format!("{} cannot be read, restore it: {error}.", file.display())))?;
        Self::parse(&text)
    }

    /// Reads the text of a template.
    ///
    /// # Errors
    /// The first part that is missing, has a wrong form, or refers to something that cannot be resolved on this
    /// machine.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        yaml::read(FILE, text, read_template)
    }

    /// One environment for all functions, because `cargo lambda watch` can give them only one. If the timeouts differ,
    /// all functions get the shortest.
    ///
    /// # Errors
    /// Two functions give one variable different values.
    pub fn environment(&self) -> Result<BTreeMap<String, String>, Failure> {
        let mut all = BTreeMap::new();
        let shortest = self.functions.iter().map(|function| function.timeout_seconds).min();
        let variables = self.functions.iter().flat_map(|function| &function.environment);
        for (name, value) in variables.filter(|(name, _)| !OWN_VARIABLES.contains(&name.as_str())) {
            let value = match shortest {
                Some(seconds) if name == TIMEOUT_VARIABLE => seconds.to_string(),
                _ => value.clone(),
            };
            match all.insert(name.clone(), value.clone()) {
                Some(other) if other != value => {
                    return Err(Failure::new(format!(
                        "{FILE} sets {name} to both {other} and {value}, but all functions share one environment in \
                         `cargo dev`: give the variables different names."
                    )));
                }
                _ => {}
            }
        }
        Ok(all)
    }
}

fn read_template(root: &Place<'_>) -> Result<Template, Failure> {
    let resources = root.require(&["Resources"])?.entries()?;
    let of_type = |wanted: &str| -> Result<Vec<(&str, &Place<'_>)>, Failure> {
        let mut found = Vec::new();
        for (id, resource) in &resources {
            if resource.require(&["Type"])?.text()? == wanted {
                found.push((*id, resource));
            }
        }
        Ok(found)
    };

    let tables = of_type("AWS::DynamoDB::Table")?
        .into_iter()
        .map(|(id, table)| read_table(id, table))
        .collect::<Result<Vec<_>, _>>()?;

    let mut referents = read_parameters(root)?;
    referents.extend(tables.iter().map(|table| (table.name.clone(), table.name.clone())));
    let roles = of_type("AWS::IAM::Role")?;
    let globals = root.get(&["Globals", "Function"]);
    let functions = of_type("AWS::Serverless::Function")?
        .into_iter()
        .map(|(id, function)| read_function(id, function, globals.as_ref(), &referents, &roles))
        .collect::<Result<Vec<_>, _>>()?;

    Ok(Template { tables, functions })
}

/// Every parameter with its default, which is the meaning of a `!Ref` to it on this machine.
fn read_parameters(root: &Place<'_>) -> Result<BTreeMap<String, String>, Failure> {
    let Some(parameters) = root.get(&["Parameters"]) else {
        return Ok(BTreeMap::new());
    };
    parameters
        .entries()?
        .into_iter()
        .map(|(id, parameter)| Ok((id.to_owned(), parameter.require(&["Default"])?.text()?)))
        .collect()
}

fn read_table(id: &str, table: &Place<'_>) -> Result<Table, Failure> {
    let properties = table.require(&["Properties"])?;
    if let Some(index) = properties.get(&["LocalSecondaryIndexes"]) {
        return Err(index.wrong("is not known to `cargo dev`, teach dev/src/tables.rs to create it"));
    }

    let mut kinds = BTreeMap::new();
    for definition in properties.require(&["AttributeDefinitions"])?.items()? {
        let name = definition.require(&["AttributeName"])?.text()?;
        kinds.insert(name, definition.require(&["AttributeType"])?.text()?);
    }

    let key = read_key(&properties, &kinds)?;
    let mut indexes = Vec::new();
    for index in properties.get(&["GlobalSecondaryIndexes"]).map_or(Ok(Vec::new()), |list| list.items())? {
        let names = index.get(&["Projection", "NonKeyAttributes"]).map_or(Ok(Vec::new()), |list| list.items())?;
        indexes.push(Index {
            name: index.require(&["IndexName"])?.text()?,
            key: read_key(&index, &kinds)?,
            projection: index.require(&["Projection", "ProjectionType"])?.text()?,
            includes: names.iter().map(Place::text).collect::<Result<_, _>>()?,
        });
    }

    let ttl_attribute = match properties.get(&["TimeToLiveSpecification"]) {
        Some(ttl) if ttl.require(&["Enabled"])?.text()? == "true" => Some(ttl.require(&["AttributeName"])?.text()?),
        _ => None,
    };
    Ok(Table { name: id.to_owned(), key, indexes, ttl_attribute })
}

/// Reads the key of a table or of an index, with attributes of these kinds.
fn read_key(place: &Place<'_>, kinds: &BTreeMap<String, String>) -> Result<Vec<KeyAttribute>, Failure> {
    let mut key = Vec::new();
    for attribute in place.require(&["KeySchema"])?.items()? {
        let name = attribute.require(&["AttributeName"])?.text()?;
        let role = attribute.require(&["KeyType"])?.text()?;
        let kind = kinds.get(&name).cloned();
        let kind = kind.ok_or_else(|| attribute.wrong(&format!("names {name}, add it to AttributeDefinitions")))?;
        key.push(KeyAttribute { name, role, kind });
    }
    Ok(key)
}

fn read_function(
    id: &str,
    function: &Place<'_>,
    globals: Option<&Place<'_>>,
    referents: &BTreeMap<String, String>,
    roles: &[(&str, &Place<'_>)],
) -> Result<Function, Failure> {
    let name = function.require(&["Metadata", "BuildProperties", "Binary"])?.text()?;
    let properties = function.require(&["Properties"])?;

    let mut environment = BTreeMap::new();
    for place in globals.into_iter().chain([&properties]) {
        let Some(variables) = place.get(&["Environment", "Variables"]) else { continue };
        for (variable, value) in variables.entries()? {
            environment.insert(variable.to_owned(), resolve(&value, referents)?);
        }
    }

    let timeout = properties.get(&["Timeout"]).or_else(|| globals?.get(&["Timeout"]));
    let timeout = timeout.ok_or_else(|| properties.wrong("has no Timeout, nor has Globals.Function: add it"))?;
    let timeout_seconds = timeout.text()?.parse().map_err(|_| timeout.wrong("must be a whole number of seconds"))?;

    let (mut routes, mut queues, mut schedules) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(events) = function.get(&["Properties", "Events"]) {
        for (_, event) in events.entries()? {
            match event.require(&["Type"])?.text()?.as_str() {
                "HttpApi" => routes.push(Route {
                    path: event.require(&["Properties", "Path"])?.text()?,
                    method: event.require(&["Properties", "Method"])?.text()?.to_uppercase(),
                }),
                "SQS" => {
                    let queue = event.require(&["Properties", "Queue"])?;
                    let id = queue.arn().ok_or_else(|| queue.wrong("must be the short form `!GetAtt Id.Arn`"))?;
                    queues.push(id.to_owned());
                }
                "Schedule" => schedules.push(event.require(&["Properties", "Schedule"])?.text()?),
                _ => {}
            }
        }
    }
    let permissions = read_permissions(function, roles)?;
    Ok(Function {
        logical_id: id.to_owned(),
        name,
        environment,
        timeout_seconds,
        permissions,
        routes,
        queues,
        schedules,
    })
}

/// Reads the statements of the function's role. A role that SAM makes is refused, and so is a managed policy, because it
/// allows more than is used, and the file does not show its permissions.
fn read_permissions(function: &Place<'_>, roles: &[(&str, &Place<'_>)]) -> Result<Vec<Permission>, Failure> {
    let mut permissions = Vec::new();
    let named = function.require(&["Properties", "Role"])?;
    let role = roles.iter().find(|(id, _)| named.arn() == Some(id));
    let (_, role) =
        role.ok_or_else(|| named.wrong("must be the short form `!GetAtt Id.Arn` of a role in this file"))?;
    if let Some(managed) = role.get(&["Properties", "ManagedPolicyArns"]) {
        return Err(managed.wrong("must not be there: write the statements into Policies"));
    }
    for policy in role.require(&["Properties", "Policies"])?.items()? {
        for statement in policy.require(&["PolicyDocument", "Statement"])?.items()? {
            let effect = statement.require(&["Effect"])?;
            if effect.text()? != "Allow" {
                return Err(effect.wrong("must be Allow: nothing else is allowed anyway"));
            }
            let actions = one_or_more(statement.require(&["Action"])?);
            for resource in one_or_more(statement.require(&["Resource"])?) {
                // X-Ray knows no resources.
                let is_tracing = |action: &Place<'_>| action.text().is_ok_and(|action| action.starts_with("xray:"));
                let any = resource.text().ok().filter(|text| text == "*" && actions.iter().all(is_tracing));
                let id = resource.arn().map(str::to_owned).or_else(|| index_of(&resource)).or(any);
                let wrong = "must be the short form `!GetAtt Id.Arn`, or `!Sub \"${Id.Arn}/index/name\"`";
                let id = id.ok_or_else(|| resource.wrong(wrong))?;
                for action in &actions {
                    permissions.push(Permission { action: action.text()?, resource: id.clone() });
                }
            }
        }
    }
    Ok(permissions)
}

/// `Table/index/name` for the resource `!Sub "${Table.Arn}/index/name"`, which names one index of one table.
fn index_of(resource: &Place<'_>) -> Option<String> {
    let (table, rest) = resource.substitution()?.strip_prefix("${")?.split_once(".Arn}")?;
    let name = rest.strip_prefix("/index/")?;
    let is_plain = |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric());
    (is_plain(table) && is_plain(name)).then(|| format!("{table}/index/{name}"))
}

/// The items of a list, or a single value as a list of one.
fn one_or_more(place: Place<'_>) -> Vec<Place<'_>> {
    place.items().unwrap_or_else(|_| vec![place])
}

fn resolve(value: &Place<'_>, referents: &BTreeMap<String, String>) -> Result<String, Failure> {
    let Some(id) = value.reference() else {
        return value.text().map_err(|_| value.wrong("must be a plain value or the short form `!Ref Id`"));
    };
    referents.get(id).cloned().ok_or_else(|| {
        value.wrong(&format!(
            "refers to {id}, which is neither a table nor a parameter here, correct the name or declare it"
        ))
    })
}

#[cfg(test)]
mod tests;
