//! `Store::check` says at the start of a program what is wrong with its table, and printed tables pass it.

use crate::harness::clients::{Silent, client_whose, client_without_answers, error};
use crate::harness::engine::{Engine, properties_of, with_properties};
use aws_sdk_dynamodb::Client;
use fencepost::{
    Error, Failure, FailureKind, Index, Names, Projection, Record, SchemaMismatch, Settings, Store, TableSchema,
};
use fencepost_cli::args::{Command, parse};
use fencepost_cli::run::check;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::future::ready;
use std::time::Duration;
use tokio::time::Instant;

macro_rules! schema {
    ($($attributes:tt)*) => {{
        #[derive(Serialize, Deserialize, Record)]
        #[record(key = "orderId", $($attributes)*)]
        struct Order {
            end: Option<u64>,
        }
        TableSchema::of::<Order>()
    }};
}

/// A global index of users by day, or a local one of days.
struct By<const IS_LOCAL: bool>;

impl<const IS_LOCAL: bool> Index for By<IS_LOCAL> {
    type Record = Line;
    type Shown = Line;
    const NAME: &'static str = if IS_LOCAL { "byDay" } else { "byUser" };
    const PARTITION_KEY: &'static str = if IS_LOCAL { "orderId" } else { "user" };
    const SORT_KEY: Option<&'static str> = Some("day");
    const IS_LOCAL: bool = IS_LOCAL;
    const PROJECTION: Projection = if IS_LOCAL { Projection::Include(&["end"]) } else { Projection::All };
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "orderId", sort = "line")]
struct Line {
    end: u64,
}

fn line() -> TableSchema {
    TableSchema::of::<Line>()
}

/// An engine with a table of this key, `name:type name:type`, and of this TTL attribute.
fn table(key: &str, ttl: &str) -> Engine {
    let parts: Vec<_> = key.split(' ').filter_map(|part| part.split_once(':')).collect();
    let schema = TableSchema::new(parts[0].0, parts.get(1).map(|part| part.0));
    let schema = parts.into_iter().fold(schema, |schema, (name, kind)| schema.with_key_type(name, kind.into()));
    let schema = if ttl.is_empty() { schema } else { schema.with_ttl(ttl) };
    created(&properties_of(&schema.to_cloudformation("Orders")))
}

fn created(properties: &Value) -> Engine {
    with_properties(Engine::embedded(&[]), properties)
}

async fn said_by(client: &Client, schema: &TableSchema) -> String {
    match Store::new(client).check_table("Orders", schema).await {
        Ok(()) => String::new(),
        Err(Error::Refused(SchemaMismatch { sentences })) => sentences.join("\n"),
        Err(Error::Failed(failure)) => failure.to_string(),
    }
}

#[tokio::test]
async fn a_wrong_key_is_named_with_the_needed_one() {
    let typed = || line().with_key_type("line", "N".into());
    for (key, schema, said) in [
        ("orderId:S", schema!(), ""),
        ("orderId:B", schema!(), ""),
        ("orderId:S line:N", typed(), ""),
        ("id:S", schema!(), "id (S), and orderId"),
        ("orderId:S", line(), "orderId (S), and orderId with the sort key line"),
        ("orderId:S line:S", schema!(), "orderId (S) with the sort key line (S), and orderId"),
        ("orderId:S day:N", line(), "orderId (S) with the sort key day (N), and orderId with the sort key line"),
        ("orderId:S line:B", typed(), "orderId (S) with the sort key line (B), and orderId with the sort key line (N)"),
        ("leaseKey:N", TableSchema::leases().with_ttl("_purgeAt"), "leaseKey (N), and leaseKey (S)"),
    ] {
        let found = said_by(&table(key, "_purgeAt").client(), &schema).await;
        let difference =
            found.strip_prefix("The key of the table Orders is ").and_then(|found| found.split_once(" is needed: "));
        assert_eq!(difference.map_or(&*found, |(difference, _)| difference), said, "{key}");
    }
}

#[tokio::test]
async fn ttl_is_what_the_settings_ask_for() {
    let remedy = "or name another attribute in the Record.";
    let set = |is, name| format!("{is}, and {name} is needed: switch it on with {name}, {remedy}");
    let remedy = "switch it off, or correct the settings or EXPIRES_AT of the Record.";
    let off = |on| format!("on with the attribute {on}, and by its settings TTL removes no tombstones: {remedy}");
    let swept = || schema!(settings = Settings::without_ttl().swept());
    let removed = || schema!(settings = Settings::without_ttl().removed());
    let ending = || schema!(expires_at = "end", settings = Settings::without_ttl().swept());
    let renamed = schema!(settings = Settings::own().names(Names::DEFAULT.purge_at("gone")));
    for (key, ttl, schema, said) in [
        ("orderId:S", "_purgeAt", schema!(), String::new()),
        ("orderId:S", "", schema!(), set("off", "_purgeAt")),
        ("orderId:S", "end", schema!(), set("on with the attribute end", "_purgeAt")),
        ("orderId:S", "gone", renamed, String::new()),
        ("orderId:S", "end", ending(), String::new()),
        ("orderId:S", "", ending(), set("off", "end")),
        ("orderId:S", "", swept(), String::new()),
        ("orderId:S", "_purgeAt", swept(), off("_purgeAt")),
        ("orderId:S", "other", swept(), off("other")),
        ("orderId:S", "_purgeAt", removed(), off("_purgeAt")),
        ("orderId:S", "other", removed(), String::new()),
        ("leaseKey:S", "", TableSchema::leases(), set("off", "purgeAt")),
        ("recordId:S", "", TableSchema::idempotency(), set("off", "expiresAt")),
    ] {
        let found = said_by(&table(key, ttl).client(), &schema).await;
        assert_eq!(found.strip_prefix("TTL of the table Orders is ").unwrap_or(&found), said, "{ttl} {schema:?}");
    }
}

/// What is said of a table whose description has this member too.
async fn said_with(key: &str, name: &'static str, value: Value, schema: &TableSchema) -> String {
    let client = client_whose(&table(key, "_purgeAt"), move |engine, _, operation, body| {
        let (status, answer) = engine.answer(operation, body);
        let mut answer: Value = serde_json::from_str(&answer).expect("JSON");
        if operation == "DescribeTable" {
            answer["Table"][name] = value.clone();
        }
        (status, answer.to_string())
    });
    said_by(&client, schema).await
}

#[tokio::test]
async fn the_state_of_a_table_and_its_regions_are_looked_at() {
    let regional = || schema!(settings = Settings::without_ttl().in_regions().kept());
    let (status, regions) = ("TableStatus", "MultiRegionConsistency");
    for (key, name, value, schema, said) in [
        ("orderId:S", status, "UPDATING", schema!(), ""),
        ("orderId:S", status, "CREATING", schema!(), "is CREATING, and can be used when it is ACTIVE: wait, and"),
        ("leaseKey:S", regions, "STRONG", TableSchema::leases(), ""),
        ("orderId:S", regions, "STRONG", schema!(), "has multi-Region strong consistency, and its settings do not"),
        ("orderId:S", regions, "EVENTUAL", regional(), "lacks multi-Region strong consistency, and its settings say"),
    ] {
        let found = said_with(key, name, json!(value), &schema).await;
        assert_eq!(found.is_empty(), said.is_empty(), "{found}");
        assert!(
            found.lines().next().is_none_or(|first| first.starts_with(&format!("The table Orders {said} "))),
            "{found}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_table_that_is_not_there_or_may_not_be_seen_or_does_not_answer_says_so() {
    let place = "the table Orders in the region eu-west-1";
    let missing = said_by(&Engine::embedded(&[]).client(), &schema!()).await;
    assert_eq!(missing, format!("There is no {}: create it, or correct its name or the region.", &place[4..]));
    for (denied, others) in [("DescribeTable", 0), ("DescribeTimeToLive", 1)] {
        let client = client_whose(&table("id:S", ""), move |engine, _, operation, body| {
            if operation == denied { error(400, "AccessDeniedException") } else { engine.answer(operation, body) }
        });
        let said = said_by(&client, &schema!()).await;
        let last = format!("The program may not look at {place}: allow it dynamodb:{denied} on that table.");
        assert!(said.ends_with(&last) && said.lines().count() == 1 + others, "{said}");
    }
    let silent = client_without_answers(&Engine::embedded(&[]), Silent::Always);
    let begun = Instant::now();
    let checked = Store::new(&silent).with_time_limit(Duration::from_secs(3)).check::<Line>("Orders").await;
    assert!(
        matches!(checked, Err(Error::Failed(Failure { kind: FailureKind::Unavailable { .. }, .. }))),
        "{checked:?}"
    );
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
}

#[tokio::test]
async fn an_index_that_queries_cannot_use_is_named() {
    let all = json!({"ProjectionType": "ALL"});
    let some = |name: &str| json!({"ProjectionType": "INCLUDE", "NonKeyAttributes": [name]});
    for (is_local, sort, projection, status, said) in [
        (false, "day", &all, "ACTIVE", ""),
        (true, "day", &all, "ACTIVE", ""),
        (true, "day", &some("end"), "ACTIVE", ""),
        (
            false,
            "end",
            &all,
            "ACTIVE",
            "The key of the index byUser of the table Orders is user with the sort key end, and",
        ),
        (false, "day", &some("end"), "ACTIVE", "The index byUser of the table Orders projects INCLUDE, and ALL is"),
        (true, "day", &some("x"), "ACTIVE", "The index byDay of the table Orders projects INCLUDE, and end is"),
        (false, "day", &all, "CREATING", "The index byUser of the table Orders is CREATING, and"),
        (false, "day", &all, "", "The table Orders has no global index byUser, which"),
        (false, "day", &all, "of the other kind", "The table Orders has no global index byUser, which"),
        (true, "day", &all, "", "The table Orders has no local index byDay, which"),
    ] {
        let (name, partition) = if is_local { ("byDay", "orderId") } else { ("byUser", "user") };
        let is_listed_local = is_local != (status == "of the other kind");
        let list = if is_listed_local { "LocalSecondaryIndexes" } else { "GlobalSecondaryIndexes" };
        let key = json!([{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]);
        let index = json!({"IndexName": name, "KeySchema": key, "Projection": projection, "IndexStatus": status});
        let indexes = if status.is_empty() { json!([]) } else { json!([index]) };
        let schema = if is_local { line().with_index(By::<true>) } else { line().with_index(By::<false>) };
        let found = said_with("orderId:S line:S", list, indexes, &schema).await;
        assert!(found.starts_with(said) && found.is_empty() == said.is_empty(), "{found}");
    }
}

/// The table of a configuration of Terraform, as properties of `CloudFormation`.
fn in_words_of_cloudformation(configuration: &str) -> Value {
    let configuration: Value = serde_json::from_str(configuration).expect("JSON");
    let table = &configuration["resource"]["aws_dynamodb_table"]["table_Orders"];
    let key = |of: &Value| {
        let partition = of.get("hash_key").unwrap_or(&table["hash_key"]); // a local index does not name it
        let parts = [(partition, "HASH"), (&of["range_key"], "RANGE")].into_iter().filter(|(name, _)| !name.is_null());
        parts.map(|(name, role)| json!({"AttributeName": name, "KeyType": role})).collect::<Value>()
    };
    let types = table["attribute"].as_array().into_iter().flatten();
    let types = types.map(|one| json!({"AttributeName": one["name"], "AttributeType": one["type"]}));
    let mut properties = json!({
        "TableName": table["name"],
        "BillingMode": table["billing_mode"],
        "DeletionProtectionEnabled": table["deletion_protection_enabled"],
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": table["point_in_time_recovery"]["enabled"]},
        "AttributeDefinitions": types.collect::<Value>(),
        "KeySchema": key(table),
    });
    if let Some(ttl) = table.get("ttl") {
        properties["TimeToLiveSpecification"] =
            json!({"AttributeName": ttl["attribute_name"], "Enabled": ttl["enabled"]});
    }
    for (name, indexes) in [("Global", &table["global_secondary_index"]), ("Local", &table["local_secondary_index"])] {
        for index in indexes.as_array().into_iter().flatten() {
            assert_eq!(index.get("hash_key").is_none(), name == "Local");
            let mut projection = json!({"ProjectionType": index["projection_type"]});
            if let Some(names) = index.get("non_key_attributes") {
                projection["NonKeyAttributes"] = names.clone();
            }
            let index = json!({"IndexName": index["name"], "KeySchema": key(index), "Projection": projection});
            properties[format!("{name}SecondaryIndexes")] = json!([index]);
        }
    }
    properties
}

#[tokio::test]
async fn a_printed_table_passes_and_both_languages_say_the_same() {
    for schema in [
        schema!().with_key_type("orderId", "N".into()),
        schema!(expires_at = "end"),
        schema!(settings = Settings::without_ttl().swept()),
        line().with_key_type("line", "B".into()),
        line().with_index(By::<false>).with_index(By::<true>).with_key_type("day", "N".into()),
        TableSchema::new(r#"a "quoted\name"#, None),
        TableSchema::leases().with_key_name("pk"),
    ] {
        let properties = properties_of(&schema.to_cloudformation("Orders"));
        assert_eq!(in_words_of_cloudformation(&schema.to_terraform("Orders")), properties);
        assert_eq!(said_by(&created(&properties).client(), &schema).await, "", "{properties}");
    }
}

/// No `Record` names Regions, and a type of no key would go unheard.
#[test]
fn what_a_schema_cannot_mean_panics() {
    let wrong: [fn(); 2] = [
        || drop(schema!(settings = Settings::without_ttl().in_regions().kept()).to_cloudformation("Orders")),
        || drop(schema!().with_key_type("orderid", "N".into())),
    ];
    assert!(wrong.into_iter().all(|wrong| std::panic::catch_unwind(wrong).is_err()));
}

#[tokio::test]
async fn the_tool_checks_what_it_has_printed_and_refuses_another_table() {
    for schema in ["--leases", "--idempotency", "--partition-key orderId:N --sort-key line --ttl end"] {
        let run = async |client: Client, more: &str| {
            let line = format!("fencepost check --table Orders {more}");
            let Ok(Command::Check(options)) = parse(line.split(' ').map(Into::into)) else { panic!("{line}") };
            let mut out = Vec::new();
            check(&options, ready(Ok(client)), &mut out).await?;
            Ok::<_, fencepost_cli::Failure>(String::from_utf8(out).expect("text"))
        };
        let print = async |tool: &str| {
            run(Engine::embedded(&[]).client(), &format!("{schema} --print {tool}")).await.expect("a template")
        };
        let properties = properties_of(&print("cloudformation").await);
        assert_eq!(in_words_of_cloudformation(&print("terraform").await), properties);
        let client = created(&properties).client();
        let fine = run(client.clone(), schema).await.expect("it passes");
        assert_eq!(fine, "Orders has the key and the TTL that were asked for.\n");
        let refused = run(client, "--partition-key id").await.expect_err("another key");
        assert_eq!((refused.exit_code(), refused.to_string().lines().count()), (1, 2), "{refused}");
    }
}
